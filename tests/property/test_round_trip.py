"""Law L2: rendered calls parse to equal calls, whatever their values contain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import laws, texts
from tests.property.nodes import literals_of, walk

import toolwire
from toolwire.messages import ToolCall
from toolwire.wire import syntax
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

WITH_CALLS = [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks]
REFUSED = 0.25
"""Maximum share of messages full of the format's own markup that may be refused."""


def _closers(wire: WireFormat) -> frozenset[str]:
    """Return markers that a raw value cannot always contain: closers, openers of parameters, tokens of strings."""
    closers: set[str] = set()
    if any(isinstance(node, syntax.Value) for node in walk(wire.blocks)):
        # The end of a call before the end of the wrapper, or before another call, is not part of a value.
        closers |= literals_of(wire)
    for node in walk(wire.blocks):
        if isinstance(node, syntax.Value):
            closers.add(node.close)
        elif isinstance(node, syntax.Params):
            head = node.nodes[0]
            closers |= head.spellings if isinstance(head, syntax.Lit) else set()
            closers |= {f"{head.open}{head.name}"} if isinstance(head, syntax.Tag) else set()
        elif isinstance(node, (syntax.TokenArgs, syntax.Elements)) and node.token:
            closers.add(node.token)
    return frozenset(closers)


def _carries_json(wire: WireFormat) -> bool:
    """Return whether arguments keep their types without a schema."""
    kinds = {type(node) for node in walk(wire.blocks[0])}
    return not kinds & {syntax.Value, syntax.Elements}


def strings_of(value: Any) -> Iterator[str]:
    """Yield every string in a value, keys included."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            yield top
        elif isinstance(top, dict):
            stack.extend((*top, *top.values()))
        elif isinstance(top, list):
            stack.extend(top)


def _may_refuse(wire: WireFormat, calls: list[ToolCall]) -> bool:
    closers = _closers(wire)
    return any(closer in text for call in calls for text in strings_of(call.arguments) for closer in closers)


@pytest.mark.mission("B36", "B41", "F45")
@pytest.mark.need(6)
@pytest.mark.parametrize("wire", WITH_CALLS)
def test_typed_arguments_survive_the_round_trip(wire: WireFormat) -> None:
    counts = {"all": 0, "refused": 0}

    @settings(max_examples=settings().max_examples * 2)
    @given(st.lists(texts.calls_of(wire.name), min_size=1, max_size=3))
    def check(calls: list[ToolCall]) -> None:
        counts["all"] += 1
        try:
            text = laws.check_round_trip(calls, texts.TOOLS, wire.name)
        except toolwire.RenderError:
            assert _may_refuse(wire, calls)
            counts["refused"] += 1
            return
        laws.check_nothing_lost(text, laws.read([text], format=wire.name, tools=texts.TOOLS).events, wire.name)

    check()
    assert counts["refused"] <= REFUSED * counts["all"], counts


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_values_without_markup_are_never_refused(wire: WireFormat) -> None:
    @settings(max_examples=max(10, settings().max_examples // 2))
    @given(st.lists(texts.calls_of(wire.name, lambda _: texts.harmless()), min_size=1, max_size=3))
    def check(calls: list[ToolCall]) -> None:
        for call in calls:  # this one value is markup in one format
            if call.arguments.get("e") == "</parameter>":
                call.arguments["e"] = "red"
        laws.check_round_trip(calls, texts.TOOLS, wire.name)

    check()


TYPED = [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks and wire.markers and _carries_json(wire)]


@pytest.mark.parametrize("wire", TYPED)
def test_untyped_arguments_survive_where_the_format_has_types(wire: WireFormat) -> None:
    keywords = any(isinstance(node, syntax.PyCalls) for node in walk(wire.blocks[0]))

    @given(st.lists(texts.untyped_calls(wire.name), min_size=1, max_size=2))
    def check(calls: list[ToolCall]) -> None:
        if keywords and not all(key.isidentifier() for call in calls for key in call.arguments):
            with pytest.raises(toolwire.RenderError):
                toolwire.render_calls(calls, format=wire)
            return
        try:
            laws.check_round_trip(calls, (), wire.name)
        except toolwire.RenderError:
            assert _may_refuse(wire, calls)

    check()


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_renderer_and_parser_have_the_same_nesting_limit(wire: WireFormat) -> None:
    tools = [texts.tool("g", {"a": {"type": "array"}})]
    if _carries_json(wire):
        laws.check_round_trip([ToolCall("g", {"a": _nested(190)})], tools, wire.name)
    with pytest.raises(toolwire.RenderError):
        toolwire.render_calls([ToolCall("g", {"a": _nested(300)})], format=wire.name, tools=tools)
