"""Values for the second reader: JSON, Python literals, strings between tokens, and types of a schema."""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from typing import Any

ALIASES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "dict": "object", "list": "array"}
SPELLINGS = {"True": "true", "False": "false", "None": "null"}


class NoMatchError(Exception):
    """The text does not continue with a value of the wanted kind."""


@dataclass(frozen=True)
class Schema:
    """A JSON Schema within the schema of a tool's parameters."""

    value: Any
    root: Any

    @property
    def resolved(self) -> dict[str, Any]:
        schema = self.value
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            target: Any = self.root
            for part in schema["$ref"].removeprefix("#").split("/")[1:]:
                target = target.get(part, {})
            schema = target
        return schema if isinstance(schema, dict) else {}

    @property
    def properties(self) -> dict[str, Schema]:
        properties = dict(self.resolved.get("properties") or {})
        for option in self.options:
            properties = {**option.resolved.get("properties", {}), **properties}
        return {name: Schema(value, self.root) for name, value in properties.items()}

    @property
    def options(self) -> list[Schema]:
        schema = self.resolved
        return [Schema(option, self.root) for option in [*schema.get("anyOf", []), *schema.get("oneOf", [])]]

    @property
    def items(self) -> Schema:
        if "items" in self.resolved:
            return Schema(self.resolved["items"], self.root)
        return next((option.items for option in self.options if option.items.value), Schema(None, self.root))

    @property
    def types(self) -> set[str]:
        """The JSON types that the schema names; empty if any value will do."""
        stated = self.resolved.get("type", [])
        types = {ALIASES.get(name, name) for name in (stated if isinstance(stated, list) else [stated])}
        for option in self.options:
            types |= option.types
        for value in self.resolved.get("enum", []):
            types.add(type_of(value))
        if "const" in self.resolved:
            types.add(type_of(self.resolved["const"]))
        return types - {"any"}

    @property
    def listed(self) -> list[Any] | None:
        """The values that the schema lists; None if it admits others."""
        if "const" in self.resolved:
            return [self.resolved["const"]]
        if "enum" in self.resolved:
            return list(self.resolved["enum"])
        groups = [option.listed for option in self.options]
        if not groups or None in groups:
            return None
        return [value for group in groups for value in group or ()]

    def lists(self, text: str, value: Any) -> bool:
        """Return whether the value of a text is one of those that the schema lists, and the text itself is not."""
        listed = self.listed or []
        return not isinstance(value, str) and text not in listed and value in listed

    @property
    def is_array(self) -> bool:
        return self.types - {"null"} == {"array"}

    def member(self, name: str) -> Schema:
        return self.properties.get(name, Schema(self.resolved.get("additionalProperties"), self.root))

    def lone(self) -> str:
        """Return the parameter for a text that stands for all arguments, or ""."""
        strings = [name for name, schema in self.properties.items() if "string" in schema.types]
        for names in (list(self.properties), self.resolved.get("required") or [], strings):
            if len(names) == 1:
                return str(names[0])
        return ""


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {int: "integer", float: "number", str: "string", list: "array"}.get(type(value), "object")


def admitted(text: str, schema: Schema) -> tuple[bool, Any]:
    """Return whether a text is a value of a type of the schema, and that value."""
    value = json_value(SPELLINGS.get(text.strip(), text))
    kind = type_of(value)
    if value is None and SPELLINGS.get(text.strip(), text.strip()) != "null":
        return False, None
    types = schema.types
    return kind in types or (kind == "integer" and "number" in types), value


def raw_value(text: str, schema: Schema) -> Any:
    """Return a raw value: text, unless the schema admits no text and this is a value that it admits."""
    fits, value = admitted(text, schema)
    types = schema.types
    if schema.listed is not None:
        return value if fits and schema.lists(text, value) else text
    if fits and (value is None or (types and "string" not in types)):
        return fitted(value, schema)
    if schema.is_array and text.lstrip().startswith("["):
        raise NoMatchError  # a list that cannot be read
    if not schema.is_array:
        return text
    return [text if schema.items.is_array else raw_value(text, schema.items)]


