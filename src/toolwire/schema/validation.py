"""Check the JSON Schemas of tools, and validate arguments against them.

Schemas come from tool authors, from MCP servers and from requests. So no reference is fetched, no pattern runs in a
backtracking engine, and all recursion is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from toolwire.errors import DefinitionError
from toolwire.schema.kinds import declared_kinds, kinds_of
from toolwire.schema.pointer import json_pointer, resolve
from toolwire.schema.shape import Shape
from toolwire.text.limits import MAX_DEPTH
from toolwire.text.truncate import shorten

MAX_ISSUES = 20
"""Maximum number of issues that `validate` reports."""

MAX_QUOTE = 80
"""Maximum length of a quoted value, in characters."""

UNUSABLE = "$schema"
"""`SchemaIssue.keyword` of the single issue of a schema that cannot be used."""

_SINGLE: tuple[str, ...] = (
    *("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains"),
    *("propertyNames", "not", "if", "then", "else", "contentSchema"),
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_MAPPINGS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SchemaIssue:
    """One violation of a schema, described so that a model can correct it.

    Attributes:
        pointer: JSON pointer into the arguments; "" is the whole.
        message: the actual value and what the schema wants, without the pointer.
        keyword: the keyword of the schema that is violated, or `UNUSABLE`.
    """

    pointer: str
    message: str
    keyword: str

    def __str__(self) -> str:
        """Join the pointer and the message, as a model reads them."""
        return f"{self.pointer or 'the arguments'}: {self.message}"


def validate(arguments: Any, schema: Schema | bool) -> list[SchemaIssue]:
    """Return how arguments violate a schema; an empty list means that they are valid.

    Never raises. A schema that cannot be compiled admits no value: its only issue has the keyword `UNUSABLE`.
    Compiled schemas are cached by identity and by content, so a schema must not be changed after its first use.

    Args:
        arguments: a JSON value; any other value is an issue too.
        schema: JSON Schema (draft 2020-12 unless `$schema` says otherwise), `nullable` and common type aliases
            included.
    """
    try:
        validator = _compiled(_Identity(schema))
    except DefinitionError as error:
        return [SchemaIssue("", f"the tool's own schema cannot be used ({error})", UNUSABLE)]
    if _too_deep(arguments):
        return [SchemaIssue("", f"is nested deeper than {MAX_DEPTH} levels", "depth")]
    try:
        if validator.is_valid(arguments):
            return []
        errors = list(islice(validator.iter_errors(arguments), MAX_ISSUES))
    except (ValueError, OverflowError) as error:
        return [SchemaIssue("", f"is not a JSON value ({shorten(str(error))})", "type")]
    return [
        SchemaIssue(json_pointer(error.instance_path), _explain(error, schema), error.kind.name) for error in errors
    ]


def check_schema(schema: Any, tool: str = "") -> None:
    """Raise if a parameters schema cannot be used to call a tool.

    Args:
        schema: the schema of a tool's parameters.
        tool: the tool's name, for the message.

    Raises:
        DefinitionError: it is not a dict, its root is not an object, it is not a valid JSON Schema, it is nested
            too deeply, a reference does not resolve or leads outside, or a pattern does not compile.
    """
    if not isinstance(schema, dict):
        raise DefinitionError(f"the parameters schema must be a dict, not {type(schema).__name__}", tool=tool)
    _check_text(_canonical(schema, tool), tool)


@lru_cache(maxsize=512)
def _check_text(text: str, tool: str) -> None:
    """Check a schema by its text: clients offer the same tools with each request."""
    root = json.loads(text)
    for pointer, node in subschemas(root):
        reference = node.get("$ref")
        if isinstance(reference, str):
            _check_reference(root, reference, tool, f"{pointer}/$ref")
    _compile(text, tool, aliases=False)
    # The compiler accepts any root, but arguments are passed by name, so the root must be an object and no other kind.
    if Shape.of(root).kinds != {"object"}:
        declared = _quote(root["type"]) if "type" in root else "missing"
        if root.get("nullable") is True:
            declared += ", and nullable"
        raise DefinitionError(f"the root type must be object, it is {declared}", tool=tool, pointer="/type")


def subschemas(schema: Any) -> Iterator[tuple[str, Schema]]:
    """Yield every dict in the place of a schema with its JSON pointer, outermost first.

    The caller may change the current node; its children are read afterwards.
    """
    pending: list[tuple[str, Any]] = [("", schema)]
    while pending:
        pointer, node = pending.pop()
        if not isinstance(node, dict):
            continue
        yield pointer, node
        children: list[tuple[str, Any]] = [(f"{pointer}/{keyword}", node.get(keyword)) for keyword in _SINGLE]
        for keyword in _LISTS:
            if isinstance(branches := node.get(keyword), list):
                children += [(f"{pointer}/{keyword}/{index}", branch) for index, branch in enumerate(branches)]
        for keyword in _MAPPINGS:
            if isinstance(named := node.get(keyword), dict):
                children += [(f"{pointer}/{keyword}{json_pointer([name])}", inner) for name, inner in named.items()]
        pending += reversed(children)


class _Identity:
    """A schema as a cache key, by identity; the key keeps the schema alive, so the identity stays its own."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema | bool) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


