"""Folding events, and playing a response back."""

import pytest

import toolwire
from toolwire import CallEnd, CallStart, ToolCall, collect, parse, replay

TEXT = """<think>why</think>Look: <tool_call>
{"name": "f", "arguments": {"a": 1}}
</tool_call> and <tool_call>{"name": "g", "arguments": {"b": """


@pytest.mark.mission("E2")
def test_a_replayed_response_folds_into_itself() -> None:
    read = parse(TEXT, format="hermes")
    assert (len(read.tool_calls), len(read.incomplete), len(read.problems)) == (1, 1, 1)
    assert collect(replay(read), raw=TEXT) == read


@pytest.mark.need(25)
def test_finish_reasons() -> None:
    assert collect([]).finish_reason == "stop"
    assert parse(TEXT, format="hermes").finish_reason is toolwire.FinishReason.TOOL_CALLS


def test_results_as_text() -> None:
    assert toolwire.ToolResult("1", "f", "as it is").text == "as it is"
    assert toolwire.ToolResult("1", "f", {"é": 1}).text == '{"é": 1}'
    assert not toolwire.ToolResult("1", "f", error="no").success


def test_calls_stand_in_the_order_in_which_they_began() -> None:
    first, second, cut = ToolCall("a", {}, "same"), ToolCall("b", {}, "same"), ToolCall("c", {}, "3")
    events = [
        *(CallStart(0, "a", "same"), CallStart(1, "b", "same"), CallStart(2, "c", "3")),
        *(CallEnd(2, cut, False), CallEnd(1, second, True), CallEnd(0, first, True)),
    ]
    response = collect(events)
    assert response.tool_calls == response.parts == (first, second)
    assert response.incomplete == (cut,)
