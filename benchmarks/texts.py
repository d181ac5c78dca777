"""Texts for the benchmarks, written from the descriptions: a call with one long value in any format."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import toolwire
from toolwire.messages import ToolCall
from toolwire.wire import syntax
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

TOOLS = [
    {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
    {"name": "ping", "description": "Ping.", "parameters": {"type": "object", "properties": {}}},
]

SOURCE = (
    'def search(self, pattern: str, *, limit: int = 50) -> list[str]:\n    """Return lines that match."""\n'
    "    found = []\n    for number, line in enumerate(self.lines, start=1):\n"
    "        if pattern in line and line < limit:\n            found.append(f'{number}: {line.strip()}')\n"
    '    return found or ["nothing"]\n\n'
)
"""Source code: quotes, brackets, newlines and now and then a `<`."""
UNICODE = (
    "Die Übergröße kostet 3 €, «ça va» – naïve façade. Привет, как дела сегодня? 今日はとても良い天気ですね。\n"
    "Ελληνικά γράμματα και άλλα, 한국어 문장도 있습니다.\n"
)
PROSE = (
    "The quick brown fox jumps over the lazy dog while nobody looks and goes on through the wood for a long while.\n"
)
SPECIAL = 'a"]\n<\\&'
"""Text of which every four characters hold one that is special in every format."""


def walk(value: Any) -> Iterator[Any]:
    """Every node of a description."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, tuple):
            stack.extend(top)
        elif dataclasses.is_dataclass(top):
            yield top
            stack.extend(getattr(top, f.name) for f in dataclasses.fields(top))


def kind(wire: WireFormat) -> str:
    """How values are written: "json", "raw", "elements", "python" or "none"."""
    nodes = list(walk(wire.blocks[:1]))
    kinds = {type(node) for node in nodes}
    if any(isinstance(node, (syntax.TokenArgs, syntax.Elements)) and node.token for node in nodes):
        return "raw"  # between tokens everything is literal
    for node, name in ((syntax.Elements, "elements"), (syntax.Value, "raw"), (syntax.PyCalls, "python")):
        if node in kinds:
            return name
    return "json" if kinds else "none"


def formats(names: list[str] | None = None) -> list[WireFormat]:
    """The formats that have calls, or those of them that are named."""
    return [wire for wire in FORMATS if wire.blocks and (not names or wire.name in names)]


def fill(unit: str, size: int) -> str:
    """The unit again and again, up to about this many characters."""
    return unit * max(1, size // len(unit))


def written(wire: WireFormat, value: str, *, entities: bool = False) -> str:
    """The value as the format writes it inside a call."""
    match kind(wire):
        case "json" | "python":
            text = json.dumps(value, ensure_ascii=False)[1:-1]
            twice = any(isinstance(node, syntax.JsonCall) and node.text for node in walk(wire.blocks[:1]))
            return json.dumps(text, ensure_ascii=False)[1:-1] if twice else text
        case "elements" if entities:
            return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        case "elements":
            return f"<![CDATA[{value.replace(']]>', ']]]]><![CDATA[>')}]]>"
        case _:
            return value


def around(wire: WireFormat) -> tuple[str, str]:
    """The text of a call before and after its long value."""
    call = ToolCall("write_file", {"path": "a.py", "content": "HERE"}, id="abc123456")
    head, _, tail = toolwire.render_calls([call], format=wire.name, tools=TOOLS).partition("HERE")
    return head, tail


def call(wire: WireFormat, value: str, *, entities: bool = False) -> str:
    """A message that calls `write_file` with this content."""
    head, tail = around(wire)
    return head + written(wire, value, entities=entities) + tail
