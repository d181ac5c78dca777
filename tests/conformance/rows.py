"""Running of conformance rows: a text, options for reading it, and the expected result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import toolwire
from toolwire.messages import ParsedResponse, ToolCall

Row = dict[str, Any]

OWN = Path(__file__).parent / "own.jsonl"


def load(path: Path) -> list[Row]:
    """Return the rows of one file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def plain(value: Any) -> Any:
    """Compare numbers by value, and keep booleans apart from numbers."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def outcome(response: ParsedResponse) -> dict[str, Any]:
    """Return everything that must not depend on the way a text is fed."""
    return {
        "calls": [(call.name, plain(call.arguments), call.id, call.repairs) for call in response.tool_calls],
        "incomplete": [(call.name, plain(call.arguments)) for call in response.incomplete],
        "content": response.content,
        "reasoning": response.reasoning,
        "problems": [(problem.kind, problem.position, problem.raw) for problem in response.problems],
    }


def readings(row: Row) -> dict[str, ParsedResponse]:
    """Read the row's text whole, in 1- and 3-character pieces, and in its own pieces."""
    options: dict[str, Any] = {"format": row["format"], "tools": row.get("tools") or []}
    for key in ("reasoning_started", "primed"):
        if key in row:
            options[key] = row[key]
    text = row["text"]
    by_mode = {"whole": toolwire.parse(text, **options)}
    chunkings = {str(n): [text[i : i + n] for i in range(0, len(text), n)] for n in (1, 3)}
    if row.get("chunks"):
        chunkings["own"] = row["chunks"]
    if len(text) > 20000:
        del chunkings["1"]
    for name, chunks in chunkings.items():
        parser = toolwire.StreamParser(**options)
        events = [event for chunk in chunks for event in parser.feed(chunk)]
        by_mode[name] = toolwire.collect([*events, *parser.finish()])
    return by_mode


def _as_wanted(call: ToolCall, want: Row) -> bool:
    if want.get("name") is not None and call.name != want["name"]:
        return False
    if want.get("arguments") is not None and plain(call.arguments) != plain(want["arguments"]):
        return False
    if "repairs" in want and list(call.repairs) != want["repairs"]:
        return False
    return all(getattr(call, key) == want[key] for key in ("id", "server") if key in want)


def _calls_as_wanted(calls: list[ToolCall], want: list[Row]) -> bool:
    return len(calls) == len(want) and all(map(_as_wanted, calls, want))


def why_wrong(response: ParsedResponse, row: Row) -> str:
    """Return the difference from the row's expectation, or ""."""
    expect = row["expect"]
    truncated = row.get("kind") == "truncated"
    if expect.get("calls") is not None:
        calls = list(response.tool_calls)
        cut_shown = truncated and _calls_as_wanted([*calls, *response.incomplete], expect["calls"])
        if not cut_shown and not _calls_as_wanted(calls, expect["calls"]):
            return f"calls {calls!r}"
    for part in ("content", "reasoning"):
        actual = getattr(response, part).strip()
        if part in expect and actual != (expect[part] or "").strip() and not (truncated and "incomplete" not in expect):
            return f"{part} {actual!r}"
    if "incomplete" in expect and [call.name for call in response.incomplete] != expect["incomplete"]:
        return f"incomplete {response.incomplete!r}"
    if "problems" in expect and [problem.kind for problem in response.problems] != expect["problems"]:
        return f"problems {response.problems!r}"
    return ""


def verdict(row: Row) -> str:
    """Return why the row fails, or "". Different results for different ways of feeding always fail."""
    by_mode = readings(row)
    first = outcome(by_mode["whole"])
    for name, response in by_mode.items():
        if outcome(response) != first:
            return f"drift: pieces {name} give {outcome(response)!r}, the whole text {first!r}"
    return why_wrong(by_mode["whole"], row)
