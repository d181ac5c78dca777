"""Readers of calls and arguments that are written as JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from toolwire.text.json_scanner import JsonScanner
from toolwire.wire.block_reader import BlockReader, Control
from toolwire.wire.call_builder import Arguments, CallBuilder, EndOfText, Unreadable, decode_json
from toolwire.wire.compiled_format import Step
from toolwire.wire.definition_text import is_definition
from toolwire.wire.dialects import LIST_KEYS, folded_key
from toolwire.wire.leaf_scanners import JsonValue, Leaf, NextMarker, TextUpToMarker, WholeObject
from toolwire.wire.marker_sets import CONTAINER, MarkerSet, marker_set
from toolwire.wire.syntax import END_OF_SEQUENCE, Args, JsonCall, TokenArgs
from toolwire.wire.text_buffer import TextBuffer
from toolwire.wire.xml_scanners import XmlText

_KEY_START = marker_set(frozenset({'"', "'", "}"}))
_KEY = marker_set(frozenset({'"', "'"}))
_COLON = marker_set(frozenset({":"}))
_AFTER_PAIR = marker_set(frozenset({",", "}"}))
_OBJECT = marker_set(frozenset({"{"}))
_OBJECT_END = marker_set(frozenset({"}"}))
_LIST = marker_set(frozenset({"["}))
_OBJECT_OR_TEXT = marker_set(frozenset({"{", '"', "null"}))
_ITEM = marker_set(frozenset({"{", ",", "]"}))
_EXTRA = marker_set(frozenset({"}", "]"}))
_SEPARATORS = marker_set(frozenset({",", ";"}))
"""Characters between calls without a list; models write one for the other."""
_IDENTITY = frozenset({"id", "call_id", "tool_call_id", "index"})
_TYPES = frozenset(("type", value) for value in ("function", "function_call", "tool_call", "tool_use"))
"""Members around a call in APIs, which say nothing about its arguments."""
_LINE_END = marker_set(frozenset({"\n"}))
_EXTRA_BRACE = marker_set(frozenset({"}"}))


def only_args(reader: BlockReader, node: Args | None = None, openers: frozenset[str] = frozenset()) -> Control:
    """Read arguments outside a JSON object with the name; `openers` are markers that begin another call."""
    call = reader.building()
    if node is not None and node.lone:
        opening = NextMarker(_OBJECT, consume=False)
        if not (yield opening):
            if opening.cut:
                yield from reader.cut_here()
            if node.until:
                yield from _lone_text(reader, call, node.until, openers)
            else:
                yield from _lone_argument(reader, call)
            return
    yield from _args(reader, call)
    yield from _extra(reader, call, _EXTRA_BRACE)


def _lone_argument(reader: BlockReader, call: CallBuilder) -> Control:
    """Read a line that is not a JSON object: the one argument of a tool that needs or has only one.

    A server removes the text at which a model has to stop, and the line break before it. So the end of the message
    ends the argument too; such a call records that its end is missing.
    """
    pieces = TextBuffer()
    cut: EndOfText | None = None
    try:
        yield TextUpToMarker(_LINE_END, pieces.add)
    except EndOfText as error:
        cut = error
    line = pieces.take().strip()
    while ending := next((token for token in END_OF_SEQUENCE if line.endswith(token)), ""):
        line = line.removesuffix(ending).rstrip()
    if not line or line.startswith(reader.state.wire.stop):
        raise Unreadable("the arguments are missing")
    value: Any = line
    with suppress(ValueError):
        value = call.read_json(line)
    if isinstance(value, str):  # text in quotes, which may be JSON written once more
        line = value
        with suppress(ValueError):
            value = call.read_json(line)
    if value is not None and not isinstance(value, dict):
        value = _only_value(call, line)
    call.begin_arguments()
    call.set_arguments(value or {})
    _announce(reader, call)
    if cut is not None:
        call.complete_payload()
        raise cut


def _lone_text(reader: BlockReader, call: CallBuilder, close: str, openers: frozenset[str]) -> Control:
    """Read text up to its closing marker, which is not a JSON object: the one argument of a tool that takes just one.

    Text with an opener of another call is refused: the opener may be part of it, or follow it without the marker.
    """
    pieces = TextBuffer()
    yield TextUpToMarker(marker_set(openers | {close}), pieces.add)
    yield from reader.expect(marker_set(frozenset({close})), f"{close} is missing", consume=False)
    text = pieces.take().strip()
    value = _only_value(call, text) if text else {}
    call.begin_arguments()
    call.set_arguments(value)
    _announce(reader, call)


def _only_value(call: CallBuilder, text: str) -> dict[str, Any]:
    """Return the arguments of a tool that takes just one, which is written as this text."""
    key = call.shape.lone_property
    if not key:
        raise Unreadable("the arguments are not a JSON object, and the tool does not take just one")
    return {key: call.shape.property(key).from_text(text, call.read_json)}


def token_args(reader: BlockReader, node: TokenArgs) -> Control:
    """Read arguments whose strings are between tokens."""
    call = reader.building()
    yield from reader.expect(_OBJECT, "the arguments are missing", consume=False)
    reader.announce(call)
    yield call.token_arguments(node.token)


def escaped_args(reader: BlockReader, step: Step, node: Args) -> Control:
    """Read arguments that are the text of an element, entities and CDATA decoded."""
    call = reader.building()
    reader.announce(call)
    call.begin_arguments()
    pieces = TextBuffer()
    leaf = XmlText(
        node.element,
        step.follow_set,
        outer=reader.state.compiled.around_elements(step),
        nocase=reader.state.wire.nocase,
        decode=True,
        put=pieces.add,
    )
    yield leaf
    call.record_unescaped(leaf.bare)
    try:
        call.set_arguments(call.read_json(pieces.take()))
    except ValueError as error:
        raise Unreadable(f"the arguments are not JSON: {error}") from error


def _args(reader: BlockReader, call: CallBuilder, *, lone: bool = False) -> Control:
    opening = yield from reader.expect(_OBJECT_OR_TEXT, "the arguments are not a JSON object", consume=False)
    # Without markers the object may still turn out to be something else than a call.
    if reader.marked:
        reader.announce(call)
    if opening == "{" and call.name:
        arguments = call.json_arguments(reader.state.fast)
        if call.index < 0 and not reader.marked:  # between markers, a pseudo call has no index either
            yield from _unmarked(reader, call, arguments)
        elif not reader.is_done_here(arguments):
            yield arguments
        return
    call.begin_arguments()
    value, text = yield from _value(reader, call)
    if isinstance(value, str):  # arguments as a JSON string are decoded once, as APIs write them
        string = value
        try:
            value, text = call.read_json(string) if string.strip() else {}, ""
        except ValueError as error:
            if not lone:
                raise Unreadable(f"the arguments are a string that is not JSON: {error}") from error
        if lone and call.name and not isinstance(value, dict):
            value, text = _only_value(call, string), ""
    call.set_arguments({} if value is None else value, "" if value is None else text)
    if call.name:
        _announce(reader, call)


def _unmarked(reader: BlockReader, call: CallBuilder, arguments: Arguments) -> Control:
    """Read arguments in a format without markers, where they may be the schema of a tool's definition.

    Models repeat definitions, which have a name and `parameters` too. The first key tells most of them apart.
    """
    try:
        first: str | None = yield arguments.until_key()
    except EndOfText:
        reader.announce(call)
        raise
    if first is not None:
        tool = reader.state.options.tools[call.name]
        if first in call.shape.property_names and first not in tool.parameters:
            reader.announce(call)
        yield arguments.rest()
    _announce(reader, call)


def _announce(reader: BlockReader, call: CallBuilder) -> None:
    """Announce a call whose arguments are complete; refuse a tool's definition in a format without markers."""
    is_certain = call.index >= 0 or reader.marked
    if not is_certain and is_definition(reader.state.options.tools[call.name], call.arguments):
        raise Unreadable("the definition of a tool is not a call to it")
    reader.announce(call)


