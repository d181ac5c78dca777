"""XML elements for the second reader: their text, and their values by a schema."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from tests.spec.second_values import NoMatchError, Schema, json_value, raw_value

LEADING_COMMENTS = re.compile(r"\s*(?:<!--.*?-->\s*)+", re.DOTALL)
ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True)
class Element:
    """One element: its name, its text with entities and CDATA sections resolved, and the elements in it."""

    name: str
    raw: str
    text: str
    marked: bool
    children: list[Element] | None


def elements(text: str, at: int, node: dict[str, Any], *, nocase: bool) -> tuple[list[Element], int]:
    """Read elements up to anything else; return them, and where they end."""
    found: list[Element] = []
    while True:
        at = _skip(text, at)
        head = _head(text, at, node, nested=False)
        if head is None:
            return found, at
        element, at = _element(text, head, node, nocase=nocase)
        found.append(element)


def _skip(text: str, at: int) -> int:
    match = re.compile(r"(?:\s|<!--.*?-->)*", re.DOTALL).match(text, at)
    return match.end() if match else at


def _head(text: str, at: int, node: dict[str, Any], *, nested: bool) -> tuple[str, str, bool, int] | None:
    """Return the name and the tag of an element that opens here, whether it is closed by itself, and its end."""
    pattern = re.escape(node["token"]) + r"""<([^\W\d][\w.:-]*)((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>"""
    match = re.compile(pattern).match(text, at)
    if match is None:
        return None
    tag, attributes, closed = match.groups()
    if nested and node["nested"] and tag not in node["nested"]:
        return None
    name = re.search(r"""\bname\s*=\s*(?:"([^"]*)"|'([^']*)')""", attributes) if tag == node["tag"] else None
    return (name.group(1) or name.group(2)) if name else tag, tag, bool(closed), match.end()


def _element(text: str, head: tuple[str, str, bool, int], node: dict[str, Any], *, nocase: bool) -> tuple[Element, int]:
    name, tag, closed, at = head
    if closed:
        return Element(name, "", "", False, None), at
    end, after = _close(text, at, tag, node, nocase=nocase)
    raw = text[at:end]
    children, stop = _children(raw, node, nocase=nocase)
    plain, marked = (raw, False) if node["literal"] else _plain(raw)
    return Element(name, raw, plain, marked, children if children and stop == len(raw) else None), after


def _children(raw: str, node: dict[str, Any], *, nocase: bool) -> tuple[list[Element], int]:
    children: list[Element] = []
    at = _skip(raw, 0)
    try:
        while (head := _head(raw, at, node, nested=True)) is not None:
            child, at = _element(raw, head, node, nocase=nocase)
            children.append(child)
            at = _skip(raw, at)
    except NoMatchError:
        return [], 0
    return children, at


def _close(text: str, at: int, tag: str, node: dict[str, Any], *, nocase: bool) -> tuple[int, int]:
    """Return where the closing tag of an element begins and ends: CDATA sections and inner elements are passed over."""
    token = re.escape(node["token"])
    opened = token + "<" + re.escape(tag) + r"(?:\s[^<>]*)?>"
    closed = token + "</" + re.escape(tag) + ">"
    flags = re.DOTALL | (re.IGNORECASE if nocase else 0)
    skipped = "(?!)" if node["literal"] else r"<!\[CDATA\[.*?\]\]>|<!--.*?-->"
    depth = 1
    for match in re.compile(f"({skipped})|({opened})|({closed})", flags).finditer(text, at):
        if match.group(2) and not match.group().endswith("/>"):
            depth += not node["literal"]
        elif match.group(3):
            depth -= 1
            if depth == 0:
                return match.start(), match.end()
    raise NoMatchError


def _plain(raw: str) -> tuple[str, bool]:
    """Return text with entities and CDATA sections resolved, and whether there was a CDATA section."""
    pieces = re.split(r"<!\[CDATA\[(.*?)\]\]>", raw, flags=re.DOTALL)
    return "".join(piece if index % 2 else entities_decoded(piece) for index, piece in enumerate(pieces)), len(
        pieces
    ) > 1


def entities_decoded(text: str) -> str:
    """Return text with its XML entities replaced by what they stand for."""

    def character(match: re.Match[str]) -> str:
        name = match.group(1)
        if name.startswith("#"):
            return chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))
        return ENTITIES.get(name, match.group())

    return re.sub(r"&(#\d+|#[xX][0-9a-fA-F]+|\w+);", character, text)


def element_members(found: list[Element], node: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return elements as the members of an object; a name that occurs several times is a list."""
    groups: dict[str, list[Element]] = {}
    for element in found:
        groups.setdefault(element.name, []).append(element)
    members: dict[str, Any] = {}
    for name, group in groups.items():
        own = schema.member(name)
        if len(group) == 1:
            members[name] = element_value(group[0], node, own)
        elif own.types and "array" not in own.types:
            raise NoMatchError
        else:
            values = [element_value(element, node, own) for element in group]
            members[name] = [
                item for value in values for item in (value if own.types and isinstance(value, list) else [value])
            ]
    return members


def element_value(element: Element, node: dict[str, Any], schema: Schema) -> Any:
    """Return the value of an element by its schema and its content."""
    types = schema.types
    children = element.children or []
    if not children and types != {"string"} and (comments := LEADING_COMMENTS.match(element.text)):
        element = replace(element, text=element.text[comments.end() :])
    if len(children) == 1 and children[0].name == "item" and types and not types & {"string", "object", "array"}:
        return element_value(children[0], node, Schema({}, schema.root))
    if types == {"null"} and not element.text.strip():
        return None
    if types and not types & {"object", "array"}:
        literal = element.marked and "string" in types
        return element.text if literal else raw_value(element.raw if children else element.text, schema)
    if children:
        names = {child.name for child in children}
        if schema.is_array and (names & set(schema.items.properties) if _objects(schema) else _untyped(names, schema)):
            return [element_members(children, node, schema.items)]
        if schema.is_array or (names == {"item"} and (not types or "array" in types)):
            items = schema.items if schema.is_array else Schema({}, schema.root)
            return [_item(child, node, items) for child in children]
        return element_members(children, node, schema)
    if not element.text.strip() and schema.is_array:
        return []
    if not element.text.strip() and types and types <= {"object", "null"}:
        return {}
    if element.marked and (not types or "string" in types):
        return element.text
    return raw_value(element.text, schema) if types or not node["infer"] else inferred(element.text)


def _item(element: Element, node: dict[str, Any], schema: Schema) -> Any:
    """Return one of the values of a list; where these are lists too, none is made of a single value."""
    single = schema.is_array and not element.children and element.text.strip()
    if single and not isinstance(json_value(element.text), list):
        return raw_value(element.text, schema.items)
    return element_value(element, node, schema)


def _objects(schema: Schema) -> bool:
    return "object" in schema.items.types


def _untyped(names: set[str], schema: Schema) -> bool:
    return len(names) > 1 and not schema.items.types


def inferred(text: str) -> Any:
    """Return a number, a boolean or null if a text without a schema looks like one."""
    word = text.strip()
    if word.lower() in ("true", "false", "null"):
        return json.loads(word.lower())
    if re.fullmatch(r"[+-]?\d+", word):
        return int(word)
    return float(word) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word) else text
