"""Rendering of definitions and calls in a wire format; `wire/result_text.py` renders results.

`render_calls` checks itself: it parses the text and compares the calls. Where a format has no unambiguous way to write
a value, it raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

from toolwire.errors import DefinitionError, RenderError
from toolwire.events import collect
from toolwire.messages import ToolCall, call_id
from toolwire.schema.shape import ANY, Shape
from toolwire.text.json_text import equal_json, json_text, json_type, within_limits
from toolwire.text.python_text import python_literal
from toolwire.tools import ToolDefinition
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.definition_text import declaration, definition_elements, tokens, typescript
from toolwire.wire.element_values import infer, trim_line
from toolwire.wire.message_reader import MessageReader
from toolwire.wire.prompt_styles import PromptStyle
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Header,
    Ident,
    JsonCall,
    Key,
    KeywordArgs,
    Listing,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    OneOf,
    Params,
    PyCalls,
    Server,
    Tag,
    TokenArgs,
    ToolBody,
    ToolTag,
    Value,
    WireFormat,
    as_written,
    holds_all_calls,
)
from toolwire.wire.xml_scanners import ELEMENT_NAME, escape_text, quote_attribute

_CDATA_FROM = 1000
"""Length of text in characters, from which it is written as CDATA if anything in it needs escaping."""
_CDATA_ESCAPES = 5
"""Number of special characters, from which text of any length is written as CDATA."""
Definitions = Mapping[str, ToolDefinition]
_Part = (
    Lit | Tag | ToolTag | ToolBody | Name | Header | Ident | Server | Params | Elements | Args | TokenArgs | KeywordArgs
    | Key | Mark | Value
)  # fmt: skip


def _keyword_args(call: ToolCall) -> str:
    return f"({', '.join(f'{key}={python_literal(value)}' for key, value in call.arguments.items())})"


def _python_call(call: ToolCall) -> str:
    return call.name + _keyword_args(call)


class _CallWriter:
    """A writer of the calls of one message."""

    def __init__(self, wire: WireFormat, tools: Definitions) -> None:
        self._wire = wire
        self._tools = tools
        self._index = 0  # index in the message of the call being written

    def message(self, calls: Sequence[ToolCall]) -> str:
        nodes = self._wire.blocks[0]
        if holds_all_calls(nodes):
            return self._sequence(nodes, calls)
        return self._wire.join.join(self._each(nodes, calls))

    def _each(self, nodes: Iterable[Node], calls: Sequence[ToolCall]) -> Iterator[str]:
        for self._index, call in enumerate(calls):
            yield self._sequence(nodes, [call])

    def _sequence(self, nodes: Iterable[Node], calls: Sequence[ToolCall]) -> str:
        return "".join(self._node(node, calls) for node in nodes)

    def _node(self, node: Node, calls: Sequence[ToolCall]) -> str:
        match node:
            case Many(nodes, together, between):
                # Without `together`, `message` writes a block for each call and has set the index.
                each = self._each(nodes, calls) if together else (self._sequence(nodes, [call]) for call in calls)
                return between.join(each)
            case Call(nodes):
                return self._sequence(nodes, calls)
            case OneOf(options):
                return self._sequence(options[0], calls)
            case AnyOrder(groups):
                return "".join(self._sequence(group, calls) for group in groups)
            case JsonCall():
                return self._json_calls(node, calls)
            case PyCalls():
                separator = ", " if node.open else "\n"
                return node.open + separator.join(map(_python_call, calls)) + node.close
            case _:
                return self._part(node, calls[0])

    def _part(self, node: _Part, call: ToolCall) -> str:
        """Write one part of a call."""
        match node:
            case Lit():
                return node.before + node.text + node.after if node.written else ""
            case Tag():
                return self._tag(node, call.name, "")
            case ToolTag() | ToolBody():
                return self._tool_element(node, call)
            case Name():
                return self._name(node, call)
            case Header():
                return call.name
            case Ident():
                return call.id or call_id("", self._index, call.name)
            case Server():
                return call.server or node.default
            case Params():
                return "".join(self._parameter(node, call, key, value) for key, value in call.arguments.items())
            case Elements():
                shape = self._shape(call)
                return "".join(
                    self._element(node, key, value, shape.property(key), node.indent)
                    for key, value in call.arguments.items()
                )
            case Args():
                text = json_text(call.arguments)
                return f"{escape_text(text)}</{node.element}>" if node.element else self._lone(node, call) or text
            case TokenArgs(token):
                return tokens(call.arguments, token)
            case KeywordArgs():
                return _keyword_args(call)
            case Key() | Mark() | Value():
                raise AssertionError("a key or a value outside parameters")
            case _:
                assert_never(node)

    def _lone(self, node: Args, call: ToolCall) -> str:
        """Return the text of the only argument if it can be read as nothing else, or ""."""
        shape = self._shape(call)
        key = shape.lone_property if node.until else ""
        value = call.arguments.get(key)
        if not isinstance(value, str) or len(call.arguments) > 1 or not shape.property(key).keeps_text:
            return ""
        return "" if value != value.strip() or value.startswith("{") or "<" in value else value

    def _tool_element(self, node: ToolTag | ToolBody, call: ToolCall) -> str:
        if not ELEMENT_NAME.match(call.name):
            raise RenderError(f"{self._wire.name} cannot write {call.name!r} as the name of an element")
        return f"<{call.name}>" if isinstance(node, ToolTag) else f"{self._part(node.elements, call)}\n</{call.name}>"

    def _shape(self, call: ToolCall) -> Shape:
        definition = self._tools.get(call.name)
        return definition.shape if definition is not None else ANY

    def _tag(self, node: Tag, value: str, kind: str) -> str:
        attributes = f"{node.attribute}={quote_attribute(value)}"
        if node.mark is not None:
            attributes += f' {node.mark.attribute}="{node.mark.of(kind)}"'
        if node.counted:
            attributes += f' {node.counted}="{self._index + 1}"'
        return f"{node.open}{node.name} {attributes}{node.close}{node.after}"

    def _name(self, node: Name, call: ToolCall) -> str:
        if not node.is_id:
            return node.prefix + call.name + node.after
        start = f"{node.prefix}{call.name}:"
        # The id is part of the name here. An id from elsewhere does not fit, so the index takes its place.
        number = call.id.removeprefix(start) if call.id.startswith(start) else ""
        return start + (number if number.isdecimal() else str(self._index))

    def _json_calls(self, node: JsonCall, calls: Sequence[ToolCall]) -> str:
        objects = [json_text(self._object(node, call)) for call in calls]
        if node.nested and node.lists:
            return f'{{"{node.lists[0]}": [{", ".join(objects)}]}}'
        if node.array == "always" or (node.array == "several" and len(objects) > 1):
            return f"[{', '.join(objects)}]"
        return node.between.join(objects)

    @staticmethod
    def _object(node: JsonCall, call: ToolCall) -> dict[str, Any]:
        if node.keyed:
            return {call.name: call.arguments}
        members: dict[str, Any] = {}
        if node.server:
            members[node.server[0]] = call.server or "local"
        members[node.name[0]] = call.name
        members[node.args[0]] = json_text(call.arguments) if node.text else call.arguments
        if node.id and call.id:
            members[node.id[0]] = call.id
        return {node.inside[0]: members} if node.nested and node.inside else members

    def _parameter(self, node: Params, call: ToolCall, key: str, value: Any) -> str:
        parts: list[str] = []
        for inner, _ in as_written(node.nodes):
            match inner:
                case Key():
                    parts.append(key)
                case Mark():
                    parts.append(inner.of(json_type(value)))
                case Tag():
                    parts.append(self._tag(inner, key, json_type(value)))
                case Value():
                    text = value if isinstance(value, str) else json_text(value)
                    if inner.cdata and isinstance(value, str) and "<" in text and "]]>" not in text:
                        text = f"<![CDATA[{text}]]>"
                    # The parser removes exactly these line breaks, so the value keeps its own.
                    edge = "\n" if inner.newline else ""
                    parts.append(f"{edge}{text}{edge}{inner.close}{inner.after}")
                case _:
                    parts.append(self._node(inner, [call]))
        return "".join(parts)

    def _element(self, node: Elements, key: str, value: Any, shape: Shape, indent: str) -> str:
        if node.tag and key != "item":
            start, name = f"<{node.tag} name={quote_attribute(key)}>", node.tag
        else:
            if not ELEMENT_NAME.match(key):
                raise RenderError(f"{self._wire.name} cannot write {key!r} as the name of an element")
            start, name = f"{node.token}<{key}>", key
        if node.token:
            indent = ""
        match value:
            case dict():
                inner = "".join(
                    self._element(node, name, item, shape.property(name), indent + "  ") for name, item in value.items()
                )
                inner += indent if value else ""
            case list():
                inner = "".join(self._element(node, "item", item, shape.items, indent + "  ") for item in value)
                inner += indent if value else ""
            case str():
                inner = value if node.token or node.literal else self._text(node, value, shape)
            case _:
                inner = json_text(value)
        return f"{indent}{start}{inner}{node.token}</{name}>"

    @staticmethod
    def _text(node: Elements, text: str, shape: Shape) -> str:
        """Write text with entities, or as CDATA where it is long, heavily escaped or would be read as another type."""
        special = sum(map(text.count, "&<>"))
        if shape.typed:
            other = "string" in shape.kinds and shape.from_text(text, json.loads) != text
        else:
            other = node.infer and infer(text) is not text
        if node.trimmed and trim_line(text) != text:
            return f"<![CDATA[]]>{escape_text(text)}"
        heavy = special >= _CDATA_ESCAPES or (special and len(text) >= _CDATA_FROM)
        if (other or heavy) and "]]>" not in text:
            return f"<![CDATA[{text}]]>"
        return escape_text(text)


def render_calls(wire: WireFormat, calls: Sequence[ToolCall], tools: Definitions) -> str:
    """Return the text in which a model of this format writes these calls.

    Raises:
        RenderError: the format has no unambiguous way to write one of them, or no calls at all.
    """
    if not calls:
        return ""
    if not wire.blocks:
        raise RenderError(f"the format {wire.name!r} has no calls")
    for call in calls:
        if not within_limits(call.arguments):
            reason = "are nested too deeply or contain half of a surrogate pair"
            raise RenderError(f"the arguments of {call.name!r} {reason}")
    try:
        text = _CallWriter(wire, tools).message(calls)
    except ValueError as error:
        raise RenderError(f"the arguments cannot be written as JSON: {error}") from error
    _check(wire, calls, tools, text)
    return text


def _check(wire: WireFormat, calls: Sequence[ToolCall], tools: Definitions, text: str) -> None:
    try:
        # What is written is read back, whatever the rules of escaping promise: a call in an example or a history that
        # reads as another one would teach the model to write it so.
        definitions = {call.name: tools.get(call.name) or ToolDefinition(call.name) for call in calls}
    except DefinitionError as error:  # the name comes from a model
        raise RenderError(f"no tool can have such a name: {error}") from error
    reader = MessageReader(wire, ReadOptions(definitions, deltas=False))
    response = collect([*reader.feed(text), *reader.finish()])
    for at, call in enumerate(calls):
        parsed = response.tool_calls[at] if at < len(response.tool_calls) else None
        if parsed is None or parsed.name != call.name or not equal_json(parsed.arguments, call.arguments):
            shown = "nothing" if parsed is None else f"{parsed.name} with {json_text(parsed.arguments)[:120]}"
            raise RenderError(
                f"the format {wire.name!r} cannot write the call to {call.name!r}: it would be read as {shown}. "
                "A value holds the format's own markers, or the tool's schema does not say its type."
            )
    # Text beside the calls would be shown to a user, and a further call would run.
    if len(response.tool_calls) != len(calls) or response.problems or response.content.strip():
        raise RenderError(f"the format {wire.name!r} cannot write these calls: the parser would read more than them")


def listed(definition: ToolDefinition, listing: Listing) -> str:
    """Return one definition in the shape of a listing."""
    match listing.shape:
        case "openai":
            return json_text(openai_shape(definition))
        case "function":
            return json_text(openai_shape(definition)["function"])
        case "elements":
            return definition_elements(definition)
        case "declaration":
            return declaration(definition, listing.token)
        case "typescript":
            return typescript(definition)
        case _:
            assert_never(listing.shape)


def openai_shape(definition: ToolDefinition) -> dict[str, Any]:
    """Return a definition in the shape that most models were trained with."""
    function: dict[str, Any] = {"name": definition.name}
    if definition.description:
        function["description"] = definition.description
    function["parameters"] = definition.parameters
    return {"type": "function", "function": function}


def render_definitions(wire: WireFormat, tools: Definitions) -> str:
    """Return the definitions as the format's publisher lists them in a prompt."""
    listing = wire.definitions
    before, after = listing.each
    entries = (before + listed(definition, listing) + after for definition in tools.values())
    return listing.open + listing.between.join(entries) + listing.close