def json_calls(reader: BlockReader, step: Step, node: JsonCall) -> Control:
    """Read one call, several in a row, or a list of them."""
    opening = yield from reader.expect(step.first_set, "a JSON object should begin here", consume=False)
    while opening:
        if opening == "[":
            yield from json_list(reader, node)
        else:
            yield from _json_call(reader, node, _EXTRA)
        is_separated = False
        if node.between.strip() and (yield from reader.marker(_SEPARATORS, consume=False))[0]:
            reader.end_call()  # the separator is not part of the call's text
            yield NextMarker(_SEPARATORS)
            is_separated = True
        next_opening, _ = yield from reader.marker(CONTAINER, consume=False)
        # Nothing but a separator shows that a list goes with the call before it.
        opening = next_opening if is_separated or opening == next_opening == "{" else ""


def json_list(reader: BlockReader, node: JsonCall, *, nested: bool = False) -> Control:
    """Read a list of calls, whose opening bracket may have been read; `nested` means inside an object."""
    yield NextMarker(_LIST)
    any_call = False
    comma = True
    while True:
        marker = NextMarker(_ITEM, consume=False)
        token = yield marker
        if token == "{" and comma:
            yield from _json_call(reader, node, _EXTRA_BRACE)
            any_call, comma = True, False
        elif token == "," and not comma:
            yield NextMarker(_ITEM)
            comma = True
        elif token == "]":
            yield NextMarker(_ITEM)
            break
        elif any_call and not token:
            # Calls that were read stay calls, whatever comes in place of the bracket.
            reader.missing_close()
            return
        elif marker.cut:
            yield from reader.cut_here()
        else:
            raise Unreadable("a JSON object should begin here" if comma else "a comma is missing after a call")
    if any_call:
        call = reader.building()
        if comma:
            call.record_repair("trailing_comma", "a comma is before the closing bracket")
        if not nested:
            yield from _extra(reader, call, _EXTRA)
    elif reader.marked:
        reader.empty = True
    else:
        raise Unreadable("an empty list is not a call")


