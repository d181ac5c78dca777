"""JSON Schemas as the values that a grammar can offer: what a schema says in many ways becomes seven kinds of value.

A grammar may offer more than a schema admits, never less. Each keyword without effect is listed with its place. One
thing is decided for the author: an object that names its properties and does not mention additional has no additional.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.grammars.conditional_members import conditional_members, mentions_others
from toolwire.grammars.value_types import (
    ANY,
    ANY_VALUES,
    IMPOSSIBLE,
    MAX_EXCLUDED,
    Alternatives,
    Constants,
    Items,
    Members,
    Named,
    NumberValue,
    StringValue,
    Values,
    alternatives,
    lookup,
)
from toolwire.schema.kinds import TYPE_NAMES
from toolwire.schema.pointer import json_pointer, resolve
from toolwire.text.json_text import equal_json, json_text

NO_VALUE = "no value fits this schema, so a grammar can offer nothing; correct it there, or leave the tool out"
"""The error of a contradictory schema."""
MAX_COMBINATIONS = 200
"""Maximum number of combinations of alternatives at one place of a schema; further alternatives have no effect."""
MAX_LEVELS = 60
"""Maximum levels of a schema that have an effect."""
_KINDS = ("string", "number", "integer", "boolean", "null", "array", "object")
_WITHOUT_EFFECT = {
    "string": ("format", "contentEncoding", "contentMediaType", "contentSchema"),
    "number": ("multipleOf",),
    "array": ("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"),
    "object": (
        *("patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired"),
        *("dependentSchemas", "dependencies", "unevaluatedProperties"),
    ),
}
"""Keywords that have no effect on a grammar, by the type that they constrain."""
_NEUTRAL = {"uniqueItems": False, "contains": None}
"""Values of keywords that say nothing, as if the keyword were missing; those of other keywords are true."""
_NEVER = ("not", "if", "$dynamicRef", "$recursiveRef")
"""Keywords that have no effect on a grammar, whatever the type."""
_ASSERTIONS = frozenset(
    (
        *("type", "enum", "const", "anyOf", "oneOf", "minLength", "maxLength", "pattern", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "items", "prefixItems", "minItems", "maxItems", "properties"),
        *("required", "additionalProperties", *itertools.chain(_NEVER, *_WITHOUT_EFFECT.values())),
    )
)
"""Keywords that say something about values, other than `$ref` and `allOf`."""
_WITHOUT_NULL = frozenset(("enum", "const", "anyOf", "oneOf", "$ref", "allOf"))
"""Keywords that may exclude null whatever the type is; `nullable` beside them admits it all the same."""
_NULL = {"type": "null"}

_Choices = frozenset[tuple[int, str]]
"""Choices between alternatives, each by the identity of its schema and by its keyword."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A schema that has to hold, apart from keywords that were considered before."""

    schema: Any
    pointer: str
    done: frozenset[str] = frozenset()
    within: _Choices = frozenset()
    """The choices whose options it is part of."""

    def get(self, keyword: str) -> Any:
        return None if keyword in self.done or not isinstance(self.schema, Mapping) else self.schema.get(keyword)

    def has(self, keyword: str) -> bool:
        return keyword not in self.done and isinstance(self.schema, Mapping) and keyword in self.schema

    def without(self, *keywords: str) -> _Part:
        return _Part(self.schema, self.pointer, self.done.union(keywords), self.within)

    def inner(self, schema: Any, *steps: object) -> _Part:
        return _Part(schema, self.pointer + json_pointer(steps))

    def also(self, schema: Any, *steps: object, choice: _Choices = frozenset()) -> _Part:
        """Return a part that has to hold for the same value, and is an option of a choice."""
        return _Part(schema, self.pointer + json_pointer(steps), within=self.within | choice)

    @property
    def asserts(self) -> bool:
        """True if the schema itself says anything about values, apart from references."""
        return isinstance(self.schema, Mapping) and not (_ASSERTIONS - self.done).isdisjoint(self.schema)

    @property
    def adds_null(self) -> bool:
        """True if `nullable` admits null beside keywords that would exclude it."""
        return self.get("nullable") is True and not (_WITHOUT_NULL - self.done).isdisjoint(self.schema)

    @property
    def key(self) -> tuple[int, frozenset[str]]:
        return id(self.schema), self.done


