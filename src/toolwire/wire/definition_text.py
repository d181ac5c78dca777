"""Tool definitions as text: XML elements, declarations between tokens, TypeScript; and those that a model repeats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolwire.schema.kinds import TYPE_NAMES
from toolwire.text.json_text import json_text
from toolwire.text.limits import MAX_DEPTH
from toolwire.tools import ToolDefinition
from toolwire.wire.xml_scanners import ELEMENT_NAME


def tokens(value: Any, token: str) -> str:
    """Write a JSON value with bare keys and its strings between tokens."""
    match value:
        case str():
            return token + value + token
        case list():
            return "[" + ",".join(tokens(item, token) for item in value) + "]"
        case dict():
            return "{" + ",".join(f"{token_key(key, token)}:{tokens(item, token)}" for key, item in value.items()) + "}"
        case _:
            return json_text(value)


def token_key(key: str, token: str) -> str:
    """Write the key of an object: bare, or between tokens where it is not a plain name."""
    return key if ELEMENT_NAME.match(key) and ":" not in key else token + key + token


def declaration(definition: ToolDefinition, token: str) -> str:
    """Write `declaration:NAME{description:..,parameters:{..}}` with sorted keys and types in capitals."""
    body: dict[str, Any] = {"description": definition.description} if definition.description else {}
    return f"declaration:{definition.name}{tokens({**body, 'parameters': _capitals(definition.parameters)}, token)}"


def _capitals(schema: Any) -> Any:
    """Sort a schema's keys and write its types in capitals; names of properties keep their order."""
    if isinstance(schema, list):
        return [_capitals(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    capitals: dict[str, Any] = {}
    for key in sorted(schema):
        value = schema[key]
        if key == "type":
            capitals[key] = [_upper(kind) for kind in value] if isinstance(value, list) else _upper(value)
        # Here the keys are names of properties. A property called "type" is not the type of anything.
        elif key in _NAMED and isinstance(value, dict):
            capitals[key] = {name: _capitals(inner) for name, inner in value.items()}
        else:
            capitals[key] = _capitals(value) if key in _SCHEMAS else value
    return capitals


_SCHEMAS = frozenset({"items", "anyOf", "oneOf", "allOf", "additionalProperties"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keys whose value contains schemas by names that the author chose."""


def _upper(kind: Any) -> Any:
    return kind.upper() if isinstance(kind, str) else kind


def definition_elements(definition: ToolDefinition) -> str:
    """Write a definition as nested elements, one for each parameter; facts without an element are JSON text."""
    lines = ["<function>", f"<name>{definition.name}</name>"]
    if definition.description:
        lines.append(f"<description>{definition.description.strip()}</description>")
    lines.append("<parameters>")
    schema = definition.parameters
    for name, inner in schema.get("properties", {}).items():
        facts = inner if isinstance(inner, dict) else {}
        lines += ["<parameter>", f"<name>{name}</name>"]
        for key in ("type", "description"):
            if key in facts:
                value = facts[key]
                lines.append(f"<{key}>{value.strip() if isinstance(value, str) else json_text(value)}</{key}>")
        lines += [f"<{key}>{json_text(facts[key])}</{key}>" for key in facts if key not in ("type", "description")]
        lines.append("</parameter>")
    lines += [f"<{key}>{json_text(schema[key])}</{key}>" for key in schema if key not in ("type", "properties")]
    return "\n".join([*lines, "</parameters>", "</function>"])


def typescript(definition: ToolDefinition) -> str:
    """Write a definition as the type of a function with one object of arguments."""
    lines = [f"// {line}" for line in definition.description.splitlines()]
    properties = definition.parameters.get("properties", {})
    if not properties:
        return "\n".join([*lines, f"type {definition.name} = () => any;"])
    lines.append(f"type {definition.name} = (_: {{")
    required = definition.parameters.get("required", ())
    for name, inner in properties.items():
        facts = inner if isinstance(inner, dict) else {}
        lines += [f"// {line}" for line in str(facts.get("description", "")).splitlines()]
        default = f", // default: {json_text(facts['default'])}" if "default" in facts else ","
        lines.append(f"{_member(name, facts, required, 0)}{default}")
    return "\n".join([*lines, "}) => any;"])


def _member(name: str, schema: Any, required: Any, depth: int) -> str:
    """Write a property of an object's type."""
    quoted = name if _IDENTIFIER.match(name) else json_text(name)
    is_required = isinstance(required, (list, tuple)) and name in required
    return f"{quoted}{'' if is_required else '?'}: {_type(schema, depth)}"


_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_TYPES = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def _type(schema: Any, depth: int) -> str:
    """Write a schema as a TypeScript type, with `any` for everything that TypeScript cannot express."""
    return " | ".join(_types(schema, depth))


def _types(schema: Any, depth: int) -> list[str]:
    """Return the alternatives of a type."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return ["any"]
    if isinstance(values := schema.get("enum"), list) and values:
        return [json_text(value) for value in values]
    kinds = schema.get("type")
    if isinstance(kinds, list) and kinds:
        return [name for kind in kinds for name in _types({**schema, "type": kind}, depth + 1)]
    if isinstance(options := schema.get("anyOf") or schema.get("oneOf"), list) and options:
        return [name for option in options for name in _types(option, depth + 1)]
    if kinds == "array":
        # Alternatives need parentheses, because `a | b[]` would be one `a` or a list of `b`.
        items = _types(schema.get("items", {}), depth + 1)
        return [f"({' | '.join(items)})[]" if len(items) > 1 else f"{items[0]}[]"]
    if kinds == "object" and isinstance(properties := schema.get("properties"), dict):
        inner = (_member(key, value, schema.get("required"), depth + 1) for key, value in properties.items())
        return ["{ " + ", ".join(inner) + " }"]
    return [_TYPES.get(str(kinds), "object" if kinds == "object" else "any")]


def is_definition(tool: ToolDefinition, arguments: Mapping[str, Any]) -> bool:
    """Return whether arguments are the schema of the tool, as in a definition that a model repeats."""
    kind = arguments.get("type")
    json_type = TYPE_NAMES.get(kind.lower()) if isinstance(kind, str) else None
    # A tool that has a parameter called "type" may be called with it, whatever its value looks like.
    is_schema = json_type == "object" and "type" not in tool.shape.property_names
    return is_schema or (bool(arguments) and arguments == tool.parameters)
