"""Calls of the Berkeley Function Calling Leaderboard through every format and back.

    pip install --no-deps --target /tmp/bfcl bfcl-eval      # its data is all that is needed
    .venv/bin/python benchmarks/bfcl_roundtrip.py --data /tmp/bfcl/bfcl_eval/data
    .venv/bin/python benchmarks/bfcl_roundtrip.py --data ... --limit 50 hermes forge_xml

Every ground-truth call of the Python categories is rendered in every format, and read back whole and in pieces of 3 and
7 characters; it must equal itself. A format that refuses to write a call (`RenderError`) cannot carry it. The questions
of the irrelevance categories are read in every format; none may hold a call. Exit status 1 if something differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import track

import toolwire
from toolwire.messages import ToolCall
from toolwire.text.json_text import equal_json

CATEGORIES = (
    "simple_python", "multiple", "parallel", "parallel_multiple",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple",
)  # fmt: skip
IRRELEVANCE = ("irrelevance", "live_irrelevance")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
PIECES = (0, 3, 7)


@dataclass(slots=True)
class Count:
    """What became of the messages of one format."""

    messages: int = 0
    refused: int = 0
    equal: int = 0
    differ: list[str] = field(default_factory=list)
    texts: int = 0
    found: list[str] = field(default_factory=list)


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """JSON lines."""
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def schema(value: Any) -> Any:
    """The leaderboard's types as JSON Schema's."""
    if isinstance(value, list):
        return [schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, inner in value.items():
        if key == "type" and isinstance(inner, str):
            kind = TYPES.get(inner, inner)
            if kind in ("object", "number", "array", "integer", "string", "boolean", "null"):
                made[key] = kind
        elif key == "properties" and isinstance(inner, dict):
            made[key] = {name: schema(one) for name, one in inner.items()}
        elif key in ("items", "additionalProperties"):
            made[key] = schema(inner)
        elif key in ("description", "enum", "required"):
            made[key] = inner
    return made


def tools(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The row's functions; of several with one name the first."""
    found = {one["name"]: one for one in reversed(row["function"])}
    return [{**one, "parameters": schema(one.get("parameters") or {"type": "object"})} for one in found.values()]


def plain(value: Any) -> Any:
    """The first of the values that the ground truth allows, at every level."""
    if isinstance(value, dict):
        return {key: plain(first(options)) for key, options in value.items() if first(options) is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def first(options: Any) -> Any:
    """The first value that is given; None if the parameter may only be left out."""
    if not isinstance(options, list):
        return options
    return next((option for option in options if option != "" and option is not None), None)


def messages(data: Path, limit: int) -> Iterator[tuple[str, list[dict[str, Any]], list[ToolCall]]]:
    """Ids, definitions and calls."""
    for category in CATEGORIES:
        functions = {row["id"]: row for row in rows(data / f"BFCL_v4_{category}.json")}
        for at, row in enumerate(rows(data / "possible_answer" / f"BFCL_v4_{category}.json")):
            if limit and at >= limit:
                break
            calls = [
                ToolCall(name, {key: plain(first(v)) for key, v in arguments.items() if first(v) is not None})
                for one in row["ground_truth"]
                for name, arguments in one.items()
            ]
            yield row["id"], tools(functions[row["id"]]), calls


def read(text: str, size: int, **options: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls in a text, fed whole (0) or in pieces."""
    parser = toolwire.StreamParser(**options)
    pieces = [text] if not size else [text[at : at + size] for at in range(0, len(text), size)]
    events = [event for piece in pieces for event in parser.feed(piece)]
    return [(call.name, call.arguments) for call in toolwire.collect([*events, *parser.finish()]).tool_calls]


def same(a: list[tuple[str, dict[str, Any]]], b: list[tuple[str, dict[str, Any]]]) -> bool:
    """Whether calls are equal, with booleans told from numbers."""
    return equal_json([list(call) for call in a], [list(call) for call in b])


def main() -> int:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="only these")
    parser.add_argument("--data", type=Path, required=True, help="the folder with BFCL_v4_*.json")
    parser.add_argument("--limit", type=int, default=0, help="so many rows of each category; 0: all")
    parser.add_argument("--show", type=int, default=3, help="so many differences of each format")
    options = parser.parse_args()
    names = [name for name in toolwire.formats() if toolwire.get_format(name).blocks]
    names = [name for name in names if not options.formats or name in options.formats]
    counts = {name: Count() for name in (*names, "auto")}
    start = time.monotonic()

    for id, known, calls in track(list(messages(options.data, options.limit)), "calls", transient=True):
        want = [(call.name, call.arguments) for call in calls]
        for name in names:
            count = counts[name]
            count.messages += 1
            try:
                text = toolwire.render_calls(calls, format=name, tools=known)
            except toolwire.RenderError:
                count.refused += 1
                continue
            if all(same(read(text, size, format=name, tools=known), want) for size in PIECES):
                count.equal += 1
            else:
                count.differ.append(f"{id}: {text[:200]!r}")
    for category in IRRELEVANCE:
        found = list(rows(options.data / f"BFCL_v4_{category}.json"))[: options.limit or None]
        for row in track(found, category, transient=True):
            known = tools(row)
            text = "\n".join(message["content"] for turn in row["question"] for message in turn)
            for name, count in counts.items():
                count.texts += 1
                if read(text, 0, format=name, tools=known):
                    count.found.append(f"{row['id']}: {text[:200]!r}")

    print(f"{'format':18}{'messages':>9}{'refused':>9}{'equal':>8}{'differ':>8}{'texts':>8}{'calls in them':>15}")
    for name, count in counts.items():
        print(
            f"{name:18}{count.messages:9}{count.refused:9}{count.equal:8}{len(count.differ):8}{count.texts:8}"
            f"{len(count.found):15}"
        )
        for line in (*count.differ[: options.show], *count.found[: options.show]):
            print(f"    {line}")
    wrong = sum(len(count.differ) + len(count.found) for count in counts.values())
    print(f"{wrong} wrong, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
