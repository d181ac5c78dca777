"""Requests to clouds: the same paths, headers and bodies as those of the clouds' own clients."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import Client, ConfigurationError, ProviderError
from toolwire.client.addressed_request import base_of
from toolwire.client.cloud_places import filled
from toolwire.client.endpoints import ENDPOINTS
from toolwire.testing import ScriptedTransport

MODEL = "anthropic.claude-sonnet-4-5:0"
HI = [{"role": "user", "content": "Hi."}]
BETAS = {"anthropic-beta": "context-1m-2025-08-07,other"}


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        **{"AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        **{"CLOUD_ML_REGION": "us-east5", "ANTHROPIC_VERTEX_PROJECT_ID": "p-1", "OPENAI_API_VERSION": "2025-04-01"},
        "CLOUDFLARE_ACCOUNT_ID": "acc",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def asked_by(ask: Any) -> Asked:
    """Return the request that a function sends to a server which refuses it."""
    requests: list[Asked] = []

    def refuse(request: Asked) -> Answer:
        requests.append(request)
        return Answer(b'{"error": {"type": "invalid_request_error", "message": "no"}}', status=400)

    with serving(refuse) as base, pytest.raises(Exception, match="no"):
        ask(base)
    (request,) = requests
    return request


def ours(api: str, model: str = MODEL, *, stream: bool, **options: Any) -> Asked:
    def ask(base: str) -> None:
        async def run() -> None:
            async with Client(api, model, base_url=base, **{"key": "k", **options}) as client:
                if stream:
                    async for _ in client.stream("Hi.", max_tokens=9):
                        pass
                else:
                    await client.ask("Hi.", max_tokens=9)

        with pytest.raises(ProviderError, match="no") as raised:
            asyncio.run(run())
        raise raised.value

    return asked_by(ask)


def the_sdk(client: Any, *, stream: bool, headers: dict[str, str] | None = None) -> Asked:
    def ask(base: str) -> None:
        own = client(base)
        if hasattr(own, "messages"):
            own.messages.create(model=MODEL, max_tokens=9, messages=HI, stream=stream, extra_headers=headers)
        else:
            own.chat.completions.create(model=MODEL, max_completion_tokens=9, messages=HI, stream=stream)

    return asked_by(ask)


def sent(request: Asked) -> tuple[str, dict[str, Any]]:
    """Return the path and the body, without the blocks that content may be written in."""
    body = json.loads(request.body)
    body.pop("stream_options", None)  # only our client asks for the token counts of each stream
    body.pop("anthropic_version", None)  # the newest client has a value of its own; see the test of ours
    return request.path.replace("%3A", ":"), body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("headers", [None, BETAS])
def test_bedrock(stream: bool, headers: dict[str, str] | None) -> None:
    pytest.importorskip("boto3")
    anthropic = pytest.importorskip("anthropic")
    keys = {"aws_access_key": "a", "aws_secret_key": "b", "aws_region": "us-west-2"}
    theirs = the_sdk(
        lambda base: anthropic.AnthropicBedrock(base_url=base, max_retries=0, **keys), stream=stream, headers=headers
    )
    request = ours("anthropic_bedrock", stream=stream, extra_headers=headers)
    assert sent(request) == sent(theirs)
    assert request.path.startswith("/model/anthropic.claude")
    assert "Credential=a/" in request.headers["authorization"]
    assert ("anthropic-beta" in request.headers) is False


@pytest.mark.parametrize("stream", [False, True])
def test_vertex(stream: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    place = {"region": "us-east5", "project_id": "p-1", "access_token": "k"}
    theirs = the_sdk(
        lambda base: anthropic.AnthropicVertex(base_url=base, max_retries=0, **place), stream=stream, headers=BETAS
    )
    request = ours("anthropic_vertex", stream=stream, extra_headers=BETAS)
    path, body = sent(theirs)
    assert sent(request) == (path, body | ({"stream": True} if stream else {}) if stream else _without_stream(body))
    for name in ("authorization", "anthropic-beta"):
        assert request.headers[name] == theirs.headers[name]


def _without_stream(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "stream"}


@pytest.mark.parametrize("stream", [False, True])
def test_azure(stream: bool) -> None:
    openai = pytest.importorskip("openai")
    old = the_sdk(
        lambda base: openai.AzureOpenAI(azure_endpoint=base, api_key="k", api_version="2025-04-01", max_retries=0),
        stream=stream,
    )
    request = ours("azure_deployments", stream=stream)
    path = f"/openai/deployments/{MODEL}/chat/completions?api-version=2025-04-01"
    assert request.path.replace("%3A", ":") == old.path == path
    assert sent(request)[1] == (sent(old)[1] if stream else _without_stream(sent(old)[1]))
    assert request.headers["api-key"] == old.headers["api-key"] == "k"
    new = ours("azure", stream=stream)
    assert new.path == "/openai/v1/chat/completions"
    assert new.headers["api-key"] == "k"


def test_beta_that_a_body_needs_is_sent_where_the_cloud_reads_it() -> None:
    request = ours("anthropic_bedrock", stream=False, settings={"compact_at": 60_000}, extra_headers=BETAS)
    assert json.loads(request.body)["anthropic_beta"] == ["context-1m-2025-08-07", "other", "compact-2026-01-12"]
    request = ours("anthropic_vertex", stream=False, settings={"compact_at": 60_000})
    assert request.headers["anthropic-beta"] == "compact-2026-01-12"
    assert "anthropic_beta" not in json.loads(request.body)


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
    ],
)
def test_host_of_a_google_region(region: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_ML_REGION", region)
    url = filled(ENDPOINTS["anthropic_vertex"].base_url, "x", required=True)
    assert url == f"https://{host}/v1"


def test_place_that_the_environment_does_not_name_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_VERTEX_PROJECT_ID")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    with pytest.raises(ConfigurationError, match="anthropic_vertex needs the google project: set ANTHROPIC_VERTEX"):
        Client("anthropic_vertex", "m", key="k").ask_sync("Hi.")
    transport = ScriptedTransport("anthropic_vertex", [toolwire.ParsedResponse("Hello.")])
    assert Client("anthropic_vertex", "m", transport=transport).ask_sync("Hi.").content == "Hello."


@pytest.mark.parametrize("value", ["evil.example/", "a@b", "us-east5#", "..", "a b", "ä"])
def test_place_cannot_change_the_rest_of_an_address(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_ML_REGION", value)
    with pytest.raises(ConfigurationError, match="CLOUD_ML_REGION"):
        Client("anthropic_vertex", "m", key="k").ask_sync("Hi.")


def test_base_url_without_a_path_gets_the_root_of_the_endpoint() -> None:
    azure = ENDPOINTS["azure"]
    assert base_of(azure, "https://r.openai.azure.com/") == "https://r.openai.azure.com/openai/v1"
    assert base_of(azure, "https://proxy.example/llm/v1") == "https://proxy.example/llm/v1"
    assert base_of(ENDPOINTS["openai_chat"], "https://proxy.example") == "https://proxy.example"


def test_a_version_at_the_end_of_a_base_url_is_not_repeated() -> None:
    for name, version in (("anthropic_messages", "v1"), ("gemini", "v1beta"), ("gemini_interactions", "v1beta")):
        for base in (f"https://proxy.example/{version}", f"https://proxy.example/{version}/", "https://proxy.example"):
            assert base_of(ENDPOINTS[name], base) == "https://proxy.example"
        assert (
            base_of(ENDPOINTS[name], f"https://proxy.example/{version}/llm") == f"https://proxy.example/{version}/llm"
        )
    assert base_of(ENDPOINTS["openai_chat"], "https://proxy.example/v1") == "https://proxy.example/v1"
    assert base_of(ENDPOINTS["ollama"], "http://localhost:11434/v1") == "http://localhost:11434/v1"


@pytest.mark.parametrize("name", ["realtime", "openai-realtime", "gemini_live"])
def test_realtime_is_not_supported_yet(name: str) -> None:
    with pytest.raises(toolwire.UnknownApi, match="not supported yet"):
        toolwire.get_api(name)
