"""Tool results as text: written between a format's markers, and removed where a model writes the markers itself."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from toolwire.messages import FilePart, ToolResult
from toolwire.tools import ToolDefinition
from toolwire.wire.compiled_format import compile_format
from toolwire.wire.format_registry import all_formats
from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.syntax import WireFormat
from toolwire.wire.template_tokens import TEMPLATE_TOKEN

BREAK = "\u2060"
"""Word joiner, which makes a marker inside a tool's result inert and leaves the text readable."""
_MARKUP = re.compile(r"[<\[\]]|[^\x00-\x7f]|(?:```|~~~)\w")
"""The beginning of a marker that ordinary text does not contain."""
PLACE = re.compile(r"\{name\}|\{id\}")
"""Placeholder for a fact of the call in a marker."""
MEDIA_FOLLOW = "The file follows."
"""The text of a result that consists of images and files alone."""
_TOKEN = re.compile(r"<[^<>\n]+>|\[/?[A-Z_]+\]")
"""The part of a marker that is markup, and not prose."""


def render_results(wire: WireFormat, results: Sequence[ToolResult]) -> str:
    """Render the results in order, each between the format's markers; errors say so.

    Markup inside a result is made inert, so that a model that echoes the result makes no call; see `inert`.
    """
    return "\n".join(_result(wire, result) for result in results)


def _result(wire: WireFormat, result: ToolResult) -> str:
    values = {"{name}": inert(wire, result.tool_name), "{id}": inert(wire, result.call_id)}
    start, end = (PLACE.sub(lambda place: values[place[0]], edge) for edge in wire.result)
    text = MEDIA_FOLLOW if result.only_media else result.marked_text
    return start + inert(wire, text) + end


def inert(wire: WireFormat, text: str) -> str:
    """Return the text with all markup for models made inert: a word joiner (U+2060) follows its first character.

    Markup is every opener, closer and reasoning tag of this format and of all that are detected, since an answer may be
    read in any of them; the markers around this format's results; and every control token of a chat template. Openers
    of a single character, which formats without markers have, stay as they are. So do the other formats' markers that
    are words or code fences, because ordinary text has those too.
    """
    markup = _markup(wire)
    parts: list[str] = []
    pos = 0
    while True:
        # One character further, and not behind the marker: markers may overlap.
        start, _, marker = markup.search(text, pos, True)
        parts.append(text[pos:start])
        if not marker:
            break
        parts.append(text[start] + BREAK)
        pos = start + 1
    # There is no list of the control tokens of all chat templates, so a pattern finds them.
    return TEMPLATE_TOKEN.sub(_break, "".join(parts))


def inert_value(wire: WireFormat, value: Any) -> Any:
    """Return a JSON value whose texts and keys are inert; the same object if they are already."""
    match value:
        case str():
            return inert(wire, value)
        case dict():
            entries = {inert(wire, key): inert_value(wire, inner) for key, inner in value.items()}
            return value if entries == value else entries
        case list():
            items = [inert_value(wire, inner) for inner in value]
            return value if items == value else items
        case _:
            return value


def inert_definition(wire: WireFormat, definition: ToolDefinition) -> ToolDefinition:
    """Return a definition for a prompt: its author, who may be a server, writes no markup for models.

    The name stays, since it consists of letters, digits and a few signs.
    """
    description = inert(wire, definition.description)
    parameters = inert_value(wire, definition.parameters)
    if description == definition.description and parameters is definition.parameters:
        return definition
    return replace(definition, description=description, parameters=parameters)


def inert_result(wire: WireFormat, result: ToolResult) -> ToolResult:
    """Return a result for a model whose template is not known here, such as one behind a server's API."""
    error = None if result.error is None else inert(wire, result.error)
    value = inert_value(wire, result.result)
    files = tuple(inert_file(wire, file) for file in result.files)
    if error == result.error and value is result.result and files == result.files:
        return result
    return replace(result, result=value, error=error, files=files)


