"""Dialects of JSON Schema: an API's unsupported keywords are rewritten or left out, and every loss is noted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.providers.request import Notes
from toolwire.schema.pointer import json_pointer, resolve
from toolwire.schema.validation import check_schema, subschemas
from toolwire.text.limits import MAX_DEPTH
from toolwire.tools import ToolDefinition

_MAX_NODES = 20_000
"""Maximum number of nodes in a schema whose references are inlined."""

_ANNOTATIONS = frozenset(("title", "$comment", "$schema", "$id", "examples", "deprecated", "readOnly", "writeOnly"))
"""Keywords that do not constrain values."""
_REFUSAL = r"\bstrict|schema(?! violation)|response.?format|grammar|additionalProperties"
"""Finds `Invalid schema for function ..`, `Unknown parameter: tools[0].strict` and the like."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The schema language that an API accepts for a tool's arguments.

    Attributes:
        name: the name in notes.
        keywords: the accepted keywords; empty for all.
        inline: whether references must be inlined.
        nullable: whether null is the keyword `nullable`, not a type.
        text_enums: whether `enum` may contain only text.
        formats: the accepted values of `format`; empty for all.
        closed: strict mode: whether all properties are required and no others are allowed.
        sealed: whether objects must allow no other properties, and a schema must not contain itself.
        plain_root: whether alternatives at the root are refused.
        refusal: finds strict mode, or a schema that it does not take, in the message of an API's error.
    """

    name: str
    keywords: frozenset[str] = frozenset()
    inline: bool = False
    nullable: bool = False
    text_enums: bool = False
    formats: frozenset[str] = frozenset()
    closed: bool = False
    sealed: bool = False
    plain_root: bool = False
    refusal: re.Pattern[str] = re.compile(_REFUSAL, re.IGNORECASE)


def lower(definition: ToolDefinition, dialect: Dialect, notes: Notes) -> dict[str, Any]:
    """Return the schema of a tool's arguments in a dialect.

    Raises:
        DefinitionError: it is not the schema of an object, or the dialect cannot express it.
    """
    schema = {"type": "object", **definition.parameters}
    check_schema(schema, definition.name)
    if dialect.sealed and _contains_itself(schema):
        raise DefinitionError(f"{dialect.name} has no schemas that contain themselves", tool=definition.name)
    work = _Lowering(definition, dialect, notes)
    lowered = work.schema(schema, "", ())
    if dialect.plain_root:
        for key in ("anyOf", "oneOf", "allOf", "not", "enum"):
            if key in lowered:
                del lowered[key]
                work.lost(f"/{key}", "no alternatives are taken at the root")
    lowered.setdefault("properties", {})
    return lowered


class _Lowering:
    """The rewriting of one tool's schema."""

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
        """Return a schema rewritten; `inside` are the ids of the schemas around it, to detect cycles."""
        self._nodes += 1
        if self._nodes > _MAX_NODES or len(inside) > MAX_DEPTH:
            raise DefinitionError(
                "the schema is too large once its references are inlined", tool=self._tool, pointer=pointer
            )
        if not isinstance(node, Mapping):  # true or false
            if node is False:
                self.lost(pointer, "a schema that allows no value is left out")
            return {}
        node = dict(node)
        if self._dialect.inline and "$ref" in node:
            node, inside = self._followed(node, pointer, inside)
        if self._dialect.keywords:
            inside = self._rewrite(node, pointer, inside)
        lowered: dict[str, Any] = {}
        for key, value in node.items():
            if self._dialect.inline and key in ("$defs", "definitions"):
                continue
            if self._dialect.keywords and key not in self._dialect.keywords:
                if key not in _ANNOTATIONS:
                    self.lost(f"{pointer}/{key}", f"{key!r} is not taken")
                continue
            if key == "format" and self._dialect.formats and value not in self._dialect.formats:
                self.lost(f"{pointer}/{key}", f"the format {value!r:.40} is not taken")
                continue
            lowered[key] = self._value(key, value, pointer + json_pointer([key]), inside)
        if self._dialect.closed:
            self._close(lowered, pointer)
        elif self._dialect.sealed:
            self._seal(lowered, pointer)
        return lowered

    def _value(self, key: str, value: Any, pointer: str, inside: tuple[int, ...]) -> Any:
        match key, value:
            case (("properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas"), Mapping()):
                return {
                    name: self.schema(inner, pointer + json_pointer([name]), inside) for name, inner in value.items()
                }
            case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), list()):
                return [self.schema(inner, f"{pointer}/{at}", inside) for at, inner in enumerate(value)]
            case (("items" | "not" | "additionalProperties" | "contains" | "propertyNames"), Mapping()):
                return self.schema(value, pointer, inside)
        return value

    def _followed(
        self, node: dict[str, Any], pointer: str, inside: tuple[int, ...]
    ) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Return the target of a reference, with the keywords beside it."""
        while "$ref" in node:
            target = resolve(self._root, node["$ref"])
            if not isinstance(target, Mapping):
                raise DefinitionError(
                    f"the reference {node['$ref']!r:.80} leads nowhere", tool=self._tool, pointer=pointer
                )
            if id(target) in inside:
                self._changed(pointer, "a schema that contains itself ends here: any object is allowed")
                return {"type": "object"}, inside
            inside = (*inside, id(target))
            beside = {key: value for key, value in node.items() if key != "$ref"}
            node = {**target, **beside}
        return node, inside

    def _rewrite(self, node: dict[str, Any], pointer: str, inside: tuple[int, ...]) -> tuple[int, ...]:
        """Express other keywords with those of the dialect; return the schemas around the node then."""
        keywords = self._dialect.keywords
        more = True
        while more:  # merged keywords may need rewriting as well
            if "oneOf" in node and "oneOf" not in keywords and "anyOf" not in node:
                node["anyOf"] = node.pop("oneOf")
                self._changed(pointer, "'oneOf' becomes 'anyOf'")
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
            if not all(isinstance(value, str) for value in node["enum"]):
                values = ", ".join(map(str, node.pop("enum")))
                node["description"] = f"{node.get('description', '')} One of: {values}.".strip()
                self._changed(f"{pointer}/enum", "values that are not text move to the description")
            elif "type" not in node:
                node["type"] = "string"
        return inside

    def _merge(self, node: dict[str, Any], parts: list[Any], pointer: str, inside: tuple[int, ...]) -> tuple[int, ...]:
        """Merge the alternatives of `allOf` into a node."""
        for part in parts:
            inside = self._fill(node, part, pointer, inside)
        self._changed(pointer, "'allOf' becomes one schema")
        return inside

    def _fill(self, node: dict[str, Any], part: Any, pointer: str, inside: tuple[int, ...]) -> tuple[int, ...]:
        """Merge a schema, or the target of a reference, into a node."""
        if not isinstance(part, Mapping):
            return inside
        part = dict(part)
        if "$ref" in part:
            part, inside = self._followed(part, pointer, inside)
        for key, value in part.items():
            present = node.get(key)
            if isinstance(present, dict) and isinstance(value, Mapping):
                node[key] = {**value, **present}
            elif key in ("required", "allOf") and isinstance(present, list) and isinstance(value, list):
                node[key] = [*present, *(item for item in value if item not in present)]
            else:
                node.setdefault(key, value)
        return inside

    @staticmethod
    def _is_alone(node: dict[str, Any]) -> bool:
        """Remove null from a node's alternatives; return whether exactly one is left."""
        options = node.get("anyOf")
        if not isinstance(options, list) or {"type": "null"} not in options:
            return False
        rest = [option for option in options if option != {"type": "null"}]
        if rest:
            node["nullable"] = True
        node["anyOf"] = rest or [{"type": "null"}]
        return len(node["anyOf"]) == 1

    def _several(self, node: dict[str, Any], pointer: str) -> None:
        """Replace a list of types by one type, or by alternatives."""
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
            self._changed(f"{pointer}/type", "several types become 'anyOf'")

    def _close(self, node: dict[str, Any], pointer: str) -> None:
        """Require every property, make the optional ones nullable, and allow no others, for strict mode."""
        properties = self._seal(node, pointer)
        if properties is None:
            return
        required = node.get("required", ())
        for name, inner in properties.items():
            if name not in required and isinstance(inner, dict):
                _allow_null(inner)
        node["required"] = list(properties)

    def _seal(self, node: dict[str, Any], pointer: str) -> dict[str, Any] | None:
        """Allow no other properties in an object, and return its own; None if the node is not one."""
        if node.get("type") != "object" and "properties" not in node:
            return None
        properties: dict[str, Any] = node.setdefault("properties", {})
        if node.get("additionalProperties") not in (None, False) or (not properties and pointer):
            raise DefinitionError(
                f"{self._dialect.name} has no objects with free keys", tool=self._tool, pointer=pointer
            )
        node["additionalProperties"] = False
        return properties


