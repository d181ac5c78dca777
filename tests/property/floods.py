"""Floods: a prefix that opens something, and a repeated unit that never closes it."""

from __future__ import annotations

from functools import cache

from tests.property import texts
from tests.property.nodes import wire_formats

from toolwire.messages import ToolCall
from toolwire.wire import renderer
from toolwire.wire.syntax import WireFormat

UNITS = (
    "<", "</", "<a", "<a>", "</a>", "<!--", "-->", "<![CDATA[", "]]", "]]>", "&", "&amp;", "&#65;", "&#", ";", "{",
    "}", "[", "]", "{}", "[]", "[{", '{"', '{"a":', '"', "'", '""', '"""', "\\", '\\"', "\\u12", "\\ud83d", ",", ":",
    "=", "(", ")", "(x=", "```", "```\n", "\n```\n", "~~~\n", "`", " ", "\n", "\t", "\r\n", "\u2028", "9", "-", "1e9",
    "0.", "true", "x", "é", "😀", "\ud83d", "\n</", "\n<", "</s>", "</s>\n", "<think>", "</think>", "<|im_end|>", "<|",
    "|>",
)  # fmt: skip
"""Units that are repeated."""

SAMPLE = ToolCall("write_file", {"path": "a", "content": "HERE"})


@cache
def prefixes(name: str) -> tuple[str, ...]:
    """Return nothing, prose, reasoning, an open fence, and calls of each format up to each of their parts."""
    openings = ["", "text\n", "<think>", "```\n"]
    for wire in wire_formats(name):
        if wire.blocks:
            openings.extend(_inside(wire))
    return tuple(dict.fromkeys(openings))


def _inside(wire: WireFormat) -> list[str]:
    text = renderer.render_calls(wire, [SAMPLE], texts.definitions())
    at = text.index("HERE")
    name = text.index("write_file")
    # in the opener, in the name, after it, in the first value, in the long one, after it, after the call
    return [
        text[:3],
        text[:name],
        text[: name + 10],
        text[: text.index("path") + 2],
        text[:at],
        text[: at + 4],
        text[:-3],
        text,
    ]


@cache
def in_values(name: str) -> tuple[str, ...]:
    """Return nothing, and a call of each format up to its long value."""
    openings = [_inside(wire)[4] for wire in wire_formats(name) if wire.blocks]
    return ("", *dict.fromkeys(openings))


@cache
def units(name: str) -> tuple[str, ...]:
    """Return general units and the format's markup, complete and without its last character."""
    all_units = list(UNITS)
    for wire in wire_formats(name):
        all_units.extend(texts.fragments(wire.name))
        if wire.blocks:
            call = renderer.render_calls(wire, [ToolCall("ping")], texts.definitions())
            all_units.extend((call, call[:-1], call + "```"))
    all_units.extend(fragment[:-1] for fragment in all_units[len(UNITS) :])
    return tuple(unit for unit in dict.fromkeys(all_units) if unit)


def flood(prefix: str, unit: str, size: int) -> str:
    """Return a text of about `size` characters."""
    return prefix + unit * max(1, size // len(unit))