def fitted(value: Any, schema: Schema) -> Any:
    """Convert texts where the schema admits no text, and whole numbers where it wants integers."""
    if isinstance(value, str):
        fits, other = admitted(value, schema)
        if schema.listed is not None:
            return other if fits and schema.lists(value, other) else value
        if not schema.types or "string" in schema.types:
            return value
        return fitted(other, schema) if fits and not isinstance(other, str) else value
    if isinstance(value, dict):
        return {key: fitted(item, schema.member(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [fitted(item, schema.items) for item in value]
    if isinstance(value, float) and value.is_integer() and "integer" in schema.types and "number" not in schema.types:
        return int(value)
    return value


def nesting(value: Any) -> int:
    """Return how many objects and lists are inside each other."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


# JSON


def json_value(text: str) -> Any:
    """Return the value of JSON text, or None."""
    try:
        value, end = json_at(text, len(text) - len(text.lstrip()), ("",))
    except NoMatchError:
        return None
    return value if not text[end:].strip() else None


def json_at(text: str, at: int, openings: tuple[str, ...] = ("{", "[", '"')) -> tuple[Any, int]:
    """Return the object, list or string that begins in a text, and its end."""
    if not text.startswith(openings, at):
        raise NoMatchError
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)
    try:
        value, end = decoder.raw_decode(text, at)
        text[at:end].encode("utf-8")
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise NoMatchError from error
    return value, end


def _finite(number: str) -> float:
    if math.isinf(float(number)):
        raise NoMatchError
    return float(number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise NoMatchError
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise NoMatchError


# Python literals, and strings between tokens

STRING = re.compile(
    r"""([rRuU]?)('''(?:[^\\]|\\.)*?'''|\"""(?:[^\\]|\\.)*?\"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL
)
NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])")
WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}


class Word(str):
    """A value without quotes, whose type its schema decides."""


def word_value(value: Any, schema: Schema) -> Any:
    """Return a value in which every word is JSON if it can be read as JSON, unless its schema wants a string."""
    if isinstance(value, Word):
        if schema.types == {"string"}:
            return str(value)
        plain = json_value(value)
        return str(value) if plain is None and value != "null" else plain
    if isinstance(value, dict):
        return {key: word_value(item, schema.member(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [word_value(item, schema.items) for item in value]
    return value


class Values:
    """Read values of Python, or those of `{key:value}` with strings between tokens, from a place in a text."""

    def __init__(self, text: str, at: int, token: str = "") -> None:
        self.text = text
        self.at = at
        self.token = token

    def space(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1

    def take(self, literal: str) -> bool:
        """Skip white space and the literal, if the text continues with it."""
        self.space()
        if not literal or not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def pattern(self, pattern: re.Pattern[str]) -> str:
        self.space()
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def need(self, literal: str) -> None:
        if not self.take(literal):
            raise NoMatchError

    def call(self) -> tuple[str, dict[str, Any]]:
        """Read `name(key=value, ...)`."""
        name = self.pattern(re.compile(r"[^\W\d][\w.-]*"))
        if not name:
            raise NoMatchError
        return name, self.keywords()

    def keywords(self) -> dict[str, Any]:
        self.need("(")
        arguments: dict[str, Any] = {}
        while not self.take(")"):
            if arguments:
                self.need(",")
                if self.take(")"):
                    break
            key = self.pattern(re.compile(r"[^\W\d]\w*"))
            self.need("=")
            if not key or key in arguments:
                raise NoMatchError
            arguments[key] = self.value()
        return arguments

    def value(self) -> Any:
        """Read one value."""
        if self.take(self.token):
            return self._between_tokens()
        for opened, closed in (("[", "]"), ("(", ")")):
            if self.take(opened):
                return self.items(closed)
        if self.take("{"):
            return self.members()
        if literal := self.pattern(STRING):
            return _string(literal)
        if self.token:
            return self._word()
        if number := self.pattern(NUMBER):
            try:
                return _number(number)
            except ValueError as error:  # more digits than Python converts
                raise NoMatchError from error
        word = self.pattern(re.compile(r"\w+"))
        if word not in WORDS:
            raise NoMatchError
        return WORDS[word]

    def _word(self) -> Word:
        word = self.pattern(re.compile(r"""[^,\]}<"{\[\n]+""")).strip()
        if not word:
            raise NoMatchError
        return Word(word)

    def items(self, close: str) -> list[Any]:
        items: list[Any] = []
        while not self.take(close):
            if items:
                self.need(",")
                if self.take(close):
                    break
            items.append(self.value())
        return items

    def members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self.take("}"):
            if members:
                self.need(",")
                if self.take("}"):
                    break
            key = self._key()
            self.need(":")
            if not isinstance(key, str) or key in members:
                raise NoMatchError
            members[key] = self.value()
        return members

    def _key(self) -> Any:
        if not self.token:
            return self.value()
        if self.take(self.token):
            return self._between_tokens()
        return self.pattern(re.compile(r"[^:{}\[\],]+")).strip().strip('"')

    def _between_tokens(self) -> str:
        end = self.text.find(self.token, self.at)
        if end < 0:
            raise NoMatchError
        start, self.at = self.at, end + len(self.token)
        return self.text[start:end]


def _string(literal: str) -> str:
    """Return the value of a string literal, which may contain line breaks."""
    if not literal.lstrip("rRuU").startswith(('"""', "'''")):
        literal = literal.replace("\n", "\\n") if literal[0] not in "rR" else literal
    escaped = re.sub(
        r"\\(.)",
        lambda match: match.group() if match.group(1) in "\\'\"abfnrtvxuUN01234567\n" else "\\" + match.group(),
        literal,
        flags=re.DOTALL,
    )
    return str(ast.literal_eval(literal if literal[0] in "rR" else escaped))


def _number(text: str) -> Any:
    text = text.replace("_", "")
    if "x" in text.lower():
        return int(text, 16)
    return int(text) if text.lstrip("+-").isdigit() else _finite(text)
