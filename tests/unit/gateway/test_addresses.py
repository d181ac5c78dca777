"""Addresses of the gateway: methods that they do not have, pages of other origins, and addresses without a key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import Scripted, asked, gateway, run

from toolwire import ContentDelta, Finish, FinishReason, ProviderError
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.client_apis import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, ClientApi
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.routes import api_at

PAGE = "https://chat.example"


def app(**access: Any) -> Any:
    return gateway(Scripted([ContentDelta("x"), Finish(FinishReason.STOP)]), access=Access(**access))


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/messages", MESSAGES),
        ("/v1/messages/batches", MESSAGES),
        ("/v1/messagesx", CHAT),
        ("/messages/count_tokens", MESSAGES),
        ("/v1/responses/x/cancel", RESPONSES),
        ("/v1beta/models/m:embedContent", GEMINI),
        ("/v1beta/models", GEMINI),
        ("/v1/models", CHAT),
        ("/api/chat", OLLAMA),
        ("/api/pull", OLLAMA),
        ("/v1/embeddings", CHAT),
        ("", CHAT),
    ],
)
def test_the_path_decides_about_the_form_of_a_failure(path: str, api: ClientApi) -> None:
    assert api_at(path) is api


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/messages", 405),
        ("PUT", "/v1/chat/completions", 405),
        ("POST", "/v1/responses/x", 405),
        ("DELETE", "/api/chat", 405),
        ("POST", "/health", 405),
        ("GET", "/v1/messages/batches", 404),
        ("POST", "/api/pull", 404),
    ],
)
def test_an_address_or_a_method_that_does_not_exist_is_an_error_of_the_api(method: str, path: str, status: int) -> None:
    got = run(app(), path, {}, method=method)
    assert got.status == status
    assert got.headers["content-type"] == "application/json"
    assert "error" in got.json
    if path.startswith("/v1/messages"):
        assert got.json["type"] == "error"


def test_a_preflight_of_an_allowed_origin_needs_no_key() -> None:
    headers = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, x-stainless-os",
    }
    got = run(app(keys=("k",), origins=frozenset({PAGE})), "/v1/messages", method="OPTIONS", headers=headers)
    assert (got.status, got.body) == (200, b"")
    assert got.headers["access-control-allow-origin"] == PAGE
    assert got.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
    assert "POST" in got.headers["access-control-allow-methods"]
    assert got.headers["vary"] == "origin, access-control-request-headers"


@pytest.mark.parametrize("origins", [frozenset[str](), frozenset({PAGE})], ids=["none", "another"])
def test_a_preflight_of_another_origin_allows_nothing(origins: frozenset[str]) -> None:
    headers = {"origin": "https://chat.example.evil", "access-control-request-method": "POST"}
    got = run(app(keys=("k",), origins=origins), "/v1/messages", method="OPTIONS", headers=headers)
    assert not any(name.startswith("access-control-allow") for name in got.headers)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_page_of_an_allowed_origin_may_read_answers_and_failures(stream: bool) -> None:
    served = app(keys=("k",), origins=frozenset({PAGE}))
    path, body = asked("chat", stream=stream)
    for key, status in (("k", 200), ("wrong", 401)):
        got = run(served, path, body, headers={"origin": PAGE, "authorization": f"Bearer {key}"})
        assert got.status == status
        assert (got.headers["access-control-allow-origin"], got.headers["vary"]) == (PAGE, "origin")
    got = run(served, path, body, headers={"origin": "https://other.example", "authorization": "Bearer k"})
    assert (got.status, got.headers["vary"]) == (403, "origin")
    assert "access-control-allow-origin" not in got.headers


def test_a_server_without_pages_says_nothing_about_origins() -> None:
    path, body = asked("chat")
    got = run(app(), path, body)
    assert "vary" not in got.headers and "access-control-allow-origin" not in got.headers


def test_health_needs_no_key_and_lists_of_models_do() -> None:
    served = app(keys=("k",))
    statuses = {"/health": 200, "/ready": 200, "/v1/models": 401, "/metrics": 401, "/": 401}
    assert {path: run(served, path, method="GET").status for path in statuses} == statuses


def test_a_gateway_below_a_path_answers_below_it_alone() -> None:
    inner = gateway(Scripted())

    def status(path: str) -> int:
        async def below(scope: Any, receive: Any, send: Any) -> None:
            await inner({**scope, "root_path": "/api"}, receive, send)

        return run(below, path, method="GET").status

    assert status("/api/api/version") == 200
    assert status("/api/version") == 404


def test_a_backend_that_lists_no_models_in_time_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Listing(Scripted):
        def __init__(self, name: str, answer: float | Exception) -> None:
            super().__init__(name=name)
            self.answer = answer

        async def list_models(self) -> list[str]:
            if isinstance(self.answer, Exception):
                raise self.answer
            await asyncio.sleep(self.answer)
            return [self.name]

    backends = (Listing("quick", 0.0), Listing("silent", 3600.0), Listing("refusing", ProviderError("no")))
    app = Gateway(ModelTable([ServedModel("*", backends)]))
    got = run(app, "/v1/models", method="GET")
    assert [model["id"] for model in got.json["data"]] == ["quick"]
    assert "silent did not list its models" in caplog.text and "of refusing cannot be listed: no" in caplog.text