class ValueReader:
    """A reader of the schema of one tool.

    Attributes:
        named: the values of the parts that have names.
        widened: the place of each keyword without effect, as a JSON pointer.
        impossible: names of parts that no value fits.
    """

    def __init__(self, schema: Any, *, prefix: str = "", closed: bool = True) -> None:
        """Prepare reading.

        Args:
            schema: the JSON Schema.
            prefix: the beginning of the names of parts.
            closed: objects that name properties, and do not mention additional, have no additional.
        """
        self._root = schema
        self._prefix = prefix
        self._closed = closed
        self._names: dict[tuple[tuple[tuple[int, frozenset[str]], ...], _Choices], str] = {}
        self._level = 0
        self._counter = itertools.count()
        self._dead_ends: dict[str, None] = {}
        self._ignored: set[tuple[int, str]] = set()
        self.named: dict[str, Values] = {}
        self.widened: dict[str, None] = {}
        self.impossible: frozenset[str] = frozenset()

    def read(self, *also: Mapping[str, Any]) -> Values:
        """Return the values that the schema admits, and further schemas too.

        Raises:
            DefinitionError: it admits none; the error names the place.
        """
        values = self._values((_Part(self._root, ""), *(_Part(schema, "") for schema in also)))
        possible: set[str] = set()
        while more := {name for name, inner in self.named.items() if _is_possible(inner, possible)} - possible:
            possible |= more
        self.impossible = frozenset(self.named.keys() - possible)
        if not _is_possible(values, possible):
            # Parts that require themselves have no dead end; those inside others are read first.
            endless = (inner.pointer for inner in self.named.values() if isinstance(inner, Members))
            place = next(itertools.chain(self._dead_ends, endless), "")
            raise DefinitionError(NO_VALUE, pointer=place)
        return values

    def _values(self, parts: Iterable[_Part], combinations: int = 1, chosen: _Choices = frozenset()) -> Values:
        flat = self._flatten(parts)
        if any(part.schema is False for part in flat):
            return self._dead_end(flat)
        if any(part.adds_null for part in flat):
            # All of these together admit null, or what they admit without it.
            without = [part.without("nullable") if part.adds_null else part for part in flat]
            null = [_Part(_NULL, part.pointer) if part.adds_null else part for part in flat]
            return alternatives(self._values(each, combinations, chosen) for each in (without, null))
        # Descriptions and titles say nothing about values.
        if not any(part.asserts for part in flat):
            self.named[ANY.name] = ANY_VALUES
            return ANY
        if self._level > MAX_LEVELS:
            self._leave_out(flat[0], "")
            self.named[ANY.name] = ANY_VALUES
            return ANY
        key = tuple(part.key for part in flat), chosen
        if key in self._names:
            return Named(self._names[key])
        self._names[key] = name = f"{self._prefix}{next(self._counter)}"
        values = self._alternatives(flat, combinations, chosen) or self._constants(flat) or self._by_type(flat)
        if isinstance(values, (Items, Members, Alternatives)):
            self.named[name] = values
            return Named(name)
        # A scalar is written where it is used; names are for values that have parts.
        del self._names[key]
        return values

    def _flatten(self, parts: Iterable[_Part]) -> list[_Part]:
        """Return all schemas that have to hold and say something, those of references and `allOf` too, each once."""
        flat: list[_Part] = []
        visited: set[tuple[int, frozenset[str]]] = set()
        waiting = list(parts)[::-1]
        while waiting:
            part = waiting.pop()
            if part.key in visited:
                continue
            visited.add(part.key)
            if part.adds_null:  # null is an alternative to all that it refers to
                flat.append(part)
                continue
            if isinstance(reference := part.get("$ref"), str):
                target = resolve(self._root, reference)
                if isinstance(target, (Mapping, bool)):
                    waiting.append(_Part(target, reference.removeprefix("#"), within=part.within))
                else:
                    self._leave_out(part, "$ref")
                    self._ignored.add((id(part.schema), "$ref"))
            if isinstance(every := part.get("allOf"), list):
                waiting += [part.also(schema, "allOf", at) for at, schema in enumerate(every)][::-1]
            # What they lead to is in the list by now; followed again, an alternative that is done would come back.
            part = part.without("$ref", "allOf")
            if part.schema is False or part.asserts:
                flat.append(part)
        return flat or [_Part(True, "")]

    def _dead_end(self, parts: list[_Part]) -> Values:
        self._dead_ends.setdefault(parts[-1].pointer)
        return IMPOSSIBLE

    def _leave_out(self, part: _Part, keyword: str) -> None:
        self.widened[part.pointer + json_pointer([keyword] if keyword else [])] = None

    def _alternatives(self, parts: list[_Part], combinations: int, chosen: _Choices) -> Values | None:
        """Return the values of the first `anyOf` or `oneOf` among these schemas, combined with the additional."""
        for at, part in enumerate(parts):
            for keyword in ("anyOf", "oneOf"):
                options = part.get(keyword)
                if not isinstance(options, list) or not options:
                    continue
                # Each option has to hold together with everything else that the schemas say.
                rest = [*parts[:at], part.without(keyword), *parts[at + 1 :]]
                choice = (id(part.schema), keyword)
                if choice in part.within:  # an alternative that is this choice again adds nothing
                    return IMPOSSIBLE
                if choice in chosen:  # another part has made the same choice
                    return self._values(rest, combinations, chosen)
                if combinations * len(options) > MAX_COMBINATIONS:
                    self._leave_out(part, keyword)
                    self._ignored.add(choice)
                    return self._values(rest, combinations, chosen)
                if keyword == "oneOf" and len(options) > 1:
                    self._leave_out(part, keyword)
                choices = frozenset((choice,))
                return alternatives(
                    self._values(
                        [*rest, part.also(option, keyword, index, choice=choices)],
                        combinations * len(options),
                        chosen | choices,
                    )
                    for index, option in enumerate(options)
                )
        return None

    def _constants(self, parts: list[_Part]) -> Values | None:
        lists = [list(part.get("enum")) for part in parts if isinstance(part.get("enum"), list)]
        lists += [[part.schema["const"]] for part in parts if part.has("const")]
        if not lists:
            return None
        rest = self._values([part.without("enum", "const") for part in parts])
        constants: dict[str, Any] = {}
        lookups = [lookup(values) for values in lists[1:]]
        for value in lists[0]:
            if all(is_listed(value) for is_listed in lookups) and self._admits(rest, value):
                constants[json_text(value)] = value
        for part in parts:
            if part.get("pattern") and any(isinstance(value, str) for value in constants.values()):
                self._leave_out(part, "pattern")
        return Constants(tuple(constants.values())) if constants else self._dead_end(parts)

    def _admits(self, values: Values, value: Any, levels: int = MAX_LEVELS) -> bool:
        match values:
            case Named(name):
                # A part that is still being read is taken to admit it: a grammar may offer more.
                return levels < 0 or name not in self.named or self._admits(self.named[name], value, levels - 1)
            case Alternatives(options):
                return any(self._admits(option, value, levels - 1) for option in options)
            case Constants(constants):
                return any(equal_json(value, constant) for constant in constants)
            case StringValue(least, most):
                return isinstance(value, str) and least <= len(value) <= (most if most is not None else len(value))
            case NumberValue(integral, low, high):
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                fits = number and (low is None or value >= low) and (high is None or value <= high)
                return fits and (not integral or value == math.floor(value))
            case Items(first, additional, least, most):
                if not isinstance(value, list) or not least <= len(value) <= (len(value) if most is None else most):
                    return False
                kinds = [*first, *[additional or IMPOSSIBLE] * (len(value) - len(first))]
                return all(self._admits(kind, item, levels - 1) for kind, item in zip(kinds, value, strict=False))
            case Members(properties, additional):
                if not isinstance(value, dict):
                    return False
                by_name = {name: inner for name, inner, _ in properties}
                missing = any(needed and name not in value for name, _, needed in properties)
                return not missing and all(
                    self._admits(by_name.get(name, additional or IMPOSSIBLE), item, levels - 1)
                    for name, item in value.items()
                )

    def _by_type(self, parts: list[_Part]) -> Values:
        kinds = set(_KINDS)
        for part in parts:
            kinds &= _admitted_kinds(part)
            for keyword in _NEVER:
                if part.get(keyword) is not None:
                    self._leave_out(part, keyword)
        options: list[Values] = []
        constants = [value for value, kind in ((True, "boolean"), (False, "boolean"), (None, "null")) if kind in kinds]
        for kind, read in (
            ("string", self._text),
            ("number", self._number),
            ("integer", self._number),
            ("array", self._items),
            ("object", self._members),
        ):
            if kind not in kinds or (kind == "integer" and "number" in kinds):
                continue
            for part in parts:
                for keyword in _WITHOUT_EFFECT["number" if kind == "integer" else kind]:
                    if part.get(keyword) is not None and part.get(keyword) is not _NEUTRAL.get(keyword, True):
                        self._leave_out(part, keyword)
            self._level += 1
            # Inside a value, the same choice may come again: that is a recursive schema, and not an endless one.
            options.append(read(parts, kind))
            self._level -= 1
        if constants:
            options.append(Constants(tuple(constants)))
        return alternatives(options) if options else self._dead_end(parts)

    def _text(self, parts: list[_Part], _: str) -> Values:
        least = max(_numbers(parts, "minLength"), default=0)
        most = min(_numbers(parts, "maxLength"), default=None)
        patterns = [part for part in parts if isinstance(part.get("pattern"), str)]
        for part in patterns[1:]:
            self._leave_out(part, "pattern")
        if most is not None and least > most:
            return self._dead_end(parts)
        pattern = patterns[0].get("pattern") if patterns else ""
        pointer = (patterns or parts)[0].pointer
        return StringValue(math.ceil(least), None if most is None else math.floor(most), pattern, pointer)

    def _number(self, parts: list[_Part], kind: str) -> Values:
        integral = kind == "integer"
        low = max(_numbers(parts, "minimum"), default=None)
        high = min(_numbers(parts, "maximum"), default=None)
        for part in parts:
            above, below = part.get("exclusiveMinimum"), part.get("exclusiveMaximum")
            if _is_number(above):
                above = math.floor(above) + 1 if integral else above
                low = above if low is None else max(low, above)
            if _is_number(below):
                below = math.ceil(below) - 1 if integral else below
                high = below if high is None else min(high, below)
            for keyword, bound in (("exclusiveMinimum", above), ("exclusiveMaximum", below)):
                if bound is not None and not (integral and _is_number(bound)):
                    self._leave_out(part, keyword)
        if integral:
            low = low if low is None else math.ceil(low)
            high = high if high is None else math.floor(high)
        if low is not None and high is not None and low > high:
            return self._dead_end(parts)
        return NumberValue(integral, low, high, parts[0].pointer)

    def _items(self, parts: list[_Part], _: str) -> Values:
        least = math.ceil(max(_numbers(parts, "minItems"), default=0))
        most = min(map(math.floor, _numbers(parts, "maxItems")), default=None)
        rows = [_item_parts(part) for part in parts]
        length = max(len(first) for first, _ in rows)
        if most is not None:
            length = min(length, most)
        first: list[Values] = []
        for at in range(length):
            values = self._values([row[at] if at < len(row) else rest for row, rest in rows])
            if values == IMPOSSIBLE:
                most = at
                break
            first.append(values)
        additional: Values | None = None
        if most is None or most > len(first):
            additional = self._values([rest for _, rest in rows])
        if additional in (None, IMPOSSIBLE):
            additional, most = None, len(first)
        if most is not None and least > most:
            return self._dead_end(parts)
        return Items(tuple(first), additional, least, most, parts[0].pointer)

    def _members(self, parts: list[_Part], _: str) -> Values:
        declared = [part.get("properties") if isinstance(part.get("properties"), Mapping) else {} for part in parts]
        needed = [name for part in parts if isinstance(part.get("required"), list) for name in part.get("required")]
        needed = [name for name in needed if isinstance(name, str)]
        rests = [_additional_part(part) for part in parts]
        schemas = [part.schema for part in parts if isinstance(part.schema, Mapping)]
        # An author who names properties rarely means that a model may invent more.
        closed = (
            self._closed
            and any(isinstance(part.get("properties"), Mapping) for part in parts)
            and all(rest is None for rest in rests)
            and not any(mentions_others(schema, self._ignored) for schema in schemas)
        )
        further = [
            name for schema in schemas for name in conditional_members(schema, self._root, self._ignored) if closed
        ]
        properties: list[tuple[str, Values, bool]] = []
        for name in dict.fromkeys([*(name for names in declared for name in names), *needed, *further]):
            inner = (
                part.inner(names[name], "properties", name) if name in names else rest
                for part, names, rest in zip(parts, declared, rests, strict=True)
            )
            values = self._values(schema for schema in inner if schema is not None)
            if values == IMPOSSIBLE and name in needed:
                return self._dead_end(parts)
            properties.append((name, values, name in needed))
        rest_values = None if closed else self._values(rest for rest in rests if rest is not None)
        if rest_values in (None, IMPOSSIBLE):
            rest_values = None
            # Where other members are possible, a member that no value fits stays, so that it is not one of them.
            properties = [each for each in properties if each[1] != IMPOSSIBLE]
        elif long_names := [name for name, _, _ in properties if len(name) > MAX_EXCLUDED]:
            # Another member may have such a name, whatever its schema says.
            for name in long_names:
                self.widened[parts[0].pointer + json_pointer(["properties", name])] = None
        return Members(tuple(properties), rest_values, parts[0].pointer)


