"""Markers that nodes of descriptions begin with, and the nodes that are inside others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from string import ascii_letters
from typing import assert_never

from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Header,
    Ident,
    JsonCall,
    Key,
    KeywordArgs,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    OneOf,
    Params,
    PyCalls,
    Server,
    Tag,
    TokenArgs,
    ToolBody,
    ToolTag,
    Value,
)

Markers = frozenset[str]
TEXT = ""
"""Placeholder for plain text in a set of markers."""
ANY_TAG = "<"
"""Opener of tags that are named after tools: which they are, only the tools say."""
_ARGUMENTS = frozenset({"{", '"', "null"})
"""Beginnings of arguments as JSON: an object, the text of one in a string, or no object."""
_ELEMENTS = frozenset(f"<{character}" for character in f"{ascii_letters}_!")
"""Beginnings of an element, and of a comment before it; not those of closing tags."""
_TAG_SPACE = (" ", "\n", "\t", "\r")


def tag_openers(tag: Tag) -> Markers:
    """Return the beginnings of an opening tag with an attribute: the whole name, then white space."""
    return frozenset(f"{tag.open}{tag.name}{space}" for space in _TAG_SPACE)


def first(nodes: Iterable[Node]) -> tuple[Markers, bool]:
    """Return the markers that a sequence can begin with, and whether it may be empty."""
    markers: set[str] = set()
    for node in nodes:
        node_markers, may_be_empty = first_of(node)
        markers |= node_markers
        if not may_be_empty:
            return frozenset(markers), False
    return frozenset(markers), True


def first_of(node: Node) -> tuple[Markers, bool]:
    """Return the markers that a node can begin with, and whether it may be empty."""
    match node:
        case Lit():
            return node.spellings, node.need != "required"
        case Tag():
            return tag_openers(node), False
        case Name() | Header() | Ident() | Server() | Key() | Mark() | Value() | ToolBody():
            return frozenset({TEXT}), False
        case ToolTag():
            return frozenset({ANY_TAG}), False
        case Params(nodes):
            return first(nodes)[0], True
        case Elements(token=token):
            return frozenset({f"{token}<"} if token else _ELEMENTS), True
        case Args(element=element, until=until):
            return frozenset({TEXT} if element or until else _ARGUMENTS), False
        case JsonCall():
            return frozenset("{["), False
        case TokenArgs():
            return frozenset("{"), False
        case KeywordArgs():
            return frozenset("("), False
        case PyCalls(open=opener, bare=bare, json=json):
            return frozenset({opener, *([TEXT] if bare else []), *("{" if json else "")}), False
        case Many(nodes) | Call(nodes):
            return first(nodes)
        case OneOf(options):
            markers, may_be_empty = zip(*map(first, options), strict=True)
            return frozenset().union(*markers), any(may_be_empty)
        case AnyOrder(groups):
            return frozenset().union(*(first(group)[0] for group in groups)), True
        case _:
            assert_never(node)


def leaves(node: Node) -> Iterator[Node]:
    """Yield the nodes inside a node that contain no others; itself, if it is one."""
    match node:
        case Many(nodes) | Call(nodes) | Params(nodes):
            for inner in nodes:
                yield from leaves(inner)
        case OneOf(options) | AnyOrder(options):
            for inner in chain.from_iterable(options):
                yield from leaves(inner)
        case _:
            yield node


def sequences(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """Yield a sequence of nodes, and all those inside it."""
    yield nodes
    for node in nodes:
        match node:
            case Many(inner) | Call(inner) | Params(inner):
                yield from sequences(inner)
            case OneOf(options) | AnyOrder(options):
                for option in options:
                    yield from sequences(option)
            case _:
                pass