@lru_cache(maxsize=512)
def _compiled(key: _Identity) -> jsonschema_rs.Validator:
    return _compile(_canonical(key.schema), "", aliases=True)


@lru_cache(maxsize=512)
def _compile(text: str, tool: str, *, aliases: bool) -> jsonschema_rs.Validator:
    schema = json.loads(text)
    _normalise(schema, aliases=aliases)
    try:
        return jsonschema_rs.validator_for(schema, offline=True)
    except jsonschema_rs.ValidationError as error:
        pointer = json_pointer(error.instance_path)
        raise DefinitionError(
            f"not a valid JSON Schema: {shorten(error.message)}", tool=tool, pointer=pointer
        ) from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise DefinitionError(f"not a usable JSON Schema: {shorten(str(error))}", tool=tool) from None


def _canonical(schema: Any, tool: str = "") -> str:
    """Return the schema as JSON text."""
    if _too_deep(schema):
        raise DefinitionError(f"the schema is nested deeper than {MAX_DEPTH} levels", tool=tool)
    try:
        return json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"the schema is not JSON: {shorten(str(error))}", tool=tool) from None


def _check_reference(root: Schema, reference: str, tool: str, pointer: str) -> None:
    if not reference.startswith("#") and "$id" not in root:
        message = f"the reference {_quote(reference)} leads outside the schema; nothing is ever fetched"
    elif (reference == "#" or reference.startswith("#/")) and resolve(root, reference) is None:
        message = f"the reference {_quote(reference)} does not resolve"
    else:
        return
    raise DefinitionError(message, tool=tool, pointer=pointer)


def _normalise(schema: Any, *, aliases: bool) -> None:
    """Rewrite the keywords of other dialects as draft 2020-12, in place."""
    older_tuples = isinstance(schema, dict) and "$schema" not in schema
    for _, node in subschemas(schema):
        if older_tuples and isinstance(node.get("items"), list):
            node.setdefault("prefixItems", node.pop("items"))
            if "additionalItems" in node:
                node["items"] = node.pop("additionalItems")
        if aliases:
            _rename_types(node)
        if node.get("nullable") is True:
            _admit_null(node)


def _rename_types(node: Schema) -> None:
    """Use JSON Schema's names of the types; without any that is understood, drop the type, as `Shape` does."""
    if kinds := declared_kinds(node):
        node["type"] = sorted(set(kinds))
    else:
        node.pop("type", None)


def _admit_null(node: Schema) -> None:
    if "type" in node:
        declared = node["type"]
        node["type"] = sorted({*(declared if isinstance(declared, list) else [declared]), "null"}, key=str)
    if isinstance(node.get("enum"), list):
        node["enum"] = node["enum"] if None in node["enum"] else [*node["enum"], None]
    if "const" in node:
        node["enum"] = [node.pop("const"), None]
    for keyword in ("anyOf", "oneOf"):
        if isinstance(node.get(keyword), list) and {"type": "null"} not in node[keyword]:
            node[keyword].append({"type": "null"})
    # A reference or `allOf` beside `nullable` would still exclude null, so both move into one branch of a union.
    rest: Schema = {keyword: node.pop(keyword) for keyword in ("$ref", "allOf") if keyword in node}
    if rest:
        if "anyOf" in node:
            rest["anyOf"] = node["anyOf"]
        node["anyOf"] = [rest, {"type": "null"}]


_SEQUENCES = (list, tuple)
_CONTAINERS = (dict, list, tuple)
_SCALARS = frozenset({str, int, float, bool, type(None)})


def _too_deep(value: Any) -> bool:
    """Return whether containers are nested deeper than `MAX_DEPTH`, as a cycle is.

    Goes level by level and visits each container once per level, so shared containers cost no exponential time.
    """
    level: Iterable[Any] = (value,)
    for _ in range(MAX_DEPTH):
        inner: dict[int, Any] = {}
        for node in level:
            for child in node.values() if isinstance(node, dict) else node if isinstance(node, _SEQUENCES) else ():
                if type(child) not in _SCALARS and isinstance(child, _CONTAINERS):
                    inner[id(child)] = child
        if not inner:
            return False
        level = inner.values()
    return True


_NOUNS = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}

_Wording = Callable[[jsonschema_rs.ValidationError], str]

