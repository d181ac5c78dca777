"""Files for the inspector's page: its own exports, runs of agents, and rows of the conformance tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from toolwire.errors import ConfigurationError, StateError
from toolwire.inspector.exchange_summary import Json
from toolwire.inspector.inspector import Inspector, InspectorOptions
from toolwire.inspector.recorded_exchange import Exchange
from toolwire.inspector.run_views import view_of_turn
from toolwire.providers.api_registry import apis
from toolwire.telemetry.archive import Archive

SQLITE = b"SQLite format 3\x00"
MAX_RUNS = 10_000
"""Maximum number of runs that are shown of one file."""
_NO_LIMIT = 1 << 40


def open_files(paths: Iterable[Path]) -> Inspector:
    """Return an inspector with the contents of files.

    Args:
        paths: files of JSON lines: exports of the inspector, output of `toolwire trace --json`, rows of texts or of
            recorded traffic; or a database of recorded runs.

    Raises:
        ConfigurationError: a file cannot be read, or has another form; the message names the line.
    """
    inspector = Inspector(InspectorOptions(exchanges=_NO_LIMIT, memory=_NO_LIMIT >> 20))
    names: list[str] = []
    for path in paths:
        names.append(path.name)
        try:
            with path.open("rb") as file:
                is_database = file.read(len(SQLITE)) == SQLITE
            if is_database:
                _load_archive(inspector, Archive(path))
            else:
                _load_lines(inspector, path)
        except OSError as error:
            raise ConfigurationError(f"{path}: {error.strerror or error}") from error
        except StateError as error:
            raise ConfigurationError(f"{path}: {error}") from error
    inspector.source = ", ".join(names)
    return inspector


def _load_archive(inspector: Inspector, archive: Archive) -> None:
    for run in reversed(archive.runs(MAX_RUNS)):
        recorded = archive.run(run["id"])
        for turn in recorded.turns:
            inspector.add_view(view_of_turn(recorded.run, turn, recorded.messages))


def _load_lines(inspector: Inspector, path: Path) -> None:
    run: Json = {}
    messages: dict[int, Json] = {}
    for number, line in _lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{path}, line {number}: this is not JSON: {error}"[:300]) from error
        match value:
            case {"record": "exchange", "row": dict(), "steps": list()}:
                inspector.add_view(value)
            case {"record": "run", "id": str()}:
                run, messages = value, {}
            case {"record": "message", "id": int() as id}:
                messages[id] = value
            case {"record": "turn", "round": int()} if run:
                inspector.add_view(view_of_turn(run, value, messages))
            case {"text": str() as text, "format": str() as format} if "api" not in value:
                _add_text(inspector, value, text, format)
            case {"api": str() as api, "request": dict() as body} if api in apis():
                _add_traffic(inspector, value, api, body)
            case _:
                raise ConfigurationError(
                    f"{path}, line {number}: this is not an exchange, a recorded run, or a row of texts or traffic"
                )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _add_text(inspector: Inspector, row: Json, text: str, format: str) -> None:
    def record(exchange: Exchange) -> None:
        exchange.asked({"model": "", "messages": [], "tools": row.get("tools") or []}, 0)
        attempt = exchange.attempt("", "", "", format, exchange.body)
        attempt.passed = True  # nobody has read it yet
        attempt.arrived(text, None)

    _add(inspector, row, "openai_chat", record)


def _add_traffic(inspector: Inspector, row: Json, api: str, body: Json) -> None:
    def record(exchange: Exchange) -> None:
        exchange.asked(body, 0)
        exchange.stream = bool(row.get("stream"))
        status = row.get("status")
        exchange.status = status if isinstance(status, int) else 0
        attempt = exchange.attempt(str(row.get("provider") or ""), api, str(row.get("model") or ""), "", body)
        attempt.passed = True
        attempt.status = exchange.status
        for piece in _answer_pieces(row):
            attempt.arrived(piece, None)

    _add(inspector, row, api, record)


def _answer_pieces(row: Json) -> list[bytes]:
    stream = row.get("sse")
    if not isinstance(stream, str):
        return [json.dumps(row.get("response"), ensure_ascii=False).encode()]
    separator = "\n\n" if "\n\n" in stream else "\n"
    return [f"{piece}{separator}".encode("utf-8", "replace") for piece in stream.split(separator) if piece.strip()]


def _add(inspector: Inspector, row: Json, api: str, record: Callable[[Exchange], Any]) -> None:
    id = str(row.get("id") or f"row {len(inspector.ring) + 1}")
    exchange = inspector.begin(id, api, "", "", {})
    exchange.model = str(row.get("model") or row.get("format") or "")
    exchange.started = time.perf_counter()
    exchange.started_at = 0.0
    record(exchange)
    failed = exchange.status >= 400
    exchange.failure = f"the backend answered {exchange.status}" if failed else ""
    inspector.end(exchange, "failed" if failed else "done")