def _contains_itself(root: Mapping[str, Any]) -> bool:
    """Return whether the references in a schema lead back to a schema that contains them."""
    targets: dict[int, list[int]] = {}  # of the references in a schema, by its id
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if id(node) not in targets:
            references = [inner["$ref"] for _, inner in subschemas(node) if isinstance(inner.get("$ref"), str)]
            referenced = [resolve(root, reference) for reference in references]
            targets[id(node)] = list(map(id, referenced))
            pending += referenced
    try:
        TopologicalSorter(targets).prepare()
    except CycleError:
        return True
    return False


def _allow_null(schema: dict[str, Any]) -> None:
    kinds = schema.get("type")
    if isinstance(kinds, str) and kinds != "null":
        schema["type"] = [kinds, "null"]
    elif isinstance(kinds, list) and "null" not in kinds:
        schema["type"] = [*kinds, "null"]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*(option for option in schema["anyOf"] if option != {"type": "null"}), {"type": "null"}]
    elif "$ref" in schema:
        schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"type": "null"}]
    if "const" in schema and "enum" not in schema:
        schema["enum"] = [schema.pop("const")]
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
    formats=frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")),
    closed=True,
    plain_root=True,
)  # fmt: skip
SEALED = Dialect(
    "the subset for strict tools and structured outputs",
    keywords=frozenset(
        (
            "type", "description", "title", "enum", "const", "properties", "required", "additionalProperties", "items",
            "anyOf", "allOf", "$ref", "$defs", "definitions", "default", "format",
        )
    ),
    formats=frozenset(
        ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
    ),
    sealed=True,
    plain_root=True,
    # Anthropic, also in Bedrock, names a place: "tools.1.custom: For 'array' type, property 'maxItems' is not .."
    refusal=re.compile(rf"{_REFUSAL}|tools\.\d+\.custom(?!\.)", re.IGNORECASE),
)  # fmt: skip
