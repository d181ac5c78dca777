"""Backends that cannot be asked, because the environment lacks their key: that is said at the start."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import request

from toolwire.agent.model_pool import Models
from toolwire.client.transport import HttpTransport
from toolwire.config.tables import Configuration
from toolwire.gateway.app import Gateway
from toolwire.gateway.model_loading import load_models
from toolwire.gateway.model_table import ModelTable

READY = {"provider": "openai_compatible", "model": "m", "url": "http://127.0.0.1:9/v1"}
TEXT = {"tools": {"definition_format": "hermes"}}
UNREADY: dict[str, tuple[dict[str, Any], str]] = {
    "the provider's key": ({"provider": "anthropic", "model": "claude"}, "set ANTHROPIC_API_KEY in the environment"),
    "a key of its own": ({**READY, "key_env": "GATEWAY_TEST_KEY"}, "set GATEWAY_TEST_KEY in the environment"),
    "a model of text": ({**READY, **TEXT, "key_env": "GATEWAY_TEST_KEY"}, "set GATEWAY_TEST_KEY in the environment"),
    "a place": ({"provider": "cloudflare", "model": "m"}, "CLOUDFLARE_ACCOUNT_ID"),
    "a signature": ({"provider": "bedrock_converse", "model": "m"}, "no AWS credentials"),
}


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "GATEWAY_TEST_KEY", "CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


def ready(models: ModelTable) -> tuple[int, Any]:
    got = asyncio.run(request(Gateway(models), "/ready", method="GET"))
    return got.status, got.json


def load(**profiles: dict[str, Any]) -> ModelTable:
    async def work() -> ModelTable:
        async with Models(transport=HttpTransport()) as models:
            return await load_models(Configuration.model_validate({"profiles": profiles}), models)

    return asyncio.run(work())


@pytest.mark.parametrize(("profile", "reason"), UNREADY.values(), ids=UNREADY)
def test_a_backend_that_lacks_something_is_named_beside_others(profile: dict[str, Any], reason: str) -> None:
    models = load(good=READY, bad=profile)
    unready = asyncio.run(models.unready())
    assert list(unready) == ["bad"]
    assert reason in unready["bad"]
    assert ready(models) == (
        200,
        {"status": "ok", "backends": "1 of 2 cannot be asked: the log of the start says why"},
    )


@pytest.mark.parametrize(("profile", "reason"), UNREADY.values(), ids=UNREADY)
def test_a_gateway_without_any_backend_that_can_be_asked_is_not_ready(profile: dict[str, Any], reason: str) -> None:
    status, answer = ready(load(bad=profile))
    assert (status, answer["status"]) == (503, "not ready")


def test_nothing_is_said_about_backends_that_need_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    models = load(plain=READY, text={**READY, **TEXT}, cloud={"provider": "anthropic", "model": "claude"})
    assert asyncio.run(models.unready()) == {}
    assert ready(models) == (200, {"status": "ok"})


def test_a_gateway_is_ready_once_the_file_is_mended() -> None:
    models = load(bad=UNREADY["a key of its own"][0])
    assert ready(models)[0] == 503
    models.replace(load(good=READY))
    assert ready(models) == (200, {"status": "ok"})


def test_a_gateway_is_ready_once_credentials_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    models = load(bad=UNREADY["a key of its own"][0])
    assert ready(models)[0] == 503
    monkeypatch.setenv("GATEWAY_TEST_KEY", "k")  # as a machine of a cloud gets its credentials after a while
    assert ready(models) == (200, {"status": "ok"})


def test_a_gateway_of_other_backends_is_ready() -> None:
    assert ready(ModelTable([])) == (200, {"status": "ok"})


def test_a_backend_that_could_be_asked_once_is_not_looked_at_again() -> None:
    looks: list[str] = []

    def check(name: str, reason: str) -> str:
        looks.append(name)
        return reason

    models = ModelTable([], {"good": lambda: check("good", ""), "bad": lambda: check("bad", "it has no key")})
    for _ in range(2):
        assert asyncio.run(models.unready()) == {"bad": "it has no key"}
    assert looks == ["good", "bad", "bad"]
