"""Damaged calls amid other text: how often such a call is read, reported as a problem, or neither.

    python benchmarks/damages.py                    # 60 damaged calls of each format and dialect
    python benchmarks/damages.py --each 500 --seed 2
    python benchmarks/damages.py --show 40 hermes   # forty texts of one format that nothing reports

A model that makes one mistake in the markup of a call has to be told, or it waits for a result that never comes. Each
damage is one edit: a character or a token is left out, written twice, replaced by another one, or changes places with
its neighbor. `auto` reads the text, and the tools are known.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import texts

import toolwire
from toolwire.messages import ToolCall

TOOLS: list[dict[str, Any]] = [
    {
        "name": "get_weather",
        "description": "Return the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
    {
        "name": "search",
        "description": "Search the notes.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
]
CALLS = (
    ToolCall("get_weather", {"city": "Paris", "days": 3}, id="abc123456"),
    ToolCall("search", {"query": "the plan for May"}, id="abc123456"),
)
AROUND = ("I look it up.\n{}\nOne moment.", "I look it up.\n{}", "{}\nOne moment.", "I look it up: {}")
TOKEN = re.compile(r"\w+|<[^<>]*>|\s+|[^\w\s]")
CHARACTERS = "<>/|{}[]()\"'`:=,.;_- \nabce"
OUTCOMES = ("read", "reported", "silent")


def _named(call: ToolCall, template: str) -> str:
    return template.format(name=call.name, arguments=json.dumps(call.arguments))


DIALECTS: dict[str, Callable[[ToolCall], str]] = {
    "python_calls": lambda call: f"{call.name}({', '.join(f'{key}={item!r}' for key, item in call.arguments.items())})",
    "call_objects": lambda call: _named(call, '{{"function": "{name}", "params": {arguments}}}'),
    "call_list": lambda call: _named(call, '[{{"name": "{name}", "arguments": {arguments}}}]'),
    "name_as_key": lambda call: _named(call, '{{"{name}": {arguments}}}'),
    "name_then_json": lambda call: _named(call, "{name}\n{arguments}"),
    "headings": lambda call: _named(call, "Action: {name}\nAction Input: {arguments}"),
    "fenced": lambda call: _named(call, '```json\n{{"name": "{name}", "arguments": {arguments}}}\n```'),
}


def damaged(text: str, rng: random.Random) -> str:
    """Return a text with one edit."""
    parts = list(text) if rng.random() < 0.5 else TOKEN.findall(text)
    at = rng.randrange(len(parts))
    kind = rng.choice(("leave out", "repeat", "replace", "insert", "swap"))
    if kind == "leave out":
        parts[at] = ""
    elif kind == "repeat":
        parts[at] *= 2
    elif kind == "replace":
        parts[at] = rng.choice(CHARACTERS)
    elif kind == "insert":
        parts.insert(at, rng.choice(CHARACTERS))
    elif at + 1 < len(parts):
        parts[at], parts[at + 1] = parts[at + 1], parts[at]
    return "".join(parts)


def writers(names: list[str]) -> Iterator[tuple[str, Callable[[ToolCall], str]]]:
    """Return the formats and dialects, or the named ones of them, each with what writes a call."""
    for wire in texts.formats():
        if not names or wire.name in names:
            yield wire.name, lambda call, name=wire.name: toolwire.render_calls([call], format=name, tools=TOOLS)
    yield from ((name, writer) for name, writer in DIALECTS.items() if not names or name in names)


def outcome(text: str) -> str:
    """Return what becomes of a text."""
    response = toolwire.parse(text, format="auto", tools=TOOLS)
    return "read" if response.tool_calls else "reported" if response.problems else "silent"


def main() -> None:
    """Measure, and print a line for each format and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="only these")
    parser.add_argument("--each", type=int, default=60, metavar="N", help="texts of each format")
    parser.add_argument("--seed", type=int, default=1, help="of the edits")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N texts that nothing reports")
    options = parser.parse_args()

    total: Counter[str] = Counter()
    silent: list[tuple[str, str]] = []
    print(f"{'':18}" + "".join(f"{each:>10}" for each in OUTCOMES))
    for name, writer in writers(options.formats):
        rng = random.Random(f"{options.seed} {name}")
        counts: Counter[str] = Counter()
        for _ in range(options.each):
            call, around = rng.choice(CALLS), rng.choice(AROUND)
            written = writer(call)
            edited = damaged(written, rng)
            while edited == written:
                edited = damaged(written, rng)
            text = around.format(edited)
            result = outcome(text)
            counts[result] += 1
            if result == "silent":
                silent.append((name, text))
        total.update(counts)
        print(f"{name:18}" + "".join(f"{counts[each]:10}" for each in OUTCOMES), flush=True)
    number = total.total()
    print(f"{'all':18}" + "".join(f"{total[each] / number:10.1%}" for each in OUTCOMES))
    for name, text in random.Random(0).sample(silent, min(options.show, len(silent))):
        print(f"{name}: {text!r}")


if __name__ == "__main__":
    main()