def _extra(reader: BlockReader, call: CallBuilder, brackets: MarkerSet) -> Control:
    # White space before a bracket means that it belongs to the text after the call.
    if call.may_repair and (yield from reader.marker(brackets, skip_space=False))[0]:
        call.record_repair("extra_close", "")


def _json_call(reader: BlockReader, node: JsonCall, extra: MarkerSet) -> Control:
    call = reader.begin_call()
    reader.committed = True
    if not (yield from _whole_call(reader, call, node)):
        yield from (_keyed(reader, call) if node.keyed else _object(reader, call, node))
    if reader.call is not call:  # the object contained a list of calls, which were built instead
        if reader.call is not None:
            reader.call.members.update(call.members)
        return
    if not call.name:
        raise Unreadable("the name of the tool is missing", "missing_name")
    if not node.needs_args:
        call.use_members()
    if any(folded_key(key) in LIST_KEYS and _has_objects(value) for key, value in call.members.items()):
        raise Unreadable("a call is beside a list of calls")
    if call.index < 0:
        if node.needs_args:
            raise Unreadable("the arguments are missing")
        reader.announce(call)
    call.complete_payload()
    yield from _extra(reader, call, extra)


def _has_objects(value: Any) -> bool:
    """Return whether a value is a list with objects, which under a key for calls are calls."""
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _whole_call(reader: BlockReader, call: CallBuilder, node: JsonCall) -> Generator[Leaf, Any, bool]:
    """Read a call that is there to its end and has nothing but a name and arguments; return whether there is one.

    This is only faster: reading the object part by part gives the same call.
    """
    # Deltas have the white space of the text, what is not allowed is an error at its own place, and a probe that
    # competes announces its call at the name.
    state = reader.state
    if state.options.deltas or state.competing or node.keyed or not (reader.marked and call.may_repair):
        return False
    leaf = WholeObject(state.fast, partial(_is_plain_call, node, reader.name_error))
    if not reader.is_done_here(leaf):
        yield leaf
    members: dict[str, Any] | None = leaf.value
    if members is None:
        return False
    (name, arguments) = members.values() if next(iter(members)) in node.name else reversed(members.values())
    reader.set_name(call, name)
    reader.announce(call)
    call.begin_arguments()
    call.set_arguments(arguments)
    return True


