"""The value of one parameter that is written as nested XML elements: text, object or list.

The schema decides where it has a type. Elsewhere repeated names and `<item>` make a list, children make an object, and
anything else is text, whose type may be inferred. Reading is one pass over the tags, without recursion. Tags that do
not match are an error where they may be structure, and text elsewhere.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from toolwire.schema.shape import ReadJson, Shape
from toolwire.text.json_reading import broken_limit
from toolwire.text.limits import MAX_DEPTH, MAX_DIGITS
from toolwire.wire.syntax import Elements
from toolwire.wire.xml_scanners import ascii_lower, unescape

_ATTRIBUTES = r"(?P<rest>(?:\s[^<>]{0,400}|/)?)>"
_TAG = r"<(?P<close>/?)(?P<name>[A-Za-z_][-\w.:]*)" + _ATTRIBUTES
_NUMBERED_TAG = r"<(?P<close>/?)(?P<name>[A-Za-z_0-9][-\w.:]*)" + _ATTRIBUTES
_TOKEN = re.compile(rf"<!\[CDATA\[|<!--|{_TAG}")
_TOKEN_LITERAL = re.compile(_TAG)
_TOKEN_NUMBERED = re.compile(rf"<!\[CDATA\[|<!--|{_NUMBERED_TAG}")
_KEY = re.compile(r"""\sname\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE | re.ASCII)
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}

Occurrence = tuple[Any, bool]
"""A value, and whether it is a list that was written item by item."""


@dataclass(frozen=True, slots=True)
class _Mixed:
    """Mixed text and elements, which are text after all.

    It is decoded at the end, because an element around it may turn out to be mixed too, and nothing is decoded twice.
    """

    start: int
    end: int
    shape: Shape


@dataclass(slots=True)
class _Node:
    """An element whose closing tag was not read yet."""

    name: str
    key: str
    shape: Shape
    start: int
    text: list[str] = field(default_factory=list)
    blank: bool = True
    cdata: bool = False
    nested_same: int = 0  # number of open elements of the same name inside text
    is_item: bool = False  # one item of a list, written without a wrapper
    children: dict[str, list[Occurrence]] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)


def infer(text: str) -> Any:
    """Infer a value from untyped text: true, false, null (any case), integers (007 is 7), finite floats, else text."""
    trimmed = text.strip()
    word = trimmed.lower()
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.match(trimmed) and len(trimmed.lstrip("+-")) <= MAX_DIGITS:
        return int(trimmed)
    if _FLOAT.match(trimmed):
        value = float(trimmed)
        return text if math.isinf(value) else value
    return text


def trim_line(text: str) -> str:
    """Return text without the white space around it, unless it has several lines."""
    trimmed = text.strip()
    return text if "\n" in trimmed else trimmed


def is_text(shape: Shape) -> bool:
    """Return whether the schema admits a string and nothing else."""
    return shape.typed and shape.kinds == {"string"}


def _is_scalar(shape: Shape) -> bool:
    """Return whether the schema admits numbers and booleans, and no text or structure."""
    return shape.typed and shape.kinds <= {"integer", "number", "boolean", "null"}


def is_list(shape: Shape) -> bool:
    """Return whether the schema admits a list and nothing else but null."""
    return shape.typed and "array" in shape.kinds and shape.kinds <= {"array", "null"}


def is_item(text: str, shape: Shape, read_json: ReadJson) -> bool:
    """Return whether raw text is one item of a list, written without the list around it."""
    return is_list(shape) and text.lstrip()[:1] != "[" and shape.from_text(text, read_json) is text


def combine(occurrences: list[Occurrence], shape: Shape) -> Any:
    """Return the value of a parameter from its occurrences; several make a list.

    Raises:
        ValueError: it was given more than once where the schema admits one value, or is text that begins as a list but
            cannot be read as one, so that it is not the only item either.
    """
    if len(occurrences) == 1:
        value, listed = occurrences[0]
        if is_list(shape) and isinstance(value, str) and value.lstrip().startswith("["):
            raise ValueError("begins as a list, but cannot be read as one; write it as JSON")
        return [value] if is_list(shape) and not listed and value is not None else value
    if shape.typed and "array" not in shape.kinds:
        raise ValueError("is given more than once")
    joined: list[Any] = []
    for value, listed in occurrences:
        joined.extend(value if listed and shape.typed else [value])
    return joined


