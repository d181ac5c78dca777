"""Readers of calls that are elements named after their tools: `<read_file><path>a</path></read_file>`.

Such a tag may also be quoted, or belong to HTML. So a call is announced at its first parameter, or at its end, and text
that turns out not to be a call stays content.
"""

from __future__ import annotations

from typing import Any

from toolwire.schema.shape import Shape
from toolwire.text.yaml_mapping import PlainText, YamlError, read_mapping
from toolwire.wire.block_reader import BlockReader, Control
from toolwire.wire.call_builder import CallBuilder, EndOfText, Unreadable
from toolwire.wire.damaged_tags import damaged_closer
from toolwire.wire.element_values import ElementReader, infer, is_item
from toolwire.wire.json_calls import only_args
from toolwire.wire.leaf_scanners import CDATA, NextMarker
from toolwire.wire.lookahead import KnownTags, known_tags
from toolwire.wire.marker_sets import marker_set
from toolwire.wire.parameters import ElementArguments, combined
from toolwire.wire.syntax import Elements, ToolBody
from toolwire.wire.text_buffer import TextBuffer
from toolwire.wire.tool_tag_scanners import ElementText, FirstWord, ToolValue
from toolwire.wire.xml_scanners import ELEMENT_NAME, ElementStart, read_attributes

_NO_MARKERS = marker_set(frozenset())
_AFTER_MENTION = marker_set(frozenset(" \t,.;:!?)\"'"))
"""Characters behind a tag that prose mentions, as in "Use <send>, or". In a call, the text begins at once."""
_STRING = Shape.of({"type": "string"})
_READ_ONLY = frozenset(
    {
        "answer", "content", "message", "prompt", "query", "question", "reasoning", "response", "result", "summary",
        "text", "thought",
    }
)  # fmt: skip
"""Names of parameters with text for a reader; none of them can be a command, code or a path."""


def tool_tag(reader: BlockReader) -> Control:
    """Read the opening tag, whose attributes are arguments."""
    start = ElementStart(_NO_MARKERS, raw=True)
    element = yield start
    if start.cut:
        yield from reader.cut_here()
    name, header, closed = element
    if name not in reader.state.options.tools:
        raise Unreadable(f"{name[:60]!r} is not a known tool")
    call = reader.building()
    reader.set_name(call, name)
    attributes = read_attributes(header, nocase=False)
    values = _mapping(header) if attributes is None else {key: PlainText(text) for key, text in attributes.items()}
    # The tag may be HTML of the same name, whose attributes are different ones.
    if unknown := [key for key in values if not _declared(call.shape, key)]:
        raise Unreadable(f"the tool has no parameter {unknown[0][:60]!r}")
    if values:
        reader.announce(call)
        _put_values(call, values)
    reader.tag_closed = closed
    if closed:
        _nothing_missing(call)


def _declared(shape: Shape, key: str) -> bool:
    """Return whether the tool has this parameter, or does not say which it has."""
    names = shape.property_names
    return not names or key in names


def _value(call: CallBuilder, shape: Shape, text: str) -> Any:
    return shape.from_text(text, call.read_json) if shape.typed else infer(text)


def _nothing_missing(call: CallBuilder) -> None:
    """Refuse an element without parameters if its tool needs some: it is only mentioned."""
    if missing := [name for name in call.shape.required if name not in call.arguments]:
        raise Unreadable(f"the parameter {missing[0][:60]!r} is missing")


def tool_body(reader: BlockReader, node: ToolBody) -> Control:
    """Read the arguments in whichever form they are written, and the closing tag."""
    call = reader.building()
    closer = f"</{call.name}>"
    closers = marker_set(frozenset({closer}))
    other_calls = known_tags(tuple(reader.state.options.tools)).without(call.shape.property_names)
    is_mention = bool((yield NextMarker(_AFTER_MENTION, consume=False, skip_space=False)))
    inside = NextMarker(marker_set(frozenset({closer, CDATA, "<", "{"})), consume=False)
    begins = yield inside
    if inside.cut:
        yield from reader.cut_here()
    match begins:
        case "<":
            yield from _elements(reader, node.elements, other_calls)
        case "{":
            yield from only_args(reader)
            yield from reader.expect(closers, f"{closer} is missing")
        case _ if begins == closer:
            yield NextMarker(closers)
            _nothing_missing(call)
        case _:
            yield from _text(reader, other_calls, is_mention)


# -- elements ------------------------------------------------------------------------------------------------------


