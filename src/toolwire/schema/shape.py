"""A tool's JSON Schema at one place: the kinds it admits, and text and values coerced to fit.

A `Shape` is a view on one place of a schema. It is total: a schema may be invalid, recursive or hostile, and whatever
cannot be understood is ignored. Rules that are easy to get wrong:

* Facts of a place come from `type`, `enum`, `const`, `nullable`, local `$ref`, `allOf` (all apply) and `anyOf`/`oneOf`
  (any applies). A loop of references adds nothing. Every computation starts afresh at its own place and visits a node
  once, so the outcome depends on the schema alone, never on earlier questions, and costs at most its size.
* A branch of a union that does not mention a property does not count for it.
* Shapes are interned by schema node, so a recursive schema has finitely many, however deep the values are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolwire.schema.kinds import KINDS, LOOP, Facts, admits, conclude, join, own_facts
from toolwire.schema.pointer import resolve
from toolwire.text.limits import MAX_DEPTH, MAX_DIGITS

ReadJson = Callable[[str], Any]
"""A function that decodes JSON text and raises ValueError for any other text."""

_FOLLOW = 150
"""Maximum length of a chain of references and subschemas; below Python's recursion limit, with room for callers."""
_VISIT = 500
"""Maximum nodes visited for one place."""
_REMEMBER = 4096
"""Maximum entries of each cache of a document."""
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


class _Scope:
    """One schema document: its root, the shapes of its nodes, and the nodes that combine several others."""

    __slots__ = ("combined", "root", "shapes")

    def __init__(self, root: Any) -> None:
        self.root = root
        self.shapes: dict[int, Shape] = {}
        self.combined: dict[tuple[str, tuple[int, ...]], dict[str, list[Any]]] = {}

    def shape(self, node: Any) -> Shape:
        """Return the shape of a node, or of the target of a bare reference; the same object each time."""
        for _ in range(_FOLLOW):
            if not (isinstance(node, Mapping) and len(node) == 1 and "$ref" in node):
                break
            target = resolve(self.root, node["$ref"])
            if not isinstance(target, Mapping | bool):
                break
            node = target
        shape = self.shapes.get(id(node))
        if shape is None:
            shape = Shape(node, self)
            # A hostile schema has more nodes than are worth storing; beyond the limit they are made anew each time.
            if len(self.shapes) < _REMEMBER:
                self.shapes[id(node)] = shape
        return shape

    def combine(self, keyword: str, parts: Iterable[Any]) -> Any:
        """Return one node for several; equal combinations are the same object."""
        distinct = {id(part): part for part in parts}
        if len(distinct) == 1:
            return next(iter(distinct.values()))
        key = (keyword, tuple(distinct))
        node = self.combined.get(key)
        if node is None:
            node = {keyword: list(distinct.values())}
            if len(self.combined) < _REMEMBER:
                self.combined[key] = node
        return node

    def facts(self, node: Any, memo: dict[int, Facts | None], depth: int = 0) -> Facts | None:
        """Return the facts of a node, None if it has none, or `LOOP` if it refers only to itself."""
        if node is False:
            return {}
        if not isinstance(node, Mapping) or depth > _FOLLOW:
            return None
        if id(node) in memo:
            return memo[id(node)]
        if len(memo) >= _VISIT:
            return None
        # A reference back to this node, while it is computed, adds nothing.
        memo[id(node)] = LOOP
        parts = [own_facts(node)]
        if "$ref" in node:
            parts.append(self.facts(resolve(self.root, node["$ref"]), memo, depth + 1))
        for part in _branches(node, "allOf"):
            parts.append(self.facts(part, memo, depth + 1))  # noqa: PERF401 a comprehension would cost a frame a level
        for keyword in ("anyOf", "oneOf"):
            union: Facts | None = LOOP
            for part in _branches(node, keyword):
                union = join(union, self.facts(part, memo, depth + 1))
            parts.append(union if _branches(node, keyword) else None)
        memo[id(node)] = conclude(node, parts)
        return memo[id(node)]

    def find(
        self, node: Any, pick: Callable[[Mapping[str, Any]], Any], memo: dict[int, Any], depth: int = 0
    ) -> Any | None:
        """Return what `pick` takes from a node and from all that it refers to, combined; None if that is nothing."""
        if not isinstance(node, Mapping) or depth > _FOLLOW:
            return None
        if id(node) in memo:
            return memo[id(node)]
        if len(memo) >= _VISIT:
            return None
        memo[id(node)] = None
        parts = [pick(node)]
        if "$ref" in node:
            parts.append(self.find(resolve(self.root, node["$ref"]), pick, memo, depth + 1))
        for part in _branches(node, "allOf"):
            parts.append(self.find(part, pick, memo, depth + 1))  # noqa: PERF401 as above
        for keyword in ("anyOf", "oneOf"):
            branches = []
            for part in _branches(node, keyword):
                branches.append(self.find(part, pick, memo, depth + 1))  # noqa: PERF401 as above
            branches = [branch for branch in branches if branch is not None]
            parts.append(self.combine("anyOf", branches) if branches else None)
        parts = [part for part in parts if part is not None]
        memo[id(node)] = self.combine("allOf", parts) if parts else None
        return memo[id(node)]