def inert_file(wire: WireFormat, file: FilePart) -> FilePart:
    """Return a document of text with inert markup, and any other file as it is."""
    text = file.text
    if text is None or (written := inert(wire, text)) == text:
        return file
    return replace(file, data=base64.b64encode(written.encode()).decode("ascii"))


def _break(token: re.Match[str]) -> str:
    return token[0][0] + BREAK + token[0][1:]


@lru_cache(maxsize=128)
def _markup(wire: WireFormat) -> MarkerSet:
    """Return the markers that are made inert in a result of this format."""
    edges = (part.strip() for edge in wire.result for part in PLACE.split(edge))
    markers = markers_of(wire) | {edge for edge in edges if len(edge) > 1} | _tokens(wire)
    for other in all_formats():
        # An answer may be read in any detected format, and a model may copy a result into it. Words and fences of
        # other formats are left, because ordinary results are full of them.
        if other.detected and other.markers:
            markers |= {marker for marker in markers_of(other) if _MARKUP.match(marker)}
    return marker_set(frozenset(markers), True)


@lru_cache(maxsize=256)
def markers_of(wire: WireFormat) -> frozenset[str]:
    """Return the markers of a format that are longer than a character."""
    compiled = compile_format(wire)
    around = compiled.content
    closers = (marker for block in compiled.blocks.values() for marker in block.closers.spelled.values())
    markers = {*around.openers, *around.spans, *around.closes, *around.drops, *around.ends, *closers}
    return frozenset(marker for marker in markers if len(marker) > 1)


def unframed(wire: WireFormat, text: str) -> str:
    """Remove the markers around results, which a model that has seen results may write itself.

    Markers that are words are removed only at a line start, and their closers only together with them.
    """
    pair, alone = _frames(wire)
    return alone.sub("", pair.sub(r"\1", text) if pair is not None else text)


@lru_cache(maxsize=128)
def _frames(wire: WireFormat) -> tuple[re.Pattern[str] | None, re.Pattern[str]]:
    """Return patterns for a framed result whose closer is a word (None if it is not), and for a marker alone."""
    start, end = (edge.strip() for edge in wire.result)
    flags = re.IGNORECASE if wire.nocase else re.NOFLAG
    # A closer such as "Observation:" is prose anywhere else, so it counts only together with its opener.
    words = bool(end) and not _TOKEN.search(end)
    pair = (
        re.compile(rf"^{_any_call(wire, start)}(.*?){_any_call(wire, end)}", flags | re.MULTILINE | re.DOTALL)
        if words
        else None
    )
    line = "$" if wire.result[0].endswith("\n") else ""
    patterns = [_any_call(wire, start) if _TOKEN.search(start) else f"^{_any_call(wire, start)}{line}"] if start else []
    patterns += [_any_call(wire, end)] if end and not words else []
    patterns += map(re.escape, _tokens(wire))
    return pair, re.compile("|".join(patterns) or r"(?!)", flags | re.MULTILINE)


def _any_call(wire: WireFormat, edge: str) -> str:
    """Return a pattern for a marker with any name and id in it, also without the parts that are dropped from content.

    The parser drops them, except in the turn of a tool.
    """
    without_drops = edge
    for drop in sorted(wire.drop, key=len, reverse=True):
        without_drops = without_drops.replace(drop, "")
    edges = filter(None, dict.fromkeys((edge, without_drops.strip())))
    return f"(?:{'|'.join(map(_any_name, edges))})"


def _any_name(edge: str) -> str:
    """Return a pattern for a marker with any name and id in it."""
    return r"[^<>\s]*".join(map(re.escape, PLACE.split(edge)))


def _tokens(wire: WireFormat) -> set[str]:
    """Return the tokens in the markers around a result."""
    return {token for edge in wire.result for token in _TOKEN.findall(edge) if not PLACE.search(token)}
