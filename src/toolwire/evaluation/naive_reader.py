"""A naive reader as a baseline: a regular expression for the markers of a format, then `json.loads` and the like.

It does what many programs do with the text of a model. It takes the text between the markers, or the whole text if the
format has none, and gives it to the parser of its language: JSON, XML or Python. It repairs nothing, and it reads
calls amid reasoning and quotations too.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree

from toolwire.messages import ToolCall
from toolwire.tools import ToolDefinition
from toolwire.wire.format_registry import get_format
from toolwire.wire.syntax import Call, Lit, Node

_TAG: Final = re.compile(r"<([A-Za-z_][\w:.-]*)(?:\s[^<>]*)?>")
_FENCE: Final = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_NAMES: Final = ("name", "function", "tool", "tool_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args")
_MAX_TEXT: Final = 100_000
"""Maximum length of a text that is read, in characters."""


def naive_calls(text: str, format: str, tools: Sequence[ToolDefinition]) -> tuple[ToolCall, ...]:
    """Return the calls that the naive reader finds in a text; in XML, only those of known tools.

    Args:
        text: the text of the model.
        format: the wire format that it was asked to write.
        tools: the tools that it was offered.
    """
    by_name = {tool.name: tool for tool in tools}
    calls = []
    for segment in _segments(text[:_MAX_TEXT], format):
        # Unknown tools count: a reader that drops them would seem to know when not to call.
        for name, arguments in _read(segment.strip(), by_name):
            if name and isinstance(arguments, dict):
                calls.append(ToolCall(name, arguments, format=format))
    return tuple(calls)


def _segments(text: str, format: str) -> list[str]:
    """Return the texts between the markers of a format; of a format without markers, the whole text."""
    for opener, closer in _markers(format):
        if segments := list(_between(text, opener, closer)):
            # XML needs the markers, which are its outermost elements; the other languages do not.
            return [part if _is_xml(part, opener, closer) else part[len(opener) : -len(closer)] for part in segments]
    if elements := list(_elements(text)):
        return elements
    fenced = _FENCE.search(text)
    return [fenced[1] if fenced else text]


def _between(text: str, opener: str, closer: str) -> Iterator[str]:
    """Yield each part from an opener to the next closer."""
    start = text.find(opener)
    while start >= 0 and (end := text.find(closer, start + len(opener))) >= 0:
        end += len(closer)
        yield text[start:end]
        start = text.find(opener, end)


def _elements(text: str) -> Iterator[str]:
    """Yield each part from an opening tag to the next closing tag of its name."""
    position = 0
    open_to_the_end: set[str] = set()
    while tag := _TAG.search(text, position):
        position = tag.end()
        closer = f"</{tag[1]}>"
        if closer in open_to_the_end:
            continue
        if (end := text.find(closer, position)) >= 0:
            position = end + len(closer)
            yield text[tag.start() : position]
        else:
            open_to_the_end.add(closer)


def _is_xml(segment: str, opener: str, closer: str) -> bool:
    return segment[len(opener) : -len(closer)].strip().startswith("<") and closer.startswith("</")


def _markers(format: str) -> Iterator[tuple[str, str]]:
    """Yield the first and the last marker of each way in which a format writes calls."""
    for block in get_format(format).blocks:
        nodes: Sequence[Node] = block
        while len(nodes) == 1 and isinstance(nodes[0], Call):
            nodes = nodes[0].nodes
        opener, closer = nodes[0], nodes[-1]
        if isinstance(opener, Lit) and isinstance(closer, Lit) and opener is not closer:
            yield opener.text, closer.text


def _read(segment: str, tools: Mapping[str, ToolDefinition]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the arguments of each call in a segment; nothing if no parser takes it."""
    if _TAG.match(segment):  # nothing before the first element, so no document type with entities
        try:
            yield from _xml_calls(ElementTree.fromstring(segment), tools)
        except (ElementTree.ParseError, UnicodeError):  # a lone surrogate cannot be encoded for the parser
            return
    else:
        try:
            yield from _json_calls(json.loads(segment))
        except (ValueError, RecursionError):
            yield from _python_calls(segment)


def _json_calls(value: Any) -> Iterator[tuple[str, Any]]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            name = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), "")
            yield name, next((item[key] for key in _ARGUMENTS if key in item), None)


def _python_calls(segment: str) -> Iterator[tuple[str, Any]]:
    try:
        tree = ast.parse(segment, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]:
        if not isinstance(node, ast.Call) or node.args:
            continue
        try:
            arguments = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in node.keywords}
            # Sets, bytes and complex numbers are literals of Python, but not arguments of a call.
            arguments = json.loads(json.dumps(arguments))
        except (ValueError, TypeError, RecursionError):
            continue
        # A name is missing where the arguments are those of a dictionary: f(**{...}).
        if "" not in arguments:
            yield _dotted_name(node.func), arguments


def _dotted_name(node: ast.expr) -> str:
    """Return a name with dots; "" for any other expression."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def _xml_calls(root: ElementTree.Element, tools: Mapping[str, ToolDefinition]) -> Iterator[tuple[str, Any]]:
    """Yield the elements that have the name of a known tool, as an attribute or in an element, with their arguments."""
    for element in root.iter():
        name = element.get("name") or next((child.text for child in element if child.tag in _NAMES and child.text), "")
        if (name := name.strip()) not in tools:
            continue
        inside = next((child for child in element if child.tag in _ARGUMENTS), element)
        if not len(inside) and inside is not element:
            try:
                yield name, json.loads(inside.text or "{}")
            except (ValueError, RecursionError):
                continue
        else:
            members = [child for child in inside if inside is not element or child.tag not in _NAMES]
            yield name, {child.get("name") or child.tag: _value(child, name, tools) for child in members}


def _value(element: ElementTree.Element, name: str, tools: Mapping[str, ToolDefinition]) -> Any:
    """Return the value of an argument: text, or JSON if the tool's schema asks for another type."""
    text = "".join(element.itertext())
    properties = tools[name].parameters.get("properties") or {}
    schema = properties.get(element.get("name") or element.tag) or {}
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
