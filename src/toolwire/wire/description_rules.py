"""Rules for descriptions of formats beyond the types of members: where nodes may be, and what may be empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from toolwire.errors import DefinitionError
from toolwire.wire.compiled_format import contains_call
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
    WireFormat,
)

_BLOCK: Final = "outside a Call"
_CALL: Final = "in a Call"
_PARAMETERS: Final = "in Params"
_PLACES: Final[dict[type[Node], tuple[str, ...]]] = {
    Lit: (_BLOCK, _CALL, _PARAMETERS),
    OneOf: (_BLOCK, _CALL, _PARAMETERS),
    AnyOrder: (_BLOCK, _CALL),
    Many: (_BLOCK, _CALL),
    Header: (_BLOCK,),
    JsonCall: (_BLOCK,),
    PyCalls: (_BLOCK,),
    Call: (_BLOCK,),
    Tag: (_CALL, _PARAMETERS),
    **dict.fromkeys((Name, Ident, Server, ToolTag, ToolBody, Params), (_CALL,)),
    **dict.fromkeys((Elements, Args, TokenArgs, KeywordArgs), (_CALL,)),
    **dict.fromkeys((Key, Mark, Value), (_PARAMETERS,)),
}
_NOT_EMPTY: Final[dict[type[Node], tuple[str, ...]]] = {
    Call: ("nodes",),
    Params: ("nodes",),
    Many: ("nodes",),
    OneOf: ("options",),
    AnyOrder: ("groups",),
    JsonCall: ("name", "args"),
    Tag: ("name", "attribute", "open", "close"),
    Value: ("close",),
    TokenArgs: ("token",),
}
"""Members that must not be empty; in `options` and `groups`, each item neither."""

_INNER: Final = (Header, Ident, Server, Key, Mark, Value, Elements, Args, TokenArgs, KeywordArgs)
"""Nodes whose beginning no marker shows."""


def check_description(wire: WireFormat) -> None:
    """Check the nodes of a format.

    Raises:
        DefinitionError: a node is where no reader or writer of it looks, or a member is empty that must not be; the
            message names the place.
    """
    for at, nodes in enumerate(wire.blocks):
        _check_sequence(nodes, _BLOCK, f"blocks.{at}")
        if not any(map(contains_call, nodes)):
            raise DefinitionError(f"blocks.{at}: it contains no call: no Call, JsonCall or PyCalls")
        _check_beginning(nodes, f"blocks.{at}")
    for name in ("drop", "answers", "stop"):
        for at, marker in enumerate(getattr(wire, name)):
            if not marker.strip():
                raise DefinitionError(f"{name}.{at}: a marker cannot be empty or blank")
    for at, span in enumerate(wire.spans):
        if not (span.open.strip() and span.close.strip()):
            raise DefinitionError(f"spans.{at}: a span needs both markers")


def _check_sequence(nodes: Iterable[Node], place: str, where: str) -> None:
    nodes = tuple(nodes)
    if not nodes:
        raise DefinitionError(f"{where}: it is empty")
    for at, node in enumerate(nodes):
        _check_node(node, place, f"{where}.{at}")


def _check_node(node: Node, place: str, where: str) -> None:
    kind = type(node)
    if place not in _PLACES[kind]:
        raise DefinitionError(f"{where}: {kind.__name__} belongs {' or '.join(_PLACES[kind])}, not {place}")
    for member in _NOT_EMPTY.get(kind, ()):
        value = getattr(node, member)
        if not value or (isinstance(value, str) and not value.strip()):
            raise DefinitionError(f"{where}.{member}: it is empty")
    if isinstance(node, Tag) and (node.role == "key") != (place == _PARAMETERS):
        raise DefinitionError(f"{where}: a Tag with the role {node.role!r} does not belong {place}")
    inside = {Call: _CALL, Params: _PARAMETERS}.get(kind, place)
    for nodes, name in _sequences(node):
        _check_sequence(nodes, inside, f"{where}.{name}")
    if isinstance(node, Call) and not any(_is_name(each) for each in _all_nodes(node.nodes)):
        raise DefinitionError(f"{where}: a Call needs a Name, a Tag with the role 'name' or a ToolTag")
    if isinstance(node, Params):
        _check_parameters(node, where)


def _check_beginning(nodes: Iterable[Node], where: str) -> None:
    """Check that a reader recognizes where a sequence of nodes begins, also if its first markers are missing."""
    for at, node in enumerate(nodes):
        for inner, name in _sequences(node):
            _check_beginning(inner, f"{where}.{at}.{name}")
        if isinstance(node, _INNER) or (isinstance(node, Name) and not node.known):
            raise DefinitionError(
                f"{where}.{at}: a marker has to come first, by which a reader recognizes the beginning"
            )
        if not (isinstance(node, Lit) and node.need == "optional"):
            return


def _check_parameters(node: Params, where: str) -> None:
    nodes = list(_all_nodes(node.nodes))
    if not isinstance(node.nodes[-1], Value) or sum(isinstance(each, Value) for each in nodes) > 1:
        raise DefinitionError(f"{where}: Params end with a Value, the only one")
    if sum(isinstance(each, Key | Tag) for each in node.nodes) > 1:
        raise DefinitionError(f"{where}: Params have one Key or one Tag with the role 'key'")
    _check_beginning(node.nodes, where)


def _is_name(node: Node) -> bool:
    return isinstance(node, Name | ToolTag) or (isinstance(node, Tag) and node.role == "name")


def _all_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for inner, _ in _sequences(node):
            yield from _all_nodes(inner)


def _sequences(node: Node) -> Iterator[tuple[tuple[Node, ...], str]]:
    match node:
        case Call(nodes=nodes) | Params(nodes=nodes) | Many(nodes=nodes):
            yield nodes, "nodes"
        case OneOf(options=groups):
            yield from ((nodes, f"options.{at}") for at, nodes in enumerate(groups))
        case AnyOrder(groups=groups):
            yield from ((nodes, f"groups.{at}") for at, nodes in enumerate(groups))
        case _:
            pass