def render_usage(wire: WireFormat, tools: Definitions, style: PromptStyle) -> str:
    """Return instructions for calls in this format, with an example made from the tools' schemas.

    Raises:
        RenderError: none of the tools can be written in this format.
    """
    example = ""
    for definition in tools.values():
        # Some APIs accept ids of exactly nine characters, and the example must not teach others.
        call = ToolCall(definition.name, example_arguments(definition), id="call00001")
        try:
            example = render_calls(wire, [replace(call, id=call.id if wire.markers else "")], tools)
        except RenderError:
            continue
        break
    if not example:
        raise RenderError(f"none of the tools can be written in the format {wire.name!r}")
    return "\n\n".join(filter(None, (style.before_example, example, style.after_example)))


def call_example(wire: WireFormat, definition: ToolDefinition, tools: Definitions, *, most: int | None = None) -> str:
    """Return an example call of a tool; "" if it cannot be written or has more than `most` characters."""
    try:
        example = render_calls(wire, [ToolCall(definition.name, example_arguments(definition))], tools)
    except RenderError:
        return ""
    if most is not None and len(example) > most:
        return ""
    return f"A call of {definition.name} is written like this:\n{example}"


GUIDELINES = (
    "To call a tool, write the call in the form of its example, with values of your own, and end your reply there; do "
    "not invent its result. Write a call only when you need its result. Parameters that are not required may be left "
    "out."
)
LISTS = {
    "elements": "A list is written as one <item> element per item.",
    "raw": "A list or an object is written as JSON.",
}
ESCAPES = (
    "In a value, write & as &amp; and < as &lt;. Long text with many of them stands better between <![CDATA[ and ]]>, "
    "as it is; a ]]> inside it is written ]]]]><![CDATA[>. Paths, numbers and short text need no CDATA."
)