_CONVERTED = (str, float)
_LONG = 8
"""Length above which a list is worth a look at the types of its items, before they are looked at one by one."""
_UNCHANGED = frozenset({int, bool, type(None)})  # never coerced, whatever a schema says


class Shape:
    """A view on one place of a tool's JSON Schema; make one with `Shape.of`.

    Attributes:
        schema: the node itself; a combination of several where branches of the schema share the place.
        kinds: the kinds of JSON value that are admitted; a place that admits "number" admits "integer" too.
        typed: whether the schema restricts the type.
        keeps_text: whether any raw text for this place stays that very string, so that it may be streamed.
    """

    __slots__ = (
        "_children", "_facts", "_keeps", "_names", "_patterned", "_scope", "_width", "keeps_text", "kinds", "schema",
        "typed",
    )  # fmt: skip

    def __init__(self, node: Any, scope: _Scope) -> None:
        """Use `Shape.of`."""
        facts = scope.facts(node, {})
        self._scope = scope
        self._facts: Facts | None = None if facts is LOOP else facts
        self._children: dict[str | int, Shape] = {}  # keys come from the schema, never from a model, so it stays small
        self._names: dict[str, None] | None = None
        self._patterned: bool = False
        self._width: int | None = None
        self._keeps = frozenset(_unchanged_types(self._facts))
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
        """Return the shape of a schema; a value that is not a schema restricts nothing.

        Args:
            schema: a JSON Schema, valid or not.
            root: the document that `$ref` refers to, if it is not `schema` itself.
        """
        return _Scope(schema if root is None else root).shape(schema)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the schema alone, without anything derived from it."""
        return Shape.of, (self.schema, self._scope.root)

    def __repr__(self) -> str:
        """Name the kinds."""
        return f"Shape({'|'.join(sorted(self.kinds)) if self.typed else 'any'})"

    @property
    def items(self) -> Shape:
        """The shape of array elements beyond those of `prefixItems`."""
        child = self._children.get(_REST)
        return self._child(_REST, lambda node: _pick_item(node, None)) if child is None else child

    @property
    def property_names(self) -> tuple[str, ...]:
        """The declared properties of all branches, in order."""
        return tuple(self._declared())

    @property
    def required(self) -> tuple[str, ...]:
        """The properties that must be present, whichever branch of a union applies."""
        names: dict[str, None] = {}
        pending, visited = [self.schema], set[int]()
        while pending:
            node = pending.pop()
            if isinstance(node, Mapping) and id(node) not in visited:
                visited.add(id(node))
                listed = node.get("required")
                if isinstance(listed, list | tuple):
                    names.update(dict.fromkeys(name for name in listed if isinstance(name, str)))
                pending += [*reversed(_branches(node, "allOf")), resolve(self._scope.root, node.get("$ref"))]
        return tuple(names)

    @property
    def lone_property(self) -> str:
        """The property that a value without a name can only be meant for, or "".

        It is the only required one, the only one, or the only one that admits text, and no other is required.
        """
        required, names = self.required, self.property_names
        texts = tuple(name for name in names if "string" in self.property(name).kinds)
        for candidates in (required, names, texts):
            if len(candidates) == 1 and set(required) <= set(candidates):
                return candidates[0]
        return ""

    def item(self, index: int) -> Shape:
        """Return the shape of the array element at an index."""
        if self._width is None:
            widths = [0]
            self._scope.find(self.schema, lambda node: widths.append(len(_prefix(node))), {})
            self._width = max(widths)
        if index >= self._width:
            return self.items
        child = self._children.get(index)
        return self._child(index, lambda node: _pick_item(node, index)) if child is None else child

    def property(self, name: str) -> Shape:
        """Return the shape of a property: as declared, by a simple pattern, of additional ones, or else `ANY`."""
        child = self._children.get(name)
        if child is not None:
            return child
        if name in self._declared():
            return self._child(name, lambda node: _pick_property(node, name))
        if self._patterned:
            return self._find(lambda node: _pick_property(node, name))
        child = self._children.get(_ADDITIONAL)
        return self._child(_ADDITIONAL, _pick_additional) if child is None else child

    def from_text(self, text: str, read_json: ReadJson) -> Any:
        """Return the value of raw text that a format writes between tags, without JSON quotes.

        Text that fits no kind is returned unchanged; validation refuses it later.
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
        """Coerce a value to the schema without loss, at any depth; return the same object if nothing changes.

        Only values that the schema excludes are converted, and only to kinds that it admits: strings with a JSON
        integer, number, object or array, true/false/True/False or null/None, and integral floats for an integer.
        """
        return self._coerce(value, read_json, 0)

    def _coerce(self, value: Any, read_json: ReadJson, depth: int) -> Any:
        # Only containers that change are copied, and types that never change are skipped without a call: large
        # arguments already fit in most cases.
        if isinstance(value, _CONVERTED):
            return value if self._facts is None else self._coerce_scalar(value, self._facts, read_json, depth)
        if depth >= MAX_DEPTH or self is ANY:
            return value
        changes: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            for name, inner in value.items():
                if (kind := type(inner)) in _UNCHANGED:
                    continue
                shape = self._children.get(name) or self.property(name)
                if kind in shape._keeps:
                    continue
                fitted = shape._coerce(inner, read_json, depth + 1)
                if fitted is not inner:
                    changes.append((name, fitted))
        elif isinstance(value, list) and not (len(value) > _LONG and self._keeps_items(value)):
            for index, inner in enumerate(value):
                if (kind := type(inner)) in _UNCHANGED:
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

    def _keeps_items(self, value: list[Any]) -> bool:
        """Return whether no item changes, which the types of the items tell where they share one shape."""
        self.item(0)  # finds out how many items have shapes of their own
        return self._width == 0 and self.items._keeps.union(_UNCHANGED).issuperset(map(type, value))

    def _coerce_scalar(self, value: str | float, facts: Facts, read_json: ReadJson, depth: int) -> Any:
        if isinstance(value, float):
            fits = "number" not in facts and value.is_integer() and admits(facts, "integer", value)
            return int(value) if fits else value
        if "string" in facts and ((listed := facts["string"]) is None or value in listed):
            return value
        decoded = self._decode(value, facts, read_json, depth)
        return value if decoded is _NOTHING else decoded

    def _decode(self, text: str, facts: Facts, read_json: ReadJson, depth: int) -> Any:
        """Return the value of text among the kinds other than string, or `_NOTHING`."""
        trimmed = text.strip(_SPACE)
        if trimmed in _WORDS:
            kind, value = _WORDS[trimmed]
            return value if admits(facts, kind, value) else _NOTHING
        if trimmed[:1] in ("{", "["):
            kind, container, closer = ("object", dict, "}") if trimmed[0] == "{" else ("array", list, "]")
            if kind not in facts or trimmed[-1] != closer:
                return _NOTHING
            try:
                value = read_json(trimmed)
            except (ValueError, RecursionError):
                return _NOTHING
            return self._coerce(value, read_json, depth) if isinstance(value, container) else _NOTHING
        # Numbers are matched by JSON's grammar: int() and float() also take "1_000", " 1 " and "nan".
        if "integer" not in facts and "number" not in facts:
            return _NOTHING
        if _INTEGER.fullmatch(trimmed):
            if len(trimmed.lstrip("-")) > MAX_DIGITS:
                return _NOTHING
            integer = int(trimmed)
            return integer if admits(facts, "integer", integer) else _NOTHING
        if "number" in facts and _NUMBER.fullmatch(trimmed):
            number = float(trimmed)
            return number if abs(number) != float("inf") and admits(facts, "number", number) else _NOTHING
        return _NOTHING

    def _child(self, key: str | int, pick: Callable[[Mapping[str, Any]], Any]) -> Shape:
        child = self._find(pick)
        if len(self._children) < _REMEMBER:
            self._children[key] = child
        return child

    def _find(self, pick: Callable[[Mapping[str, Any]], Any]) -> Shape:
        node = self._scope.find(self.schema, pick, {})
        return ANY if node is None else self._scope.shape(node)

    def _declared(self) -> dict[str, None]:
        """Collect the names of `property_names` once, and whether there are patterns for others."""
        if self._names is None:
            names: dict[str, None] = {}

            def collect(node: Mapping[str, Any]) -> None:
                names.update(dict.fromkeys(name for name in _mapping(node, "properties") if isinstance(name, str)))
                self._patterned = self._patterned or bool(_mapping(node, "patternProperties"))

            self._scope.find(self.schema, collect, {})
            self._names = names
        return self._names


def _unchanged_types(facts: Facts | None) -> Iterator[type]:
    """Yield the types of which `coerce` changes no value."""
    if facts is None or facts.get("string", _NOTHING) is None:
        yield str
    if facts is None or "number" in facts:
        yield float


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
    """Return whether a name matches a pattern of plain text with anchors, or of any text; None for other patterns.

    They are not tried: a pattern comes from outside, and matching it could take exponential time.
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
"""The shape of a place without a schema."""
