"""What a tool's JSON Schema says about one place: the kinds it admits, and text and values made to fit.

A `Shape` is a view on one place of a schema. It is total: a schema may be invalid, recursive or hostile, and what
cannot be understood says nothing. Rules that are easy to get wrong:

* Facts of a place come from `type`, `enum`, `const`, `nullable`, local `$ref`, `allOf` (all hold) and `anyOf`/`oneOf`
  (any holds). A loop of references adds nothing. Every computation starts afresh at its own place and visits a node
  once, so the outcome depends on the schema alone, never on what was asked before, and costs at most its size.
* A branch of a union that does not mention a property does not count for it.
* Shapes are interned by schema node, so a recursive schema has finitely many, however deep the values are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from toolwire.schema.pointer import resolve
from toolwire.text.limits import MAX_DEPTH, MAX_DIGITS

KINDS = frozenset({"string", "integer", "number", "boolean", "null", "object", "array"})
"""The names of `Shape.kinds`."""

Facts = dict[str, frozenset[Any] | None]
"""The kinds a place admits, each with the only values it may have, or None for any."""

ReadJson = Callable[[str], Any]
"""Reads JSON text; raises ValueError for text that it cannot read."""

_FOLLOW = 150
_VISIT = 500
_REMEMBER = 4096
_REST, _ADDITIONAL = -1, -2
_SPACE = " \t\r\n"
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: dict[str, tuple[str, bool | None]] = {
    "true": ("boolean", True),
    "True": ("boolean", True),
    "false": ("boolean", False),
    "False": ("boolean", False),
    "null": ("null", None),
    "None": ("null", None),
}
_NOTHING: Any = object()
_BUSY: Facts = {}

TYPE_NAMES: dict[str, str] = {kind: kind for kind in sorted(KINDS)} | {
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "int": "integer",
    "float": "number",
    "double": "number",
    "str": "string",
    "bool": "boolean",
    "none": "null",
}
"""Type names by lower-case spelling: JSON Schema's own, and those that data sets and some APIs write instead."""


class _Scope:
    """One schema document: its root, the shapes made for its nodes, and the nodes made by combining others."""

    __slots__ = ("combined", "root", "shapes")

    def __init__(self, root: Any) -> None:
        self.root = root
        self.shapes: dict[int, Shape] = {}
        self.combined: dict[tuple[str, tuple[int, ...]], dict[str, list[Any]]] = {}

    def shape(self, node: Any) -> Shape:
        """The shape of a node, or of what a bare reference leads to; the same object each time."""
        for _ in range(_FOLLOW):
            if not (isinstance(node, Mapping) and len(node) == 1 and "$ref" in node):
                break
            target = resolve(self.root, node["$ref"])
            if not isinstance(target, Mapping | bool):
                break
            node = target
        known = self.shapes.get(id(node))
        if known is None:
            known = Shape(node, self)
            if len(self.shapes) < _REMEMBER:
                self.shapes[id(node)] = known
        return known

    def combine(self, keyword: str, parts: Iterable[Any]) -> Any:
        """One node for several; equal combinations are the same object."""
        distinct = {id(part): part for part in parts}
        if len(distinct) == 1:
            return next(iter(distinct.values()))
        key = (keyword, tuple(distinct))
        known = self.combined.get(key)
        if known is None:
            known = {keyword: list(distinct.values())}
            if len(self.combined) < _REMEMBER:
                self.combined[key] = known
        return known

    def facts(self, node: Any, memo: dict[int, Facts | None], depth: int = 0) -> Facts | None:
        """The facts of a node, None if it says nothing, `_BUSY` if all it says is a loop."""
        if node is False:
            return {}
        if not isinstance(node, Mapping) or depth > _FOLLOW:
            return None
        if id(node) in memo:
            return memo[id(node)]
        if len(memo) >= _VISIT:
            return None
        memo[id(node)] = _BUSY
        parts = [_own_facts(node)]
        if "$ref" in node:
            parts.append(self.facts(resolve(self.root, node["$ref"]), memo, depth + 1))
        for part in _branches(node, "allOf"):
            parts.append(self.facts(part, memo, depth + 1))  # noqa: PERF401 a comprehension would cost a frame a level
        for keyword in ("anyOf", "oneOf"):
            either: Facts | None = _BUSY
            for part in _branches(node, keyword):
                either = _join(either, self.facts(part, memo, depth + 1))
            parts.append(either if _branches(node, keyword) else None)
        memo[id(node)] = _conclude(node, parts)
        return memo[id(node)]

    def find(
        self, node: Any, pick: Callable[[Mapping[str, Any]], Any], memo: dict[int, Any], depth: int = 0
    ) -> Any | None:
        """What `pick` finds in a node and all that it refers to, combined; None if nothing."""
        if not isinstance(node, Mapping) or depth > _FOLLOW:
            return None
        if id(node) in memo:
            return memo[id(node)]
        if len(memo) >= _VISIT:
            return None
        memo[id(node)] = None
        found = [pick(node)]
        if "$ref" in node:
            found.append(self.find(resolve(self.root, node["$ref"]), pick, memo, depth + 1))
        for part in _branches(node, "allOf"):
            found.append(self.find(part, pick, memo, depth + 1))  # noqa: PERF401 as above
        for keyword in ("anyOf", "oneOf"):
            either = []
            for part in _branches(node, keyword):
                either.append(self.find(part, pick, memo, depth + 1))  # noqa: PERF401 as above
            either = [one for one in either if one is not None]
            found.append(self.combine("anyOf", either) if either else None)
        found = [one for one in found if one is not None]
        memo[id(node)] = self.combine("allOf", found) if found else None
        return memo[id(node)]


