"""Folding events, and playing a response back."""

import toolwire
from toolwire import collect, parse, replay

TEXT = """<think>why</think>Look: <tool_call>
{"name": "f", "arguments": {"a": 1}}
</tool_call> and <tool_call>{"name": "g", "arguments": {"b": """


def test_a_replayed_response_folds_into_itself() -> None:
    read = parse(TEXT, format="hermes")
    assert (len(read.tool_calls), len(read.incomplete), len(read.problems)) == (1, 1, 1)
    assert collect(replay(read), raw=TEXT) == read


def test_finish_reasons() -> None:
    assert collect([]).finish_reason == "stop"
    assert parse(TEXT, format="hermes").finish_reason is toolwire.FinishReason.TOOL_CALLS


def test_results_as_text() -> None:
    assert toolwire.ToolResult("1", "f", "as it is").text == "as it is"
    assert toolwire.ToolResult("1", "f", {"é": 1}).text == '{"é": 1}'
    assert not toolwire.ToolResult("1", "f", error="no").success
