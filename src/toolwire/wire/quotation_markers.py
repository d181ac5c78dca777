"""Openers of text outside blocks that only shows calls, computed from a format's description; see `quotations`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from toolwire.wire.content_markers import FENCES
from toolwire.wire.leaf_scanners import CDATA, CDATA_CLOSE
from toolwire.wire.node_markers import Markers, first, leaves, sequences
from toolwire.wire.quotations import BLOCK_QUOTE
from toolwire.wire.result_tags import result_name
from toolwire.wire.syntax import (
    Args,
    Elements,
    KeywordArgs,
    Lit,
    Node,
    PyCalls,
    TokenArgs,
    ToolBody,
    Value,
    WireFormat,
)

_TAG_OF_RESULT = re.compile(
    r"[<\[][^<>\[\]{]*(?:tool|function)[^<>\[\]{]*(?:response|result|output)[^<>\[\]{]*[>\]]?", re.I
)
"""A tag or token around the results of tools. Other formats use words that texts of any kind have."""


def quotation_markers(format: WireFormat, openers: Markers, anywhere: Markers) -> dict[str, Markers]:
    """Return, by opener of text that only shows calls, the markers that close it; none for lines and brackets.

    Args:
        format: the format.
        openers: the markers that open a block.
        anywhere: those of them that do so anywhere in content.
    """
    nodes = list(chain.from_iterable(map(leaves, chain.from_iterable(format.blocks))))
    quotes: dict[str, Markers] = {}
    if format.fences:
        brackets = frozenset("{(" if any(map(_is_python, nodes)) else "{")
        quotes |= dict.fromkeys(brackets.difference(anywhere).union(FENCES, {BLOCK_QUOTE}), frozenset[str]())
    if any(map(_has_cdata, nodes)):
        quotes[CDATA] = frozenset({CDATA_CLOSE})
    return quotes | {opener: closers for opener, closers in quoting_tags(format).items() if opener not in openers}


def _is_python(leaf: Node) -> bool:
    """Return whether this node is calls in Python."""
    return isinstance(leaf, PyCalls | KeywordArgs)


def _has_cdata(leaf: Node) -> bool:
    """Return whether values in this node may stand in CDATA sections."""
    match leaf:
        case Value(cdata=cdata):
            return cdata
        case Elements(literal=literal, token=token):
            return not (literal or token)
        case Args(element=element):
            return bool(element)
        case ToolBody():
            return True
        case _:
            return False


def quoting_tags(format: WireFormat) -> dict[str, Markers]:
    """Return, by opener of a value, of all arguments or of a tool's result, the markers that close it.

    Tags and tokens around results that begin with `<` are not among them: they quote in every format, see
    `result_tags`.
    """
    tags: dict[str, set[str]] = {}

    def add(openers: Iterable[str], closers: Iterable[str]) -> None:
        for opener in openers:
            if len(opener) > 1 and not opener.endswith("/>"):
                tags.setdefault(opener, set()).update(closers)

    for nodes in chain.from_iterable(map(sequences, format.blocks)):
        for at, node in enumerate(nodes):
            before = nodes[at - 1] if at else None
            behind = nodes[at + 1] if at + 1 < len(nodes) else None
            match node:
                case Value(close=close):
                    add(first(nodes[:at])[0], {close})
                    add(before.spellings if isinstance(before, Lit) else (), {close})
                case TokenArgs(token):
                    add({token}, {token})
                case Elements(token=token) if token:
                    add({f"{token}<"}, {f"{token}</"})
                case Elements() | Args() if isinstance(before, Lit) and isinstance(behind, Lit):
                    add(before.spellings, behind.spellings)
                case _:
                    pass
    opens, closes = map(_TAG_OF_RESULT.search, format.result)
    if opens and closes and not result_name(opens[0]):  # else it is a quotation in every format
        add({opens[0]}, {closes[0]})
    return {opener: frozenset(closers) for opener, closers in tags.items()}
