"""Random schemas with values that they admit, and the spellings of values that grammars have to offer one of."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from toolwire.grammars.gbnf_writer import write_gbnf
from toolwire.grammars.lark_writer import write_lark
from toolwire.grammars.schema_values import ValueReader
from toolwire.grammars.value_rules import JSON, Rules, ValueRules
from toolwire.text.json_text import json_text

MAX_SPELLINGS = 300
_NAMES = ("a", "b", "city", "a b", 'q"', "日", "x-1", "")
_TEXTS = ("", "a", "Paris", 'say "hi"\n', "日本", "\\d", "true", "0", "</x>")
_NUMBERS = (0, 1, -1, 7, 250, -99, 10**12, 0.5, -2.25, 1e-9, 1e300)


def grammars_of(schema: Any, *, closed: bool = False) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the grammars of a value of a schema by syntax, and what has no effect in them.

    Raises:
        DefinitionError: no value fits the schema.
    """
    rules, reader = Rules(), ValueReader(schema, closed=closed)
    values = reader.read()
    root = ValueRules(rules, JSON, reader, "").value(values)
    gbnf = write_gbnf(root, rules.rules)
    tag = json_text({"type": "structural_tag", "format": {"type": "grammar", "grammar": gbnf}})
    texts = {"gbnf": gbnf, "lark": write_lark(root, rules.rules), "structural_tag": tag}
    return texts, (*reader.widened, *rules.widened)


def spellings(value: Any) -> Iterator[str]:
    """Yield a value as JSON texts, in every order of members and with whole numbers in both spellings.

    A grammar offers members in the order of the schema, and constants in the spelling of the schema.
    """
    return itertools.islice(_spellings(value), MAX_SPELLINGS)


def _spellings(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for members in itertools.permutations(value.items()):
                for inner in itertools.product(*(list(spellings(item)) for _, item in members)):
                    pairs = zip(members, inner, strict=True)
                    yield "{" + ", ".join(f"{json_text(name)}: {text}" for (name, _), text in pairs) + "}"
        case list():
            for inner in itertools.product(*(list(spellings(item)) for item in value)):
                yield "[" + ", ".join(inner) + "]"
        case bool():
            yield json_text(value)
        case int() | float():
            yield json_text(value)
            if isinstance(value, float) and value.is_integer():
                yield str(int(value))
            elif isinstance(value, int):
                yield f"{value}.0"
        case _:
            yield json_text(value)


class SchemaSampler:
    """A writer of random schemas, each with values that it admits."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._defs: dict[str, Any] = {}

    def sample(self) -> tuple[dict[str, Any], list[Any]]:
        """Return a schema, and values that it admits."""
        schema, values = self._pair(3)
        return ({**schema, "$defs": self._defs} if self._defs else schema), values

    def _pair(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        kinds = [self._text, self._number, self._constant, self._nothing]
        if levels:
            kinds += [self._list, self._tuple, self._object, self._object, self._either, self._every, self._reference]
        return self._random.choice(kinds)(levels - 1)

    def _some(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return some of the keywords."""
        return {keyword: value for keyword, value in facts.items() if self._random.random() < 0.5}

    def _text(self, _: int) -> tuple[dict[str, Any], list[Any]]:
        values = self._random.sample(_TEXTS, 2)
        lengths = [len(value) for value in values]
        facts = {"minLength": min(lengths), "maxLength": max(lengths), "description": "text", "pattern": ""}
        return {"type": "string", **self._some(facts)}, values

    def _number(self, _: int) -> tuple[dict[str, Any], list[Any]]:
        values = self._random.sample(_NUMBERS, 2)
        whole = all(isinstance(value, int) for value in values)
        bounds = {"minimum": min(values), "maximum": max(values)}
        beyond = {"exclusiveMinimum": min(values) - 1, "exclusiveMaximum": max(values) + 1 if whole else 1e301}
        return {"type": "integer" if whole else "number", **self._some(bounds | beyond)}, values

    def _constant(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        _, values = self._pair(max(levels, 0))
        draw = self._random.random()
        return ({"const": values[0]} if draw < 0.4 else {"enum": values}), values[:1]

    def _nothing(self, _: int) -> tuple[dict[str, Any], list[Any]]:
        kind = self._random.choice(["boolean", "null", ["boolean", "null"]])
        return {"type": kind}, [True, False] if kind == "boolean" else [None]

    def _list(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        items, values = self._pair(levels)
        several = [self._random.choices(values, k=self._random.randint(0, 3)) for _ in range(2)]
        facts = {"minItems": min(map(len, several)), "maxItems": max(map(len, several)), "uniqueItems": False}
        return {"type": "array", "items": items, **self._some(facts)}, several

    def _tuple(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        first, second, rest = (self._pair(levels) for _ in range(3))
        value = [first[1][0], second[1][0], rest[1][0]]
        schema = {"type": "array", "prefixItems": [first[0], second[0]], "items": rest[0]}
        return schema, [value[: self._random.randint(0, 3)]]

    def _object(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        names = self._random.sample(_NAMES, self._random.randint(0, 3))
        pairs = {name: self._pair(levels) for name in names}
        whole = {name: values[0] for name, (_, values) in pairs.items()}
        schema: dict[str, Any] = {"type": "object", "properties": {name: inner for name, (inner, _) in pairs.items()}}
        needed = [name for name in names if self._random.random() < 0.5]
        if needed:
            schema["required"] = needed
        part = {name: value for name, value in whole.items() if name in needed}
        draw = self._random.random()
        if draw < 0.3:
            schema["additionalProperties"] = False
        elif draw < 0.6:
            schema["additionalProperties"], values = self._pair(max(levels, 0))
            part = {**part, "other": values[0]}
        return schema, [whole, part]

    def _either(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        options = [self._pair(levels) for _ in range(self._random.randint(1, 3))]
        keyword = self._random.choice(["anyOf", "anyOf", "oneOf"])
        return {keyword: [schema for schema, _ in options]}, [values[0] for _, values in options]

    def _every(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        schema, values = self._pair(levels)
        return {"allOf": [schema, {"title": "again"}, dict(schema)], "default": values[0]}, values

    def _reference(self, levels: int) -> tuple[dict[str, Any], list[Any]]:
        name = f"part/{len(self._defs)}~"
        self._defs[name] = {}  # the name is taken, whatever is inside
        schema, values = self._pair(levels)
        draw = self._random.random()
        if draw < 0.3:  # it may contain itself
            schema, values = {"anyOf": [schema, {"type": "array", "items": {"$ref": _pointer(name)}}]}, [[values[0]]]
        self._defs[name] = schema
        return {"$ref": _pointer(name)}, values


def _pointer(name: str) -> str:
    return "#/$defs/" + name.replace("~", "~0").replace("/", "~1")