def manifest(wire: WireFormat, tools: Definitions) -> tuple[str, dict[str, str]]:
    """Render guidelines and a block per tool: its definition, a call with required parameters, and one with all.

    The last is left out where the format cannot write it.

    Returns:
        The text, and the tools that the format cannot write a call to, each with the reason.
    """
    blocks: list[str] = []
    skipped: dict[str, str] = {}
    for definition in tools.values():
        required, complete = example_arguments(definition), example_arguments(definition, optional=True)
        try:
            example = render_calls(wire, [ToolCall(definition.name, required)], tools)
        except RenderError as error:
            skipped[definition.name] = str(error)
            continue
        lines = [listed(definition, wire.definitions), "Example:", example]
        if complete != required:
            with suppress(RenderError):  # the tool can be called without this parameter
                call = render_calls(wire, [ToolCall(definition.name, complete)], tools)
                lines += ["Example with all parameters:", call]
        blocks.append("\n".join(lines))
    if not blocks:
        return "", skipped
    nodes = [node for node, _ in as_written(wire.blocks[0])]
    guidelines = [GUIDELINES]
    if elements := [node for node in nodes if isinstance(node, Elements)]:
        guidelines += [LISTS["elements"], *([] if elements[0].token else [ESCAPES])]
    elif any(isinstance(node, Value) for node in nodes):
        guidelines.append(LISTS["raw"])
    return "\n\n".join([" ".join(guidelines), *blocks]), skipped


def example_arguments(definition: ToolDefinition, *, optional: bool = False) -> dict[str, Any]:
    """Return example values for the required parameters, or the first one if none is required, or for all."""
    shape = definition.shape
    names = shape.property_names if optional else shape.required or shape.property_names[:1]
    return {name: _example(name, shape.property(name), 0) for name in names}


def _example(name: str, shape: Shape, depth: int) -> Any:
    schema = shape.schema if isinstance(shape.schema, dict) else {}
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    for key in ("const", "default"):
        if schema.get(key) is not None:
            return schema[key]
    if isinstance(schema.get("examples"), list) and schema["examples"]:
        return schema["examples"][0]
    kinds = shape.kinds
    if not shape.typed or "string" in kinds or depth > 4:
        return f"the {name.replace('_', ' ')}"
    for kind, value in (("number", 1.5), ("integer", 1), ("boolean", True)):
        if kind in kinds:
            return value
    if "array" in kinds:
        return [_example(name, shape.items, depth + 1)]
    if "object" in kinds:
        return {key: _example(key, shape.property(key), depth + 1) for key in shape.required or shape.property_names}
    return None
