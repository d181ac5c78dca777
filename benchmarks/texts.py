"""Texts for the benchmarks, made from the descriptions: a call with one long value in any format."""

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
"""Source code with quotes, brackets, newlines and a few `<`."""
UNICODE = (
    "Die Übergröße kostet 3 €, «ça va» – naïve façade. Привет, как дела сегодня? 今日はとても良い天気ですね。\n"
    "Ελληνικά γράμματα και άλλα, 한국어 문장도 있습니다.\n"
)
PROSE = (
    "The quick brown fox jumps over the lazy dog while nobody looks and goes on through the wood for a long while.\n"
)
SPECIAL = 'a"]\n<\\&'
"""Text with a character in every four that is special in every format."""


def walk(value: Any) -> Iterator[Any]:
    """Yield every node of a description."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, tuple):
            stack.extend(top)
        elif dataclasses.is_dataclass(top):
            yield top
            stack.extend(getattr(top, f.name) for f in dataclasses.fields(top))


def kind(wire: WireFormat) -> str:
    """Return the syntax of values: "json", "raw", "elements", "python" or "none"."""
    kinds = {type(node) for node in walk(wire.blocks[:1])}
    if not kinds:
        return "none"
    if syntax.PyCalls in kinds and not kinds & {syntax.Elements, syntax.Value}:
        return "python"
    # A format may read several syntaxes; the one that it writes is measured.
    probe = ToolCall("write_file", {"path": "a.py", "content": 'a < "b" &'}, id="abc123456")
    text = toolwire.render_calls([probe], format=wire.name, tools=TOOLS)
    if r"a < \"b" in text or r"a < \\\"b" in text:
        return "json"
    return "raw" if 'a < "b" &' in text and "CDATA" not in text else "elements"


def reads_entities(wire: WireFormat) -> bool:
    """Return whether a format writes values as XML that may contain entities."""
    nodes = walk(wire.blocks[:1])
    return kind(wire) == "elements" and any(isinstance(node, syntax.Elements) and not node.literal for node in nodes)


def formats(names: list[str] | None = None) -> list[WireFormat]:
    """Return the formats that have calls, or the named ones of them."""
    return [wire for wire in FORMATS if wire.blocks and (not names or wire.name in names)]


def fill(unit: str, size: int) -> str:
    """Repeat a unit up to about `size` characters."""
    return unit * max(1, size // len(unit))


def written(wire: WireFormat, value: str, *, entities: bool = False) -> str:
    """Return the value as the format writes it inside a call."""
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
    """Return the text of a call before and after its long value."""
    call = ToolCall("write_file", {"path": "a.py", "content": "HERE"}, id="abc123456")
    head, _, tail = toolwire.render_calls([call], format=wire.name, tools=TOOLS).partition("HERE")
    return head, tail


def call(wire: WireFormat, value: str, *, entities: bool = False) -> str:
    """Return a message that calls `write_file` with this content."""
    head, tail = around(wire)
    return head + written(wire, value, entities=entities) + tail
