"""Readers of arguments that are written one by one: parameters in tags of their own, and XML elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from toolwire.schema.shape import Shape
from toolwire.text.json_reading import broken_limit
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.limits import MAX_DEPTH
from toolwire.wire.block_reader import BlockReader, Control
from toolwire.wire.call_builder import CallBuilder, EndOfText, Unreadable, waits_for_end
from toolwire.wire.compiled_format import Step
from toolwire.wire.damaged_tags import damaged_closer, damaged_header
from toolwire.wire.element_values import ElementReader, Occurrence, combine, is_item, is_list, is_text
from toolwire.wire.leaf_scanners import JsonPrefix, NextMarker, TextUpToMarker, WhiteSpace
from toolwire.wire.marker_sets import CONTAINER, MarkerSet, marker_set
from toolwire.wire.raw_values import RawText
from toolwire.wire.syntax import Elements, Value
from toolwire.wire.text_buffer import TextBuffer
from toolwire.wire.xml_scanners import ELEMENT_NAME, ElementStart, XmlText, escape_text


def params(reader: BlockReader, step: Step) -> Control:
    """Read parameters while their opener comes next."""
    call = reader.building()
    header, value = step.groups[0][:-1], step.groups[0][-1]
    listed: dict[str, list[Occurrence]] = {}  # values whose parameter may come again, as items of a list
    try:
        while (marker := (yield from reader.marker(step.either_set, consume=False))[0]) in step.first:
            reader.announce(call)
            yield from reader.sequence(header)
            _put_written_lists(call, listed, reader.parameter)
            yield from _value(reader, call, reader.parameter, step, value, listed)
            if reader.closed:
                return
        if marker:
            reader.announce(call)
    finally:
        for key, occurrences in listed.items():
            try:
                argument = combined(call, key, occurrences)
            except Unreadable as error:
                call.refuse(str(error))
            else:
                call.put_value(key, argument)


def combined(call: CallBuilder, key: str, occurrences: list[Occurrence]) -> Any:
    """Return the value of a parameter from its occurrences; raise Unreadable if they make none."""
    try:
        return combine(occurrences, call.shape.property(key))
    except ValueError as error:
        raise Unreadable(f"the parameter {key[:60]!r} {error}") from error


def _put_written_lists(call: CallBuilder, listed: dict[str, list[Occurrence]], next_key: str) -> None:
    """Add the lists that were written as such, and whose parameter does not come next: those have all their items."""
    for key, occurrences in list(listed.items()):
        if key != next_key and all(is_whole for _, is_whole in occurrences):
            call.put_value(key, combine(listed.pop(key), call.shape.property(key)))


def _value(
    reader: BlockReader, call: CallBuilder, key: str, step: Step, value: Step, listed: dict[str, list[Occurrence]]
) -> Control:
    node = value.node
    assert isinstance(node, Value)
    shape = call.shape.property(key)
    several = is_list(shape)
    raw, json = reader.mark is True, reader.mark is False
    call.refuse_repeat(key, key in call.arguments)
    declared, equals, _ = key.partition("=")
    if equals and key not in call.shape.property_names and declared.strip() in call.shape.property_names:
        call.refuse(f"the value of the parameter {declared.strip()[:60]!r} is in its tag")
    before = ""
    # A value that is known to be JSON is scanned as JSON first, so that a closing marker in one of its strings is text.
    structured = shape.typed and shape.kinds <= {"object", "array", "null"} and not raw
    if json or structured:
        space = WhiteSpace()
        if not reader.is_done_here(space):
            yield space
        before = space.value
        if (yield from reader.marker(CONTAINER, consume=False, skip_space=False))[0]:
            before += yield JsonPrefix(JsonScanner(repair=reader.state.options.repair, fast=reader.state.fast))
    # Only strings are streamed: the text of any other value depends on its type, and so on its end.
    stream = not json and (shape.keeps_text or (raw and not waits_for_end(shape)))
    pieces = TextBuffer()
    add_text = call.open_string(key, pieces.add) if stream else pieces.add

    def is_next(name: str, certain: bool) -> bool:
        # A parameter that was given before is rather mentioned in the text of this one than given again.
        if (name == key and not several) or name in call.arguments:
            return False
        return certain or name in call.shape.property_names

    rules = reader.state.compiled.value_end(step, node)
    leaf = RawText(rules, add_text, before, is_next=is_next, unwrapped=reader.unwrapped)
    if not reader.is_done_here(leaf):
        yield leaf
    is_closed = leaf.closer == node.close
    if not is_closed:
        call.record_repair("missing_close", f"{node.close} is missing")
        reader.closed = leaf.closer
    text = pieces.take()
    if is_closed and leaf.closer_inside and (header := damaged_header(text, node.close, rules.openers)):
        call.refuse(f"the parameter {key[:60]!r} contains {header[:60]!r}, which is nearly the tag of another one")
    elif not is_closed and (closer := damaged_closer(text, node.close)):
        call.refuse(f"the parameter {key[:60]!r} ends with {closer[:60]!r}, and not with {node.close!r}")
    if stream:
        call.close_string(key, text)
        return
    # Models repeat a parameter, or write one bare item, where the schema admits a list.
    if not json and is_item(text, shape, call.read_json):
        shape = shape.items
    read = _marked(call, shape, text, json=json) if raw or json else shape.from_text(text, call.read_json)
    if read is text and not raw and shape.typed and "string" not in shape.kinds and (broken := broken_limit(text)):
        call.refuse(f"the parameter {key[:60]!r}: {broken}")
        return
    if several:
        listed.setdefault(key, []).append((read, isinstance(read, list)))
    else:
        call.put_value(key, read)


def _marked(call: CallBuilder, shape: Shape, text: str, *, json: bool) -> Any:
    """Return a value whose mark says how it is written; the schema only refines it."""
    value: Any = text
    if json:
        with suppress(ValueError):
            value = call.read_json(text)
    fitted = shape.coerce(value, call.read_json)
    if fitted is not value:
        call.record_coerced()
    return fitted


class ElementArguments:
    """Arguments of one call that are written as elements; values that may be items of a list wait for the end."""

    def __init__(self, call: CallBuilder, node: Elements) -> None:
        self.call = call
        self.node = node
        self.raws: list[tuple[str, str]] = []  # read before the call's name, and so before their types were known
        self._occurrences: dict[str, list[Occurrence]] = {}

    def may_stream(self, key: str) -> bool:
        """Return whether the value of a parameter can be emitted as it arrives."""
        return is_text(self.call.shape.property(key)) and key not in self._occurrences

    def read(self, key: str, raw: str) -> None:
        """Read the raw text of one element."""
        reader = ElementReader(self.node, self.call.read_json)
        try:
            occurrence = reader.read(raw, self.call.shape.property(key))
        except ValueError as error:
            self.call.refuse(f"the parameter {key[:60]!r}: {error}")
            return
        self.call.record_unescaped(reader.repairs)
        self.call.members.update(reader.attributes)
        self._occurrences.setdefault(key, []).append(occurrence)

    def put_values(self) -> None:
        """Add the values that were read to the call."""
        for key, occurrences in self._occurrences.items():
            self.call.put_value(key, combined(self.call, key, occurrences))

    def read_late(self) -> None:
        """Read the elements that waited for the call's name, and add their values to the call."""
        for key, raw in self.raws:
            self.read(key, raw)
        self.put_values()


