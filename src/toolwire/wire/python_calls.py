"""Readers of calls that are written as Python; nothing is evaluated."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from toolwire.text.python_scanner import KeywordScanner
from toolwire.wire.block_reader import BlockReader, Control
from toolwire.wire.call_builder import EndOfText, Unreadable, decode_json
from toolwire.wire.compiled_format import Step
from toolwire.wire.json_calls import json_calls, json_list
from toolwire.wire.leaf_scanners import JsonValue, Leaf, NextMarker
from toolwire.wire.marker_sets import marker_set
from toolwire.wire.syntax import PyCalls

_PAREN = marker_set(frozenset({"("}))
_OBJECT = marker_set(frozenset({"{"}))


def python_calls(reader: BlockReader, step: Step, node: PyCalls) -> Control:
    """Read calls, in brackets or without."""
    if not reader.state.wire.markers:
        yield from _all_or_none(reader, node)
        return
    if node.json is not None and (yield NextMarker(_OBJECT, consume=False)):
        yield from json_calls(reader, step, node.json)
        return
    if node.open:
        marker = NextMarker(marker_set(frozenset({node.open})))
        if (yield marker):
            yield from _listed(reader, step, node)
            return
        if marker.cut:
            yield from reader.cut_here()
        if not node.bare:
            raise Unreadable(f"{node.open} is missing")
    while not (yield (after := NextMarker(step.follow_set, consume=False))) and not after.cut:
        yield from _python_call(reader)
        yield NextMarker(_SEPARATOR)
    if reader.call is None:
        reader.empty = True


_SEPARATOR = marker_set(frozenset({",", ";"}))


def _listed(reader: BlockReader, step: Step, node: PyCalls) -> Control:
    """Read the calls in brackets, each as soon as it is complete."""
    if node.json is not None and (yield NextMarker(_OBJECT, consume=False)):
        yield from json_list(reader, node.json)
        return
    between = marker_set(frozenset({",", node.close}))
    while (yield NextMarker(between)) != node.close:
        yield from _python_call(reader)
        marker = NextMarker(between, consume=False)
        if not (yield marker):
            reader.missing_close()
            return
    if reader.call is None:
        reader.empty = True


def _python_call(reader: BlockReader) -> Control:
    reader.end_call()  # the text from here on belongs to another call
    name = yield from reader.word("the name of a function")
    yield from reader.expect(_PAREN, "( is missing", consume=False)
    call = reader.begin_call()
    reader.set_name(call, name)
    reader.announce(call)
    yield call.keyword_arguments()
    call.complete_payload()


def _all_or_none(reader: BlockReader, node: PyCalls) -> Control:
    """Read a list without markers around it; announce its calls only after the closing bracket.

    Without the bracket the list may be the beginning of any Markdown link or sentence.
    """
    after = marker_set(frozenset({",", node.close}))
    block = reader.raw
    read: list[tuple[str, dict[str, Any], str]] = []
    try:
        yield from reader.expect(marker_set(frozenset({node.open})), f"{node.open} is missing")
        while True:
            read.append((yield from _held_call(reader)))
            if (yield from reader.expect(after, f"{node.close} is missing after the calls")) == node.close:
                break
    except (Unreadable, EndOfText):
        rest = block.take()
        for _, _, raw in read:
            block.add(raw)
        block.add(rest)
        raise
    closing = block.take()
    for name, arguments, raw in read:
        call = reader.begin_call()
        reader.set_name(call, name)
        reader.announce(call)
        call.set_arguments(arguments)
        call.complete_payload()
        block.add(raw)
    block.add(closing)


def _held_call(reader: BlockReader) -> Generator[Leaf, Any, tuple[str, dict[str, Any], str]]:
    name = yield from reader.word("the name of a function")
    if name not in reader.state.options.tools:
        raise Unreadable(f"{name[:60]!r} is not a known tool")
    yield from reader.expect(_PAREN, "( is missing", consume=False)
    arguments = decode_json((yield JsonValue(KeywordScanner())))
    return name, arguments, reader.raw.take()
