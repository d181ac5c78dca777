"""Complete rows, and both readings of them: Toolwire's own, and that of the second reader."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.rows import OWN, Row, load, plain
from tests.spec.second_reader import read

import toolwire
from toolwire.wire import FORMATS, export_formats

SHARED = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "text"
DOCUMENT: dict[str, Any] = json.loads(json.dumps(export_formats(FORMATS)))
OPTIONS = ("reasoning_started", "primed")
UNREAD = frozenset({"tool_tags"})
"""Formats with nodes that the second reader does not have: they also read YAML."""
_NAMES = {name: wire.name for wire in FORMATS for name in (wire.name, *wire.aliases)}


class Outcome(NamedTuple):
    """The parts of a reading that both readers report."""

    calls: list[tuple[str, Any]]
    content: str
    reasoning: str


class Share(NamedTuple):
    """Numbers of complete rows of one format."""

    rows: int
    alike: int
    repaired: int


def rows_of(kind: str, folder: Path | None = None) -> list[Row]:
    """Return the rows of one kind, of the project or of a folder, whose formats the second reader can read."""
    paths = [OWN] if folder is None else sorted(folder.glob("*.jsonl"))
    rows = [row for path in paths for row in load(path) if row["kind"] == kind]
    return [row for row in rows if _NAMES.get(row["format"], "") not in ("", *UNREAD)]


def complete_rows(folder: Path | None = None) -> dict[str, list[Row]]:
    """Return the complete rows of the project, or of a folder, by format."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in rows_of("complete", folder):
        rows[_NAMES[row["format"]]].append(row)
    return rows


def _options(row: Row) -> dict[str, Any]:
    return {key: row[key] for key in OPTIONS if key in row}


def first_reading(row: Row) -> tuple[Outcome, bool]:
    """Return Toolwire's reading of a row, and whether a call of it needed a repair."""
    response = toolwire.parse(row["text"], format=row["format"], tools=row.get("tools") or [], **_options(row))
    calls = [(call.name, plain(call.arguments)) for call in response.tool_calls]
    outcome = Outcome(calls, response.content.strip(), response.reasoning.strip())
    return outcome, any(call.repairs for call in response.tool_calls)


def second_reading(row: Row) -> Outcome:
    """Return the second reader's reading of a row."""
    reading = read(DOCUMENT, row["format"], row["text"], row.get("tools") or [], **_options(row))
    calls = [(call.name, plain(call.arguments)) for call in reading.calls]
    return Outcome(calls, reading.content.strip(), reading.reasoning.strip())


def shares() -> dict[str, Share]:
    """Return for each format how many of the project's complete rows both read alike, and how many need a repair."""
    counted = {}
    for name, rows in complete_rows().items():
        pairs = [(first_reading(row), second_reading(row)) for row in rows]
        alike = sum(first == second for (first, _), second in pairs)
        repaired = sum(repaired for (first, repaired), second in pairs if first != second)
        counted[name] = Share(len(rows), alike, repaired)
    return counted
