"""LiteLLM with `ToolwireLiteLLM`: calls, streams, errors, usage, cancellation."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.integrations.weather_model import (
    ANSWER,
    EndlessModel,
    WeatherModel,
    cut_off,
    fail,
    json_in_a_fence,
    native_model,
)

from toolwire import MissingExtra, ParsedResponse, ToolCall, Usage

pytest.MonkeyPatch().setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it fetches prices from a server otherwise
adapter = pytest.importorskip(
    "toolwire.integrations.litellm", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
litellm = pytest.importorskip("litellm", reason="needs scripts/test-frameworks")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
QUESTION = {"role": "user", "content": "Weather?"}


def slow(messages: Any) -> Iterator[str]:
    yield "It rains"
    time.sleep(30)
    yield "."


async def slow_async(messages: Any) -> AsyncIterator[str]:
    yield "It rains"
    await asyncio.sleep(30)
    yield "."


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that registers a model, and returns the members of a request that name it."""

    def register(model: Any, format: str = "hermes", **settings: Any) -> dict[str, Any]:
        handler = adapter.ToolwireLiteLLM(model, format=format, settings=settings)
        monkeypatch.setattr(litellm, "custom_provider_map", [{"provider": "toolwire", "custom_handler": handler}])
        return {"model": "toolwire/any", "messages": [QUESTION], "tools": TOOLS}

    return register


def with_results(message: Any) -> list[Any]:
    """Return the conversation with the results of an answer's calls."""
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"rain in {json.loads(call.function.arguments)['city']}"}
        for call in message.tool_calls
    ]
    return [QUESTION, message.model_dump(), *results]


def test_parallel_calls_and_their_results(provider: Any) -> None:
    request = provider(WeatherModel())
    first = litellm.completion(**request)
    message = first.choices[0].message
    assert [json.loads(call.function.arguments) for call in message.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert first.choices[0].finish_reason == "tool_calls" and first.usage.completion_tokens > 0
    assert len({call.id for call in message.tool_calls}) == 2 and message.content.strip() == "Let me look."
    second = asyncio.run(litellm.acompletion(**(request | {"messages": with_results(message)})))
    assert second.choices[0].message.content == ANSWER and second.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_several_choices_are_several_answers(provider: Any, is_async: bool) -> None:
    answers = iter(["one", "two", "three"])
    request = provider(lambda messages: next(answers)) | {"n": 2}
    answer = asyncio.run(litellm.acompletion(**request)) if is_async else litellm.completion(**request)
    assert [(choice.index, choice.message.content) for choice in answer.choices] == [(0, "one"), (1, "two")]
    alone = litellm.completion(**(request | {"n": 1}))
    assert answer.usage.prompt_tokens == 2 * alone.usage.prompt_tokens


def test_several_choices_are_asked_for_in_settings_and_extra_members_too(provider: Any) -> None:
    request = provider(lambda messages: "Hello")
    assert len(litellm.completion(**request, extra_body={"n": 3}).choices) == 3
    adapted = adapter.ToolwireLiteLLM(lambda messages: "Hello", format="hermes", settings={"n": 2})
    assert len(adapted.completion([QUESTION], {}).choices) == 2
    assert len(adapted.completion([QUESTION], {"n": 1}).choices) == 1


@pytest.mark.parametrize("count", [0, -1, "2", True])
def test_number_of_choices_is_a_number_from_one(provider: Any, count: Any) -> None:
    with pytest.raises(litellm.exceptions.BadRequestError, match="n must be a number of answers"):
        litellm.completion(**provider(lambda messages: "Hello"), extra_body={"n": count})


def test_stream_of_several_choices_is_an_error(provider: Any) -> None:
    with pytest.raises(litellm.exceptions.BadRequestError, match="a stream has one answer"):
        list(litellm.completion(**provider(lambda messages: "Hello"), n=2, stream=True))


def test_time_limit_counts_for_all_choices_together(provider: Any) -> None:
    asked = 0

    async def model(messages: Any) -> str:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.4)
        return "Hello"

    with pytest.raises(litellm.Timeout, match="took longer than"):
        litellm.completion(**provider(model), n=9, timeout=1, max_retries=0)
    assert asked <= 3


@pytest.mark.parametrize("model", [slow, slow_async])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_model_that_takes_too_long_is_a_timeout(provider: Any, model: Any, stream: bool) -> None:
    request = provider(model) | {"stream": stream, "timeout": 0.5, "max_retries": 0}

    async def ask() -> None:
        answer = await litellm.acompletion(**request)
        _ = [chunk async for chunk in answer]

    with pytest.raises(litellm.Timeout, match="took longer than"):
        list(litellm.completion(**request))
    with pytest.raises(litellm.Timeout, match="took longer than"):
        asyncio.run(ask())


