"""A report on how a text is read: what was looked for, where, and why a text is not a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolwire.text.suggest import first_of
from toolwire.text.truncate import shorten
from toolwire.tools import ToolDefinition
from toolwire.wire.compiled_format import compile_format
from toolwire.wire.dialects import DIALECTS, ReadCall
from toolwire.wire.embedded import find_calls
from toolwire.wire.known_tools import KnownToolsReader
from toolwire.wire.marker_sets import marker_set
from toolwire.wire.prepared_tools import KnownTools
from toolwire.wire.refusals import declines
from toolwire.wire.syntax import WireFormat

_SHOWN = 60
_MOST = 5
"""Maximum number of places that are listed of each kind."""


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """The markers and calls that a text was searched for, and the outcome.

    Attributes:
        looked_for: the formats and dialects that were tried.
        openers: the markers that begin a call in any of these formats, without the white space behind them.
        markers: the markers that begin a call, with their positions and formats.
        whole_message: whether the message is nothing but calls to known tools, or where it stops being that, and why.
        amid_prose: calls to known tools amid prose, with the reason why each is or is not taken for a call.
    """

    looked_for: str
    openers: Sequence[str]
    markers: Sequence[str]
    whole_message: str
    amid_prose: Sequence[str]


def report_reading(text: str, formats: Sequence[WireFormat], tools: Mapping[str, ToolDefinition]) -> ReadingReport:
    """Return how a text is read.

    Args:
        text: the text.
        formats: the formats that are tried.
        tools: the known tools, by name.
    """
    dialects = ", ".join(dialect.name for dialect in DIALECTS)
    looked_for = f"markers of {first_of([wire.name for wire in formats], _MOST)}"
    looked_for += f"; {dialects} for {_counted(tools)}" if tools else "; no dialects, because no tools are known"
    owners = _owners(formats)
    openers = sorted({opener.strip() for opener in owners})
    return ReadingReport(
        looked_for, openers, _markers(text, owners), _whole_message(text, tools), _amid_prose(text, tools)
    )


def _owners(formats: Sequence[WireFormat]) -> Mapping[str, Sequence[str]]:
    """Return the names of the formats in which an opener begins a call, by opener."""
    owners: dict[str, list[str]] = {}
    for wire in formats:
        for opener in compile_format(wire).blocks:
            if len(opener) > 1:  # a single bracket is no evidence of any format
                owners.setdefault(opener, []).append(wire.name)
    return owners


def _markers(text: str, owners: Mapping[str, Sequence[str]]) -> list[str]:
    openers = marker_set(frozenset(owners))
    places: list[str] = []
    pos = 0
    while len(places) < _MOST:
        start, pos, marker = openers.search(text, pos, True)
        if not marker:
            break
        places.append(f"{marker!r} at {start}: {first_of(owners[marker], _MOST)}")
    return places


def _counted(tools: Mapping[str, ToolDefinition]) -> str:
    return f"the known tool {next(iter(tools))}" if len(tools) == 1 else f"{len(tools)} known tools"


def _listed(calls: Iterable[ReadCall]) -> str:
    return ", ".join(f"{call.name} ({call.dialect})" for call in calls)


def _whole_message(text: str, tools: Mapping[str, ToolDefinition]) -> str:
    if not tools:
        return "not tried, because no tools are known"
    reader = KnownToolsReader(KnownTools(tools))
    for at, character in enumerate(text):
        reader.feed(character)
        if not reader.alive:
            why = reader.error or "no call begins here"
            return f"no: {why}, at {at}: {shorten(text[max(0, at - _SHOWN // 2) :], _SHOWN)!r}"
    reading = reader.finish()
    if reading is not None and reading.calls:
        behind = f", with text behind them: {shorten(reading.behind, _SHOWN)!r}" if reading.behind else ""
        return f"yes: {_listed(reading.calls)}{behind}"
    if reading is not None:
        return f"no: the text ends inside a call: {shorten(reading.cut, _SHOWN)!r}"
    return "no: the text behind the calls declines to call a tool" if declines(text) else "no: it has no call"


def _amid_prose(text: str, tools: Mapping[str, ToolDefinition]) -> list[str]:
    places: list[str] = []
    for place in find_calls(text, KnownTools(tools)) if tools else ():
        why = (
            f"only mentioned, because the text says {place.doubt!r}"
            if place.doubt
            else 'would be a call with fallback="embedded"'
        )
        places.append(f"{_listed(place.calls)} at {place.start}: {why}")
        if len(places) == _MOST:
            break
    return places
