"""Readers of arguments that are written one by one: parameters in tags of their own, and XML elements."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from toolwire.schema.shape import Shape
from toolwire.text.json_scanner import JsonScanner, limit_broken
from toolwire.text.limits import MAX_DEPTH
from toolwire.wire.block_reader import BlockReader, Control
from toolwire.wire.call_builder import CallBuilder, EndOfText, Unreadable, waits_for_end
from toolwire.wire.compiled_format import Step
from toolwire.wire.element_values import ElementReader, Occurrence, combine, is_item, is_list, is_text
from toolwire.wire.leaf_scanners import JsonPrefix, NextMarker, RawText, TextBuffer, TextUpToMarker
from toolwire.wire.marker_sets import CONTAINER, MarkerSet, marker_set
from toolwire.wire.syntax import Elements, Value
from toolwire.wire.xml_scanners import ELEMENT_NAME, ElementStart, XmlText, escape_text


def params(reader: BlockReader, step: Step) -> Control:
    """Read parameters while their opener comes next."""
    call = reader.building()
    header, value = step.groups[0][:-1], step.groups[0][-1]
    listed: dict[str, list[Occurrence]] = {}  # values whose parameter may come again, as items of a list
    try:
        while (marker := (yield NextMarker(step.either_set, consume=False))) in step.first:
            reader.announce(call)
            yield from reader.sequence(header)
            yield from _value(reader, call, reader.parameter, step, value, listed)
        if marker:
            reader.announce(call)
    finally:
        for key, occurrences in listed.items():
            call.put_value(key, combine(occurrences, call.shape.property(key)))


def _value(
    reader: BlockReader, call: CallBuilder, key: str, step: Step, value: Step, listed: dict[str, list[Occurrence]]
) -> Control:
    node = value.node
    assert isinstance(node, Value)
    shape = call.shape.property(key)
    several = is_list(shape)
    raw, json = reader.mark is True, reader.mark is False
    _once(key, key in call.arguments or (key in listed and not several))
    before = ""
    # A value that is known to be JSON is scanned as JSON first, so that a closing marker in one of its strings is text.
    structured = shape.typed and shape.kinds <= {"object", "array", "null"} and not raw
    if (json or structured) and (yield NextMarker(CONTAINER, consume=False)):
        before = yield JsonPrefix(JsonScanner(repair=reader.state.options.repair, fast=reader.state.fast))
    # Only strings are streamed: the text of any other value depends on its type, and so on its end.
    stream = not json and (shape.keeps_text or (raw and not waits_for_end(shape)))
    pieces = TextBuffer()
    put = call.open_string(key, pieces.add) if stream else pieces.add
    leaf = RawText(reader.state.compiled.value_end(step, node), put, before)
    yield leaf
    if leaf.missing:
        call.record_repair("missing_close", f"{node.close} is missing")
    text = pieces.take()
    if stream:
        call.close_string(key, text)
        return
    if not json and is_item(text, shape, call.read_json):
        shape = shape.items
    read = _marked(call, shape, text, json=json) if raw or json else shape.from_text(text, call.read_json)
    if read is text and not raw and shape.typed and "string" not in shape.kinds and (broken := limit_broken(text)):
        raise Unreadable(f"the parameter {key[:60]!r}: {broken}")
    if several:
        listed.setdefault(key, []).append((read, isinstance(read, list)))
    else:
        call.put_value(key, read)


def _once(key: str, twice: bool) -> None:
    if twice:
        raise Unreadable(f"the parameter {key[:60]!r} is given twice")


def _marked(call: CallBuilder, shape: Shape, text: str, *, json: bool) -> Any:
    """Return a value whose mark says how it is written; the schema only refines it."""
    value: Any = text
    if json:
        with suppress(ValueError):
            value = call.read_json(text)
    if not waits_for_end(shape):
        return value
    fitted = shape.coerce(value, call.read_json)
    if fitted is not value:
        call.record_coerced()
    return fitted


def elements(reader: BlockReader, step: Step, node: Elements) -> Control:
    """Read elements up to the closer of their parent; values that may be items of a list wait for the end."""
    call = reader.building()
    reader.announce(call)
    read: dict[str, list[Occurrence]] = {}
    raws: list[tuple[str, str]] = []
    try:
        while True:
            start = ElementStart(step.follow_set, nocase=reader.state.wire.nocase)
            element = yield start
            if start.cut:
                yield from reader.cut_here()
            if element is None:
                break
            yield from _element(reader, call, node, step, element, read, raws)
    except EndOfText:
        # The call is incomplete, and shows the parameters that were read.
        put_elements(reader, call, node, read, [])
        raise
    if raws:
        reader.late.append((node, raws))
    else:
        put_elements(reader, call, node, read, [])


def token_elements(reader: BlockReader, step: Step, node: Elements) -> Control:
    """Read elements whose tags begin with a token, with literal text between them."""
    call = reader.building()
    reader.announce(call)
    opener, closer = f"{node.token}<", f"{node.token}</"
    tags = marker_set(frozenset({opener, closer}))
    either = marker_set(step.follow | {opener, closer})
    token = marker_set(frozenset({node.token}))
    read: dict[str, list[Occurrence]] = {}
    try:
        while True:
            marker = NextMarker(either, consume=False)
            tag = yield marker
            if marker.cut:
                yield from reader.cut_here()
            if tag != opener:
                break
            yield from _token_element(reader, call, node, tags, token, read)
    finally:
        put_elements(reader, call, node, read, [])


_TAG_END = marker_set(frozenset({">"}))


def _token_element(
    reader: BlockReader,
    call: CallBuilder,
    node: Elements,
    tags: MarkerSet,
    token: MarkerSet,
    read: dict[str, list[Occurrence]],
) -> Control:
    """Read one parameter; rewrite nested elements as plain XML, which has a reader."""
    key, xml, path = "", TextBuffer(), list[str]()
    text = TextBuffer()
    put: Callable[[str], None] = text.add
    stream = False
    while True:
        closes = (yield NextMarker(tags, skip_space=False)) == f"{node.token}</"
        name = yield from reader.word("the name of a parameter")
        yield from reader.expect(_TAG_END, "> is missing")
        if not ELEMENT_NAME.match(name) or (closes and path[-1] != name) or (stream and not closes):
            raise Unreadable(f"the tag of {name[:60]!r} does not match")
        if closes:
            path.pop()
            if not path:
                break
        else:
            path.append(name)
        if not key:
            key = name
            stream = is_text(call.shape.property(key)) and key not in read
            _once(key, key in call.arguments)
            if stream:
                put = call.open_string(key, text.add)
        else:
            xml.add(f"</{name}>" if closes else f"<{name}>")
        if len(path) > MAX_DEPTH:
            raise Unreadable(f"more than {MAX_DEPTH} levels of nesting")
        yield TextUpToMarker(token, put)
        if not stream:
            xml.add(escape_text(text.take()) if text else "")
    if stream:
        call.close_string(key, text.take())
    else:
        _read_element(reader, call, node, key, xml.take(), read)


def _element(
    reader: BlockReader,
    call: CallBuilder,
    node: Elements,
    step: Step,
    found: tuple[str, dict[str, str], bool],
    read: dict[str, list[Occurrence]],
    raws: list[tuple[str, str]],
) -> Control:
    name, attributes, closed = found
    key = attributes.get("name", name) if node.tag and name.lower() == node.tag else name
    stream = bool(call.name) and is_text(call.shape.property(key)) and key not in read
    _once(key, key in call.arguments)
    pieces = TextBuffer()
    put = call.open_string(key, pieces.add) if stream else pieces.add
    if not closed:
        leaf = XmlText(name, step.follow_set, nocase=reader.state.wire.nocase, decode=stream, put=put)
        yield leaf
        call.record_unescaped(leaf.bare)
    text = pieces.take()
    if stream:
        call.close_string(key, text)
    elif not call.name:
        raws.append((key, text))
    else:
        _read_element(reader, call, node, key, text, read)


def _read_element(
    reader: BlockReader, call: CallBuilder, node: Elements, key: str, text: str, read: dict[str, list[Occurrence]]
) -> None:
    inside = ElementReader(node, call.read_json)
    try:
        occurrence = inside.read(text, call.shape.property(key))
    except ValueError as error:
        raise Unreadable(f"the parameter {key[:60]!r}: {error}") from error
    call.record_unescaped(inside.repairs)
    read.setdefault(key, []).append(occurrence)


def put_elements(
    reader: BlockReader,
    call: CallBuilder,
    node: Elements,
    read: dict[str, list[Occurrence]],
    raws: list[tuple[str, str]],
) -> None:
    """Add the values of elements to the call: those read, and those whose raw text waited for the call's name."""
    for key, text in raws:
        _read_element(reader, call, node, key, text, read)
    for key, occurrences in read.items():
        try:
            value = combine(occurrences, call.shape.property(key))
        except ValueError as error:
            raise Unreadable(f"the parameter {key[:60]!r} {error}") from error
        call.put_value(key, value)
    read.clear()