def test_a_stream_names_a_call_before_its_arguments_are_written(provider: Any) -> None:
    model = WeatherModel(waits=True)
    request = provider(model)
    chunks = []
    for chunk in litellm.completion(**request, stream=True, stream_options={"include_usage": True}):
        chunks.append(chunk)
        if any(call.function.name for choice in chunk.choices for call in choice.delta.tool_calls or ()):
            model.named.set()
    built = litellm.stream_chunk_builder(chunks, messages=[QUESTION])
    calls = built.choices[0].message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert built.choices[0].finish_reason == "tool_calls"
    whole = litellm.completion(**provider(WeatherModel())).usage
    assert (built.usage.prompt_tokens, built.usage.completion_tokens) == (whole.prompt_tokens, whole.completion_tokens)
    assert built.usage == chunks[-1].usage


def test_the_details_of_token_counts_arrive(provider: Any) -> None:
    answer = ParsedResponse("Rain.", usage=Usage(100, 20, cached_tokens=30, reasoning_tokens=5))
    request = provider(native_model(answer, answer), "")
    *_, last = litellm.completion(**request, stream=True, stream_options={"include_usage": True})
    for usage in (litellm.completion(**request).usage, last.usage):
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 20, 120)
        assert usage.prompt_tokens_details.cached_tokens == 30
        assert usage.completion_tokens_details.reasoning_tokens == 5


def test_a_stream_without_blocking(provider: Any) -> None:
    async def read() -> str:
        stream = await litellm.acompletion(**provider(lambda messages: iter(["It ", "rains."])), stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert asyncio.run(read()) == "It rains."


def test_reasoning_has_its_own_member(provider: Any) -> None:
    request = provider(lambda messages: "<think>Paris.</think>It rains.")
    message = litellm.completion(**request).choices[0].message
    assert message.reasoning_content == "Paris." and message.content == "It rains."
    deltas = [chunk.choices[0].delta for chunk in litellm.completion(**request, stream=True)]
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "Paris."


def test_a_call_that_is_cut_off_is_no_call(provider: Any) -> None:
    request = provider(cut_off)
    assert not litellm.completion(**request).choices[0].message.tool_calls
    chunks = list(litellm.completion(**request, stream=True))
    built = litellm.stream_chunk_builder(chunks, messages=[QUESTION])
    with pytest.raises(json.JSONDecodeError):
        json.loads(built.choices[0].message.tool_calls[0].function.arguments)


def test_structured_output_and_settings_reach_the_model(provider: Any) -> None:
    seen = []

    def model(messages: Any, temperature: float = 1.0, max_tokens: int = 0) -> str:
        seen.append((temperature, max_tokens))
        return "".join(json_in_a_fence(messages))

    request = provider(model, temperature=0.5)
    schema = {"type": "object", "properties": {"population": {"type": "integer"}}}
    output = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    answer = litellm.completion(**(request | {"tools": None}), response_format=output, max_tokens=50)
    assert json.loads(answer.choices[0].message.content)["population"] == 2100000 and seen == [(0.5, 50)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_errors_of_the_model_are_errors_of_litellm(provider: Any, stream: bool) -> None:
    # In a stream, LiteLLM wraps the error for its router.
    expected = litellm.exceptions.MidStreamFallbackError if stream else litellm.exceptions.BadGatewayError
    with pytest.raises(expected, match="out of memory"):
        list(litellm.completion(**provider(fail), stream=stream, num_retries=0))


def test_a_request_that_no_model_can_get_is_not_tried_again(provider: Any) -> None:
    request = provider(WeatherModel())
    choice = {"type": "function", "function": {"name": "get_wether"}}
    with pytest.raises(litellm.exceptions.BadRequestError, match="did you mean get_weather"):
        litellm.completion(**request, tool_choice=choice)
    with pytest.raises(litellm.exceptions.BadRequestError, match="a tool's name must be text"):
        asyncio.run(litellm.acompletion(**(request | {"tools": [{"type": "function", "function": {"name": ""}}]})))


def test_equal_answers_have_ids_of_their_own(provider: Any) -> None:
    request = provider(WeatherModel())
    first, second = litellm.completion(**request), litellm.completion(**request)
    assert first.id != second.id and first.created > 0


def test_closing_a_stream_stops_the_model(provider: Any) -> None:
    model = EndlessModel()

    async def read() -> None:
        stream = await litellm.acompletion(**provider(model), stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.aclose()

    asyncio.run(read())
    assert model.stopped.wait(60)


def test_a_server_is_a_model_too(provider: Any) -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    message = litellm.completion(**provider(native_model(ParsedResponse(tool_calls=(call,))), "")).choices[0].message
    assert [call.function.arguments for call in message.tool_calls] == ['{"city": "Oslo"}']