class ElementReader:
    """A reader of the raw text between a parameter's tags.

    Args:
        node: the node that describes parameters.
        read_json: reads JSON text inside a value; raises ValueError if it is not JSON.
    """

    def __init__(self, node: Elements, read_json: ReadJson) -> None:
        self._node = node
        self._read_json = read_json
        self._amp = self._less = False
        self.attributes: dict[str, str] = {}  # attributes that have no meaning, by their element's name

    @property
    def repairs(self) -> list[str]:
        """The repairs made, in a fixed order: "bare_ampersand", "bare_markup"."""
        return ["bare_ampersand"] * self._amp + ["bare_markup"] * self._less

    def read(self, raw: str, shape: Shape) -> Occurrence:
        """Return the value.

        Raises:
            ValueError: too many levels of nesting, a value given more than once, or tags that do not match.
        """
        root = _Node("", "", shape, 0)
        self._mixed = False
        stack = [root]
        at = pos = 0
        tokens = _TOKEN_LITERAL if self._node.literal else _TOKEN_NUMBERED if self._node.numbered else _TOKEN
        while (token := tokens.search(raw, pos)) is not None:
            top = stack[-1]
            pos = token.end()
            if token["name"] is None:
                if token[0] == "<!--":
                    end = raw.find("-->", pos)
                    pos = len(raw) if end < 0 else end + 3
                    if not top.blank or is_text(top.shape):
                        continue  # a comment inside text is text
                    self._text(top, raw[at : token.start()])
                    at = pos if top.blank else token.start()
                    continue
                self._text(top, raw[at : token.start()])
                end = raw.find("]]>", pos)
                stop = len(raw) if end < 0 else end
                top.text.append(raw[pos:stop])
                top.cdata, top.blank = True, False
                at = pos = min(len(raw), stop + 3)
                continue
            name, closes = token["name"], bool(token["close"])
            if self._node.nested:
                name = ascii_lower(name)
            if is_text(top.shape):
                # In a string, tags are text; only the matching closing tag ends it.
                if name != top.name or top is root:
                    continue
                if not closes or top.nested_same:
                    top.nested_same += -1 if closes else 1
                    continue
            if self._node.nested and name not in self._node.nested:
                continue
            if closes and (top is root or name != top.name):
                return self._unbalanced(raw, shape, name)
            self._text(top, raw[at : token.start()])
            at = pos
            if closes:
                stack.pop()
                self._attach(stack[-1], top, self._value(top, raw, token.start()))
                continue
            if len(stack) >= MAX_DEPTH:
                raise ValueError(f"more than {MAX_DEPTH} levels of nesting")
            child = self._child(top, name, token["rest"], pos)
            if token["rest"].endswith("/"):
                self._attach(top, child, self._value(child, raw, pos))
            else:
                stack.append(child)
        if len(stack) > 1:
            return self._unbalanced(raw, shape, stack[-1].name)
        self._text(root, raw[at:])
        value, listed = self._value(root, raw, len(raw))
        return (self._resolve(value, raw) if self._mixed else value), listed

    def _resolve(self, value: Any, raw: str) -> Any:
        """Decode mixed text in the value."""
        # Without recursion, because a value may be nested as deeply as the limit allows.
        holder = [value]
        stack: list[dict[Any, Any] | list[Any]] = [holder]
        while stack:
            container = stack.pop()
            for key, item in container.items() if isinstance(container, dict) else enumerate(container):
                if isinstance(item, _Mixed):
                    container[key] = self._plain(raw[item.start : item.end], item.shape)[0]
                elif isinstance(item, (dict, list)):
                    stack.append(item)
        return holder[0]

    def _child(self, parent: _Node, name: str, rest: str, start: int) -> _Node:
        match = _KEY.search(rest) if name == self._node.tag else None
        key = unescape(match[1] if match[1] is not None else match[2])[0] if match else name
        attributes = rest.replace(match[0], " ", 1) if match else rest
        if attributes.strip(" \t\r\n/"):
            self.attributes[name] = attributes.strip()
        shape = parent.shape
        if is_list(shape):
            items = shape.items
            if items.typed and "object" in items.kinds and key in items.property_names:
                parent.is_item = True
                return _Node(name, key, items.property(key), start)
            return _Node(name, key, items, start)
        return _Node(name, key, shape.property(key), start)

    @staticmethod
    def _attach(parent: _Node, child: _Node, occurrence: Occurrence) -> None:
        parent.children.setdefault(child.key, []).append(occurrence)
        parent.shapes[child.key] = child.shape

    def _text(self, node: _Node, raw: str) -> None:
        if not raw:
            return
        if self._node.literal:
            node.text.append(raw)
        else:
            text, bare = unescape(raw)
            self._amp = self._amp or bare
            self._less = self._less or "<" in raw
            node.text.append(text)
        if node.blank and not node.text[-1].isspace():
            node.blank = False

    def _unbalanced(self, raw: str, shape: Shape, name: str) -> Occurrence:
        """Return markup that does not match as text, where the schema says that it cannot be structure."""
        # A closing tag that is missing moves what follows into another element. Text before the first tag means that
        # it is plain text.
        structured = not shape.typed or shape.kinds & {"object", "array"}
        if structured and raw.lstrip().startswith("<"):
            raise ValueError(f"the tag of {name[:60]!r} does not match")
        return self._plain(raw, shape)

    def _plain(self, raw: str, shape: Shape) -> Occurrence:
        """Return all of the markup as text, decoded except inside CDATA."""
        node = _Node("", "", shape, 0)
        pos = 0
        while not self._node.literal and (start := raw.find("<![CDATA[", pos)) >= 0:
            self._text(node, raw[pos:start])
            end = raw.find("]]>", start)
            stop = len(raw) if end < 0 else end
            node.text.append(raw[start + 9 : stop])
            node.cdata, node.blank = True, False
            pos = min(len(raw), stop + 3)
        self._text(node, raw[pos:])
        return self._leaf(node)

    def _value(self, node: _Node, raw: str, end: int) -> Occurrence:
        if not node.children:
            return self._leaf(node)
        if node.blank and set(node.children) == {"item"} and len(node.children["item"]) == 1 and _is_scalar(node.shape):
            return node.children["item"][0]  # a list of one, where the schema admits one value and no list
        if not node.blank or (node.shape.typed and not node.shape.kinds & {"object", "array"}):
            if is_list(node.shape):
                return self._plain(raw[node.start : end], node.shape)
            self._mixed = True
            return _Mixed(node.start, end, node.shape), False
        if is_list(node.shape) and not node.is_item:
            if len(node.children) > 1 and not node.shape.items.typed:
                # Elements with several names are members of one item. As items of a list they would lose their names.
                return [{key: combine(group, node.shapes[key]) for key, group in node.children.items()}], True
            return [value for group in node.children.values() for value, _ in group], True
        if not self._wants_object(node.shape) and not node.is_item and set(node.children) == {"item"}:
            return [value for value, _ in node.children["item"]], True
        return {key: combine(group, node.shapes[key]) for key, group in node.children.items()}, False

    @staticmethod
    def _wants_object(shape: Shape) -> bool:
        """Return whether children called `item` are members of an object."""
        if not shape.typed or "object" not in shape.kinds:
            return False
        return "array" not in shape.kinds or "item" in shape.property_names

    def _leaf(self, node: _Node) -> Occurrence:
        text, shape = "".join(node.text), node.shape
        if self._node.trimmed and not node.cdata:
            text = trim_line(text)
        if not shape.typed:
            return (infer(text) if self._node.infer and not node.cdata else text), False
        if node.blank and not node.cdata:
            # An empty element is the empty value of its type.
            if shape.kinds == {"null"}:
                return None, False
            if shape.kinds <= {"object", "null"}:
                return {}, False
            if is_list(shape):
                return [], True
        # CDATA says that the text is meant literally.
        if node.cdata and "string" in shape.kinds:
            return text, False
        if is_item(text, shape, self._read_json):
            return self._typed(text, shape.items), False
        value = self._typed(text, shape)
        return value, isinstance(value, list)

    def _typed(self, text: str, shape: Shape) -> Any:
        value = shape.from_text(text, self._read_json)
        if value is text and "string" not in shape.kinds and (broken := broken_limit(text)):
            raise ValueError(broken)
        return value
