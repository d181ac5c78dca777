"""Messages of calls as JSON Schema, for APIs that take nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.grammars.format_rules import FormatRules, GrammarTool
from toolwire.grammars.schema_values import ValueReader
from toolwire.grammars.value_types import (
    Alternatives,
    Constants,
    Items,
    Members,
    Named,
    NumberValue,
    StringValue,
    Values,
)
from toolwire.text.json_text import json_text
from toolwire.wire.syntax import JsonCall

MAX_COPIES = 100
"""Maximum number of copies of a part; parts that refer to each other twice would otherwise double at each level."""


def write_schema(reading: FormatRules) -> str:
    """Return the schema of a message of calls, for a format whose messages are JSON.

    Raises:
        DefinitionError: the format writes more than JSON.
    """
    block = reading.wire.blocks[0]
    node = block[0]
    if len(block) > 1 or not isinstance(node, JsonCall):
        raise DefinitionError(
            f"calls of the format {reading.wire.name!r} are not JSON alone, as those of bare_json are; a JSON Schema "
            "cannot describe them"
        )
    if node.text:
        raise DefinitionError(
            f"the format {reading.wire.name!r} writes arguments as text, which a schema cannot describe"
        )
    writer = _SchemaWriter()
    calls = [_call(writer, node, tool) for tool in reading.tools]
    schema: dict[str, Any] = calls[0] if len(calls) == 1 else {"anyOf": calls}
    if node.array == "always" or (reading.parallel and (node.array == "several" or node.lists)):
        several: dict[str, Any] = {"type": "array", "items": schema, "minItems": 1}
        if not reading.parallel:
            several["maxItems"] = 1
        schema = several
    if node.nested and node.lists:
        schema = _object({node.lists[0]: schema})
    return json_text({**schema, **({"$defs": writer.defs} if writer.defs else {})})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _call(writer: _SchemaWriter, node: JsonCall, tool: GrammarTool) -> dict[str, Any]:
    arguments = writer.schema(tool.arguments, tool.reader)
    if node.keyed:
        return _object({tool.name: arguments})
    members: dict[str, Any] = {node.server[0]: {"const": tool.definition.server or "local"}} if node.server else {}
    members |= {node.name[0]: {"const": tool.name}, node.args[0]: arguments}
    call = _object(members)
    return _object({node.inside[0]: call}) if node.nested and node.inside else call


class _SchemaWriter:
    """A writer of values as JSON Schema; parts that contain themselves, or are used very often, become definitions."""

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}
        self._open: set[str] = set()
        self._recursive: set[str] = set()
        self._copies: Counter[str] = Counter()

    def schema(self, values: Values, reader: ValueReader) -> dict[str, Any]:
        match values:
            case Named(name):
                return self._named(name, reader)
            case Alternatives(()):
                return {"not": {}}
            case Alternatives(options):
                return {"anyOf": [self.schema(option, reader) for option in options]}
            case Constants(constants):
                return {"enum": list(constants)}
            case StringValue(least, most, pattern):
                facts = {"minLength": least or None, "maxLength": most, "pattern": pattern or None}
                return _facts("string", facts)
            case NumberValue(integral, low, high):
                return _facts("integer" if integral else "number", {"minimum": low, "maximum": high})
            case Items(first, additional, least, most):
                rest = False if additional is None else self.schema(additional, reader)
                prefix = [self.schema(item, reader) for item in first] or None
                return _facts(
                    "array", {"prefixItems": prefix, "items": rest, "minItems": least or None, "maxItems": most}
                )
            case Members(properties, additional):
                return {
                    "type": "object",
                    "properties": {name: self.schema(inner, reader) for name, inner, _ in properties},
                    "required": [name for name, _, needed in properties if needed],
                    "additionalProperties": False if additional is None else self.schema(additional, reader),
                }

    def _named(self, name: str, reader: ValueReader) -> dict[str, Any]:
        if name == "any":
            return {}
        # Few parts become definitions, because some APIs take no references.
        if name in self._open or name in self.defs:
            self._recursive.add(name)
            return {"$ref": f"#/$defs/{name}"}
        self._open.add(name)
        self._copies[name] += 1
        schema = self.schema(reader.named[name], reader)
        self._open.discard(name)
        if name in self._recursive or self._copies[name] > MAX_COPIES:
            self.defs[name] = schema
            return {"$ref": f"#/$defs/{name}"}
        return schema


def _facts(kind: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, **{keyword: value for keyword, value in facts.items() if value is not None}}
