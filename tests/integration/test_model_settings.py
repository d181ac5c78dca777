"""Settings, members of the body and headers, from the client, the backend, the agent, the run and the file."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import ConfigurationError, DefinitionError, Notes, ParsedResponse, ProviderError, ToolCall, tool
from toolwire.agent import Agent, AgentConfig, RunEnded, load_agent
from toolwire.agent.model_pool import Models
from toolwire.agent.run_events import TranslationNoted
from toolwire.config.tables import ModelProfile, SettingsTable, load_configuration
from toolwire.events import Event, Finish
from toolwire.messages import FinishReason, Message
from toolwire.models import (
    ApiBackend,
    Client,
    ModelSettings,
    StreamOptions,
    TextBackend,
    client_source,
    local_source,
)
from toolwire.testing import ScriptedTransport

Requests = list[Asked]


@tool
def tea() -> str:
    """Return the stock of tea."""
    return "three"


def answering(api: str, requests: Requests, *responses: ParsedResponse) -> Callable[[Asked], Answer]:
    """A server of an API that answers with these responses, streamed if it is asked to."""
    remaining = list(responses)
    known = toolwire.get_api(api)

    def answer(asked: Asked) -> Answer:
        requests.append(asked)
        response = remaining.pop(0) if remaining else ParsedResponse("Fine.")
        if json.loads(asked.body).get("stream") or "stream" in asked.path:
            body = b"".join(known.encode_stream(toolwire.replay(response), model="m"))
            return Answer(body, content_type="text/event-stream")
        return Answer(json.dumps(known.encode_response(response, model="m")).encode())

    return answer


def asked_of(
    work: Callable[[str], Awaitable[Any]], *responses: ParsedResponse, api: str = "openai_chat"
) -> tuple[list[dict[str, Any]], Requests]:
    """The bodies and the requests that arrive at a server while something works with it."""
    requests: Requests = []
    with serving(answering(api, requests, *responses)) as base:
        asyncio.run(work(base))  # type: ignore[arg-type]
    return [json.loads(asked.body) for asked in requests], requests


@pytest.mark.parametrize("stream", [False, True])
def test_additions_of_a_client_and_of_a_question_arrive(stream: bool) -> None:
    async def work(base: str) -> None:
        client = Client(
            "openai_chat",
            "m",
            base_url=base,
            settings={"temperature": 1.0, "seed": 1, "metadata": {"a": "b"}},
            extra_body={"store": True, "logit_bias": {"1": 1, "2": 2}},
            extra_headers={"X-Team": "outer", "X-Client": "c", "Content-Type": "application/json; charset=utf-8"},
        )
        options: dict[str, Any] = {
            "temperature": 0.0,
            "extra_body": {"store": None, "logit_bias": {"2": None, "3": 3}, "metadata": {"c": "d"}},
            "extra_headers": {"x-team": "inner"},
            "settings": {"temperature": 0.3, "reasoning_effort": "low", "min_p": 0.1},
        }
        async with client:
            if stream:
                assert [event async for event in client.stream("Hi.", **options)]
            else:
                assert (await client.ask("Hi.", **options)).content == "Fine."

    (body,), (request,) = asked_of(work)
    assert (body["temperature"], body["seed"], body["reasoning_effort"], body["min_p"]) == (0.0, 1, "low", 0.1)
    assert body["metadata"] == {"a": "b", "c": "d"}
    assert body["logit_bias"] == {"1": 1, "3": 3}
    assert "store" not in body
    assert (request.headers["x-team"], request.headers["x-client"]) == ("inner", "c")
    assert request.headers["content-type"] == "application/json; charset=utf-8"


def test_header_can_replace_that_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)

    async def work(base: str) -> None:
        headers = {"Authorization": "Bearer from elsewhere"}
        async with Client("openai_chat", "m", base_url=base, key_env="A_KEY", extra_headers=headers) as client:
            await client.ask("Hi.")

    _, (request,) = asked_of(work)
    assert request.headers["authorization"] == "Bearer from elsewhere"


def test_headers_are_never_shown() -> None:
    def refuse(asked: Asked) -> Answer:
        return Answer(json.dumps({"error": {"message": f"not {asked.headers['x-secret']}"}}).encode(), 401)

    async def work(base: str) -> None:
        async with Client("openai_chat", "m", base_url=base, extra_headers={"X-Secret": "hidden-123"}) as client:
            with pytest.raises(ProviderError, match=re.escape("not [x-secret]")):
                await client.ask("Hi.")
            assert "hidden" not in repr(client)
            assert "hidden" not in repr(StreamOptions(extra_headers={"x": "hidden-123"}))
            assert "hidden" not in repr(AgentConfig(extra_headers={"x": "hidden-123"}))

    with serving(refuse) as base:
        asyncio.run(work(base))


def test_extra_headers_of_bedrock_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")

    async def work(base: str) -> None:
        async with Client("bedrock_converse", "m", base_url=base, extra_headers={"X-Team": "t"}) as client:
            await client.ask("Hi.")

    _, (request,) = asked_of(work, api="bedrock_converse")
    assert request.headers["x-team"] == "t"
    assert "x-team" in request.headers["authorization"]


@pytest.mark.parametrize("text", [False, True])
def test_innermost_settings_count(text: bool) -> None:
    """Those of a run count before those of its agent, its backend and its client; in text as in fields."""
    client_options: Any = {
        "settings": {"temperature": 0.1, "top_p": 0.1, "seed": 1, "max_tokens": 10, "min_p": 1},
        "extra_body": {"user": "client", "a": {"client": 1, "x": 1}},
        "extra_headers": {"x-place": "client", "x-client": "1"},
    }
    backend_options: Any = {
        "settings": {"temperature": 0.2, "top_p": 0.2, "seed": 2},
        "extra_body": {"a": {"backend": 2, "x": 2}},
        "extra_headers": {"x-place": "backend", "x-backend": "2"},
    }
    config = AgentConfig(
        settings={"temperature": 0.3, "top_p": 0.3},
        extra_body={"a": {"agent": 3, "x": 3}},
        extra_headers={"x-place": "agent", "x-agent": "3"},
    )
    run_options: Any = {
        "settings": {"temperature": 0.4, "min_p": 4},
        "extra_body": {"a": {"x": 4}},
        "extra_headers": {"x-place": "run"},
    }

    async def work(base: str) -> None:
        async with Client("openai_chat", "m", base_url=base, **client_options) as client:
            if text:
                backend: Any = TextBackend(client_source(client, **backend_options), format="hermes", model="m")
            else:
                backend = ApiBackend(client, **backend_options)
            agent = Agent(backend, [tea], config, telemetry=False)
            assert await agent.ask("Hi.", **run_options) == "Fine."
            await agent.ask("Hi.")

    (first, second), (request, other) = asked_of(work)
    settings = ("temperature", "top_p", "seed", "max_completion_tokens", "min_p")
    assert [first[name] for name in settings] == [0.4, 0.3, 2, 10, 4]
    assert [second[name] for name in settings] == [0.3, 0.3, 2, 10, 1]
    assert first["a"] == {"client": 1, "backend": 2, "agent": 3, "x": 4}
    assert second["a"] == {"client": 1, "backend": 2, "agent": 3, "x": 3}
    assert first["user"] == "client"
    places = ("x-place", "x-client", "x-backend", "x-agent")
    assert [request.headers[name] for name in places] == ["run", "1", "2", "3"]
    assert other.headers["x-place"] == "agent"


def test_every_request_of_a_run_has_the_settings() -> None:
    async def work(base: str) -> None:
        async with Client("anthropic_messages", "claude-x", base_url=base, key="k") as client:
            config = AgentConfig(settings={"reasoning_effort": 2000, "end_user": "u"})
            await Agent(ApiBackend(client), [tea], config, telemetry=False).ask("How much tea is there?")

    calling = ParsedResponse("", tool_calls=(ToolCall("tea", {}, "1"),), finish_reason=FinishReason.TOOL_CALLS)
    bodies, _ = asked_of(work, calling, api="anthropic_messages")
    assert [body["thinking"] for body in bodies] == [{"type": "enabled", "budget_tokens": 2000}] * 2
    assert [body["metadata"] for body in bodies] == [{"user_id": "u"}] * 2


def test_setting_that_the_api_lacks_is_noted_in_the_events() -> None:
    transport = ScriptedTransport("anthropic", [ParsedResponse("Fine.")])
    client = Client("anthropic", "m", key="k", transport=transport)
    agent = Agent(ApiBackend(client), config=AgentConfig(settings={"seed": 1}), telemetry=False)

    async def work() -> list[str]:
        return [str(event.note) async for event in agent.run("Hi.") if isinstance(event, TranslationNoted)]

    assert "dropped seed: anthropic_messages has no setting for it" in asyncio.run(work())


def test_wrong_settings_of_an_agent_are_reported_at_once() -> None:
    with pytest.raises(TypeError, match="did you mean reasoning_effort"):
        AgentConfig(settings={"reasoning_efort": "high"})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(DefinitionError, match="did you mean high"):
        AgentConfig(settings={"reasoning_effort": "hgh"})  # type: ignore[typeddict-item]
    agent = Agent(ApiBackend(Client("ollama", "m")), telemetry=False)
    with pytest.raises(TypeError, match="did you mean temperature"):
        agent.run("Hi.", settings={"temperatur": 1.0})  # type: ignore[typeddict-unknown-key]


class Local:
    """A model in this process with four settings."""

    def __init__(self) -> None:
        self.options: list[dict[str, Any]] = []

    def stream(
        self, messages: Any, /, *, max_tokens: int = 9, temperature: float = 0.0, seed: int = 0, stop: Any = ()
    ) -> Generator[str | Finish]:
        self.options.append({"max_tokens": max_tokens, "temperature": temperature, "seed": seed, "stop": stop})
        yield "Fine."
        yield Finish(FinishReason.STOP)


def test_text_model_gets_the_settings_that_it_takes_and_notes_the_others() -> None:
    model = Local()
    backend = TextBackend(local_source(model, {"temperature": 0.5, "seed": 1}), format="hermes", model="small")
    settings: ModelSettings = {"seed": 2, "stop": "END", "top_k": 3, "parallel": False}
    config = AgentConfig(settings=settings, extra_body={"x": 1}, extra_headers={"y": "2"})
    agent = Agent(backend, [tea], config, telemetry=False)

    async def work() -> list[str]:
        events = [event async for event in agent.run("Hi.")]
        assert isinstance(events[-1], RunEnded)
        return [str(event.note) for event in events if isinstance(event, TranslationNoted)]

    notes = asyncio.run(work())
    assert model.options == [{"max_tokens": 9, "temperature": 0.5, "seed": 2, "stop": ("END",)}]
    assert notes == [
        f"dropped {name}: small reads text, and has no setting for it"
        for name in ("top_k", "parallel", "extra_body", "extra_headers")
    ]
    with pytest.raises(DefinitionError, match="the model in this process has no setting 'top_k'"):
        local_source(model, {"top_k": 3})


def test_source_is_given_what_its_parameters_name() -> None:
    seen: list[dict[str, Any]] = []

    async def source(messages: list[Message], *, top_p: float | None = None) -> AsyncGenerator[Event]:
        seen.append({"top_p": top_p})
        yield Finish(FinishReason.STOP)

    async def work(notes: Notes) -> None:
        request = toolwire.ChatRequest(top_p=0.5, temperature=0.1)
        backend = TextBackend(source, format="hermes")
        assert [event async for event in backend.stream(request, StreamOptions(notes=notes))]

    notes = Notes()
    asyncio.run(work(notes))
    assert (seen, [note.where for note in notes]) == ([{"top_p": 0.5}], ["temperature"])


def test_file_sets_what_profiles_and_agents_add(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    text = """
        [profiles.one]
        provider = "openai"
        model = "m"
        url = "{base}"
        extra_body = {{ store = true, logit_bias = {{ "1" = 1 }} }}
        extra_headers = {{ x-place = "profile", x-profile = "1" }}

        [profiles.one.settings]
        temperature = 0.1
        reasoning_effort = "low"
        stop = ["A", "B"]
        min_p = 0.2

        [agents.reader]
        settings = {{ temperature = 0.3, reasoning_effort = 3000, metadata = {{ a = "b" }} }}
        extra_body = {{ logit_bias = {{ "2" = 2 }} }}
        extra_headers = {{ x-place = "agent" }}
        """

    async def work(base: str) -> None:
        path.write_text(text.format(base=base))
        async with load_agent(path) as agent:
            await agent.ask("Hi.")

    (body,), (request,) = asked_of(work)
    assert (body["temperature"], body["reasoning_effort"], body["stop"]) == (0.3, "medium", ["A", "B"])
    assert (body["metadata"], body["min_p"], body["store"]) == ({"a": "b"}, 0.2, True)
    assert body["logit_bias"] == {"1": 1, "2": 2}
    assert (request.headers["x-place"], request.headers["x-profile"]) == ("agent", "1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("settings = { temprature = 0.5 }", "toolwire.toml:3: profiles.one.settings: there is no setting 'temprature'; "
         "did you mean temperature?"),
        ('settings = { reasoning_effort = "hard" }', "toolwire.toml:3: profiles.one.settings.reasoning_effort"),
        ("settings = { top_p = 3 }", "toolwire.toml:3: profiles.one.settings.top_p"),
        ("settings = { metadata = { a = 1 } }", "toolwire.toml:3: profiles.one.settings.metadata.a"),
        ("extra_headers = { a = 1 }", "toolwire.toml:3: profiles.one.extra_headers.a"),
    ],
)  # fmt: skip
def test_wrong_settings_of_a_file_are_reported_with_their_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text(f'[profiles.one]\nmodel = "m"\n{line}\n')
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        load_configuration(path)


def test_profile_of_a_model_in_this_process_has_settings_but_no_requests() -> None:
    model = Local()

    async def opened(**fields: Any) -> Any:
        async with Models(load=lambda name: model) as models:
            profile = ModelProfile.model_validate({"provider": "local", "model": "x.gguf", **fields})
            return await models.open(profile, format="hermes")

    backend = asyncio.run(opened(settings={"seed": 5}))
    assert asyncio.run(Agent(backend, telemetry=False).ask("Hi.")) == "Fine."
    assert model.options[0]["seed"] == 5
    with pytest.raises(ConfigurationError, match="has no setting 'top_k'"):
        asyncio.run(opened(settings={"top_k": 5}))
    with pytest.raises(ConfigurationError, match="runs in this process"):
        asyncio.run(opened(extra_headers={"a": "b"}))


def test_table_of_a_file_has_every_setting() -> None:
    assert SettingsTable.model_fields.keys() == ModelSettings.__annotations__.keys()


@pytest.mark.parametrize(
    ("settings", "headers", "betas"),
    [
        ({}, {}, None),
        ({}, {"anthropic-beta": "a"}, "a"),
        ({"compact_at": 60_000}, {}, "compact-2026-01-12"),
        ({"compact_at": 60_000}, {"Anthropic-Beta": "a,b"}, "a,b,compact-2026-01-12"),
    ],
)
def test_compaction_by_anthropic_is_named_in_a_header(
    settings: ModelSettings, headers: dict[str, str], betas: str | None
) -> None:
    async def work(base: str) -> None:
        async with Client("anthropic", "m", base_url=base, settings=settings, extra_headers=headers) as client:
            await client.ask("Hi.")

    _, (request,) = asked_of(work, api="anthropic_messages")
    assert request.headers.get("anthropic-beta") == betas


@pytest.mark.parametrize(("api", "notes"), [("openai_responses", 0), ("openai_chat", 1)])
def test_compaction_of_an_agent_is_asked_of_the_server_or_noted(api: str, notes: int) -> None:
    async def work(base: str) -> list[Any]:
        async with Client(api, "m", base_url=base) as client:
            agent = Agent(ApiBackend(client), config=AgentConfig(settings={"compact_at": 5_000}))
            noted.extend([event async for event in agent.run("Hi.") if isinstance(event, TranslationNoted)])
        return noted

    noted: list[Any] = []
    (body,), _ = asked_of(work, api=api)
    assert len(noted) == notes
    assert ("context_management" in body) == (not notes)
