"""Readers of calls that are written as Python; nothing is evaluated."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from toolwire.text.expression_tree import CallExpression
from toolwire.text.expressions import ExpressionScanner
from toolwire.text.python_scanner import KeywordScanner
from toolwire.wire.block_reader import BlockReader, Control
from toolwire.wire.call_builder import EndOfText, Unreadable, decode_json
from toolwire.wire.compiled_format import Step
from toolwire.wire.dialects import call_of
from toolwire.wire.json_calls import json_calls, json_list
from toolwire.wire.leaf_scanners import JsonValue, Leaf, NextMarker
from toolwire.wire.marker_sets import marker_set
from toolwire.wire.prepared_tools import KnownTools
from toolwire.wire.syntax import PyCalls

_PAREN = marker_set(frozenset({"("}))
_POSITIONAL = marker_set(frozenset(f"({c}" for c in "\"'[{-0123456789"))
_OBJECT = marker_set(frozenset({"{"}))


class _Expression(Leaf):
    """The rest of a call in Python, from its parenthesis on, as an expression."""

    __slots__ = ("_scanner",)

    def __init__(self) -> None:
        super().__init__()
        self._scanner = ExpressionScanner()
        self._scanner.scan("f", 0, False)  # stands for the name, which was read

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read more of the call."""
        pos = self._scanner.scan(text, pos, final)
        self.error = self._scanner.error
        self.done = self._scanner.done
        self.value = self._scanner.value
        return pos


def keyword_args(reader: BlockReader) -> Control:
    """Read the arguments of a call whose name was read: keyword arguments, or others where it is certain which."""
    call = reader.building()
    yield from reader.expect(_PAREN, "( is missing", consume=False)
    tool = reader.state.options.tools.get(call.name)
    # Positional arguments are read only for a known tool: its schema alone says which parameter each is for.
    if tool is not None and call.may_repair and (yield from reader.marker(_POSITIONAL, consume=False))[0]:
        expression: CallExpression = yield _Expression()
        read = call_of(replace(expression, name=call.name), KnownTools({call.name: tool}))
        # Source text is a variable or an expression. Nothing is evaluated, so its value is not known.
        if read is None or "source_text" in read.repairs:
            raise Unreadable("it is not certain which parameters the arguments are for")
        call.record_repairs(read.repairs)
        reader.announce(call)
        call.begin_arguments()
        call.set_arguments(read.arguments)
        return
    # What looks like an unknown tool may be a function around a call, such as `print`.
    if tool is not None or not reader.state.options.tools:
        reader.announce(call)
    yield call.keyword_arguments()
    reader.announce(call)


def python_calls(reader: BlockReader, step: Step, node: PyCalls) -> Control:
    """Read calls, in brackets or without."""
    if not reader.marked and not node.bare:
        yield from _all_or_none(reader, node)
        # Models also write a list for each call, with commas between the lists.
        while (yield from reader.marker(_COMMA, consume=False))[0]:
            reader.end_call()  # the comma is not part of the call's text
            yield from reader.marker(_COMMA)
            if not (yield from reader.marker(marker_set(frozenset({node.open})), consume=False))[0]:
                return
            yield from _all_or_none(reader, node)
        return
    if node.json is not None and (yield NextMarker(_OBJECT, consume=False)):
        yield from json_calls(reader, step, node.json)
        return
    if node.open:
        marker = NextMarker(marker_set(frozenset({node.open})))
        if (yield marker):
            yield from _listed(reader, node)
            return
        if marker.cut:
            yield from reader.cut_here()
        if not node.bare:
            raise Unreadable(f"{node.open} is missing")
    while not (yield (after := NextMarker(step.follow_set, consume=False))) and not after.cut:
        yield from _python_call(reader, node)
        yield NextMarker(_SEPARATOR)
    if reader.call is None:
        reader.empty = True


_COMMA = marker_set(frozenset({","}))
_SEPARATOR = marker_set(frozenset({",", ";"}))


def _listed(reader: BlockReader, node: PyCalls) -> Control:
    """Read the calls in brackets, each as soon as it is complete."""
    if node.json is not None and (yield NextMarker(_OBJECT, consume=False)):
        yield from json_list(reader, node.json)
        return
    close = marker_set(frozenset({node.close}))
    while not (yield NextMarker(close)):
        yield from _python_call(reader, node)
        if not (yield NextMarker(marker_set(frozenset({",", node.close})), consume=False)):
            reader.missing_close()
            return
        yield NextMarker(_COMMA)  # also behind the last call, as in any list in Python
    if reader.call is None:
        reader.empty = True


def _python_call(reader: BlockReader, node: PyCalls) -> Control:
    reader.end_call()  # the text from here on belongs to another call
    name: str = yield from reader.word("the name of a function")
    if node.method:
        name = name.removesuffix(f".{node.method}")
    yield from reader.expect(_PAREN, "( is missing", consume=False)
    call = reader.begin_call()
    reader.set_name(call, name)
    yield from keyword_args(reader)
    call.complete_payload()


def _all_or_none(reader: BlockReader, node: PyCalls) -> Control:
    """Read a list without markers around it; announce its calls only after the closing bracket.

    Without the bracket the list may be the beginning of any Markdown link or sentence.
    """
    close = marker_set(frozenset({node.close}))
    after = marker_set(frozenset({",", node.close}))
    block = reader.raw
    read: list[_HeldCall] = []
    try:
        yield from reader.expect(marker_set(frozenset({node.open})), f"{node.open} is missing")
        while True:
            read.append((yield from _held_call(reader)))
            ends = (yield from reader.expect(after, f"{node.close} is missing after the calls")) == node.close
            if ends or (yield from reader.marker(close))[0]:  # a comma may be behind the last call too
                break
    except (Unreadable, EndOfText):
        rest = block.take()
        for pending in read:
            block.add(pending.raw)
        block.add(rest)
        raise
    closing = block.take()
    for pending in read:
        call = reader.begin_call()
        reader.set_name(call, pending.name)
        reader.announce(call)
        call.record_repairs(pending.repairs)
        call.set_arguments(pending.arguments)
        call.complete_payload()
        block.add(pending.raw)
    block.add(closing)


@dataclass(frozen=True, slots=True)
class _HeldCall:
    """A call that is not announced yet."""

    name: str
    arguments: dict[str, Any]
    repairs: list[str]
    raw: str


def _held_call(reader: BlockReader) -> Generator[Leaf, Any, _HeldCall]:
    name = yield from reader.word("the name of a function")
    if name not in reader.state.options.tools:
        raise Unreadable(f"{name[:60]!r} is not a known tool")
    yield from reader.expect(_PAREN, "( is missing", consume=False)
    scanner = KeywordScanner(repair=reader.state.options.repair)
    arguments = decode_json((yield JsonValue(scanner)))
    return _HeldCall(name, arguments, scanner.repairs, reader.raw.take())
