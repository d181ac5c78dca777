"""The OpenAI Agents SDK with `ToolwireAgentsModel`: calls, streams, structured output, errors, usage, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel
from tests.integrations.weather_model import (
    ANSWER,
    EndlessModel,
    WeatherModel,
    cut_off,
    fail,
    get_weather,
    json_in_a_fence,
    native_model,
)

from toolwire import Client, FinishReason, MissingExtra, ParsedResponse, ProviderError, ToolCall, Usage
from toolwire.testing import ScriptedBackend, ScriptedTransport

adapter = pytest.importorskip(
    "toolwire.integrations.openai_agents", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
agents = pytest.importorskip("agents", reason="needs scripts/test-frameworks")
agents.set_tracing_disabled(True)
pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework


class City(BaseModel):
    city: str
    population: int


def agent(model: Any, format: str = "hermes", **options: Any) -> Any:
    options.setdefault("tools", [agents.function_tool(get_weather)])
    return agents.Agent("weather", model=adapter.ToolwireAgentsModel(model, format=format), **options)


def run(*arguments: Any) -> Any:
    return asyncio.run(agents.Runner.run(*arguments))


def test_an_agent_runs_parallel_calls() -> None:
    model = WeatherModel()
    result = run(agent(model, instructions="Be brief."), "Weather?")
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert result.final_output == ANSWER and outputs == ["rain in Paris", "rain in Rome"]
    assert result.context_wrapper.usage.input_tokens > 0 and result.context_wrapper.usage.output_tokens > 0
    first, second = model.prompts
    assert first[0]["content"].startswith("Be brief.") and '"get_weather"' in first[0]["content"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]


def test_several_answers_are_refused() -> None:
    with pytest.raises(agents.UserError, match="one answer"):
        run(agent(WeatherModel(), model_settings=agents.ModelSettings(extra_args={"n": 2})), "Weather?")


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "stream"])
def test_a_tool_has_the_name_that_its_author_gave_it(is_streamed: bool) -> None:
    name = "weather/get.it"
    weather = WeatherModel()

    def model(messages: list[dict[str, str]]) -> Iterator[str]:
        return (piece.replace("get_weather", name) for piece in weather(messages))

    subject = agent(model, tools=[agents.function_tool(get_weather, name_override=name)])
    result = asyncio.run(_last(subject, is_streamed))
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert outputs == ["rain in Paris", "rain in Rome"]


def test_a_stream_names_a_call_before_its_arguments_are_written() -> None:
    model = WeatherModel(waits=True)

    async def ask() -> None:
        result = agents.Runner.run_streamed(agent(model), "Weather?")
        async for event in result.stream_events():
            data = event.data if event.type == "raw_response_event" else None
            if data is not None and data.type == "response.output_item.added" and data.item.type == "function_call":
                assert data.item.name == "get_weather"
                model.named.set()
        assert result.final_output == ANSWER and result.context_wrapper.usage.output_tokens > 0

    asyncio.run(ask())


def test_structured_output_is_json_in_the_text() -> None:
    result = run(agent(json_in_a_fence, tools=[], output_type=City), "The largest city of France?")
    assert result.final_output == City(city="Paris", population=2_100_000)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_call_that_is_cut_off_does_not_run(streams: bool) -> None:
    ran: list[str] = []

    def get_weather(city: str = "") -> str:
        """Return the weather."""
        ran.append(city)
        return "rain"

    answers = ["".join(cut_off([])), ANSWER]
    cut = agent(lambda messages: answers.pop(0), tools=[agents.function_tool(get_weather)])

    assert asyncio.run(_last(cut, streams)).final_output == ANSWER  # the model was asked again
    assert ran == []


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_handoff_that_is_cut_off_is_not_followed(streams: bool) -> None:
    text = '<tool_call>{"name": "transfer_to_weather", "arguments": {'
    cut = agent(lambda messages: text, tools=[], handoffs=[agent(WeatherModel())])
    with pytest.raises(agents.ModelBehaviorError, match="transfer_to_weather is incomplete"):
        asyncio.run(_last(cut, streams))


async def _last(first: agents.Agent[Any], streams: bool) -> Any:
    if not streams:
        return await agents.Runner.run(first, "Weather?")
    result = agents.Runner.run_streamed(first, "Weather?")
    async for _ in result.stream_events():
        pass
    return result


def test_a_handoff_is_a_call() -> None:
    def desk(messages: Any) -> str:
        assert '"transfer_to_weather"' in messages[0]["content"]
        return '<tool_call>{"name": "transfer_to_weather", "arguments": {}}</tool_call>'

    first = agents.Agent(
        "desk", model=adapter.ToolwireAgentsModel(desk, format="hermes"), handoffs=[agent(WeatherModel())]
    )
    result = run(first, "Weather?")
    assert result.final_output == ANSWER and result.last_agent.name == "weather"


def test_settings_and_choices_reach_the_model() -> None:
    seen = []

    def model(messages: Any, temperature: float = 1.0) -> str:
        seen.append((temperature, messages[0]["content"]))
        return "Hello"

    for choice in ("required", "get_weather"):
        run(agent(model, model_settings=agents.ModelSettings(temperature=0.5, tool_choice=choice)), "Hello")
    assert all(temperature == 0.5 and "You must call one of these tools" in text for temperature, text in seen)
    backend = ScriptedBackend([ParsedResponse("Hello")] * 2)
    for choice in ("get_weather", "none"):
        run(agent(backend, "", model_settings=agents.ModelSettings(tool_choice=choice)), "Hello")
    named, none = (request.tool_choice for request in backend.requests)
    assert (named.mode, named.names) == ("required", ("get_weather",)) and none.mode == "none"
    with pytest.raises(agents.UserError, match="runs at OpenAI"):
        run(agent(model, tools=[agents.WebSearchTool()]), "Hello")


def test_settings_that_the_sdk_has_no_name_for_are_extra_arguments() -> None:
    seen = []

    def model(messages: Any, stop: Any = (), seed: int = 0, presence_penalty: float = 0.0) -> str:
        seen.append((list(stop), seed, presence_penalty))
        return "Hello"

    settings = agents.ModelSettings(presence_penalty=0.5, extra_args={"stop": ["Observation:"], "seed": 7})
    run(agent(model, model_settings=settings), "Hello")
    assert seen == [(["Observation:"], 7, 0.5)]
    server = native_model(ParsedResponse("Hello"))
    run(agent(server, "", model_settings=agents.ModelSettings(reasoning={"effort": "low"})), "Hello")
    assert server._transport.requests[0]["reasoning_effort"] == "low"


@pytest.mark.parametrize("reasoning", [{"summary": "auto"}, {"effort": "low", "summary": "detailed"}])
def test_summaries_of_reasoning_are_asked_for(reasoning: dict[str, str]) -> None:
    transport = ScriptedTransport("openai_responses", [ParsedResponse("Hello")])
    server = Client("openai_responses", "m", base_url="http://127.0.0.1:9", transport=transport)
    run(agent(server, "", model_settings=agents.ModelSettings(reasoning=reasoning)), "Hello")
    assert transport.requests[0]["reasoning"] == reasoning


def test_members_of_requests_reach_a_server() -> None:
    transport = ScriptedTransport("openai_responses", [ParsedResponse("Hello")])
    server = Client("openai_responses", "m", base_url="http://127.0.0.1:9", transport=transport)
    compaction = [{"type": "compaction", "compact_threshold": 200_000}]
    members = {"top_logprobs": 2, "prompt_cache_retention": "24h", "context_management": compaction}
    settings = agents.ModelSettings(
        verbosity="low", store=False, truncation="auto", extra_body={"x": 1}, response_include=["a"], **members
    )
    run(agent(server, "", model_settings=settings), "Hello")
    (body,) = transport.requests
    assert (body["text"], body["store"], body["truncation"], body["x"]) == ({"verbosity": "low"}, False, "auto", 1)
    assert body["include"] == ["a", "message.output_text.logprobs"]
    assert {name: body[name] for name in members} == members
    with pytest.warns(UserWarning, match="extra_query"):
        run(agent(WeatherModel(), model_settings=agents.ModelSettings(extra_query={"v": "1"})), "Weather?")

    seen = []

    def model(messages: Any, extra_body: Any = None, extra_headers: Any = None) -> str:
        seen.append((extra_body, extra_headers))
        return "Hello"

    headers = {"X-Team": "red", "X-None": openai.omit}
    run(agent(model, model_settings=agents.ModelSettings(extra_body={"x": 1}, extra_headers=headers)), "Hello")
    assert seen == [({"x": 1}, {"X-Team": "red"})]


@pytest.mark.parametrize("strict", [True, False])
def test_tools_and_handoffs_are_as_strict_as_in_the_sdk(strict: bool) -> None:
    backend = ScriptedBackend([ParsedResponse("Hello")])
    handoff = agents.handoff(agents.Agent("desk"))
    handoff.strict_json_schema = strict
    tools = [agents.function_tool(get_weather, strict_mode=strict)]
    run(agent(backend, "", tools=tools, handoffs=[handoff]), "Hello")
    assert [tool.annotations["strict"] for tool in backend.requests[0].tools] == [strict, strict]


def test_every_setting_reaches_the_model() -> None:
    backend = ScriptedBackend([ParsedResponse("Hello")] * 2)
    settings = agents.ModelSettings(
        top_p=0.9, max_tokens=50, frequency_penalty=0.1, parallel_tool_calls=False, metadata={"team": "red"}
    )
    run(agent(backend, "", model_settings=settings), "Hello")
    request = backend.requests[0]
    assert (request.top_p, request.max_tokens, request.frequency_penalty) == (0.9, 50, 0.1)
    assert request.parallel is False and request.metadata == {"team": "red"} and request.output is None
    more = {"service_tier": "flex", "seed": 7, "prompt_cache_key": "weather"}
    run(agent(backend, "", model_settings=agents.ModelSettings(extra_args=more)), "Hello")
    assert backend.requests[1].seed == 7 and backend.requests[1].parallel is None
    assert backend.requests[1].service_tier == "flex"
    assert backend.requests[1].extra == {"prompt_cache_key": "weather"}


def test_a_member_of_the_output_is_asked_for_once() -> None:
    backend = ScriptedBackend([ParsedResponse("Hello")])
    logprobs = "message.output_text.logprobs"
    settings = agents.ModelSettings(top_logprobs=2, response_include=[logprobs])
    run(agent(backend, "", model_settings=settings), "Hello")
    assert str(backend.requests[0]).count(logprobs) == 1


@pytest.mark.parametrize("strict", [True, False])
def test_a_schema_of_the_output_is_as_strict_as_in_the_sdk(strict: bool) -> None:
    backend = ScriptedBackend(['{"city": "Paris", "population": 1}'])
    output_type = agents.AgentOutputSchema(City, strict_json_schema=strict)
    run(agent(backend, "", tools=[], output_type=output_type), "The largest city?")
    output = backend.requests[0].output
    assert output is not None and output.strict is strict and "population" in output.schema["properties"]
    assert run(agent(WeatherModel(), output_type=agents.AgentOutputSchema(str)), "Weather?").final_output == ANSWER


def test_the_details_of_token_counts_arrive() -> None:
    usage = Usage(100, 20, cached_tokens=30, reasoning_tokens=5)
    counted = run(agent(ScriptedBackend([ParsedResponse("Rain.", usage=usage)]), ""), "?").context_wrapper.usage
    assert (counted.requests, counted.input_tokens, counted.output_tokens, counted.total_tokens) == (1, 100, 20, 120)
    assert counted.input_tokens_details.cached_tokens == 30
    assert counted.output_tokens_details.reasoning_tokens == 5


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("", None), ("2.5", 2.5), ("Sun, 29 Nov 2026 00:00:00 GMT", None)]
)
def test_advice_on_retries_has_the_pause_that_the_server_asks_for(retry_after: str, seconds: float | None) -> None:
    error = ProviderError("too many requests", status=429, retry_after=retry_after)
    model = adapter.ToolwireAgentsModel(fail, format="hermes")
    advice = model.get_retry_advice(SimpleNamespace(error=error))
    assert (advice.retry_after, advice.normalized.status_code) == (seconds, 429)
    assert model.get_retry_advice(SimpleNamespace(error=ValueError())) is None


def traced(agent: Any, *, streams: bool = False, **options: Any) -> list[dict[str, Any]]:
    """Return the spans of the answers of a model."""
    spans: list[dict[str, Any]] = []

    class Spans(agents.tracing.TracingProcessor):
        def on_span_end(self, span: Any) -> None:
            if span.span_data.type == "generation":
                spans.append({"error": span.error, **span.span_data.export()})

        def on_trace_start(self, trace: Any) -> None: ...
        def on_trace_end(self, trace: Any) -> None: ...
        def on_span_start(self, span: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

    async def ask() -> None:
        config = agents.RunConfig(**options)
        if not streams:
            await agents.Runner.run(agent, "Weather?", run_config=config)
            return
        async for _ in agents.Runner.run_streamed(agent, "Weather?", run_config=config).stream_events():
            pass

    agents.set_trace_processors([Spans()])
    agents.set_tracing_disabled(False)
    try:
        asyncio.run(ask())
    except (ProviderError, agents.ModelBehaviorError):  # the SDK raises the second one where a stream was cut off
        pass
    finally:
        agents.set_tracing_disabled(True)
        agents.set_trace_processors([])
    return spans


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_each_answer_is_a_span_of_the_trace(streams: bool) -> None:
    settings = agents.ModelSettings(temperature=0.5, extra_headers={"X-Key": "secret"})
    first, second = traced(agent(WeatherModel(), instructions="Be brief.", model_settings=settings), streams=streams)
    assert first["model"] == "toolwire" and first["model_config"] == {"temperature": 0.5}
    assert [message["role"] for message in first["input"]] == ["system", "user"]
    assert [item["type"] for item in first["output"]] == ["message", "function_call", "function_call"]
    assert first["usage"]["input_tokens"] > 0 and second["usage"]["output_tokens"] > 0
    hidden, _ = traced(agent(WeatherModel()), streams=streams, trace_include_sensitive_data=False)
    assert not hidden["input"] and not hidden["output"] and hidden["usage"]
    assert [item["content"] for item in second["input"][:2]] == ["Be brief.", "Weather?"]
    (alone,) = traced(agent(lambda messages: "Hello"), streams=streams)
    assert [message["role"] for message in alone["input"]] == ["user"]
    (failed,) = traced(agent(fail), streams=streams)
    assert "out of memory" in failed["error"]["data"]["error"]
    (failed,) = traced(agent(fail), streams=streams, trace_include_sensitive_data=False)
    assert failed["error"]["data"]["error"] == "ProviderError"
    cut = ParsedResponse("It ra", finish_reason=FinishReason.LENGTH)
    (short,) = traced(agent(ScriptedBackend([cut]), ""), streams=streams)
    assert short["output"][0]["content"][0]["text"] == "It ra"
    assert traced(agent(WeatherModel()), streams=streams, tracing_disabled=True) == []


def test_policies_of_retries_see_the_status() -> None:
    asked = 0

    def flaky(messages: Any) -> str:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise ValueError("out of memory")
        return "Hello"

    retry = agents.ModelRetrySettings(
        max_retries=3, policy=agents.retry_policies.http_status([502]), backoff={"initial_delay": 0.01}
    )
    assert run(agent(flaky, model_settings=agents.ModelSettings(retry=retry)), "Hello").final_output == "Hello"
    assert asked == 3


@pytest.mark.parametrize("policy, retries", [("network_error", 2), ("http_status", 1)])
def test_server_that_cannot_be_reached_is_an_error_of_the_network(policy: str, retries: int) -> None:
    asked = 0

    async def unreachable(messages: Any) -> str:
        nonlocal asked
        asked += 1
        raise ProviderError("the server cannot be reached") from httpx.ConnectError("refused")

    policies = agents.retry_policies
    chosen = policies.http_status([502]) if policy == "http_status" else policies.network_error()
    retry = agents.ModelRetrySettings(max_retries=1, policy=chosen, backoff={"initial_delay": 0.01})
    with pytest.raises(ProviderError, match="cannot be reached"):
        run(agent(unreachable, model_settings=agents.ModelSettings(retry=retry)), "Hello")
    assert asked == retries


def test_errors_of_the_model_are_raised() -> None:
    with pytest.raises(ProviderError, match="out of memory"):
        run(agent(fail), "Weather?")


def test_closing_a_stream_stops_the_model() -> None:
    async def ask() -> None:
        model = EndlessModel()
        options = ("Hello", "Weather?", agents.ModelSettings(), [], None, [], None)
        async with aclosing(adapter.ToolwireAgentsModel(model, format="hermes").stream_response(*options)) as events:
            async for event in events:
                if event.type == "response.output_text.delta":
                    break
        assert model.stopped.wait(60)
        model = EndlessModel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agents.Runner.run(agent(model), "Weather?"), 0.5)
        assert model.stopped.wait(60)

    asyncio.run(ask())


def test_a_server_is_a_model_too() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    server = native_model(ParsedResponse(tool_calls=(call,)), ParsedResponse("Rain."))
    assert run(agent(server, ""), "Weather?").final_output == "Rain."
