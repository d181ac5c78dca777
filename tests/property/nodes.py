"""Facts about descriptions of formats, found by walking their nodes: no format is known by name here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any

from toolwire.errors import UnknownFormat
from toolwire.wire import syntax
from toolwire.wire.format_registry import AUTO
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat


def has_auto() -> bool:
    """Return whether detection is available."""
    import toolwire

    try:
        toolwire.StreamParser(format=AUTO)
    except UnknownFormat:
        return False
    return True


def names() -> list[str]:
    """Return every format's name, and "auto" if it is available."""
    return [wire.name for wire in FORMATS] + ([AUTO] if has_auto() else [])


def wire_formats(name: str) -> tuple[WireFormat, ...]:
    """Return the descriptions for a name: one, or all for "auto"."""
    return tuple(FORMATS) if name == AUTO else tuple(wire for wire in FORMATS if wire.name == name)


def walk(value: Any) -> Iterator[Any]:
    """Yield every node of a description."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, (tuple, list, frozenset)):
            stack.extend(top)
        elif dataclasses.is_dataclass(top):
            yield top
            stack.extend(getattr(top, f.name) for f in dataclasses.fields(top))


@cache
def literals_of(wire: WireFormat) -> frozenset[str]:
    """Return the markup of the format: its literals and the markers around reasoning."""
    markers = set(wire.drop)
    for node in walk((wire.blocks, wire.spans)):
        if isinstance(node, syntax.Lit):
            markers |= node.spellings
        elif isinstance(node, syntax.Span):
            markers |= {node.open, node.close}
    return frozenset(markers)


@cache
def fragments_of(wire: WireFormat) -> tuple[str, ...]:
    """Return everything in the description that can disturb a text: literals, tags with their attribute, keys."""
    fragments = {*literals_of(wire), *wire.stop}
    for node in walk(wire.blocks):
        if isinstance(node, syntax.Value):
            fragments.add(node.close)
            if node.cdata:
                fragments |= {"<![CDATA[", "]]>", f"]]>{node.close}"}
        elif isinstance(node, syntax.Tag):
            start, end = f"{node.open}{node.name}", node.close
            fragments |= {f"{start} ", *(f'{start} {node.attribute}="{name}"{end}' for name in "fs"), f"</{node.name}>"}
            if node.mark is not None:
                marks = {f'{node.mark.attribute}="{node.mark.of(kind)}"' for kind in ("string", "number")}
                fragments |= {f" {mark}{end}" for mark in marks}
                fragments |= {f'{start} {node.attribute}="{name}" {mark}{end}' for name in "si" for mark in marks}
        elif isinstance(node, syntax.ToolTag):
            fragments |= {f"{start}{name}{end}" for name in ("f", "ping") for start, end in (("<", ">"), ("</", ">"))}
            fragments |= {
                "<ping/>",
                "<f ",
                '<f s="a">',
                "<f>\n<s>",
                "</s>\n</f>",
                "<f>\ns: a\n",
                "i: 1\n</f>",
                "<s>",
                "<i>",
            }
            fragments |= {'<f>{"s": "a"}</f>', "<f>\ns: |\n  ", "<ping></ping>"}
        elif isinstance(node, syntax.Elements):
            for name in (node.tag, *node.nested, "s", "arguments", "item"):
                if name:
                    fragments |= {f"{node.token}<{name}>", f"{node.token}</{name}>", f'{node.token}<{name} name="s">'}
        elif isinstance(node, syntax.Mark):
            fragments |= {node.of("string"), node.of("number")}
        elif isinstance(node, syntax.TokenArgs):
            fragments |= {node.token, f"{{s:{node.token}x{node.token}}}", f"s:{node.token}", f"{node.token},i:1}}"}
        elif isinstance(node, syntax.JsonCall):
            keys = (*node.name, *node.args, *node.id, *node.server, *node.inside, *node.lists)
            fragments |= {f'"{key}"' for key in keys}
            fragments |= {f'{{"{key}": ' for key in node.inside} | {f'{{"{key}": [' for key in node.lists}
        elif isinstance(node, syntax.PyCalls):
            fragments |= {node.open, node.close}
    return tuple(sorted(fragments))
