"""The growing text of one argument."""

import json
from typing import Any

import pytest

import toolwire
from toolwire import StreamParser, watch
from toolwire.events import Event

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "n": {"type": "integer"}},
}
TOOLS = [{"name": "write_file", "parameters": SCHEMA}]
CONTENT = 'line "1"\n\tdef f(): return {"a": "\\"}\n😀 </tool_call>'
CALL = toolwire.ToolCall("write_file", {"path": "a.py", "content": CONTENT, "n": 12})


def events(text: str, size: int, format: str) -> list[Event]:
    parser = StreamParser(format=format, tools=TOOLS)
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return [*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()]


@pytest.mark.mission("E2", "E10", "E19")
@pytest.mark.need(13)
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "forge_xml", "gemma4", "lfm2", "kimi_k3", "minimax_m3"])
def test_it_grows_to_the_value(format: str, size: int) -> None:
    stream = events(toolwire.render_calls([CALL], format=format, tools=TOOLS), size, format)
    grown = list(watch(stream, "content"))
    assert grown[-1] == CONTENT
    assert all(CONTENT.startswith(text) for text in grown)
    assert len(grown) > 10 or size > 3
    assert "".join(watch(stream, "content", deltas=True)) == CONTENT
    assert list(watch(stream, "n")) == ["12"]
    assert list(watch(stream, "content", tool="other")) == list(watch(stream, "missing")) == []


@pytest.mark.parametrize("value", [1.5, True, None, [1, "a"], {"content": "inner"}])
def test_other_values_come_once(value: Any) -> None:
    arguments = {"a": {"content": "no"}, "content": value, "b": "content"}
    text = '<tool_call>{"name": "f", "arguments": ' + json.dumps(arguments) + "}</tool_call>"
    for size in (1, 1000):
        assert [json.loads(text) for text in watch(events(text, size, "hermes"), "content")] == [value]


def test_several_calls_and_a_cut_one() -> None:
    text = "".join(f'<tool_call>{{"name": "f", "arguments": {{"content": "{c}"}}}}</tool_call>' for c in "ab")
    assert list(watch(events(text, 1, "hermes"), "content")) == ["a", "b"]
    assert list(watch(events(text[: text.index('"a"') + 2], 1000, "hermes"), "content"))[-1:] == ["a"]
    assert list(watch(events('<tool_call>{"name": "f", "arguments": {"content": "hal', 1, "hermes"), "content")) == [
        "h",
        "ha",
        "hal",
    ]


def test_an_empty_string_does_not_grow() -> None:
    call = toolwire.ToolCall("write_file", {"path": "", "content": "x"})
    stream = events(toolwire.render_calls([call], format="hermes", tools=TOOLS), 3, "hermes")
    assert list(watch(stream, "path")) == []