def _additional_part(part: _Part) -> _Part | None:
    """Return what a schema says about members that it does not name; None if it does not mention any."""
    additional = part.get("additionalProperties")
    if part.get("patternProperties"):
        return _Part(True, part.pointer)
    return None if additional is None else part.inner(additional, "additionalProperties")


def _is_possible(values: Values, possible: set[str]) -> bool:
    """Return whether some value is among these, if the parts with these names have values."""
    match values:
        case Named(name):
            return name in possible
        case Alternatives(options):
            return any(_is_possible(option, possible) for option in options)
        case Items(first, additional, least):
            kinds = [*first[:least], *([additional or IMPOSSIBLE] if least > len(first) else [])]
            return all(_is_possible(kind, possible) for kind in kinds)
        case Members(properties):
            return all(_is_possible(inner, possible) for _, inner, needed in properties if needed)
        case _:
            return True


def _is_number(value: Any) -> bool:
    integral = isinstance(value, int) and not isinstance(value, bool)
    return integral or (isinstance(value, float) and math.isfinite(value))


def _numbers(parts: Iterable[_Part], keyword: str) -> Iterator[int | float]:
    return (part.get(keyword) for part in parts if _is_number(part.get(keyword)))


def _admitted_kinds(part: _Part) -> set[str]:
    """Return the types that a schema admits, aliases included; all where it says nothing that is known."""
    declared = part.get("type")
    names = declared if isinstance(declared, list) else [declared]
    kinds = {TYPE_NAMES.get(name.lower(), "") for name in names if isinstance(name, str)}
    if not kinds or "" in kinds:
        return set(_KINDS)
    if part.get("nullable") is True:
        kinds.add("null")
    return kinds | {"integer"} if "number" in kinds else kinds


def _item_parts(part: _Part) -> tuple[list[_Part], _Part]:
    """Return the schemas of the first items of a list, and that of the additional."""
    prefix, items = part.get("prefixItems"), part.get("items")
    if isinstance(items, list):
        prefix, items, keyword = items, part.get("additionalItems"), "additionalItems"
        first = [part.inner(schema, "items", at) for at, schema in enumerate(prefix)]
    else:
        keyword = "items"
        first = [part.inner(schema, "prefixItems", at) for at, schema in enumerate(prefix or ())]
    return first, part.inner(True if items is None else items, keyword)
