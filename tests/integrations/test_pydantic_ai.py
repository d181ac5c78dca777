"""Pydantic AI with `ToolwireModel`: calls, streams, structured output, errors, usage, cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from tests.integrations.weather_model import (
    ANSWER,
    PIECES,
    EndlessModel,
    WeatherModel,
    cut_off,
    fail,
    fail_in_the_middle,
    get_weather,
    invented_turns,
    json_in_a_fence,
    native_model,
)

from toolwire import FinishReason, MissingExtra, ParsedResponse, Problem, ProviderError, ToolCall, Usage
from toolwire.testing import ScriptedBackend

adapter = pytest.importorskip(
    "toolwire.integrations.pydantic_ai", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
ai = pytest.importorskip("pydantic_ai", reason="needs scripts/test-frameworks")
exceptions = pytest.importorskip("pydantic_ai.exceptions", reason="needs scripts/test-frameworks")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework


class City(BaseModel):
    city: str
    population: int


def agent(model: Any, format: str = "hermes", tools: Any = (get_weather,), **options: Any) -> Any:
    return ai.Agent(adapter.ToolwireModel(model, format=format), tools=tools, **options)


def run(agent: Any, *arguments: Any, **options: Any) -> Any:
    """Run an agent in a loop that is closed; `run_sync` leaves one open."""
    return asyncio.run(agent.run(*arguments, **options))


def test_an_agent_runs_parallel_calls() -> None:
    model = WeatherModel()
    result = run(agent(model, instructions="Be brief."), "Weather?")
    assert result.output == ANSWER
    assert result.usage.tool_calls == 2 and result.usage.input_tokens > 0 and result.usage.output_tokens > 0
    calls = [part for message in result.all_messages() for part in message.parts if part.part_kind == "tool-call"]
    assert [call.args_as_dict() for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]
    texts = [part.content for message in result.all_messages() for part in message.parts if part.part_kind == "text"]
    assert [text.strip() for text in texts] == ["Let me look.", ANSWER]  # none for the space between the calls
    first, second = model.prompts
    assert first[0]["content"].startswith("Be brief.") and '"get_weather"' in first[0]["content"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]


def test_a_stream_names_a_call_before_its_arguments_are_written() -> None:
    model = WeatherModel(waits=True)

    async def ask() -> None:
        names = []
        async with agent(model).run_stream_events("Weather?") as events:
            async for event in events:
                if event.event_kind == "part_start" and event.part.part_kind == "tool-call":
                    names.append(event.part.tool_name)
                    model.named.set()
                last = event
        assert names == ["get_weather", "get_weather"] and last.result.output == ANSWER

    asyncio.run(ask())


def test_the_parts_of_calls_behind_a_turn_that_the_model_made_up_say_so() -> None:
    """A program that asks a person before such calls gets these parts as the requests for approval."""
    deferred = ai.Tool(get_weather, requires_approval=True)
    asked = agent(invented_turns, tools=[deferred], output_type=[str, ai.DeferredToolRequests])
    calls = run(asked, "Weather?").output.approvals
    assert [call.args_as_dict() for call in calls] == [{"city": "P"}, {"city": "Q"}, {"city": "R"}]
    assert [call.provider_details for call in calls] == [None, {"confidence": 0.4}, {"confidence": 0.4}]


def test_structured_output_of_a_model_of_text_is_json_in_its_text() -> None:
    result = run(agent(json_in_a_fence, tools=(), output_type=City), "The largest city of France?")
    assert result.output == City(city="Paris", population=2_100_000)


def test_structured_output_may_be_a_call() -> None:
    def model(messages: Any) -> str:
        assert "You must call one of these tools" in messages[0]["content"]
        return '<tool_call>{"name": "final_result", "arguments": {"city": "Paris", "population": 5}}</tool_call>'

    result = run(agent(model, output_type=ai.ToolOutput(City)), "The largest city of France?")
    assert result.output == City(city="Paris", population=5)


def test_a_call_that_is_cut_off_does_not_run() -> None:
    seen: list[Any] = []

    def model(messages: Any) -> str:
        seen.append(messages)
        return "".join(cut_off(messages)) if len(seen) == 1 else ANSWER

    ran: list[str] = []

    def get_weather(city: str = "") -> str:
        """Return the weather."""
        ran.append(city)
        return "rain"

    assert run(agent(model, tools=[get_weather]), "Weather?").output == ANSWER
    assert ran == [] and len(seen) == 2 and "Invalid JSON" in seen[1][-1]["content"]


def test_a_call_that_is_cut_off_after_its_name_does_not_run() -> None:
    ran: list[str] = []

    def now() -> str:
        """Return the time."""
        ran.append("now")
        return "noon"

    answers = ['<tool_call>{"name": "now", ', ANSWER]
    assert run(agent(lambda messages: answers.pop(0), tools=[now]), "Time?").output == ANSWER
    assert ran == [] and answers == []


def test_the_choice_of_a_tool_reaches_the_model() -> None:
    direct = pytest.importorskip("pydantic_ai.direct", reason="needs scripts/test-frameworks")
    models = pytest.importorskip("pydantic_ai.models", reason="needs scripts/test-frameworks")
    tools = pytest.importorskip("pydantic_ai.tools", reason="needs scripts/test-frameworks")
    settings = pytest.importorskip("pydantic_ai.settings", reason="needs scripts/test-frameworks")
    offered = [tools.ToolDefinition(name=name) for name in ("get_weather", "get_time")]
    parameters = models.ModelRequestParameters(function_tools=offered)
    model = WeatherModel()
    expected = {
        "auto": (True, True, False),
        "required": (True, True, True),
        "none": (False, False, False),
        ("get_time",): (False, True, True),
        settings.ToolOrOutput: (True, False, False),
    }
    for choice, (weather, time, required) in expected.items():
        value: Any = list(choice) if isinstance(choice, tuple) else choice
        if choice is settings.ToolOrOutput:
            value = settings.ToolOrOutput(["get_weather"])
        request = direct.model_request(
            adapter.ToolwireModel(model, format="hermes"),
            [ai.ModelRequest.user_text_prompt("Weather?")],
            model_settings={"tool_choice": value},
            model_request_parameters=parameters,
        )
        asyncio.run(request)
        text = model.prompts[-1][0]["content"]
        assert ('"get_weather"' in text, '"get_time"' in text, "You must call" in text) == (weather, time, required)


@pytest.mark.parametrize("strict", [None, True, False])
def test_tools_are_strict_if_the_program_says_so(strict: bool | None) -> None:
    backend = ScriptedBackend([ParsedResponse("Hello")])
    run(agent(backend, "", tools=[ai.Tool(get_weather, strict=strict)]), "Weather?")
    (tool,) = backend.requests[0].tools
    assert tool.annotations.get("strict") is strict


def test_settings_and_images_reach_the_model() -> None:
    seen = []

    def model(messages: Any, temperature: float = 1.0, stop: Any = ()) -> str:
        seen.append((temperature, tuple(stop), messages[-1]["content"]))
        return "Hello"

    image = ai.BinaryContent(b"\x89PNG", media_type="image/png")
    run(agent(model, tools=()), ["What is it?", image], model_settings={"temperature": 0.5, "stop_sequences": ["x"]})
    ((temperature, stop, text),) = seen
    assert (temperature, stop) == (0.5, ("x",)) and text.startswith("What is it?") and "image" in text


def test_every_setting_and_the_profile_reach_the_model() -> None:
    backend = ScriptedBackend([ParsedResponse("Hello", finish_reason=FinishReason.LENGTH)])
    settings = {"max_tokens": 50, "top_p": 0.9, "top_k": 5, "seed": 7, "presence_penalty": 0.1}
    profile = {**adapter.toolwire_profile(is_text=False), "supports_thinking": False}
    model = adapter.ToolwireModel(backend, profile=profile, settings={"frequency_penalty": 0.2, "seed": 1})
    assert model.profile["supports_thinking"] is False
    result = run(ai.Agent(model), "Hello", model_settings={**settings, "parallel_tool_calls": False})
    assert result.all_messages()[-1].finish_reason == "length"
    request = backend.requests[0]
    assert {name: getattr(request, name) for name in settings} == settings
    assert request.frequency_penalty == 0.2 and request.parallel is False


def test_messages_of_every_kind_reach_the_model() -> None:
    models = pytest.importorskip("pydantic_ai.models", reason="needs scripts/test-frameworks")
    picture = ai.BinaryContent(b"\x89PNG", media_type="image/png")
    document = ai.BinaryContent(b"%PDF", media_type="application/pdf")
    shown = [picture, document, ai.CachePoint(), ai.DocumentUrl("http://localhost/a.pdf"), "What?"]
    returned = ai.ToolReturnPart("look", ["a flag", picture], tool_call_id="c1")
    history = [
        ai.ModelRequest([ai.UserPromptPart(shown)]),
        ai.ModelResponse([ai.ThinkingPart("Hm."), ai.ToolCallPart("look", {"at": 1}, "c1")]),
        ai.ModelRequest([returned, ai.RetryPromptPart("no such tool", tool_name="look", tool_call_id="c2")]),
        ai.ModelResponse([]),
        ai.ModelRequest([ai.RetryPromptPart("Answer in a word.")]),
    ]
    backend = ScriptedBackend([ParsedResponse("Red.")])
    asyncio.run(adapter.ToolwireModel(backend).request(history, None, models.ModelRequestParameters()))
    user, answer, result, media, failed, retry = backend.requests[0].messages
    assert [type(part).__name__ for part in user.parts] == ["ImagePart", "FilePart", "FilePart", "TextPart"]
    assert [part.media_type for part in user.parts[:3]] == ["image/png", "application/pdf", "application/pdf"]
    assert [type(part).__name__ for part in answer.parts] == ["ReasoningPart", "ToolCall"]
    assert (result.parts[0].call_id, result.parts[0].error) == ("c1", None) and "a flag" in result.parts[0].text
    assert media.role == "user" and [part.media_type for part in media.parts if hasattr(part, "media_type")]
    assert failed.parts[0].call_id == "c2" and "no such tool" in failed.parts[0].error
    assert retry.role == "user" and "Answer in a word." in retry.text


def test_a_tool_that_fails_gives_an_error() -> None:
    def look(at: str) -> str:
        """Look at something."""
        raise ai.ModelRetry("it is dark")

    call = ToolCall("look", {"at": "it"}, id="c")
    backend = ScriptedBackend([ParsedResponse(tool_calls=(call,)), ParsedResponse("Nothing.")])
    assert run(agent(backend, "", tools=[look]), "Look.").output == "Nothing."
    (result,) = backend.requests[1].messages[-1].parts
    assert "it is dark" in result.error and "{" not in result.error


def test_output_tools_stay_without_other_tools() -> None:
    call = ToolCall("final_result", {"city": "Paris", "population": 1}, id="c")
    backend = ScriptedBackend([ParsedResponse(tool_calls=(call,))])
    asked = agent(backend, "", output_type=City)
    assert run(asked, "The largest city?", model_settings={"tool_choice": "none"}).output.city == "Paris"
    (request,) = backend.requests
    assert [tool.name for tool in request.tools] == ["final_result"] and request.tool_choice.mode == "required"


def test_white_space_is_not_a_text() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="c")
    native = ScriptedBackend([ParsedResponse("\n", tool_calls=(call,)), ParsedResponse("Rain.")])
    kinds = [part.part_kind for part in run(agent(native, ""), "Weather?").all_messages()[1].parts]
    assert kinds == ["tool-call"]
    blank = ScriptedBackend([ParsedResponse("\n"), ParsedResponse("Rain.")])
    assert run(agent(blank, ""), "Weather?").output == "Rain."


def test_a_call_that_is_cut_off_has_no_confidence() -> None:
    cut = ToolCall("get_weather", {}, id="c", confidence=0.4)
    backend = ScriptedBackend([ParsedResponse("Hm.", incomplete=(cut,)), ParsedResponse("Rain.")])
    first = run(agent(backend, ""), "Weather?").all_messages()[1]
    (call,) = [part for part in first.parts if part.part_kind == "tool-call"]
    assert call.provider_details is None


@pytest.mark.parametrize(("thinking", "effort"), [(True, "medium"), (False, "none"), ("high", "high")])
def test_thinking_is_the_effort_of_reasoning(thinking: Any, effort: str) -> None:
    server = native_model(ParsedResponse("Hello"), ParsedResponse("Hello"))
    run(agent(server, "", tools=()), "Hello", model_settings={"thinking": thinking})
    run(agent(server, "", tools=()), "Hello")
    first, second = server._transport.requests
    assert first["reasoning_effort"] == effort and "reasoning_effort" not in second


def test_a_message_of_the_model_before_is_sent_back() -> None:
    model = WeatherModel()
    first = run(agent(model), "Weather?")
    again = run(agent(model), "Thanks.", message_history=first.all_messages())
    assert again.output and [message["role"] for message in model.prompts[-1]][-2:] == ["assistant", "user"]


def test_errors_of_the_model_are_those_of_the_framework() -> None:
    with pytest.raises(exceptions.ModelAPIError, match="out of memory") as raised:
        run(agent(fail), "Weather?")
    assert isinstance(raised.value.__cause__, ProviderError)
    with pytest.raises(exceptions.ModelAPIError, match="out of memory"):
        run(agent(fail_in_the_middle), "Weather?")
    problem = Problem("provider_error", 0, "", "overloaded", status=529)
    failed = ParsedResponse(problems=(problem,), finish_reason=FinishReason.ERROR)
    with pytest.raises(exceptions.ModelHTTPError, match="overloaded") as http:
        run(agent(ScriptedBackend([failed]), ""), "Weather?")
    assert http.value.status_code == 529


def test_another_model_may_answer_instead() -> None:
    fallback = pytest.importorskip("pydantic_ai.models.fallback", reason="needs scripts/test-frameworks")
    models = [adapter.ToolwireModel(model, format="hermes") for model in (fail, lambda messages: "Hello")]
    one = ai.Agent(fallback.FallbackModel(*models))
    assert run(one, "Hello").output == "Hello"

    async def stream() -> str:
        async with one.run_stream("Hello") as result:
            return str(await result.get_output())

    assert asyncio.run(stream()) == "Hello"


def test_cancelling_stops_the_model() -> None:
    async def ask() -> None:
        model = EndlessModel()
        async with agent(model).run_stream("Weather?") as result:
            async for _ in result.stream_text(debounce_by=None):
                break
            await result.cancel()
        assert model.stopped.wait(60)
        model = EndlessModel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent(model).run("Weather?"), 0.2)
        assert model.stopped.wait(60)

    asyncio.run(ask())


def test_a_server_is_a_model_too() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    usage = Usage(100, 20, cached_tokens=30, reasoning_tokens=5)
    server = native_model(ParsedResponse(tool_calls=(call,)), ParsedResponse("Rain.", usage=usage))
    result = run(agent(server, ""), "Weather?")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cache_read_tokens) == (100, 20, 30)
    assert result.usage.details == {"reasoning_tokens": 5}
    assert result.output == "Rain." and result.all_messages()[2].parts[0].content == "rain in Oslo"
    assert adapter.toolwire_profile(is_text=False)["default_structured_output_mode"] == "tool"


def test_calls_in_the_text_of_a_server_are_read() -> None:
    server = native_model(ParsedResponse("".join(PIECES)), ParsedResponse(ANSWER))
    assert run(agent(server), "Weather?").output == ANSWER
