"""Tool results as text: written between a format's markers, and removed where a model writes the markers itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from toolwire.messages import ToolResult
from toolwire.wire.compiled_format import compile_format
from toolwire.wire.marker_sets import marker_set
from toolwire.wire.syntax import WireFormat

_BREAK = "\u2060"
"""Word joiner, which makes a marker inside a tool's result inert and leaves the text readable."""
PLACE = re.compile(r"\{name\}|\{id\}")
"""Placeholder for a fact of the call in a marker."""
_TOKEN = re.compile(r"<[^<>\n]+>|\[/?[A-Z_]+\]")
"""The part of a marker that is markup, and not prose."""


def render_results(wire: WireFormat, results: Sequence[ToolResult]) -> str:
    """Render the results in order, each between the format's markers; errors say so.

    Markup inside a result is made inert, so that a model that echoes the result makes no call: every opener, closer,
    reasoning tag and result marker of the format, and every end-of-sequence token, gets a word joiner (U+2060) after
    its first character. Openers of a single character, which formats without markers have, stay as they are.
    """
    return "\n".join(_result(wire, result) for result in results)


def _result(wire: WireFormat, result: ToolResult) -> str:
    values = {"{name}": inert(wire, result.tool_name), "{id}": inert(wire, result.call_id)}
    start, end = (PLACE.sub(lambda place: values[place[0]], edge) for edge in wire.result)
    return start + inert(wire, result.told) + end


def inert(wire: WireFormat, text: str) -> str:
    """Return the text with every marker of the format made inert."""
    compiled = compile_format(wire)
    around = compiled.content
    closers = (marker for block in compiled.blocks.values() for marker in block.closers.spelled.values())
    markers = {*around.openers, *around.spans, *around.closes, *around.drops, *around.ends, *closers}
    markers = {marker for marker in markers if len(marker) > 1}
    edges = (part.strip() for edge in wire.result for part in PLACE.split(edge))
    markers |= {edge for edge in edges if len(edge) > 1} | _tokens(wire)
    markup = marker_set(frozenset(markers), wire.nocase)
    parts: list[str] = []
    pos = 0
    while True:
        start, _, marker = markup.search(text, pos, True)
        parts.append(text[pos:start])
        if not marker:
            return "".join(parts)
        parts.append(text[start] + _BREAK)
        pos = start + 1


def unframed(wire: WireFormat, text: str) -> str:
    """Remove the markers around results, which a model that has seen results may write itself.

    Markers that are words are removed only at a line start, and their closers only together with them.
    """
    pair, alone = _frames(wire)
    return alone.sub("", pair.sub(r"\1", text) if pair is not None else text)


@lru_cache(maxsize=128)
def _frames(wire: WireFormat) -> tuple[re.Pattern[str] | None, re.Pattern[str]]:
    """Return patterns for a framed result whose closer is a word (None if it is not), and for a marker alone."""
    start, end = (_without_drops(wire, edge) for edge in wire.result)
    flags = re.IGNORECASE if wire.nocase else re.NOFLAG
    words = bool(end) and not _TOKEN.search(end)
    pair = re.compile(rf"^{_any_call(start)}(.*?){_any_call(end)}", flags | re.MULTILINE | re.DOTALL) if words else None
    line = "$" if wire.result[0].endswith("\n") else ""
    patterns = [_any_call(start) if _TOKEN.search(start) else f"^{_any_call(start)}{line}"] if start else []
    patterns += [_any_call(end)] if end and not words else []
    patterns += map(re.escape, _tokens(wire))
    return pair, re.compile("|".join(patterns) or r"(?!)", flags | re.MULTILINE)


def _without_drops(wire: WireFormat, edge: str) -> str:
    """Return a marker without the parts that the parser drops from content."""
    for drop in sorted(wire.drop, key=len, reverse=True):
        edge = edge.replace(drop, "")
    return edge.strip()


def _any_call(edge: str) -> str:
    """Return a pattern for a marker with any name and id in it."""
    return r"[^<>\s]*".join(map(re.escape, PLACE.split(edge)))


def _tokens(wire: WireFormat) -> set[str]:
    """Return the tokens in the markers around a result."""
    return {token for edge in wire.result for token in _TOKEN.findall(edge) if not PLACE.search(token)}
