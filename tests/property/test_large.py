"""The laws for one megabyte per format, whole and in small pieces, and for ten megabytes per kind of value."""

from __future__ import annotations

import json
from functools import cache

import pytest
from tests.property import laws, texts
from tests.property.nodes import walk

import toolwire
from toolwire.events import ArgumentsDelta
from toolwire.messages import ToolCall
from toolwire.wire.formats import FORMATS

_LINES = (
    'def f(self, x: int) -> str:\n    """Say "x" & <y> \\n."""\n    return f"{x!r} [1, 2] {{}}"\n',
    "    if a < b and b > c or not d:  # é ü ß 日本語 \U0001f600 \U00010348\n\t\traise ValueError('no \\'x\\'')\n\n",
    "<p class='x'>a &amp; b ]] > ``` ~~~ </p>\r\n",
)
SIZE = 1_000_000
PIECE = 16
"""Length of a piece in characters; other tests read shorter texts in pieces of one and of four."""


@cache
def content() -> str:
    """Return a megabyte of text like source code, with characters of every Unicode plane."""
    block = "".join(_LINES)
    return block * (SIZE // len(block)) + "end"


@pytest.mark.need(6, 14)
@pytest.mark.parametrize("name", [wire.name for wire in FORMATS])
def test_laws_hold_for_a_megabyte(name: str) -> None:
    value = content()
    wire = next(wire for wire in FORMATS if wire.name == name)
    if wire.blocks:
        text = toolwire.render_calls(
            [ToolCall("write_file", {"path": "a", "content": value})], format=name, tools=texts.TOOLS
        )
    else:
        text = "<think>" + value + "</think>" + value
    expected = toolwire.parse(text, format=name, tools=texts.TOOLS)
    parser = toolwire.StreamParser(format=name, tools=texts.TOOLS)
    events = []
    deltas: list[str] = []
    most_held = 0
    for start in range(0, len(text), PIECE):
        for event in parser.feed(text[start : start + PIECE]):
            if isinstance(event, ArgumentsDelta):
                deltas.append(event.text)
            else:
                events.append(event)
        most_held = max(most_held, parser._reader.held)
    events.extend(event for event in parser.finish() if not isinstance(event, ArgumentsDelta))
    assert laws.outcome(toolwire.collect(events)) == laws.outcome(expected)
    assert most_held <= laws.longest_marker(name) + laws.HOLD
    assert parser._reader.scanned <= laws.SCANS * len(text) + laws.SCANS_MORE
    if wire.blocks:
        assert [call.arguments for call in expected.tool_calls] == [{"path": "a", "content": value}]
        assert json.loads("".join(deltas)) == expected.tool_calls[0].arguments
    else:
        assert expected.content == value
        assert expected.reasoning == value
    assert not expected.problems


def formats_with_every_kind() -> list[str]:
    """Return a few formats whose calls consist, taken together, of every kind of node that a format may have."""
    kinds = {wire.name: {type(node).__name__ for node in walk(wire.blocks)} for wire in FORMATS}
    left = set().union(*kinds.values())
    chosen: list[str] = []
    while left:
        name = max(kinds, key=lambda name: len(kinds[name] & left))
        left -= kinds[name]
        chosen.append(name)
    return chosen


@pytest.mark.mission("B36", "C11")
@pytest.mark.parametrize("name", formats_with_every_kind())
def test_laws_hold_for_ten_megabytes(name: str) -> None:
    value = content() * 10
    call = ToolCall("write_file", {"path": "a", "content": value})
    text = toolwire.render_calls([call], format=name, tools=texts.TOOLS)
    parser = toolwire.StreamParser(format=name, tools=texts.TOOLS)
    events = [event for at in range(0, len(text), 1 << 16) for event in parser.feed(text[at : at + (1 << 16)])]
    read = toolwire.collect([*events, *parser.finish()])
    assert [parsed.arguments for parsed in read.tool_calls] == [call.arguments]
    assert not read.problems
