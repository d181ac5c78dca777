"""Formats from descriptions as data, as `export_formats` writes them: the way to an own format without Python code.

A description is data alone: reading one runs nothing. A member that is missing has its default, so that a description
written by hand says only what is special about its format. A member that does not exist is an error: most are misspelt,
and without it the description would be that of another format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from toolwire.errors import DefinitionError
from toolwire.text.suggest import closest, did_you_mean
from toolwire.wire import syntax
from toolwire.wire.description_rules import check_description
from toolwire.wire.format_export import EXPORT_VERSION
from toolwire.wire.syntax import WireFormat

_NODES: dict[str, type] = {kind.__name__: kind for kind in get_args(syntax.Node)}
_MAX_LEVELS = 64
"""Maximum number of values inside one another; the formats of this package have 20 levels at most."""
_TYPES = {str: "text", bool: "true or false", float: "a number"}
_T = TypeVar("_T")


def import_formats(document: Mapping[str, Any]) -> tuple[WireFormat, ...]:
    """Return the formats that are described in a document.

    Args:
        document: what `export_formats` returns, or one object of its `formats` alone.

    Raises:
        DefinitionError: it does not describe formats; the message names the place in the document.
    """
    if "formats" not in document:
        return (_checked(_read_object(WireFormat, document, "the format", 0), "the format"),)
    if document.get("version") != EXPORT_VERSION:
        raise DefinitionError(f"version: {document.get('version')!r} is not {EXPORT_VERSION}, the one that is read")
    formats: tuple[WireFormat, ...] = _read(tuple[WireFormat, ...], document["formats"], "formats", 0)
    return tuple(_checked(wire, f"formats.{at}") for at, wire in enumerate(formats))


def _checked(wire: WireFormat, where: str) -> WireFormat:
    if not wire.name.strip():
        raise DefinitionError(f"{where}.name: it is empty")
    try:
        check_description(wire)
    except DefinitionError as error:
        raise DefinitionError(f"{where}.{error}") from error
    return wire


def _read_object(kind: type[_T], data: Any, where: str, level: int) -> _T:
    if not isinstance(data, Mapping):
        raise DefinitionError(f"{where}: {_shown(data)} is not an object")
    declared, hints = {field.name: field for field in fields(kind)}, get_type_hints(kind)  # type: ignore[arg-type]
    for name in data:
        if name not in declared:
            raise DefinitionError(
                f"{where}: {kind.__name__} has no member {name!r}{did_you_mean(closest(name, declared))}"
            )
    for name, field in declared.items():
        if name not in data and field.default is MISSING:
            raise DefinitionError(f"{where}: {kind.__name__} needs the member {name!r}")
    members = {name: _read(hints[name], value, f"{where}.{name}", level) for name, value in data.items()}
    try:
        return kind(**members)
    except DefinitionError as error:
        raise DefinitionError(f"{where}: {error}") from error


def _read(hint: Any, data: Any, where: str, level: int) -> Any:
    """Return the value of a member of this type."""
    if level > _MAX_LEVELS:
        raise DefinitionError(f"{where[:200]}: it has more than {_MAX_LEVELS} levels")
    if hint == syntax.Node:
        return _read_node(data, _NODES, where, level + 1)
    if hint in _NODES.values():
        return _read_node(data, {hint.__name__: hint}, where, level + 1)
    if is_dataclass(hint):
        return _read_object(hint, data, where, level + 1)  # type: ignore[arg-type]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return _read_list(arguments, data, where, level + 1)
    if origin in (UnionType, Union):  # of something and None
        (some,) = (each for each in arguments if each is not NoneType)
        return None if data is None else _read(some, data, where, level)
    if origin is Literal:
        if data not in arguments:
            raise DefinitionError(f"{where}: {_shown(data)} is not one of {', '.join(map(repr, arguments))}")
        return data
    if hint is float and type(data) is int:
        return float(data)
    if type(data) is not hint:
        raise DefinitionError(f"{where}: {_shown(data)} is not {_TYPES[hint]}")
    return data


def _read_node(data: Any, kinds: Mapping[str, type], where: str, level: int) -> Any:
    name = data.get("node") if isinstance(data, Mapping) else None
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        near = did_you_mean(closest(name, kinds)) if isinstance(name, str) else ""
        example = f'{{"node": "{next(iter(kinds))}", ...}}'
        raise DefinitionError(f"{where}: {_shown(data)} is not a node, an object such as {example}{near}")
    return _read_object(kind, {key: value for key, value in data.items() if key != "node"}, where, level)


def _read_list(items: tuple[Any, ...], data: Any, where: str, level: int) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        raise DefinitionError(f"{where}: {_shown(data)} is not a list")
    if items[-1] is not Ellipsis and len(data) != len(items):
        raise DefinitionError(f"{where}: it has {len(data)} items, not {len(items)}")
    return tuple(_read(items[0], item, f"{where}.{at}", level) for at, item in enumerate(data))


def _shown(data: Any) -> str:
    return f"{data!r:.80}"
