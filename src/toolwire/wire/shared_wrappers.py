"""Formats extended by the shapes that other formats write inside the same wrapper.

Models write the right wrapper around the wrong shape: JSON in the tags of Qwen3-Coder, functions in those of Hermes. A
wrapper is enough evidence of a call, so the shape inside it decides how a call is read, whatever format was named. The
format's own shapes come first. Detection does not need this: it tries each format that has the opener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeGuard

from toolwire.wire.content_markers import FENCES
from toolwire.wire.node_markers import TEXT, first
from toolwire.wire.syntax import Call, Lit, Many, Name, Node, OneOf, WireFormat

_Shape = tuple[Node, ...]
_Shapes = dict[str, list[_Shape]]
"""By opener of a wrapper, what comes after it."""


def _is_wrapper(node: Node) -> bool:
    # Words may be prose, and a fence shows text of any kind.
    return isinstance(node, Lit) and not (node.hint or node.prose or node.text.startswith(FENCES))


def _is_optional(node: Node) -> TypeGuard[Lit]:
    return isinstance(node, Lit) and node.need == "optional"


def _shapes(nodes: _Shape) -> Iterator[tuple[Lit, _Shape]]:
    """Yield the wrappers that a sequence can begin with, each with what comes after its opener."""
    head, rest = nodes[0], nodes[1:]
    match head:
        case Lit():
            if _is_wrapper(head) and rest:
                yield head, rest
            if head.need == "optional" and rest:
                yield from _shapes(rest)
        case Call(nodes=inner) if isinstance(inner[0], Lit) and _is_wrapper(inner[0]) and len(inner) > 1:
            yield inner[0], (Call(inner[1:]), *rest)
        case Many(nodes=inner):
            yield from _shapes(inner)
        case _:
            pass


def _known(shape: _Shape) -> _Shape:
    """Return a shape in which a name without any mark of its own has to be a known tool's."""
    head = shape[0]
    match head:
        case Call(nodes=(Name() as name, *siblings)):
            return (Call((replace(name, known=True), *siblings)), *shape[1:])
        case OneOf(options):
            return (OneOf(tuple(map(_known, options))), *shape[1:])
        case _:
            return shape


def _extended(nodes: _Shape, shapes: _Shapes) -> _Shape:
    """Return a sequence that also reads these shapes after its wrapper's opener."""
    head, rest = nodes[0], nodes[1:]
    match head:
        case Lit(need="optional") if rest:
            # Nothing but the opener distinguishes most shapes from prose, so they are not read without it.
            return (head, *_extended(rest, shapes))
        case Lit() if rest and _is_wrapper(head):
            siblings = _others(head, rest, shapes)
            return (head, OneOf((rest, *siblings))) if siblings else nodes
        case Call(nodes=inner) if isinstance(inner[0], Lit) and len(inner) > 1:
            nodes_after = (Call(inner[1:]), *rest)
            siblings = _others(inner[0], nodes_after, shapes)
            return (inner[0], OneOf((nodes_after, *siblings))) if siblings else nodes
        case Many(nodes=inner):
            return (replace(head, nodes=_extended(inner, shapes)), *rest)
        case _:
            return nodes


def _blocks(nodes: _Shape, shapes: _Shapes) -> Iterator[_Shape]:
    """Yield the blocks to read in place of one."""
    head = nodes[0]
    extended = _extended(nodes, shapes)
    if _is_optional(head):
        wrapped = _extended((replace(head, need="required"), *extended[1:]), shapes)
        if wrapped[1] is not extended[1]:
            yield wrapped
    yield extended


def _others(opener: Lit, own: _Shape, shapes: _Shapes) -> list[_Shape]:
    """Return the shapes of other formats that begin unlike the own one and unlike each other."""
    begins, _ = first(own)
    siblings: list[_Shape] = []
    for spelling in sorted(opener.spellings):
        for shape in shapes.get(spelling, ()):
            more, may_be_empty = first(shape)
            if not may_be_empty and not more <= begins:
                begins |= more
                siblings.append(_known(shape))
    return siblings


def _openers(blocks: Iterable[_Shape]) -> frozenset[str]:
    return frozenset().union(*(lit.spellings for nodes in blocks for lit, _ in _shapes(nodes)))


def _extend(wire: WireFormat, formats: tuple[WireFormat, ...]) -> WireFormat:
    if wire.strict or not all(isinstance(nodes, tuple) and nodes for nodes in wire.blocks):
        return wire  # a broken description is reported where it is compiled
    shapes: _Shapes = {}
    unwrapped: list[_Shape] = []
    own_openers = _openers(wire.blocks)
    for other in formats:
        if other.name == wire.name or other.strict or not other.markers or not other.detected:
            continue
        for nodes in other.blocks:
            for opener, shape in _shapes(nodes):
                for spelling in opener.spellings:
                    shapes.setdefault(spelling, []).append(shape)
            # A wrapper that may be missing in the other format may be missing here.
            shared = _is_optional(nodes[0]) and bool(_openers([nodes]) & own_openers)
            if shared and not any(TEXT in first(shape)[0] for _, shape in _shapes(nodes[1:])):
                unwrapped.append(nodes)
    blocks = tuple(block for nodes in wire.blocks for block in _blocks(nodes, shapes))
    return wire if blocks == wire.blocks and not unwrapped else replace(wire, blocks=(*blocks, *unwrapped))


def _continue(wire: WireFormat, formats: tuple[WireFormat, ...]) -> WireFormat:
    marked = (other for other in formats if other.markers and other.detected)
    blocks = (block for other in marked for block in with_shared_shapes(other, formats).blocks)
    if wire.at == "anywhere":
        return replace(wire, blocks=(*wire.blocks, *blocks))
    # What has to begin the message, with or without a fence, comes again only if nothing but calls came before.
    return replace(wire, blocks=(*wire.blocks, *blocks), at="markers", fences=True)


_MAX_EXTENDED = 256
# By identity, as compiled formats are. An entry keeps its formats alive, so that no other object has their identity.
_cache: dict[tuple[Callable[..., WireFormat], int, int], tuple[WireFormat, WireFormat, tuple[WireFormat, ...]]] = {}


def _cached(
    extend: Callable[[WireFormat, tuple[WireFormat, ...]], WireFormat],
    wire: WireFormat,
    formats: tuple[WireFormat, ...],
) -> WireFormat:
    key = extend, id(wire), id(formats)
    entry = _cache.get(key)
    if entry is None:
        if len(_cache) >= _MAX_EXTENDED:
            _cache.clear()
        entry = _cache[key] = extend(wire, formats), wire, formats
    return entry[0]


def with_shared_shapes(wire: WireFormat, formats: tuple[WireFormat, ...]) -> WireFormat:
    """Return a format that also reads what these siblings write in its wrappers; itself where nothing is shared."""
    return _cached(_extend, wire, formats)


def after_first_call(wire: WireFormat, formats: tuple[WireFormat, ...]) -> WireFormat:
    """Return the format in which a message goes on whose first call was detected in this one.

    A call without markers may be one whose opener the prompt had written, so the calls after it may be in any format.
    """
    return with_shared_shapes(wire, formats) if wire.markers else _cached(_continue, wire, formats)
