"""JSON Schemas of tools from the schemas of an OpenAPI document, with all that they refer to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.openapi.api_document import ApiDocument
from toolwire.text.truncate import shorten

Schema = dict[str, Any]

_ONE = (
    *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_SEVERAL = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_DROPPED = frozenset(("discriminator", "xml", "externalDocs", "example", "$id", "$schema", "$anchor", "nullable"))
"""Keywords for people and generators of code, and those that would change what references mean."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


class SchemaReader:
    """Schemas of one tool: they share the definitions that they refer to.

    Attributes:
        definitions: the definitions by name, for `$defs`.
    """

    def __init__(self, document: ApiDocument) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self._waiting: list[str] = []
        self.definitions: dict[str, Schema | bool] = {}

    def read(self, schema: Any) -> Schema | bool:
        """Return a schema as JSON Schema 2020-12; the definitions of its references are added.

        Raises:
            DefinitionError: it is not a schema, or a reference cannot be followed.
        """
        converted = self._converted(schema)
        # One after the other: definitions that refer to each other would recurse as deep as there are definitions.
        while self._waiting:
            reference = self._waiting.pop()
            self.definitions[self._names[reference]] = self._converted(self._document.target(reference))
        return converted

    def _converted(self, schema: Any) -> Schema | bool:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise DefinitionError(f"a schema is an object, not {shorten(repr(schema))}")
        reference = schema.get("$ref")
        if isinstance(reference, str) and self._document.has_old_schemas:
            return {"$ref": self._name(reference)}  # 3.0 ignores what is beside a reference
        converted: Schema = {}
        for key, value in schema.items():
            if key in _DROPPED or key.startswith("x-"):
                continue
            if key == "$ref":
                converted[key] = self._name(str(value))
            elif key in _ONE:
                converted[key] = self._converted(value)
            elif key in _SEVERAL and isinstance(value, list):
                converted[key] = list(map(self._converted, value))
            elif key in _NAMED and isinstance(value, Mapping):
                converted[key] = {name: self._converted(inner) for name, inner in value.items()}
            else:
                converted[key] = value
        self._leave_out_read_only(schema, converted)
        return _modern(schema, converted) if self._document.has_old_schemas else converted

    def _leave_out_read_only(self, schema: Mapping[str, Any], converted: Schema) -> None:
        """Remove the properties that only responses have."""
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return
        names = {name for name, inner in properties.items() if self._is_read_only(inner)}
        for name in names:
            del converted["properties"][name]
        if names and isinstance(required := schema.get("required"), list):
            converted["required"] = [name for name in required if name not in names]

    def _is_read_only(self, schema: Any) -> bool:
        if isinstance(schema, bool):
            return False
        return schema.get("readOnly") is True or self._document.follow(schema).get("readOnly") is True

    def _name(self, reference: str) -> str:
        """Return the reference to the definition that takes the place of a component."""
        if reference not in self._names:
            base = _NOT_IN_NAMES.sub("_", reference.rpartition("/")[2])[:60] or "schema"
            name, number = base, 1
            while name in self._names.values():
                number += 1
                name = f"{base}_{number}"
            self._names[reference] = name
            self._waiting.append(reference)
        return f"#/$defs/{self._names[reference]}"


def _modern(schema: Mapping[str, Any], converted: Schema) -> Schema:
    """Return a schema of OpenAPI 3.0 without the keywords that JSON Schema writes in another way."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(flag := converted.get(exclusive), bool):
            del converted[exclusive]
            if flag and bound in converted:
                converted[exclusive] = converted.pop(bound)
    if schema.get("nullable") is True:
        if isinstance(kind := converted.get("type"), str):
            converted["type"] = [kind, "null"]
        if isinstance(values := converted.get("enum"), list) and None not in values:
            converted["enum"] = [*values, None]
    return converted