def elements(reader: BlockReader, step: Step, node: Elements) -> Control:
    """Read elements up to the closer of their parent."""
    call = reader.building()
    reader.announce(call)
    nocase = reader.state.wire.nocase
    arguments = ElementArguments(call, node)
    outer = reader.state.compiled.around_elements(step)
    # Without an element around all of them, the next call would be an element too.
    beyond = step.around.beyond if step.around.call_close & step.follow else frozenset()
    closers = marker_set(step.follow | step.around.call_close | beyond, nocase)
    try:
        while True:
            start = ElementStart(closers, nocase=nocase)
            if not reader.is_done_here(start):
                yield start
            if start.cut:
                yield from reader.cut_here()
            if start.value is None:
                break
            yield from _element(reader, arguments, start.value, closers, outer)
    except EndOfText:
        # The call is incomplete, and shows the parameters that were read.
        arguments.put_values()
        raise
    if arguments.raws:
        reader.late.append(arguments.read_late)
    else:
        arguments.put_values()


def _element(
    reader: BlockReader,
    arguments: ElementArguments,
    element: tuple[str, dict[str, str], bool],
    closers: MarkerSet,
    outer: Mapping[str, MarkerSet],
) -> Control:
    nocase = reader.state.wire.nocase
    call, node = arguments.call, arguments.node
    name, attributes, closed = element
    if node.literal and attributes:
        # The attribute may be the name of the parameter, whose element is then not named after it.
        call.refuse(f"the element <{name[:60]}> has attributes")
    named = bool(node.tag) and name.lower() == node.tag
    key = attributes.get("name", name) if named else name
    call.members.update((other, value) for other, value in attributes.items() if not (named and other == "name"))
    stream = bool(call.name) and arguments.may_stream(key)
    call.refuse_repeat(key, key in call.arguments)
    pieces = TextBuffer()
    add_text = call.open_string(key, pieces.add) if stream else pieces.add
    if not closed:
        decode = stream and not node.literal
        leaf = XmlText(name, closers, outer=outer, nocase=nocase, decode=decode, put=add_text)
        if not reader.is_done_here(leaf):
            yield leaf
        call.record_unescaped(leaf.bare)
    text = pieces.take()
    if stream:
        call.close_string(key, text)
    elif not call.name:
        arguments.raws.append((key, text))
    else:
        arguments.read(key, text)


_TAG_END = marker_set(frozenset({">"}))


def token_elements(reader: BlockReader, step: Step, node: Elements) -> Control:
    """Read elements whose tags begin with a token, with literal text between them."""
    call = reader.building()
    reader.announce(call)
    opener, closer = f"{node.token}<", f"{node.token}</"
    tags = marker_set(frozenset({opener, closer}))
    opener_or_follow = marker_set(step.follow | {opener, closer})
    arguments = ElementArguments(call, node)
    try:
        while True:
            marker = NextMarker(opener_or_follow, consume=False)
            tag = yield marker
            if marker.cut:
                yield from reader.cut_here()
            if tag != opener:
                break
            yield from _token_element(reader, arguments, tags)
    finally:
        arguments.put_values()


def _token_element(reader: BlockReader, arguments: ElementArguments, tags: MarkerSet) -> Control:
    """Read one parameter; rewrite nested elements as plain XML, which has a reader."""
    call, node = arguments.call, arguments.node
    token = marker_set(frozenset({node.token}))
    key, xml, path = "", TextBuffer(), list[str]()
    text = TextBuffer()
    add_text: Callable[[str], None] = text.add
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
            stream = arguments.may_stream(key)
            call.refuse_repeat(key, key in call.arguments)
            if stream:
                add_text = call.open_string(key, text.add)
        else:
            xml.add(f"</{name}>" if closes else f"<{name}>")
        if len(path) > MAX_DEPTH:
            raise Unreadable(f"more than {MAX_DEPTH} levels of nesting")
        yield TextUpToMarker(token, add_text)
        if not stream:
            xml.add(escape_text(text.take()) if text else "")
    if stream:
        call.close_string(key, text.take())
    else:
        arguments.read(key, xml.take())
