"""Comparison with other parsers in one run: the share of rows that each reads right, and the time it takes.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install agent-tool-parser llm-beacon json-repair langchain-core
    .venv/bin/python benchmarks/peers.py --packages /tmp/peers/lib/python3.11/site-packages
    .venv/bin/python benchmarks/peers.py --packages ... --rows FOLDER    # correctness too, on rows as in own.jsonl

Correctness: rows that are complete, or hold no call, in the formats that a peer says it reads; names and arguments of
all calls have to be right. No peer takes tools, so Toolwire gets none either in the column "no tools", where the format
is not named, as for the others. Time: one call with a text of each size, the least of several tries; a peer that reads
no streams has to read all that came again with each piece, so its figure is for one reading.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import toolwire

Calls = list[tuple[str, Any]]
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SOURCE = 'def f(a: str) -> None:\n    """Say "a" & <b>."""\n    print(f"{a!r}\\n")\n'


def named(call: Any) -> tuple[str, Any]:
    """Return name and arguments of a call in the shape of some peer."""
    if isinstance(call, dict):
        return call.get("name"), call.get("arguments", call.get("args", call.get("parameters")))
    return call.name, getattr(call, "args", None) if hasattr(call, "args") else call.arguments


def peers() -> dict[str, tuple[Callable[[str], Calls], frozenset[str]]]:
    """Return by name a function that reads a text, and the formats in the peer's own documentation."""
    parsers: dict[str, tuple[Callable[[str], Calls], frozenset[str]]] = {}

    def add(name: str, module: str, formats: str, make: Callable[[Any], Callable[[str], Calls]]) -> None:
        try:
            parsers[name] = make(importlib.import_module(module)), frozenset(formats.split())
        except ImportError as error:
            print(f"{name} is not there: {error}", file=sys.stderr)

    add(
        "agent-tool-parser",
        "agent_tool_parser",
        "hermes anthropic_xml deepseek_dsml deepseek_v3 deepseek_v3_1 bare_json openai_json minimax_m2 pythonic",
        lambda m: lambda text: [named(call) for call in m.try_parse_tool_calls(text)],
    )
    add(
        "llm-beacon",
        "beacon",
        "hermes mistral_json llama3_json anthropic_xml openai_json bare_json pythonic",
        lambda m: lambda text: [named(call) for call in m.parse_tool_calls(text)],
    )
    add("json-repair", "json_repair", "bare_json", lambda m: lambda text: _objects(m.loads(text)))
    add(
        "langchain-core",
        "langchain_core.utils.json",
        "bare_json json_fence",
        lambda m: lambda text: _objects(m.parse_json_markdown(text)),
    )
    return parsers


def _objects(value: Any) -> Calls:
    objects = value if isinstance(value, list) else [value]
    return [named(item) for item in objects if isinstance(item, dict) and "name" in item]


def ours(text: str, **options: Any) -> Calls:
    """Read a text with Toolwire."""
    return [(call.name, call.arguments) for call in toolwire.parse(text, **options).tool_calls]


def right(read: Callable[[str], Calls], row: dict[str, Any]) -> bool:
    """Return whether the calls are those that the row expects; an exception counts as no call."""
    calls = quiet(read, row["text"])
    want = [(call["name"], call.get("arguments")) for call in row["expect"]["calls"]]
    return len(calls) == len(want) and all(
        a == name and (arguments is None or b == arguments)
        for (a, b), (name, arguments) in zip(calls, want, strict=True)
    )


def correctness(folder: Path) -> None:
    """Print the number of rows that each reads right."""
    rows = [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]
    rows = [row for row in rows if row["kind"] in ("complete", "negative") and not row.get("reasoning_started")]
    print(f"{'peer':20}{'rows':>7}{'right':>7}{'toolwire':>10}{'no tools':>10}")
    for name, (read, formats) in peers().items():
        chosen = [row for row in rows if row["format"] in formats]
        count = sum(right(read, row) for row in chosen)
        with_tools = sum(
            right(lambda text, row=row: ours(text, format=row["format"], tools=row.get("tools") or []), row)
            for row in chosen
        )
        without = sum(right(ours, row) for row in chosen)
        print(f"{name:20}{len(chosen):7}{count:7}{with_tools:10}{without:10}")


def least(run: Callable[[], Any], tries: int = 5) -> float:
    """Return milliseconds, the best of some attempts."""
    best = float("inf")
    for _ in range(tries):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        if best > 2:
            break
    return best * 1000


def texts(size: int) -> Iterable[tuple[str, str]]:
    """Return a call with a text of this size, in formats that several parsers read."""
    arguments = {"path": "a.py", "content": (SOURCE * (size // len(SOURCE) + 1))[:size]}
    tool = {
        "name": "write_file",
        "parameters": {"type": "object", "properties": {key: {"type": "string"} for key in arguments}},
    }
    for format in ("hermes", "anthropic_xml", "bare_json"):
        yield format, toolwire.render_calls([toolwire.ToolCall("write_file", arguments)], format=format, tools=[tool])


def speed() -> None:
    """Print the time of one reading, by format and size."""
    tool = {"name": "write_file", "parameters": {"type": "object", "properties": {"content": {"type": "string"}}}}
    readers = peers()
    print(f"\n{'ms':16}{'size':>9}{'toolwire':>11}{'streamed':>10}" + "".join(f"{name:>19}" for name in readers))
    for size in SIZES:
        for format, text in texts(size):
            line = f"{format:16}{size:9}{least(lambda t=text, f=format: ours(t, format=f, tools=[tool])):11.2f}"
            line += f"{least(lambda t=text, f=format: stream(t, format=f, tools=[tool]), 2):10.1f}"
            for read, formats in readers.values():
                if format not in formats:
                    line += f"{'-':>19}"
                    continue
                took = least(lambda r=read, t=text: quiet(r, t))
                wrong = "" if quiet(read, text) == ours(text, format=format, tools=[tool]) else " (wrong)"
                line += f"{f'{took:.2f}{wrong}':>19}"
            print(line)


def quiet(read: Callable[[str], Calls], text: str) -> Calls:
    """Return the calls, or none if the parser raises."""
    try:
        return read(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # whatever a peer raises; a panic in Rust is no Exception
        return []


def stream(text: str, **options: Any) -> None:
    """Feed pieces of 4 characters."""
    parser = toolwire.StreamParser(**options)
    for at in range(0, len(text), 4):
        parser.feed(text[at : at + 4])
    parser.finish()


def main() -> int:
    """Compare the parsers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, help="a site-packages folder with the peers")
    parser.add_argument("--rows", type=Path, help="a folder with rows")
    options = parser.parse_args()
    if options.packages:
        sys.path.append(str(options.packages))
    if options.rows:
        correctness(options.rows)
    speed()
    return 0


if __name__ == "__main__":
    sys.exit(main())
