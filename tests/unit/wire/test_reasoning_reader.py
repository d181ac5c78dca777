"""Reasoning without calls, and calls without reasoning: what each of the two readers leaves to the other."""

from __future__ import annotations

import pytest

from toolwire import ContentDelta, StreamParser, ToolCall, ToolDefinition, parse, render_calls
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

CALL = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize("format", ["auto", "qwen3_coder"])
def test_markers_of_reasoning_are_content_to_a_reader_of_calls(format: str) -> None:
    response = parse(f"<think>a</think>{CALL}", format=format, only="calls")
    assert (response.content, response.reasoning) == ("<think>a</think>", "")
    assert [call.name for call in response.tool_calls] == ["f"]


@pytest.mark.parametrize("format", ["auto", "qwen3_coder"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_everything_behind_the_reasoning_is_content_as_it_was_written(size: int, format: str) -> None:
    parser = StreamParser(format=format, only="reasoning")
    text = f"<think>Hm.</think>So:\n{CALL}\n<think>b</think>{CALL}"
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    assert not parser.feed("")
    events += parser.finish()
    content = "".join(event.text for event in events if isinstance(event, ContentDelta))
    assert content == text.removeprefix("<think>Hm.</think>")


@pytest.mark.parametrize("size", [1, 1000])
def test_a_call_that_begins_the_text_is_left_whole(size: int) -> None:
    parser = StreamParser(format="qwen3_coder", only="reasoning", reasoning_started=True)
    events = [event for at in range(0, len(CALL), size) for event in parser.feed(CALL[at : at + size])]
    assert "".join(event.text for event in [*events, *parser.finish()] if isinstance(event, ContentDelta)) == CALL


def test_text_without_a_call_is_not_repeated_at_the_end() -> None:
    for text in ("<think>Hm.</think>", "<think>Hm. <tool_call>", "Hello <tool_cal", "Hello"):
        response = parse(text, format="qwen3_coder", only="reasoning")
        assert response.reasoning + response.content == text.replace("<think>", "").replace("</think>", "")


def test_text_that_was_read_is_not_kept() -> None:
    parser = StreamParser(format="qwen3_coder", only="reasoning")
    pieces = ["<think>", *["word " * 10] * 50, "<tool_ca"]
    for piece in pieces:
        parser.feed(piece)
    reader = parser._reader
    assert 0 < reader.scanned <= 2 * len("".join(pieces))
    assert reader.held == len("<tool_ca") and len(reader._unread) <= 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "wire", [wire for wire in FORMATS if "any prompted model" in wire.models], ids=lambda wire: wire.name
)
def test_formats_for_any_model_know_the_reasoning_of_most_models(wire: WireFormat) -> None:
    tools = [ToolDefinition("f", "", {"type": "object", "properties": {"a": {"type": "string"}}})]
    draft, call = (render_calls([ToolCall("f", {"a": value})], format=wire.name, tools=tools) for value in "xy")
    response = parse(f"<think>Hm.</think>\n{call}", format=wire.name, tools=tools)
    assert ([call.arguments for call in response.tool_calls], response.reasoning) == ([{"a": "y"}], "Hm.")
    if not wire.ends_reasoning:
        response = parse(f"<think>Perhaps\n{draft}\n</think>\n{call}", format=wire.name, tools=tools)
        assert [call.arguments for call in response.tool_calls] == [{"a": "y"}]
