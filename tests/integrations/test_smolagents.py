"""smolagents with `ToolwireSmolModel`: calls, streams, errors, usage, cancellation."""

from __future__ import annotations

from typing import Any

import pytest
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

from toolwire import MissingExtra, ParsedResponse, ProviderError, ToolCall, parse

adapter = pytest.importorskip(
    "toolwire.integrations.smolagents", reason="needs scripts/test-frameworks", exc_type=MissingExtra
)
smolagents = pytest.importorskip("smolagents", reason="needs scripts/test-frameworks")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework

END = f'<tool_call>{{"name": "final_answer", "arguments": {{"answer": "{ANSWER}"}}}}</tool_call>'
QUESTION = [{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]


def chat(model: Any, format: str = "hermes", **settings: Any) -> Any:
    return adapter.ToolwireSmolModel(model, format=format, settings=settings)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_agent_runs_parallel_calls(stream: bool) -> None:
    model = WeatherModel(end=(END,))
    agent = smolagents.ToolCallingAgent(
        [smolagents.tool(get_weather)], chat(model), verbosity_level=0, stream_outputs=stream
    )
    assert agent.run("Weather?") == ANSWER
    assert len(model.prompts) == 2 and "rain in Rome" in model.prompts[1][-1]["content"]
    usage = agent.monitor.get_total_token_counts()
    assert usage.input_tokens > 0 and usage.output_tokens > 0


def test_earlier_calls_are_in_the_format_that_the_model_is_asked_for() -> None:
    model = WeatherModel(end=(END,))
    agent = smolagents.ToolCallingAgent([smolagents.tool(get_weather)], chat(model), verbosity_level=0)
    agent.run("Weather?")
    _, _, answer, results = model.prompts[1]
    assert answer["content"].count("<tool_call>") == 2 and "Calling tools" not in answer["content"]
    calls = parse(answer["content"], format="hermes").tool_calls  # smolagents sorts them by their ids
    assert sorted(call.arguments["city"] for call in calls) == ["Paris", "Rome"]
    assert results["role"] == "user" and "rain in Rome" in results["content"]


def test_an_agent_that_writes_code_keeps_its_history() -> None:
    prompts = []

    def model(messages: Any) -> str:
        prompts.append(messages)
        return "<code>\nx = 5\nprint(x)\n</code>" if len(prompts) == 1 else "<code>\nfinal_answer(x)\n</code>"

    assert smolagents.CodeAgent([], chat(model), verbosity_level=0).run("Five?") == 5
    assert "Calling tools" in prompts[1][2]["content"] and "<tool_call>" not in prompts[1][2]["content"]


def test_a_stream_names_a_call_before_its_arguments_are_written() -> None:
    model = WeatherModel(waits=True)
    pieces = []
    for piece in chat(model).generate_stream(QUESTION, tools_to_call_from=[smolagents.tool(get_weather)]):
        pieces.append(piece)
        if any(call.function.name for call in piece.tool_calls or ()):
            model.named.set()
    message = smolagents.models.agglomerate_stream_deltas(pieces)
    assert [call.function.name for call in message.tool_calls] == ["get_weather", "get_weather"]
    assert message.token_usage.output_tokens > 0


def test_a_call_that_is_cut_off_does_not_run() -> None:
    answers = ["".join(cut_off([])), END]
    ran: list[str] = []

    def get_weather(city: str) -> str:
        """Return the weather.

        Args:
            city: the city.
        """
        ran.append(city)
        return "rain"

    tool = smolagents.tool(get_weather)
    agent = smolagents.ToolCallingAgent([tool], chat(lambda messages: answers.pop(0)), verbosity_level=0)
    assert agent.run("Weather?") == ANSWER and ran == [] and answers == []
    with pytest.raises(ProviderError, match="the call of get_weather is incomplete"):
        list(chat(cut_off).generate_stream(QUESTION, tools_to_call_from=[tool]))


def test_structured_output_and_settings_reach_the_model() -> None:
    seen = []

    def model(messages: Any, temperature: float = 1.0, stop: Any = ()) -> str:
        seen.append((temperature, tuple(stop)))
        return "".join(json_in_a_fence(messages))

    schema = {"type": "object", "properties": {"population": {"type": "integer"}}}
    output = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    message = chat(model, temperature=0.5).generate(QUESTION, stop_sequences=["x"], response_format=output)
    assert message.content.strip() == '{"city": "Paris", "population": 2100000}' and seen == [(0.5, ("x",))]


def test_errors_of_the_model_are_raised() -> None:
    with pytest.raises(ProviderError, match="out of memory"):
        chat(fail).generate(QUESTION)


def test_closing_a_stream_stops_the_model() -> None:
    model = EndlessModel()
    pieces = chat(model).generate_stream(QUESTION)
    assert next(pieces).content == "more "
    pieces.close()
    assert model.stopped.wait(60)


def test_a_server_is_a_model_too() -> None:
    call = ToolCall("get_weather", {"city": "Oslo"}, id="call_1")
    message = chat(native_model(ParsedResponse(tool_calls=(call,))), "").generate(QUESTION)
    assert [call.function.arguments for call in message.tool_calls] == [{"city": "Oslo"}]
