"""Rules for arguments that are written as XML elements, nested for objects and lists."""

from __future__ import annotations

from typing import Any

from toolwire.grammars.algebra import (
    EMPTY,
    NOTHING,
    Expression,
    Lexeme,
    chars,
    chars_except,
    choice,
    literal,
    optional,
    repeat,
    sequence,
)
from toolwire.grammars.prose import prose
from toolwire.grammars.value_rules import ELEMENT_CHARACTERS, KEY_CHARACTERS, NAME_START, ValueRules, other_name
from toolwire.grammars.value_types import (
    Alternatives,
    Constants,
    Items,
    Members,
    Named,
    NumberValue,
    StringValue,
    Values,
    fixed_members,
)
from toolwire.text.json_text import json_text
from toolwire.wire.element_values import trim_line
from toolwire.wire.syntax import Elements
from toolwire.wire.xml_scanners import ELEMENT_NAME, escape_text, quote_attribute

_ENTITIES = tuple(literal(f"&{name};") for name in ("amp", "lt", "gt", "quot", "apos"))
_TEXT = Lexeme(repeat(choice([chars_except("<&"), *_ENTITIES]), 1))
_CDATA = Lexeme(sequence(literal("<![CDATA["), prose(("]]>",)).until.part))
_SPACE = optional(Lexeme(repeat(chars(" \n"), 1, 40)))
"""White space between elements, deep indentation included."""


class ElementRules:
    """Rules for the arguments of one tool as elements."""

    def __init__(self, values: ValueRules, node: Elements) -> None:
        """Prepare rules for elements that are written as `node` says."""
        self._values = values
        self._node = node
        self._space = EMPTY if node.token else _SPACE
        self._name = f"element {node.token or node.tag} {node.literal}"

    def members(self, members: Members) -> Expression:
        """Return the expression of the members of an object, without a tag around them."""
        parts: list[Expression] = []
        for name, values, needed in members.properties:
            written = self._element(name, values)
            parts.append(written if needed else optional(written))
        if members.additional is not None:
            names = [name for name, _, _ in members.properties]
            parts.append(repeat(self._other_element(names, members.additional)))
        return sequence(*parts)

    def _element(self, name: str, values: Values) -> Expression:
        node = self._node
        if node.tag and name != "item":
            return sequence(
                self._space, literal(f"<{node.tag} name={quote_attribute(name)}>"), self._body(values, f"</{node.tag}>")
            )
        if not ELEMENT_NAME.match(name):
            self._values.widen("", f"the name {name!r} cannot be written in this format")
            return NOTHING
        return sequence(self._space, literal(f"{node.token}<{name}>"), self._body(values, f"{node.token}</{name}>"))

    def _other_element(self, names: list[str], values: Values) -> Expression:
        """Return an element that has none of these names."""
        node = self._node
        if node.tag:
            name = other_name(names, KEY_CHARACTERS)
            head = Lexeme(sequence(literal(f'<{node.tag} name="'), name, literal('">')))
            return sequence(self._space, head, self._body(values, f"</{node.tag}>"))
        name = other_name(names, ELEMENT_CHARACTERS, NAME_START)
        self._values.widen("", "the closing tags of members without a name in the schema may have any name")
        head = Lexeme(sequence(literal(f"{node.token}<"), name, literal(">")))
        close = Lexeme(sequence(NAME_START, repeat(ELEMENT_CHARACTERS), literal(">")))
        return sequence(self._space, head, self._body(values, f"{node.token}</"), close)

    def _body(self, values: Values, close: str) -> Expression:
        """Return the inside of an element, its closing tag included."""
        match values:
            case Named(name):
                return self._values.named_rule(
                    f"{self._name} {close} {name}", name, lambda inner: self._body(inner, close)
                )
            case Alternatives(options):
                return choice(self._body(option, close) for option in options)
            case Constants(constants):
                return choice(self._constant(constant, close) for constant in constants)
            case StringValue():
                self._values.widen_text(values)
                return self._text(close)
            case NumberValue():
                return sequence(self._values.value(values), literal(close))
            case Items():
                items = self._values.row(values, lambda inner: self._element("item", inner))
                return sequence(items, self._space, literal(close))
            case Members():
                return sequence(self.members(values), self._space, literal(close))

    def _text(self, close: str) -> Expression:
        node = self._node
        if node.token:
            return sequence(prose((node.token,)).until, literal(close.removeprefix(node.token)))
        if node.literal:
            return prose((close,)).until
        return sequence(optional(choice([_TEXT, sequence(_CDATA, optional(_TEXT))])), literal(close))

    def _constant(self, constant: Any, close: str) -> Expression:
        match constant:
            case str():
                return choice(literal(form + close) for form in self._spellings(constant))
            case list():
                items = tuple(Constants((item,)) for item in constant)
                return self._body(Items(items, None, len(items), len(items)), close)
            case dict():
                return self._body(fixed_members(constant), close)
            case _:
                return literal(json_text(constant) + close)

    def _spellings(self, text: str) -> list[str]:
        """Return the ways to write a text that is constant."""
        node, escaped = self._node, escape_text(text)
        if node.token or node.literal:
            return [text]
        sections = [f"<![CDATA[{text}]]>"] if "]]>" not in text else []
        # Beside a section, blanks belong to the text; alone they do not.
        return [f"<![CDATA[]]>{escaped}" if node.trimmed and trim_line(text) != text else escaped, *sections]