_WORDINGS: dict[str, _Wording] = {
    "type": lambda e: f"is {_describe(e.instance)}, the schema wants {_kinds(e.kind.value)}",
    "required": lambda e: f"lacks the required property {_quote(e.kind.value)}",
    "enum": lambda e: f"is {_describe(e.instance)}, the schema wants one of {_listing(e.kind.value)}",
    "const": lambda e: f"is {_describe(e.instance)}, the schema wants {_quote(e.kind.value)}",
    "minimum": lambda e: f"is {_quote(e.instance)}, the schema wants at least {_quote(e.kind.value)}",
    "maximum": lambda e: f"is {_quote(e.instance)}, the schema wants at most {_quote(e.kind.value)}",
    "exclusiveMinimum": lambda e: f"is {_quote(e.instance)}, the schema wants more than {_quote(e.kind.value)}",
    "exclusiveMaximum": lambda e: f"is {_quote(e.instance)}, the schema wants less than {_quote(e.kind.value)}",
    "multipleOf": lambda e: f"is {_quote(e.instance)}, the schema wants a multiple of {_quote(e.kind.value)}",
    "minLength": lambda e: f"has {_size(e)} characters, the schema wants at least {e.kind.value}",
    "maxLength": lambda e: f"has {_size(e)} characters, the schema wants at most {e.kind.value}",
    "minItems": lambda e: f"has {_size(e)} elements, the schema wants at least {e.kind.value}",
    "maxItems": lambda e: f"has {_size(e)} elements, the schema wants at most {e.kind.value}",
    "minProperties": lambda e: f"has {_size(e)} properties, the schema wants at least {e.kind.value}",
    "maxProperties": lambda e: f"has {_size(e)} properties, the schema wants at most {e.kind.value}",
    "uniqueItems": lambda e: "has equal elements, the schema wants all different",
    "pattern": lambda e: f"is {_describe(e.instance)}, the schema wants text that matches {shorten(str(e.kind.value))}",
    "anyOf": lambda e: _alternatives(e),
    "oneOf": lambda e: _alternatives(e),
}


def _size(error: jsonschema_rs.ValidationError) -> int:
    return len(error.instance) if isinstance(error.instance, str | list | dict) else 0


def _explain(error: jsonschema_rs.ValidationError, schema: Schema | bool) -> str:
    if error.kind.name in ("additionalProperties", "unevaluatedProperties"):
        shape = Shape.of(schema)
        for step in error.instance_path:
            shape = shape.item(step) if isinstance(step, int) else shape.property(str(step))
        declared = _listing(shape.property_names) if shape.property_names else "none"
        return f"has {_listing(error.kind.value)}, which the schema does not know; it knows {declared}"
    return _wording(error)


def _wording(error: jsonschema_rs.ValidationError) -> str:
    wording = _WORDINGS.get(error.kind.name)
    return shorten(error.message) if wording is None else wording(error)


def _alternatives(error: jsonschema_rs.ValidationError) -> str:
    """Explain why no branch of a union fits, by the nearest branches: those that want this kind of value."""
    branches = [branch for branch in error.kind.value if branch]
    if len(branches) < len(error.kind.value):
        return f"is {_describe(error.instance)}, which fits several alternatives of the schema; it wants exactly one"
    path = list(error.instance_path)
    wrong = [[e for e in branch if e.kind.name == "type" and list(e.instance_path) == path] for branch in branches]
    near = [branch for branch, mismatch in zip(branches, wrong, strict=True) if not mismatch]
    if not near:
        kinds = [kind for mismatch in wrong for e in mismatch for kind in _type_names(e.kind.value)]
        return f"is {_describe(error.instance)}, the schema wants {_kinds(dict.fromkeys(kinds))}"
    reasons = [f"{json_pointer(list(b[0].instance_path)[len(path) :])} {_wording(b[0])}".strip() for b in near[:3]]
    return reasons[0] if len(near) == 1 else f"fits none of the alternatives: {'; or '.join(dict.fromkeys(reasons))}"


def _type_names(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(name) for name in value]


def _kinds(names: Any) -> str:
    return " or ".join(_NOUNS.get(name, name) for name in _type_names(names))


def _describe(value: Any) -> str:
    noun = {"string": "the string ", "integer": "the integer ", "number": "the number "}
    kind = next(iter(kinds_of(value)), "")
    return _NOUNS[kind] if kind in ("object", "array") else noun.get(kind, "") + _quote(value)


def _listing(values: Any) -> str:
    return shorten(", ".join(_quote(value) for value in islice(values, 50)))


def _quote(value: Any) -> str:
    try:
        return shorten(json.dumps(value, ensure_ascii=False), MAX_QUOTE)
    except (TypeError, ValueError):
        return shorten(repr(value), MAX_QUOTE)
