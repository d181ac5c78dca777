"""Response templates, written from formats, run by transformers' own `parse_response` on conformance rows.

    python -m benchmarks.response_templates              # the calls of each row, as the renderer writes them
    python -m benchmarks.response_templates --rows       # the text of each row as it is
    python -m benchmarks.response_templates --show 2     # what is read otherwise, two rows of each format

It needs transformers, so it runs with the environment of `scripts/test-frameworks`. Rows count whose calls the parser
reads without repairs and problems. A format is complete if its template gives the same calls in every row. A template
knows no rule about quoted calls, no other spellings, and no schema but the types of single arguments: with --rows, most
of the other rows are those.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import toolwire
from toolwire.errors import DefinitionError, RenderError
from toolwire.wire import response_template

CONFORMANCE = Path(__file__).parents[2] / "shared" / "conformance"
OWN = Path(__file__).parents[1] / "tests" / "conformance"


def rows() -> Iterator[dict[str, Any]]:
    """Yield the complete rows of named formats."""
    folders = (CONFORMANCE / "text", CONFORMANCE / "unseen", OWN)
    for path in sorted(path for folder in folders for path in folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row.get("kind") == "complete" and row["format"] != "auto":
                yield row


def comparable(name: str, arguments: Any) -> str:
    """Return a call as text that is the same for equal calls."""
    return name + json.dumps(arguments, sort_keys=True, ensure_ascii=True)


def expected(row: dict[str, Any], wire: Any) -> Any:
    """Return the calls of a row; none if the parser repairs them or sees a problem."""
    response = toolwire.parse(row["text"], format=wire, tools=row.get("tools") or ())
    repaired = any(set(call.repairs) - {"coerced"} for call in response.tool_calls)
    return () if repaired or response.problems else response.tool_calls


def read(text: str, template: dict[str, Any], prefix: str, tools: list[Any]) -> list[str] | str:
    """Return the calls that transformers reads, or the error."""
    from transformers.utils.chat_parsing import parse_response

    try:
        message = parse_response(text, template, prefix=prefix, tools=tools or None)
        functions = [call["function"] for call in message.get("tool_calls") or ()]
        return [comparable(function["name"], function["arguments"]) for function in functions]
    except (ValueError, KeyError, TypeError) as error:  # its own errors are ValueErrors
        return f"{type(error).__name__}: {error}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="the text of the rows, in place of rendered calls")
    parser.add_argument("--show", type=int, default=0, help="so many rows of each format that are read otherwise")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    good: Counter[str] = Counter()
    every: Counter[str] = Counter()
    templates: dict[str, dict[str, Any] | str] = {}
    for row in rows():
        wire = toolwire.get_format(row["format"])
        calls = expected(row, wire)
        if not calls:
            continue
        tools = [
            {"type": "function", "function": {"name": tool.name, "parameters": dict(tool.parameters)}}
            for tool in toolwire.tools.definitions(row.get("tools") or ()).values()
        ]
        text = row["text"]
        if not options.rows:
            try:
                text = toolwire.render_calls(calls, format=wire, tools=row.get("tools") or ())
            except RenderError:
                continue
        every[wire.name] += 1
        if wire.name not in templates:
            try:
                templates[wire.name] = response_template(wire)
            except DefinitionError as error:
                templates[wire.name] = str(error)
        template = templates[wire.name]
        if isinstance(template, str):
            continue
        got = read(text, template, wire.primed, tools)
        if got == [comparable(call.name, dict(call.arguments)) for call in calls]:
            good[wire.name] += 1
        elif every[wire.name] - good[wire.name] <= options.show:
            print(f"{wire.name}: {text!r:.200}\n    {got!r:.200}")
    for name in sorted(every):
        reason = templates[name]
        print(f"{name:20}{good[name]:5} of {every[name]:4}  {reason if isinstance(reason, str) else ''}".rstrip())
    complete = sum(good[name] == every[name] for name in every)
    print(f"{complete} of {len(every)} formats complete, {good.total()} of {every.total()} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