_CONVERTED = (str, float)
_KEPT = frozenset({int, bool, type(None)})  # stay as they are whatever a schema says


class Shape:
    """A view on one place of a tool's JSON Schema; make one with `Shape.of`.

    Attributes:
        schema: the node itself; a combination of several where branches of the schema share the place.
        kinds: the kinds of JSON value that are admitted; a place that admits "number" admits "integer" too.
        typed: whether the schema says something about the type.
        keeps_text: whether any raw text written for this place stays that very string, so that it may be streamed.
    """

    __slots__ = (
        "_children",
        "_facts",
        "_keeps",
        "_names",
        "_patterned",
        "_scope",
        "_width",
        "keeps_text",
        "kinds",
        "schema",
        "typed",
    )

    def __init__(self, node: Any, scope: _Scope) -> None:
        """Use `Shape.of`."""
        facts = scope.facts(node, {})
        self._scope = scope
        self._facts: Facts | None = None if facts is _BUSY else facts
        self._children: dict[str | int, Shape] = {}  # by what the schema knows, never by what a model wrote
        self._names: dict[str, None] | None = None
        self._patterned: bool = False
        self._width: int | None = None
        self._keeps = frozenset(_kept(self._facts))
        self.schema: Any = node
        self.typed: bool = self._facts is not None
        self.kinds: frozenset[str] = KINDS if self._facts is None else frozenset(self._facts)
        self.keeps_text: bool = (
            self._facts is None
            or self.kinds <= {"string"}
            or (self._facts.get("string", _NOTHING) is None and "null" not in self._facts)
        )

    @classmethod
    def of(cls, schema: Mapping[str, Any] | bool, root: Mapping[str, Any] | bool | None = None) -> Shape:
        """The shape of a schema; any value is taken, and one that is no schema says nothing.

        Args:
            schema: a JSON Schema, valid or not.
            root: the document that `$ref` refers to, if it is not `schema` itself.
        """
        return _Scope(schema if root is None else root).shape(schema)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the schema, not what was derived from it."""
        return Shape.of, (self.schema, self._scope.root)

    def __repr__(self) -> str:
        """The kinds, for people."""
        return f"Shape({'|'.join(sorted(self.kinds)) if self.typed else 'any'})"

    @property
    def items(self) -> Shape:
        """The shape of array elements that have no place of their own in `prefixItems`."""
        known = self._children.get(_REST)
        return self._child(_REST, lambda node: _pick_item(node, None)) if known is None else known

    @property
    def property_names(self) -> tuple[str, ...]:
        """The declared properties, in order, of all branches."""
        return tuple(self._declared())

    @property
    def required(self) -> tuple[str, ...]:
        """The properties that must be there, whichever branch of a union holds."""
        names: dict[str, None] = {}
        pending, seen = [self.schema], set[int]()
        while pending:
            node = pending.pop()
            if isinstance(node, Mapping) and id(node) not in seen:
                seen.add(id(node))
                listed = node.get("required")
                if isinstance(listed, list | tuple):
                    names.update(dict.fromkeys(name for name in listed if isinstance(name, str)))
                pending += [*reversed(_branches(node, "allOf")), resolve(self._scope.root, node.get("$ref"))]
        return tuple(names)

    def item(self, index: int) -> Shape:
        """The shape of the array element at an index."""
        if self._width is None:
            widths = [0]
            self._scope.find(self.schema, lambda node: widths.append(len(_prefix(node))), {})
            self._width = max(widths)
        if index >= self._width:
            return self.items
        known = self._children.get(index)
        return self._child(index, lambda node: _pick_item(node, index)) if known is None else known

    def property(self, name: str) -> Shape:
        """The shape of a property: as declared, else by a simple pattern, else of additional ones, else `ANY`."""
        known = self._children.get(name)
        if known is not None:
            return known
        if name in self._declared():
            return self._child(name, lambda node: _pick_property(node, name))
        if self._patterned:
            return self._found(lambda node: _pick_property(node, name))
        known = self._children.get(_ADDITIONAL)
        return self._child(_ADDITIONAL, _pick_additional) if known is None else known

    def from_text(self, text: str, read_json: ReadJson) -> Any:
        """The value of raw text that a format writes between tags, without JSON quotes.

        Text that fits nothing is returned unchanged; validation refuses it later.
        """
        facts = self._facts
        if facts is None:
            return text
        if "string" in facts:
            listed = facts["string"]
            if listed is None:
                return None if "null" in facts and text.strip(_SPACE) in ("null", "None") else text
            if text in listed:
                return text
        value = self._decode(text, facts, read_json, 0)
        return text if value is _NOTHING else value

    def coerce(self, value: Any, read_json: ReadJson) -> Any:
        """The value made to fit without loss, at any depth; the same object if nothing changes.

        Only what the schema excludes is converted, and only to what it admits: strings that hold a JSON integer,
        number, object or array, true/false/True/False or null/None, and integral floats for an integer.
        """
        return self._coerce(value, read_json, 0)

    def _coerce(self, value: Any, read_json: ReadJson, depth: int) -> Any:
        if isinstance(value, _CONVERTED):
            return value if self._facts is None else self._coerce_scalar(value, self._facts, read_json, depth)
        if depth >= MAX_DEPTH or self is ANY:
            return value
        changes: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            for name, inner in value.items():
                if (kind := type(inner)) in _KEPT:
                    continue
                shape = self._children.get(name) or self.property(name)
                if kind in shape._keeps:
                    continue
                fitted = shape._coerce(inner, read_json, depth + 1)
                if fitted is not inner:
                    changes.append((name, fitted))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                if (kind := type(inner)) in _KEPT:
                    continue
                shape = self.item(index)
                if kind in shape._keeps:
                    continue
                fitted = shape._coerce(inner, read_json, depth + 1)
                if fitted is not inner:
                    changes.append((index, fitted))
        if not changes:
            return value
        changed = value.copy()
        for place, fitted in changes:
            changed[place] = fitted
        return changed

    def _coerce_scalar(self, value: str | float, facts: Facts, read_json: ReadJson, depth: int) -> Any:
        if isinstance(value, float):
            fits = "number" not in facts and value.is_integer() and _admits(facts, "integer", value)
            return int(value) if fits else value
        if "string" in facts and ((listed := facts["string"]) is None or value in listed):
            return value
        decoded = self._decode(value, facts, read_json, depth)
        return value if decoded is _NOTHING else decoded

    def _decode(self, text: str, facts: Facts, read_json: ReadJson, depth: int) -> Any:
        """What text stands for among the kinds other than string, or `_NOTHING`."""
        trimmed = text.strip(_SPACE)
        if trimmed in _WORDS:
            kind, value = _WORDS[trimmed]
            return value if _admits(facts, kind, value) else _NOTHING
        if trimmed[:1] in ("{", "["):
            kind, wanted, closer = ("object", dict, "}") if trimmed[0] == "{" else ("array", list, "]")
            if kind not in facts or trimmed[-1] != closer:
                return _NOTHING
            try:
                value = read_json(trimmed)
            except (ValueError, RecursionError):
                return _NOTHING
            return self._coerce(value, read_json, depth) if isinstance(value, wanted) else _NOTHING
        if "integer" not in facts and "number" not in facts:
            return _NOTHING
        if _INTEGER.fullmatch(trimmed):
            if len(trimmed.lstrip("-")) > MAX_DIGITS:
                return _NOTHING
            integer = int(trimmed)
            return integer if _admits(facts, "integer", integer) else _NOTHING
        if "number" in facts and _NUMBER.fullmatch(trimmed):
            number = float(trimmed)
            return number if abs(number) != float("inf") and _admits(facts, "number", number) else _NOTHING
        return _NOTHING

    def _child(self, key: str | int, pick: Callable[[Mapping[str, Any]], Any]) -> Shape:
        child = self._found(pick)
        if len(self._children) < _REMEMBER:
            self._children[key] = child
        return child

    def _found(self, pick: Callable[[Mapping[str, Any]], Any]) -> Shape:
        node = self._scope.find(self.schema, pick, {})
        return ANY if node is None else self._scope.shape(node)

    def _declared(self) -> dict[str, None]:
        """The names of `property_names`, gathered once; notes whether there are patterns for others."""
        if self._names is None:
            names: dict[str, None] = {}

            def gather(node: Mapping[str, Any]) -> None:
                names.update(dict.fromkeys(name for name in _mapping(node, "properties") if isinstance(name, str)))
                self._patterned = self._patterned or bool(_mapping(node, "patternProperties"))

            self._scope.find(self.schema, gather, {})
            self._names = names
        return self._names


def _kept(facts: Facts | None) -> Iterator[type]:
    """Types of values that `coerce` never changes, whatever they are."""
    if facts is None or facts.get("string", _NOTHING) is None:
        yield str
    if facts is None or "number" in facts:
        yield float


def _own_facts(node: Mapping[str, Any]) -> Facts | None:
    """What `type`, `enum` and `const` of a node itself say."""
    declared = node.get("type")
    names = declared if isinstance(declared, list | tuple) else (declared,)
    facts: Facts | None = None
    if kinds := [TYPE_NAMES[name.lower()] for name in names if isinstance(name, str) and name.lower() in TYPE_NAMES]:
        facts = dict.fromkeys(kinds)
        if "number" in facts:
            facts["integer"] = None
    listed = node.get("enum")
    values = listed if isinstance(listed, list | tuple) and listed else [node["const"]] if "const" in node else None
    if values is None:
        return facts
    sorted_out: dict[str, set[Any] | None] = {}
    for value in values:
        for kind in kinds_of(value):
            if kind in ("object", "array"):
                sorted_out[kind] = None
            elif (known := sorted_out.setdefault(kind, set())) is not None:
                known.add(value)
    only: Facts = {kind: None if known is None else frozenset(known) for kind, known in sorted_out.items()}
    return only if facts is None else _meet(facts, only)


def _conclude(node: Mapping[str, Any], parts: list[Facts | None]) -> Facts | None:
    """The facts of a node whose parts must all hold; those that are a loop or say nothing do not count."""
    said = [part for part in parts if part is not None and part is not _BUSY]
    facts = reduce(_meet, said) if said else _implied_facts(node)
    if facts is None:
        return _BUSY if any(part is _BUSY for part in parts) else None
    return {**facts, "null": None} if node.get("nullable") is True else facts


def _implied_facts(node: Mapping[str, Any]) -> Facts | None:
    """What the keywords of a node without a type say about it."""
    if isinstance(node.get("properties"), Mapping):
        return {"object": None}
    if isinstance(node.get("items"), Mapping | list) or isinstance(node.get("prefixItems"), list):
        return {"array": None}
    return None


def kinds_of(value: Any) -> tuple[str, ...]:
    """The kinds that a JSON value belongs to, most exact first; none for anything else."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case str():
            return ("string",)
        case int():
            return ("integer",)
        case float():
            return ("number", "integer") if value.is_integer() else ("number",)
        case list() | tuple():
            return ("array",)
        case dict():
            return ("object",)
        case _:
            return ()


