"""Servers that trim the beginning of an answer take away the white space behind the end of the prompt."""

import pytest

import toolwire
from toolwire.wire.formats import FORMATS

TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALL = toolwire.ToolCall("get_weather", {"city": "Paris"})
PRIMED = [wire.name for wire in FORMATS if wire.primed]


@pytest.mark.parametrize("format", PRIMED)
def test_a_call_behind_the_end_of_the_prompt_needs_no_white_space(format: str) -> None:
    written = toolwire.render_calls([CALL], format=format, tools=[TOOL])
    primed = toolwire.get_format(format).primed
    answer = written.removeprefix(primed).lstrip()
    (call,) = toolwire.parse(answer, format=format, tools=[TOOL]).tool_calls
    assert (call.name, call.arguments) == (CALL.name, CALL.arguments)


def test_a_recipient_at_the_beginning_needs_no_white_space() -> None:
    answer = 'to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}<|call|>'
    (call,) = toolwire.parse(answer, format="harmony").tool_calls
    assert (call.name, call.arguments) == (CALL.name, CALL.arguments)
