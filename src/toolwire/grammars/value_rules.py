"""Rules for JSON values, in the dialects in which formats write them: JSON, Python, and bare keys between tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from toolwire.grammars.algebra import (
    EMPTY,
    NOTHING,
    Chars,
    Either,
    Expression,
    Lexeme,
    RuleName,
    char_range,
    chars,
    chars_except,
    choice,
    literal,
    optional,
    repeat,
    sequence,
    union,
)
from toolwire.grammars.number_rules import integers, numbers
from toolwire.grammars.prose import prose
from toolwire.grammars.schema_values import ValueReader
from toolwire.grammars.value_types import (
    MAX_EXCLUDED,
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
from toolwire.text.python_text import python_literal
from toolwire.wire.definition_text import token_key, tokens

MAX_BOUND = 200
"""Largest number of repetitions that a grammar counts; more are any number, because engines unroll them."""
_HEX = union(char_range("0", "9"), char_range("a", "f"), char_range("A", "F"))
_PLAIN = chars_except(union(Chars(((0, 0x1F),)), chars('"\\')))
"""Characters that are written as they are in a string."""
_UNICODE = sequence(
    literal("u"),
    choice(
        [
            sequence(union(char_range("0", "9"), chars("abcefABCEF")), _HEX, _HEX, _HEX),
            sequence(chars("dD"), char_range("0", "7"), _HEX, _HEX),
        ]
    ),
)
_PAIR = sequence(
    *(literal("u"), chars("dD"), union(chars("89abAB")), _HEX, _HEX),
    *(literal("\\u"), chars("dD"), chars("cdefCDEF"), _HEX, _HEX),
)
_SPACE = optional(Lexeme(repeat(chars(" \n\t"), 1, 20)))
"""White space inside JSON: enough for an indented object, and too little to fill an answer."""
NAME_START = union(char_range("a", "z"), char_range("A", "Z"), chars("_"))
"""The first character of a name that may be written without quotes."""
NAME_CHARACTERS = union(NAME_START, char_range("0", "9"))
"""The characters of a name that may be written without quotes."""
_LETTERS = Chars(
    (
        *((0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F), (0x391, 0x3A1), (0x3A3, 0x3CE), (0x400, 0x481), (0x48A, 0x52F)),
        *((0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FFC), (0xAC00, 0xD7A3)),
    )
)
"""Latin, Greek, Cyrillic, Chinese, Japanese and Korean letters, which every reader takes for parts of a word."""
_WORD_START = union(NAME_START, _LETTERS)
_WORD_CHARACTERS = union(NAME_CHARACTERS, _LETTERS, chars("-."))
ELEMENT_CHARACTERS = union(_WORD_CHARACTERS, chars(":"))
"""The characters of the name of an element behind the first one."""
KEY_CHARACTERS = chars_except(
    union(
        chars("<>{}()[]\"'=,;|｜&`\\\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"),
        Chars(((0, 0x20), (0x7F, 0x7F), (0x2000, 0x200A))),
    )
)
"""The characters of a name between markers: all but blanks, quotes and brackets."""


@dataclass(slots=True)
class Rules:
    """The rules of a grammar that is being made.

    Attributes:
        rules: expressions by name.
        widened: everything that the grammar offers beyond the schemas, in words.
    """

    rules: dict[str, Expression] = field(default_factory=dict)
    widened: dict[str, None] = field(default_factory=dict)

    def rule(self, name: str, make: Callable[[], Expression]) -> Expression:
        """Return a reference to a rule, which is made when it is first asked for."""
        if name not in self.rules:
            self.rules[name] = RuleName(name)  # a rule may contain itself
            self.rules[name] = make()
        return NOTHING if self.rules[name] == NOTHING else RuleName(name)

    def share(self, expression: Expression) -> Expression:
        """Return a reference to a new rule for an expression that is used several times."""
        if expression in (EMPTY, NOTHING) or isinstance(expression, RuleName):
            return expression
        return self.rule(f"shared {len(self.rules)}", lambda: expression)


@dataclass(frozen=True, slots=True)
class ValueDialect:
    """A way to write JSON values.

    Attributes:
        name: distinguishes the rules of this dialect.
        constant: writes a value that is fixed.
        key: writes a key of an object, together with the colon.
        characters: the characters of a string, escapes included.
        space: white space between the parts of a list or an object.
        token: the marker around strings; "" for quotes.
    """

    name: str
    constant: Callable[[Any], str]
    key: Callable[[str], str]
    characters: Expression = NOTHING
    space: Expression = EMPTY
    token: str = ""


def _string_characters(escapes: str, *pairs: Expression) -> Expression:
    return choice([_PLAIN, sequence(literal("\\"), choice([chars(escapes), _UNICODE, *pairs]))])


def _json_key(name: str) -> str:
    return f"{json_text(name)}:"


JSON = ValueDialect("json", json_text, _json_key, _string_characters('"\\/bfnrt', _PAIR), _SPACE)
JSON_IN_TEXT = replace(JSON, name="json in text", space=optional(Lexeme(repeat(literal(" "), 1, 20))))
"""JSON inside a JSON string, where a line break would be two characters."""
PYTHON = ValueDialect("python", python_literal, _json_key, _string_characters('"\\bfnrt'), _SPACE)


def keyword_key(name: str) -> str:
    """Write the name of an argument of a Python call."""
    return f"{name}="


def between_tokens(token: str) -> ValueDialect:
    """Return the dialect with bare keys and strings between tokens."""
    return ValueDialect(
        f"tokens {token}",
        lambda value: tokens(value, token),
        lambda name: f"{token_key(name, token)}:",
        token=token,
    )


def other_name(names: Iterable[str], characters: Expression, first: Expression | None = None) -> Expression:
    """Return a name that is not in a list.

    Args:
        names: the names that are excluded, apart from those that `MAX_EXCLUDED` leaves out.
        characters: the characters of a name: a set, or a choice of a set and escapes.
        first: the first character, if fewer are possible there; then the name is not empty.
    """
    sets = characters.options if isinstance(characters, Either) else (characters,)
    plain = next(option for option in sets if isinstance(option, Chars))
    return _other(sorted({name for name in names if len(name) <= MAX_EXCLUDED}), plain, characters, first)


def _other(names: list[str], plain: Chars, characters: Expression, first: Expression | None) -> Expression:
    start = first or characters
    heads = sorted({name[0] for name in names if name})
    # All names are other names from here on, unless an excluded one ends here.
    if not heads:
        rest = sequence(start, repeat(characters))
        return rest if names or first else optional(rest)
    allowed = first if isinstance(first, Chars) else plain
    diverging = chars_except(union(chars_except(allowed), chars("".join(heads))))
    options: list[Expression] = [sequence(diverging, repeat(characters))] if diverging.ranges else []
    if first is None and "" not in names:
        options.append(EMPTY)
    # A name with a character that has to be escaped is never written with the characters of other names.
    for head in (head for head in heads if any(low <= ord(head) <= high for low, high in allowed.ranges)):
        inner = _other([name[1:] for name in names if name.startswith(head)], plain, characters, None)
        options.append(sequence(literal(head), inner))
    return choice(options)


class ValueRules:
    """Rules for the values of one tool's schema in one dialect."""

    def __init__(self, rules: Rules, dialect: ValueDialect, reader: ValueReader, owner: str) -> None:
        """Prepare rules.

        Args:
            rules: the grammar that they become part of.
            dialect: how values are written.
            reader: the reader of the schema, for its parts that have names.
            owner: name of the tool, for what is widened.
        """
        self.rules = rules
        self.dialect = dialect
        self._reader = reader
        self._owner = owner

    def widen(self, pointer: str, reason: str) -> None:
        """Record that a keyword has no effect."""
        self.rules.widened[f"{self._owner}: {pointer or '/'}: {reason}"] = None

    def value(self, values: Values) -> Expression:
        """Return the expression of values."""
        dialect = self.dialect
        match values:
            case Named(name):
                return self.named_rule(f"{dialect.name} {name}", name, self.value)
            case Alternatives(options):
                return choice(map(self.value, options))
            case Constants(constants):
                return choice(literal(dialect.constant(constant)) for constant in constants)
            case StringValue():
                return self.text(values)
            case NumberValue(integral, low, high, pointer):
                exact, expression = integers(low, high) if integral else numbers(low, high)
                if not exact:
                    kind = "integers of more than 60 digits" if integral else "numbers that are not integers"
                    self.widen(pointer, f"a bound of {kind} has no effect")
                return self.rules.rule(f"number {integral} {low} {high}", lambda: Lexeme(expression))
            case Items():
                return self.items(values)
            case Members():
                begin, end = sequence(literal("{"), dialect.space), sequence(dialect.space, literal("}"))
                return self.members(values, begin, end)

    def named_rule(self, rule: str, name: str, make: Callable[[Values], Expression]) -> Expression:
        """Return the rule for a part of the schema that has a name."""
        if name in self._reader.impossible:
            return NOTHING
        return self.rules.rule(rule, lambda: make(self._reader.named[name]))

    def text(self, values: StringValue) -> Expression:
        """Return the expression of strings, with what is around them."""
        dialect = self.dialect
        # Text between tokens has no escapes, so all that it cannot contain is the token.
        if dialect.token:
            self.widen_text(values)
            return sequence(literal(dialect.token), prose((dialect.token,)).until)
        self.widen_text(values, counts=True)
        least, most = values.least, values.most
        if least > MAX_BOUND or (most or 0) > MAX_BOUND:
            self.widen(values.pointer, f"lengths above {MAX_BOUND} have no effect")
            # Counting beyond this costs engines more than the bound is worth; validation still checks it.
            least, most = min(least, MAX_BOUND), None
        name = f"{dialect.name} string {least} {most}"
        return self.rules.rule(
            name, lambda: Lexeme(sequence(literal('"'), repeat(dialect.characters, least, most), literal('"')))
        )

    def widen_text(self, values: StringValue, *, counts: bool = False) -> None:
        """Record which keywords of a string have no effect; those of its length have one where it `counts`."""
        if values.pattern:
            self.widen(f"{values.pointer}/pattern", "a pattern has no effect")
        for keyword, bound in (("minLength", values.least or None), ("maxLength", values.most)):
            if bound is not None and not counts:
                self.widen(f"{values.pointer}/{keyword}", "the length of text without quotes has no effect")

    def items(self, values: Items) -> Expression:
        """Return the expression of lists."""
        space = self.dialect.space
        row = self.row(values, self.value, sequence(literal(","), space), space)
        return sequence(literal("["), space, row, literal("]"))

    def row(
        self,
        values: Items,
        item: Callable[[Values], Expression],
        separator: Expression = EMPTY,
        end: Expression = EMPTY,
    ) -> Expression:
        """Return the items of a list.

        Args:
            values: the list.
            item: writes an item.
            separator: what is between two items.
            end: what is behind the last one.
        """
        least, most = values.least, values.most
        if least > MAX_BOUND or (most or 0) > MAX_BOUND:
            self.widen(values.pointer, f"numbers of items above {MAX_BOUND} have no effect")
            least, most = min(least, MAX_BOUND), None
        more = NOTHING if values.additional is None else item(values.additional)
        first = [*map(item, values.first)] or [more] * (most != 0)
        rest = repeat(
            sequence(separator, more),
            max(0, least - len(first)),
            None if most is None else max(0, most - len(first)),
        )
        rest = sequence(rest, end) if first else rest
        for at in range(len(first) - 1, -1, -1):
            rest = sequence(separator if at else EMPTY, first[at], rest)
            rest = rest if at < least else optional(rest)
        return rest

    def members(
        self, values: Members, before: Expression, after: Expression, key: Callable[[str], str] | None = None
    ) -> Expression:
        """Return the expression of objects between two texts, with their members in the schema's order.

        Args:
            values: the object.
            before: what is written before its members.
            after: what is written behind them.
            key: writes a key; the dialect's own by default.
        """
        space = self.dialect.space
        comma = sequence(literal(","), space)
        write = key or self.dialect.key
        pairs: list[tuple[Expression, bool]] = []
        for name, inner, needed in values.properties:
            pairs.append((sequence(literal(write(name)), EMPTY if key else space, self.value(inner)), needed))
        other = self._other_member([name for name, _, _ in values.properties], values.additional, key)
        more = repeat(sequence(comma, other))
        # What may follow each member, from the last one to the first, so that each is written once.
        rests = [more]
        for at in range(len(pairs) - 1, 0, -1):
            pair, needed = pairs[at]
            following = sequence(comma, pair)
            rest = sequence(following if needed else optional(following), rests[0])
            rests.insert(0, rest if all(needed for _, needed in pairs[:at]) else self.rules.share(rest))
        options: list[Expression] = []
        # Any member up to the first required one may be the first of the object; the others follow a comma.
        for (pair, needed), rest in zip(pairs, rests, strict=False):
            options.append(sequence(pair, rest))
            if needed:
                break
        else:
            options += [sequence(other, more), EMPTY]
        return sequence(before, choice(options), after)

    def _other_member(
        self, names: list[str], additional: Values | None, key: Callable[[str], str] | None
    ) -> Expression:
        """Return a member that has none of these names."""
        if additional is None:
            return NOTHING
        dialect = self.dialect
        if key:
            head = sequence(other_name(names, _WORD_CHARACTERS, _WORD_START), literal("="))
        elif token := dialect.token:
            bare = other_name(names, union(NAME_CHARACTERS, chars("-.")), NAME_START)
            quoted = sequence(literal(token), other_name(names, chars_except(token[0])), literal(token))
            head = sequence(choice([bare, quoted]), literal(":"))
        else:
            head = sequence(literal('"'), other_name(names, dialect.characters), literal('":'))
        return sequence(Lexeme(head), EMPTY if key else dialect.space, self.value(additional))