def _admits(facts: Facts, kind: str, value: Any) -> bool:
    if kind not in facts:
        return False
    listed = facts[kind]
    return listed is None or value in listed


def _meet(one: Facts, other: Facts) -> Facts:
    """What both admit."""
    both: Facts = {}
    for kind, listed in one.items():
        if kind in other:
            second = other[kind]
            common = second if listed is None else listed if second is None else listed & second
            if common is None or common:
                both[kind] = common
    return both


def _join(one: Facts | None, other: Facts | None) -> Facts | None:
    """What either admits; a branch that is a loop adds nothing."""
    if one is _BUSY or other is _BUSY:
        return other if one is _BUSY else one
    if one is None or other is None:
        return None
    either = dict(one)
    for kind, listed in other.items():
        known = either.get(kind, frozenset())
        either[kind] = None if known is None or listed is None else known | listed
    return either


def _branches(node: Mapping[str, Any], keyword: str) -> list[Any]:
    branches = node.get(keyword)
    return branches if isinstance(branches, list) else []


def _mapping(node: Mapping[str, Any], keyword: str) -> Mapping[Any, Any]:
    value = node.get(keyword)
    return value if isinstance(value, Mapping) else {}


def _prefix(node: Mapping[str, Any]) -> list[Any]:
    return _branches(node, "prefixItems") or _branches(node, "items")


