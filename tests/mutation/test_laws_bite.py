"""The laws fail for a broken engine: each test breaks one thing and expects the checker of one law to fail.

The checkers are those of the property tests, run over fixed texts and calls; unbroken, all of them pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.property import laws, texts
from tests.property.nodes import names, walk

import toolwire
from toolwire.messages import ToolCall
from toolwire.wire import content_scanner, element_values, leaf_scanners, marker_sets, raw_values, syntax, xml_scanners
from toolwire.wire.formats import FORMATS

Check = Callable[[], None]
Patch = Callable[[pytest.MonkeyPatch], None]


def _formats_with(*kinds: type) -> list[str]:
    """Return the formats that write such a node."""
    return [wire.name for wire in FORMATS if any(isinstance(node, kinds) for node in walk(wire.blocks[:1]))]


# -- the laws, over fixed texts --------------------------------------------------------------------------------------


def any_chunking() -> None:
    """L1."""
    for name in names():
        for text in texts.samples(name)[:6]:
            laws.check_chunking(text, [laws.pieces(text, 3)], format=name, tools=texts.TOOLS)


def nothing_lost() -> None:
    """L3."""
    for name in names():
        for text in ("a <tool_call>b", "<tool>x", "[TOOL_CALLS]?", "<function_calls>\n<x>", "<|tool_call_begin|> <"):
            laws.check_nothing_lost(text, laws.read([text], format=name).events, name)


def never_half() -> None:
    """L6."""
    for name in names():
        for text in texts.samples(name)[:3]:
            laws.check_never_half(text, format=name, tools=texts.TOOLS)


def _round_trips(formats: list[str], call: ToolCall) -> None:
    assert formats
    for name in formats:
        try:
            laws.check_round_trip([call, call], texts.TOOLS, name)
        except toolwire.RenderError as error:
            raise AssertionError(f"{name} refuses what it can write: {error}") from error


def closers_inside_json_values() -> None:
    """L2: in raw values that are JSON."""
    for closer in ("</parameter></function>", "</parameter></invoke>", "</parameter>"):
        _round_trips(_formats_with(syntax.Value), ToolCall("f", {"o": {"s": f"a {closer} b"}, "l": [closer], "i": 1}))


def closers_inside_json_arguments() -> None:
    """L2: in arguments that are JSON."""
    text = "</tool_call> </tool> </tool_use> </tools> ]] <｜tool▁call▁end｜> <|tool_call_end|> [/TOOL_CALLS]"
    _round_trips(_formats_with(syntax.JsonCall, syntax.Args), ToolCall("f", {"s": f'a {text} "{text}" b'}))


def special_characters_in_elements() -> None:
    """L2: what has to be escaped."""
    for text in ("a & b", "1 < 2 > 0", "&amp;lt;", "&#65;", "]]>", "</s></arguments>"):
        _round_trips(_formats_with(syntax.Elements), ToolCall("f", {"s": text, "l": [text, "x"]}))


def closers_inside_raw_values() -> None:
    """L2: in raw values that are strings."""
    _round_trips(_formats_with(syntax.Value), ToolCall("f", {"s": "one </parameter> two", "i": 1}))


# -- what can be broken ----------------------------------------------------------------------------------------------


def no_hold_back(patch: pytest.MonkeyPatch) -> None:
    """Read half a marker at the end of a piece as text."""
    search = marker_sets.MarkerSet.search
    patch.setattr(marker_sets.MarkerSet, "search", lambda self, text, pos, final: search(self, text, pos, True))


def no_waiting_for_the_longest(patch: pytest.MonkeyPatch) -> None:
    """Decide which marker comes next before all of it has arrived."""
    match = marker_sets.MarkerSet.match
    patch.setattr(marker_sets.MarkerSet, "match", lambda self, text, pos, final: match(self, text, pos, True))


def values_are_never_json(patch: pytest.MonkeyPatch) -> None:
    """Do not distinguish the strings of a JSON value between tags from its other text."""

    def scan(self: Any, text: str, pos: int, final: bool) -> int:
        self.value, self.done = "", True
        return pos

    patch.setattr(leaf_scanners.JsonPrefix, "scan", scan)


def arguments_end_at_a_tag(patch: pytest.MonkeyPatch) -> None:
    """End JSON arguments at anything like a closing marker, inside a string or not."""
    scan = leaf_scanners.JsonValue.scan

    def broken(self: Any, text: str, pos: int, final: bool) -> int:
        ends = [at for at in (text.find(closer, pos) for closer in ("</", "<｜", "<|", "[/")) if at >= 0]
        if not ends:
            stop: int = scan(self, text, pos, final)
            return stop
        stop = scan(self, text[: min(ends)], pos, True)
        if not self.done:
            self.error = "a closing marker stands inside the arguments"
        return stop

    patch.setattr(leaf_scanners.JsonValue, "scan", broken)


def no_entities(patch: pytest.MonkeyPatch) -> None:
    """Do not decode entities."""
    for module in (xml_scanners, element_values):
        patch.setattr(module, "unescape", lambda text: (text, False))


def entities_twice(patch: pytest.MonkeyPatch) -> None:
    """Decode entities twice."""
    unescape = xml_scanners.unescape
    for module in (xml_scanners, element_values):
        patch.setattr(module, "unescape", lambda text: unescape(unescape(text)[0]))


def first_closer_wins(patch: pytest.MonkeyPatch) -> None:
    """End a raw value at a closing marker, whatever follows."""

    def look(self: Any, text: str, pos: int, final: bool) -> tuple[int, bool]:
        self.done = True
        return pos, False

    patch.setattr(raw_values.RawText, "_look", look)


def broken_blocks_vanish(patch: pytest.MonkeyPatch) -> None:
    """Lose the text of a broken block."""
    patch.setattr(content_scanner.ContentScanner, "add_content", lambda self, text, **_: None)


BREAKAGES = [
    pytest.param(no_hold_back, any_chunking, id="hold-back-of-partial-markers"),
    pytest.param(no_waiting_for_the_longest, any_chunking, id="waiting-for-the-longest-marker"),
    pytest.param(values_are_never_json, closers_inside_json_values, id="json-awareness-of-raw-values"),
    pytest.param(arguments_end_at_a_tag, closers_inside_json_arguments, id="json-awareness-of-arguments"),
    pytest.param(no_entities, special_characters_in_elements, id="entity-decoding"),
    pytest.param(entities_twice, special_characters_in_elements, id="entity-decoding-once"),
    pytest.param(first_closer_wins, closers_inside_raw_values, id="follow-rule-of-raw-closers"),
    pytest.param(broken_blocks_vanish, nothing_lost, id="broken-blocks-are-content"),
]

CHECKS = (
    any_chunking, nothing_lost, never_half, closers_inside_json_values, closers_inside_json_arguments,
    special_characters_in_elements, closers_inside_raw_values,
)  # fmt: skip


@pytest.mark.parametrize("check", [pytest.param(check, id=check.__name__) for check in CHECKS])
def test_laws_hold_for_the_unbroken_engine(check: Check) -> None:
    check()


@pytest.mark.parametrize(("broken", "check"), BREAKAGES)
def test_a_law_fails_for_a_broken_engine(broken: Patch, check: Check) -> None:
    with pytest.MonkeyPatch.context() as patch:
        broken(patch)
        with pytest.raises(AssertionError):
            check()
    check()
