"""JSON Schema as each API takes it: what it refuses is rewritten or left out, and every loss is noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.providers.request import Notes
from toolwire.schema.pointer import json_pointer, resolve
from toolwire.schema.validation import check_schema
from toolwire.text.limits import MAX_DEPTH
from toolwire.tools import ToolDefinition

_MAX_NODES = 20_000
"""Schemas that inlining may make of one; more is refused."""

_ANNOTATIONS = frozenset(("title", "$comment", "$schema", "$id", "examples", "deprecated", "readOnly", "writeOnly"))
"""What says nothing about the values."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an API takes as the schema of a tool's arguments.

    Attributes:
        name: how notes call it.
        keywords: the only ones it takes; empty if any.
        inline: it takes no `$ref`.
        nullable: a type list is a type and `nullable`.
        text_enums: `enum` holds text only.
        closed: strict mode: every property is required, and no other is allowed.
        plain_root: no alternatives at the root.
    """

    name: str
    keywords: frozenset[str] = frozenset()
    inline: bool = False
    nullable: bool = False
    text_enums: bool = False
    closed: bool = False
    plain_root: bool = False


def lower(definition: ToolDefinition, dialect: Dialect, notes: Notes) -> dict[str, Any]:
    """The schema of a tool's arguments in a dialect.

    Raises:
        DefinitionError: it is no schema of an object, or it cannot be said in this dialect at all.
    """
    schema = {"type": "object", **definition.parameters}
    check_schema(schema, definition.name)
    work = _Lowering(definition, dialect, notes)
    made = work.schema(schema, "", ())
    if dialect.plain_root:
        for key in ("anyOf", "oneOf", "allOf", "not", "enum"):
            if key in made:
                del made[key]
                work.lost(f"/{key}", "no alternatives are taken at the root")
    made.setdefault("properties", {})
    return made


class _Lowering:
    """One tool's schema being rewritten."""

    def __init__(self, definition: ToolDefinition, dialect: Dialect, notes: Notes) -> None:
        self._root = definition.parameters
        self._tool = definition.name
        self._dialect = dialect
        self._notes = notes
        self._nodes = 0

    def lost(self, pointer: str, why: str) -> None:
        self._notes.dropped(f"{self._tool}{pointer}", f"{why} ({self._dialect.name})")

    def _changed(self, pointer: str, why: str) -> None:
        self._notes.changed(f"{self._tool}{pointer}", f"{why} ({self._dialect.name})")

    def schema(self, node: Any, pointer: str, inside: tuple[int, ...]) -> dict[str, Any]:
        """A schema rewritten; `inside` are the ones it stands in."""
        self._nodes += 1
        if self._nodes > _MAX_NODES or len(inside) > MAX_DEPTH:
            raise DefinitionError(
                "the schema is too large once its references are inlined", tool=self._tool, pointer=pointer
            )
        if not isinstance(node, Mapping):  # true or false
            if node is False:
                self.lost(pointer, "a schema that admits nothing is left out")
            return {}
        node = dict(node)
        if self._dialect.inline and "$ref" in node:
            node, inside = self._followed(node, pointer, inside)
        if self._dialect.keywords:
            inside = self._say_otherwise(node, pointer, inside)
        made: dict[str, Any] = {}
        for key, value in node.items():
            if self._dialect.inline and key in ("$defs", "definitions"):
                continue
            if self._dialect.keywords and key not in self._dialect.keywords:
                if key not in _ANNOTATIONS:
                    self.lost(f"{pointer}/{key}", f"{key!r} is not taken")
                continue
            made[key] = self._value(key, value, pointer + json_pointer([key]), inside)
        if self._dialect.closed:
            self._close(made, pointer)
        return made

    def _value(self, key: str, value: Any, pointer: str, inside: tuple[int, ...]) -> Any:
        match key, value:
            case (("properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas"), Mapping()):
                return {name: self.schema(one, pointer + json_pointer([name]), inside) for name, one in value.items()}
            case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), list()):
                return [self.schema(one, f"{pointer}/{at}", inside) for at, one in enumerate(value)]
            case (("items" | "not" | "additionalProperties" | "contains" | "propertyNames"), Mapping()):
                return self.schema(value, pointer, inside)
        return value

    def _followed(
        self, node: dict[str, Any], pointer: str, inside: tuple[int, ...]
    ) -> tuple[dict[str, Any], tuple[int, ...]]:
        """What a reference stands for, with what is written beside it."""
        while "$ref" in node:
            target = resolve(self._root, node["$ref"])
            if not isinstance(target, Mapping):
                raise DefinitionError(
                    f"the reference {node['$ref']!r:.80} leads nowhere", tool=self._tool, pointer=pointer
                )
            if id(target) in inside:
                self._changed(pointer, "a schema that holds itself ends here: any object is admitted")
                return {"type": "object"}, inside
            inside = (*inside, id(target))
            beside = {key: value for key, value in node.items() if key != "$ref"}
            node = {**target, **beside}
        return node, inside

    def _say_otherwise(self, node: dict[str, Any], pointer: str, inside: tuple[int, ...]) -> tuple[int, ...]:
        """Say with the dialect's keywords what others say; the schemas that the node stands in then."""
        keywords = self._dialect.keywords
        more = True
        while more:  # what is filled in may be said otherwise as well
            if "oneOf" in node and "oneOf" not in keywords and "anyOf" not in node:
                node["anyOf"] = node.pop("oneOf")
                self._changed(pointer, "'oneOf' is said with 'anyOf'")
            if more := isinstance(parts := node.get("allOf"), list) and "allOf" not in keywords:
                del node["allOf"]
                inside = self._merge(node, parts, pointer, inside)
            elif more := self._dialect.nullable and self._is_alone(node):
                inside = self._fill(node, node.pop("anyOf")[0], pointer, inside)
        if "const" in node and "const" not in keywords:
            node.setdefault("enum", [node.pop("const")])
        if self._dialect.nullable:
            self._several(node, pointer)
        if self._dialect.text_enums and isinstance(node.get("enum"), list):
            texts = [one for one in node["enum"] if isinstance(one, str)]
            if len(texts) < len(node["enum"]):
                said = ", ".join(map(str, node.pop("enum")))
                node["description"] = f"{node.get('description', '')} One of: {said}.".strip()
                self._changed(f"{pointer}/enum", "values that are no text are told in the description")
            elif "type" not in node:
                node["type"] = "string"
        return inside

    def _merge(self, node: dict[str, Any], parts: list[Any], pointer: str, inside: tuple[int, ...]) -> tuple[int, ...]:
        """Say in a node what stands in all of these parts."""
        for part in parts:
            inside = self._fill(node, part, pointer, inside)
        self._changed(pointer, "'allOf' is said as one schema")
        return inside

    def _fill(self, node: dict[str, Any], part: Any, pointer: str, inside: tuple[int, ...]) -> tuple[int, ...]:
        """Say in a node what a part says, followed if it is a reference."""
        if not isinstance(part, Mapping):
            return inside
        part = dict(part)
        if "$ref" in part:
            part, inside = self._followed(part, pointer, inside)
        for key, value in part.items():
            known = node.get(key)
            if isinstance(known, dict) and isinstance(value, Mapping):
                node[key] = {**value, **known}
            elif key in ("required", "allOf") and isinstance(known, list) and isinstance(value, list):
                node[key] = [*known, *(one for one in value if one not in known)]
            else:
                node.setdefault(key, value)
        return inside

    @staticmethod
    def _is_alone(node: dict[str, Any]) -> bool:
        """Take null from a node's alternatives; whether one alone is left."""
        options = node.get("anyOf")
        if not isinstance(options, list) or {"type": "null"} not in options:
            return False
        rest = [one for one in options if one != {"type": "null"}]
        if rest:
            node["nullable"] = True
        node["anyOf"] = rest or [{"type": "null"}]
        return len(node["anyOf"]) == 1

    def _several(self, node: dict[str, Any], pointer: str) -> None:
        """Say a list of types with one type, or with alternatives."""
        kinds = node.get("type")
        if not isinstance(kinds, list):
            return
        real = [kind for kind in kinds if kind != "null"]
        if real and len(real) < len(kinds):
            node["nullable"] = True
        if len(real) < 2:
            node["type"] = real[0] if real else "null"
            return
        del node["type"]
        if "anyOf" in node:
            self.lost(f"{pointer}/type", "several types are not taken beside 'anyOf'")
        else:
            node["anyOf"] = [{"type": kind} for kind in real]
            self._changed(f"{pointer}/type", "several types are said with 'anyOf'")

    def _close(self, made: dict[str, Any], pointer: str) -> None:
        """Strict mode: every property required, what was optional nullable, nothing else allowed."""
        if made.get("type") != "object" and "properties" not in made:
            return
        properties = made.setdefault("properties", {})
        if made.get("additionalProperties") not in (None, False) or (not properties and pointer):
            raise DefinitionError("strict mode has no objects with free keys", tool=self._tool, pointer=pointer)
        required = made.get("required", ())
        for name, inner in properties.items():
            if name not in required and isinstance(inner, dict):
                _allow_null(inner)
        made["required"] = list(properties)
        made["additionalProperties"] = False


def _allow_null(schema: dict[str, Any]) -> None:
    kinds = schema.get("type")
    if isinstance(kinds, str) and kinds != "null":
        schema["type"] = [kinds, "null"]
    elif isinstance(kinds, list) and "null" not in kinds:
        schema["type"] = [*kinds, "null"]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    elif "$ref" in schema:
        schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"type": "null"}]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    schema.pop("default", None)


JSON_SCHEMA = Dialect("JSON Schema")
PLAIN_ROOT = Dialect("an object at the root", plain_root=True)
OPENAPI = Dialect(
    "the OpenAPI subset",
    keywords=frozenset(
        (
            "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties",
            "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf",
            "propertyOrdering", "default", "items", "minimum", "maximum",
        )
    ),
    inline=True,
    nullable=True,
    text_enums=True,
)  # fmt: skip
STRICT = Dialect(
    "strict mode",
    keywords=frozenset(
        (
            "type", "description", "title", "enum", "const", "properties", "required", "additionalProperties", "items",
            "anyOf", "$ref", "$defs", "definitions", "pattern", "format", "multipleOf", "minimum", "maximum",
            "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
        )
    ),
    closed=True,
    plain_root=True,
)  # fmt: skip