def _is_plain_call(node: JsonCall, name_error: Callable[[str], str], members: dict[str, Any]) -> bool:
    """Return whether an object has the name of a tool, arguments and nothing else."""
    if len(members) != 2:
        return False
    first, second = members
    name, args = (first, second) if first in node.name else (second, first)
    if name not in node.name or args not in node.args or args in node.name:
        return False
    written = members[name]
    is_name = isinstance(written, str) and bool(written) and not name_error(written)
    return is_name and isinstance(members[args], dict)


def _object(reader: BlockReader, call: CallBuilder, node: JsonCall) -> Control:
    yield from reader.expect(_OBJECT, "a JSON object should begin here")
    doubled = call.may_repair and (yield from reader.marker(_OBJECT, skip_space=False))[0]
    if doubled:  # a model that copies a template doubles its braces
        call.record_repair("doubled_braces", "")
    yield from _members(reader, call, node)
    if doubled:
        yield from reader.expect(_OBJECT_END, "braces that were doubled are closed by a single one")


def _members(reader: BlockReader, call: CallBuilder, node: JsonCall) -> Control:
    keys: set[str] = set()
    comma = False
    while True:
        token = yield from reader.expect(_KEY_START, "a key in double quotes is missing", consume=False)
        if token == "}":
            if comma:
                reader.building().record_repair("trailing_comma", "a comma is before the closing bracket")
            yield NextMarker(_KEY_START)
            return
        key, _ = yield from _value(reader, reader.building())
        if key in keys:
            raise Unreadable(f"the key {key[:60]!r} is given twice")
        keys.add(key)
        yield from reader.expect(_COLON, "a colon is missing after a key")
        yield from _member(reader, call, node, key)
        if (yield from reader.expect(_AFTER_PAIR, "a comma or the closing bracket is missing")) == "}":
            return
        comma = True


def _keyed(reader: BlockReader, call: CallBuilder) -> Control:
    """Read an object whose only key is the name."""
    yield from reader.expect(_OBJECT, "a JSON object should begin here")
    yield from reader.expect(_KEY, "the name of the tool is missing", consume=False)
    name, _ = yield from _value(reader, call)
    reader.set_name(call, name)
    yield from reader.expect(_COLON, "a colon is missing after the name")
    yield from _args(reader, call)
    yield from reader.expect(_OBJECT_END, "an object of a call has one key")


def _member(reader: BlockReader, call: CallBuilder, node: JsonCall, key: str) -> Control:
    if reader.call is not call and (key in node.args or key in node.name):
        # The calls of a list were read, and a call beside them is not one of them: it is reported, and does not run.
        call.members[key], _ = yield from _value(reader, call)
        return
    if key in node.args:
        yield from _args(reader, call, lone=node.lone)
        return
    if key in node.lists and not call.name and (yield NextMarker(_LIST, consume=False)):
        yield from json_list(reader, replace(node, lists=()), nested=True)
        return
    if key in node.inside:
        inner = NextMarker(_OBJECT, consume=False)
        if (yield inner):
            entered = tuple(other for other in node.inside if other != key)  # each key once, which bounds the depth
            yield from _object(reader, call, replace(node, inside=entered))
            return
    value, _ = yield from _value(reader, call)
    if key in node.name:
        if not isinstance(value, str):
            raise Unreadable("the name of the tool is not a string", "missing_name")
        reader.set_name(call, value)
        if reader.marked:
            reader.announce(call)
        if call.has_waiting_arguments:
            call.use_waiting_arguments()
            _announce(reader, call)
    elif key in node.id and isinstance(value, (str, int)) and not isinstance(value, bool):
        call.id = str(value) or call.id
    elif key in node.server and isinstance(value, str):
        call.server = value
    elif isinstance(value, (dict, list)) or (key not in _IDENTITY and (key, value) not in _TYPES):
        call.members[key] = value


def _value(reader: BlockReader, call: CallBuilder) -> Generator[Leaf, Any, tuple[Any, str]]:
    """Read one JSON value; return the value and its text."""
    leaf = JsonValue(JsonScanner(repair=reader.state.options.repair, fast=reader.state.fast))
    if not reader.is_done_here(leaf):
        yield leaf
    text: str = leaf.value
    value = decode_json(text)
    call.record_repairs(leaf.scanner.repairs)
    return value, text