def _elements(reader: BlockReader, node: Elements, other_calls: KnownTags) -> Control:
    """Read an element for each parameter."""
    call = reader.building()
    arguments = ElementArguments(call, node)
    closer = f"</{call.name}>"
    last = ""  # name of the parameter that was read last
    try:
        while True:
            closers = frozenset({closer, f"</{last}>"} if last else {closer})
            start = ElementStart(marker_set(closers), calls=other_calls)
            element = yield start
            if start.cut:
                yield from reader.cut_here()
            if element is None:
                if (yield NextMarker(marker_set(closers))) == closer:
                    break
                call.record_repair("extra_close", f"</{last}> is repeated")
                last = ""
                continue
            last = element[0]
            # An element that the tool does not have may be HTML, so it does not make the element around it a call.
            if _declared(call.shape, last):
                reader.announce(call)
            if (yield from _element(arguments, element, other_calls)):
                break
    except EndOfText:
        if call.index >= 0:
            arguments.put_values()
        raise
    if call.index < 0:
        raise Unreadable(f"the tool has no parameter {last[:60]!r}")
    arguments.put_values()


def _element(arguments: ElementArguments, element: tuple[str, dict[str, str], bool], other_calls: KnownTags) -> Any:
    """Read the value of a parameter; return whether the call's closing tag ended it."""
    call = arguments.call
    key, attributes, closed = element
    call.members.update(attributes)
    stream = call.index >= 0 and arguments.may_stream(key)
    call.refuse_repeat(key, key in call.arguments)
    pieces = TextBuffer()
    add_text = call.open_string(key, pieces.add) if stream else pieces.add
    missing = False
    if not closed:
        leaf = ToolValue(call.name, key, call.shape.property_names, other_calls, decode=stream, put=add_text)
        yield leaf
        missing = leaf.missing
        if missing and leaf.doubtful:
            raise Unreadable(f"</{key}> is missing, and what follows may be another parameter")
        if missing:
            call.record_repair("missing_close", f"</{key}> is missing")
        leaf.end()
        call.record_unescaped(leaf.bare)
    text = pieces.take()
    if missing and (damaged := damaged_closer(text, f"</{key}>")):
        raise Unreadable(f"the parameter {key[:60]!r} ends with {damaged[:60]!r}, and not with '</{key[:60]}>'")
    if stream:
        call.close_string(key, text)
    else:
        arguments.read(key, text)
    return missing


# -- text ----------------------------------------------------------------------------------------------------------


def _text(reader: BlockReader, other_calls: KnownTags, is_mention: bool) -> Control:
    """Read text without elements: YAML if it begins with a parameter's name, else the one parameter that can be meant.

    Raises:
        Unreadable: it is neither; at the first word, so that prose which mentions the tag does not wait.
    """
    call = reader.building()
    text = TextBuffer()
    leaf = FirstWord()
    word = yield leaf
    if leaf.cut:
        yield from reader.cut_here()
    text.add(word)
    key = word.removesuffix(":")
    # Any text has a colon somewhere; only a parameter's name before the first one shows that YAML is meant.
    mapping = key != word and _declared(call.shape, key) and ELEMENT_NAME.match(key)
    prose = "" if mapping or is_mention else _read_only_parameter(call.shape)
    if mapping:
        reader.announce(call)
    elif not prose:
        raise Unreadable("there is text where a parameter should begin")
    yield ElementText(call.name, other_calls, text.add)
    if mapping:
        _put_values(call, _mapping(text.take()))
    else:
        reader.announce(call)
        _put_prose(call, prose, text.take())


def _mapping(text: str) -> dict[str, Any]:
    try:
        return read_mapping(text)
    except YamlError as error:
        raise Unreadable(f"the arguments are not YAML: {error}") from error


def _put_values(call: CallBuilder, values: dict[str, Any]) -> None:
    """Add values whose plain scalars have the types of the schema."""
    for key, node in values.items():
        shape = call.shape.property(key)
        value = _typed(call, node, shape)
        call.put_value(key, combined(call, key, [(value, isinstance(value, list))]))


def _typed(call: CallBuilder, node: Any, shape: Shape) -> Any:
    """Return a value of YAML with its plain scalars typed by the schema."""
    match node:
        case PlainText():
            return _value(call, shape.items if is_item(node, shape, call.read_json) else shape, str(node))
        case list():
            return [_typed(call, item, shape.item(at)) for at, item in enumerate(node)]
        case dict():
            return {key: _typed(call, item, shape.property(key)) for key, item in node.items()}
        case _:
            return shape.coerce(node, call.read_json)


def _read_only_parameter(shape: Shape) -> str:
    """Return the parameter that text without elements is the value of, or "" if that is not certain."""
    names = [name for name in shape.property_names if name in _READ_ONLY and "string" in shape.property(name).kinds]
    return names[0] if len(names) == 1 and set(shape.required) <= set(names) else ""


def _put_prose(call: CallBuilder, key: str, text: str) -> None:
    values = ElementReader(Elements(), call.read_json)
    value, _ = values.read(text.strip(), _STRING)
    call.record_repair("bare_value", "a parameter is written without its tags")
    call.record_unescaped(values.repairs)
    call.put_value(key, value)