def _schema_or_none(node: Any) -> Any | None:
    return node if isinstance(node, Mapping | bool) else None


def _pick_property(node: Mapping[str, Any], name: str) -> Any | None:
    declared = _mapping(node, "properties")
    if name in declared:
        return _schema_or_none(declared[name])
    for pattern, schema in _mapping(node, "patternProperties").items():
        matched = _matches(pattern, name)
        if matched is None:
            return None
        if matched:
            return _schema_or_none(schema)
    return _pick_additional(node)


def _pick_additional(node: Mapping[str, Any]) -> Any | None:
    additional = node.get("additionalProperties")
    return additional if isinstance(additional, Mapping) else None


def _pick_item(node: Mapping[str, Any], index: int | None) -> Any | None:
    prefix = _prefix(node)
    if index is not None and index < len(prefix):
        return _schema_or_none(prefix[index])
    rest = node.get("additionalItems") if isinstance(node.get("items"), list) else node.get("items")
    return _schema_or_none(rest)


def _matches(pattern: Any, name: str) -> bool | None:
    """Whether a name matches a pattern that is plain text with anchors, or any text; None if it is not so simple.

    No other pattern is tried: it comes from outside, and matching it could take any time.
    """
    if not isinstance(pattern, str):
        return None
    if pattern in ("", "^", ".*", "^.*", "^.*$"):
        return True
    text = pattern.removeprefix("^").removesuffix("$")
    if re.search(r"[^\w \-:/]", text):
        return None
    match pattern.startswith("^"), pattern.endswith("$"):
        case True, True:
            return name == text
        case True, False:
            return name.startswith(text)
        case False, True:
            return name.endswith(text)
        case _:
            return text in name


ANY = Shape.of(True)
"""The shape of a place that no schema describes."""
