"""A missing closing tag never makes a call complete with arguments that no call had, and never hides another call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import laws, texts
from tests.property.nodes import walk
from tests.property.test_round_trip import strings_of

import toolwire
from toolwire.messages import ToolCall
from toolwire.wire import syntax
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import Node, WireFormat

WITH_CALLS = [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks]
RAW = [
    pytest.param(wire, id=wire.name)
    for wire in FORMATS
    if any(isinstance(node, syntax.Value) for node in walk(wire.blocks[:1]))
]


def _after_content(nodes: tuple[Node, ...]) -> Iterator[str]:
    """Yield the literals of a sequence that come right after something other than a literal."""
    content = False
    for node in nodes:
        if isinstance(node, syntax.Lit):
            if content:
                yield node.text
            content = False
            continue
        content = True
        for inner in _sequences(node):
            yield from _after_content(inner)


def _sequences(node: Node) -> Iterator[tuple[Node, ...]]:
    """Yield the sequences inside a node."""
    match node:
        case syntax.Many(nodes=nodes) | syntax.Params(nodes=nodes) | syntax.Call(nodes=nodes):
            yield nodes
        case syntax.OneOf(options):
            yield from options
        case syntax.AnyOrder(groups):
            yield from groups
        case _:
            pass


@cache
def _closing_tags(wire: WireFormat) -> re.Pattern[str]:
    """Return a pattern of the closing tags that are written in a format."""
    tags = {re.escape(text) for text in _after_content(wire.blocks[0])}
    for node in walk(wire.blocks[0]):
        if isinstance(node, syntax.Value):
            tags.add(re.escape(node.close))
        elif isinstance(node, syntax.Elements):
            tags.add(rf"{re.escape(node.token)}</\w+>")
        elif isinstance(node, syntax.Args) and node.element:
            tags.add(f"</{node.element}>")
    return re.compile("|".join(sorted(tags, key=len, reverse=True)) or "(?!)")


def _without_one_closing_tag(wire: WireFormat, calls: list[ToolCall]) -> Iterator[str]:
    """Yield the text of calls without one of its closing tags."""
    text = toolwire.render_calls(calls, format=wire.name, tools=texts.TOOLS)
    for match in _closing_tags(wire).finditer(text):
        yield text[: match.start()] + text[match.end() :]


def _named(calls: tuple[ToolCall, ...] | list[ToolCall]) -> list[tuple[str, str]]:
    return [(call.name, laws._unordered(call.arguments)) for call in calls]


def _check(wire: WireFormat, calls: list[ToolCall]) -> None:
    # Without one of two closing tags, nobody can tell whether the other was part of the value.
    tags = _closing_tags(wire)
    if any(tags.search(value) for call in calls for value in strings_of(call.arguments)):
        return
    try:
        damaged = [*_without_one_closing_tag(wire, calls)]
    except toolwire.RenderError:
        return
    for text in damaged:
        response = toolwire.parse(text, format=wire.name, tools=texts.TOOLS)
        for call in _named(response.tool_calls):
            assert call in _named(calls), f"no call had these arguments: {call} in {text!r}"


@pytest.mark.parametrize("wire", WITH_CALLS)
@pytest.mark.parametrize("text", [lambda _: texts.harmless(), texts.strings], ids=["harmless", "any"])
def test_no_complete_call_has_other_arguments(wire: WireFormat, text: Callable[[str], Any]) -> None:
    @settings(max_examples=max(10, settings().max_examples // 2))
    @given(st.lists(texts.calls_of(wire.name, text), min_size=2, max_size=3))
    def check(calls: list[ToolCall]) -> None:
        _check(wire, calls)

    check()


@pytest.mark.parametrize("wire", RAW)
def test_no_call_is_lost_without_the_closing_tag_of_a_value(wire: WireFormat) -> None:
    closers = [node.close for node in walk(wire.blocks[0]) if isinstance(node, syntax.Value)]

    @settings(max_examples=max(10, settings().max_examples // 2))
    @given(st.lists(texts.calls_of(wire.name, lambda _: texts.harmless()), min_size=1, max_size=3))
    def check(calls: list[ToolCall]) -> None:
        # Behind such a value, nobody can tell whether its last tag is the closing tag, misspelled.
        if any(
            "</" in value or _closing_tags(wire).search(value) for call in calls for value in strings_of(call.arguments)
        ):
            return
        text = toolwire.render_calls(calls, format=wire.name, tools=texts.TOOLS)
        for match in re.finditer("|".join(map(re.escape, closers)), text):
            damaged = text[: match.start()] + text[match.end() :]
            response = toolwire.parse(damaged, format=wire.name, tools=texts.TOOLS)
            assert _named(response.tool_calls) == _named(calls), damaged
            assert sum("missing_close" in call.repairs for call in response.tool_calls) == 1, damaged

    check()
