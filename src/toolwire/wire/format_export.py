"""Descriptions of formats as data for readers in other languages: a versioned JSON document, and its JSON Schema.

`spec/` explains what a reader does with each node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from toolwire.wire import syntax
from toolwire.wire.format_registry import all_formats
from toolwire.wire.syntax import END_OF_SEQUENCE, WireFormat

EXPORT_VERSION = 1
"""Version of the document; a change that readers of the version before would misread raises it."""
_NODES: tuple[type, ...] = get_args(syntax.Node)


def export_formats(formats: Iterable[WireFormat] | None = None) -> dict[str, Any]:
    """Return descriptions as one JSON document.

    Every node is an object whose member `node` names its kind. All members are written, also those with their defaults.

    Args:
        formats: the formats; by default all that are known.
    """
    return {
        "version": EXPORT_VERSION,
        "end_of_sequence": list(END_OF_SEQUENCE),
        "formats": [_exported(wire) for wire in (all_formats() if formats is None else formats)],
    }


def _exported(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: _exported(getattr(value, field.name)) for field in fields(value)}
        return {"node": type(value).__name__, **members} if isinstance(value, _NODES) else members
    if isinstance(value, tuple):
        return [_exported(item) for item in value]
    return value


def export_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    classes = (*_NODES, syntax.Span, syntax.Listing, WireFormat)
    definitions: dict[str, Any] = {kind.__name__: _object_schema(kind) for kind in classes}
    definitions["Node"] = {"oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in _NODES]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Wire formats of tool calls",
        "type": "object",
        "properties": {
            "version": {"const": EXPORT_VERSION},
            "end_of_sequence": {"type": "array", "items": {"type": "string"}},
            "formats": {"type": "array", "items": {"$ref": "#/$defs/WireFormat"}},
        },
        "required": ["version", "end_of_sequence", "formats"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _object_schema(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    properties = {field.name: _schema(hints[field.name]) for field in fields(kind)}
    if kind in _NODES:
        properties = {"node": {"const": kind.__name__}, **properties}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema(hint: Any) -> dict[str, Any]:
    """Return the schema of the type of a member."""
    if hint == syntax.Node:
        return {"$ref": "#/$defs/Node"}
    if is_dataclass(hint):
        return {"$ref": f"#/$defs/{hint.__name__}"}  # type: ignore[union-attr]
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return {"enum": list(arguments)}
    if get_origin(hint) in (UnionType, Union):
        return {"anyOf": [{"type": "null"} if each is NoneType else _schema(each) for each in arguments]}
    if get_origin(hint) is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0])}
    if get_origin(hint) is tuple:
        return {"type": "array", "prefixItems": [_schema(each) for each in arguments], "minItems": len(arguments)}
    return {"type": {str: "string", bool: "boolean", float: "number"}[hint]}
