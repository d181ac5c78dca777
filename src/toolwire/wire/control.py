"""Reading the nodes of one block: a generator per kind of node, which asks for leaves and builds the calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, assert_never

from toolwire.events import Event
from toolwire.jsontext import FastTries, JsonScanner, encodable
from toolwire.pytext import PythonScanner
from toolwire.schema import Shape
from toolwire.tools import ToolDefinition
from toolwire.wire.build import Builder, EndOfText, Unreadable
from toolwire.wire.elements import ElementReader, Occurrence, combine, is_list
from toolwire.wire.leaves import Json, Leaf, Marker, Pieces, Probe, RawText, Rest, Word
from toolwire.wire.literals import Literals, literals
from toolwire.wire.markup import Attributes, ElementStart, XmlText
from toolwire.wire.plan import Block, Plan, Step
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Ident,
    JsonCall,
    Key,
    Lit,
    Many,
    Name,
    OneOf,
    Params,
    PyCalls,
    Server,
    Tag,
    Value,
    WireFormat,
)

Control = Generator[Leaf, Any, None]

_KEY_START = literals(frozenset({'"', "'", "}"}))
_COLON = literals(frozenset({":"}))
_AFTER_PAIR = literals(frozenset({",", "}"}))
_OBJECT = literals(frozenset({"{"}))
_OBJECT_OR_TEXT = literals(frozenset({"{", '"', "null"}))
_ITEM = literals(frozenset({"{", ",", "]"}))
_EXTRA = literals(frozenset({"}", "]"}))
_EXTRA_BRACE = literals(frozenset({"}"}))
_CONTAINER = literals(frozenset({"{", "["}))
_PAREN = literals(frozenset({"("}))
_KEYWORD_END = literals(frozenset({")"}))
_EQUALS = literals(frozenset({"="}))
_AFTER_ARGUMENT = literals(frozenset({",", ")"}))


@dataclass(frozen=True, slots=True)
class Options:
    """How to read.

    Attributes:
        tools: definitions by name.
        reasoning_started: the prompt had already opened the reasoning.
        repair: make safe repairs.
        seed: goes into the ids of calls.
        deltas: emit arguments deltas (a caller that only folds the events does not need them).
        fences: respect code fences, where the format does.
    """

    tools: dict[str, ToolDefinition]
    reasoning_started: bool = False
    repair: bool = True
    seed: str = ""
    deltas: bool = True
    fences: bool = True


@dataclass(slots=True)
class Turn:
    """What the blocks of one message share.

    Attributes:
        wire, plan, options: the format, prepared, and how to read it.
        emit: takes events.
        fast: failures of the fast reading of JSON.
        announced, complete: how many calls were announced, and how many were read whole.
    """

    wire: WireFormat
    plan: Plan
    options: Options
    emit: Callable[[Event], None]
    fast: FastTries = field(default_factory=FastTries)
    announced: int = 0
    complete: int = 0


class BlockReader:
    """Reads one block.

    Attributes:
        raw: what was consumed since the block began or a call was taken out; the driver adds to it.
        call: the call being read.
        empty: it was a wrapper without calls.
    """

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.raw = Pieces()
        self.call: Builder | None = None
        self.empty = False
        self._closed = False  # the tag that was read last closed itself
        self._late: list[tuple[Elements, list[tuple[str, str]]]] = []  # arguments written before the name
        self._parameter = ""  # the parameter whose header was read last

    def read(self, block: Block) -> Control:
        """Read it, up to its last closing marker.

        Raises:
            Unreadable: it is not what it began as.
            EndOfText: it is cut.
        """
        yield from self._sequence(block.steps)
        self.end_call()
        if self.empty:
            self.raw.take()
        while (yield Marker(block.closers)):
            self.raw.take()

    # -- calls ---------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> Shape | None:
        definition = self.turn.options.tools.get(name)
        return definition.shape if definition is not None else None

    def _begin_call(self) -> Builder:
        self.end_call()
        self.call = Builder(
            self.turn.emit,
            self._known,
            deltas=self.turn.options.deltas,
            repair=self.turn.options.repair,
            seed=self.turn.options.seed,
        )
        return self.call

    def _named(self, call: Builder, name: str) -> None:
        if not self.turn.wire.markers and name not in self.turn.options.tools:
            raise Unreadable(f"{name[:60]!r} is not a known tool")
        call.named(name)

    def announce(self, call: Builder) -> None:
        """Announce the call if that was not done yet and its name is known."""
        if call.index < 0 and call.name:
            call.start(self.turn.announced)
            self.turn.announced += 1

    def end_call(self) -> None:
        """Emit the end of the call whose payload is complete; all that was consumed so far is its text."""
        call = self.call
        if call is None or not call.payload:
            return
        taken = self.raw.take()
        raw = taken.rstrip()
        if len(raw) < len(taken):  # white space before a closing marker that did not come
            self.raw.add(taken[len(raw) :])
        self.call = None
        call.end(raw, self.turn.wire.name, self.turn.wire.confidence, complete=True)
        self.turn.complete += 1

    def missing_close(self) -> None:
        """The closing marker of a complete call did not come: a repair, or else the call does not count."""
        call = self.call
        if call is not None and call.payload:
            call.payload = call.repairing
            call.repaired("missing_close", "the closing marker of the call is missing")

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _sequence(self, steps: Iterable[Step]) -> Control:
        for step in steps:
            yield from self._node(step)

    def _node(self, step: Step) -> Control:  # noqa: C901 - one case per node
        node = step.node
        match node:
            case Lit():
                return self._lit(step, node)
            case Tag():
                return self._tag(step, node)
            case Name():
                return self._name(node)
            case Ident():
                return self._ident()
            case Server():
                return self._server()
            case Key() | Value():
                raise AssertionError("a key or a value outside parameters")
            case Params():
                return self._params(step)
            case Elements():
                return self._elements(step, node)
            case Args():
                return self._only_args(self._building())
            case JsonCall():
                return self._json_calls(step, node)
            case PyCalls():
                return self._python_calls(node)
            case Many():
                return self._many(step)
            case OneOf():
                return self._one_of(step)
            case AnyOrder():
                return self._any_order(step)
            case Call():
                return self._one_call(step)
            case _:
                assert_never(node)

    def _cut_here(self) -> Control:
        """The text ends where more was needed: take in what is left of it, then stop."""
        yield Rest()
        raise EndOfText

    def _expect(self, expected: Literals, otherwise: str, *, consume: bool = True) -> Generator[Leaf, Any, str]:
        marker = Marker(expected, consume=consume)
        found: str = yield marker
        if not found:
            if marker.cut:
                yield from self._cut_here()
            raise Unreadable(otherwise)
        return found

    def _lit(self, step: Step, node: Lit) -> Control:
        marker = Marker(step.here)
        found = yield marker
        if found:
            while node.repeats and (yield Marker(step.here)):
                pass
        elif self.call is not None and self.call.payload:  # wrapper after a complete call
            if node.need != "optional":
                self.missing_close()
        elif node.need == "required":
            if marker.cut:
                yield from self._cut_here()
            raise Unreadable(f"{node.text} is missing")

    def _tag(self, step: Step, node: Tag) -> Control:
        yield from self._expect(step.here, f"the tag <{node.name} {node.attribute}=...> is missing")
        attributes, self._closed = yield Attributes()
        value = attributes.get(node.attribute)
        if value is None:
            raise Unreadable(f"the attribute {node.attribute!r} of <{node.name}> is missing")
        if node.role == "key":
            self._parameter = value
            return
        call = self._building()
        if "id" in attributes:
            call.id = attributes["id"]
        self._named(call, value)

    def _building(self) -> Builder:
        assert self.call is not None
        return self.call

    def _word(self, what: str, kind: str = "malformed", *, phrase: bool = False) -> Generator[Leaf, Any, str]:
        word = Word(phrase=phrase)
        text: str = yield word
        if word.cut:
            raise EndOfText
        if not text:
            raise Unreadable(f"{what} is missing", kind)
        return text

    def _name(self, node: Name) -> Control:
        text = yield from self._word("the name of the tool", "missing_name", phrase=node.phrase)
        call = self._building()
        name = text.removeprefix(node.prefix)
        if node.is_id:
            head, colon, number = name.rpartition(":")
            name = head if colon and number.isdecimal() else name
            call.id = text
        self._named(call, name)

    def _ident(self) -> Control:
        self._building().id = yield from self._word("the id of the call")

    def _server(self) -> Control:
        self._building().server = yield from self._word("the name of the server")

    # -- several -------------------------------------------------------------------------------------------------

    def _many(self, step: Step) -> Control:
        count = 0
        while True:
            marker = Marker(step.either, consume=False)
            found = yield marker
            if found and found in step.first:
                yield from self._sequence(step.groups[0])
                count += 1
                continue
            if count:
                return
            if found:
                self.empty = True
                return
            if marker.cut:
                yield from self._cut_here()
            raise Unreadable("a tool call should begin here")

    def _one_of(self, step: Step) -> Control:
        marker = Marker(step.here, consume=False)
        found = yield marker
        for group, begins in zip(step.groups, step.firsts, strict=True):
            if found in begins:
                if marker.cut:
                    yield from self._cut_here()
                yield from self._sequence(group)
                return
        if marker.cut:
            yield from self._cut_here()
        raise Unreadable("what follows is not a tool call")

    def _any_order(self, step: Step) -> Control:
        read: set[int] = set()
        while True:
            marker = Marker(step.either, consume=False)
            found = yield marker
            if marker.cut and len(read) < len(step.groups):
                yield from self._cut_here()
            at = next((i for i, begins in enumerate(step.firsts) if found in begins and i not in read), None)
            if at is None:
                return
            read.add(at)
            yield from self._sequence(step.groups[at])

    def _one_call(self, step: Step) -> Control:
        call = self._begin_call()
        self._closed = False
        self._late.clear()
        for inner in step.groups[0]:
            yield from self._node(inner)
            if self._closed:
                break
        if not call.name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        self.announce(call)
        for node, raws in self._late:
            self._put_elements(call, node, {}, raws)
        call.complete()

    # -- parameters ----------------------------------------------------------------------------------------------

    def _params(self, step: Step) -> Control:
        call = self._building()
        self.announce(call)
        header, value = step.groups[0][:-1], step.groups[0][-1]
        listed: dict[str, list[Occurrence]] = {}  # values that may be given again, as items of a list
        try:
            while (yield Marker(step.either, consume=False)) in step.first:
                for inner in header:
                    if isinstance(inner.node, Key):
                        self._parameter = yield from self._word("the name of a parameter", phrase=inner.node.phrase)
                    else:
                        yield from self._node(inner)
                yield from self._value(call, self._parameter, step, value, listed)
        finally:
            for key, occurrences in listed.items():
                call.put(key, combine(occurrences, call.shape.property(key)))

    def _value(self, call: Builder, key: str, step: Step, value: Step, listed: dict[str, list[Occurrence]]) -> Control:
        node = value.node
        assert isinstance(node, Value)
        shape = call.shape.property(key)
        several = is_list(shape)
        if key in call.arguments or (key in listed and not several):
            raise Unreadable(f"the parameter {key[:60]!r} is given twice")
        before = ""
        if shape.typed and shape.kinds <= {"object", "array", "null"} and (yield Marker(_CONTAINER, consume=False)):
            before = yield Probe(JsonScanner(repair=self.turn.options.repair, fast=self.turn.fast))
        stream = shape.keeps_text
        pieces = Pieces()
        put: Callable[[str], None] = pieces.add
        if stream:
            call.open(key)
            if self.turn.options.deltas:
                put = call.passing(pieces.add)
        stops, special = self.turn.plan.stops(step, node)
        leaf = RawText(
            stops,
            node.close,
            step.either,
            newline=node.newline,
            line=node.missing == "line",
            special=special,
            put=put,
            before=before,
        )
        yield leaf
        if leaf.missing:
            call.repaired("missing_close", f"{node.close} is missing")
        text = pieces.take()
        if stream:
            call.shut(key, text)
            return
        read = shape.from_text(text, call.read_json)
        if several:
            listed.setdefault(key, []).append((read, isinstance(read, list)))
        else:
            call.put(key, read)

    def _elements(self, step: Step, node: Elements) -> Control:
        call = self._building()
        self.announce(call)
        read: dict[str, list[Occurrence]] = {}
        raws: list[tuple[str, str]] = []
        try:
            while True:
                start = ElementStart(step.after)
                found = yield start
                if start.cut:
                    yield from self._cut_here()
                if found is None:
                    break
                yield from self._element(call, node, step, found, read, raws)
        except EndOfText:
            self._put_elements(call, node, read, [])
            raise
        if raws:
            self._late.append((node, raws))
        else:
            self._put_elements(call, node, read, [])

    def _element(
        self,
        call: Builder,
        node: Elements,
        step: Step,
        found: tuple[str, dict[str, str], bool],
        read: dict[str, list[Occurrence]],
        raws: list[tuple[str, str]],
    ) -> Control:
        name, attributes, closed = found
        key = attributes.get("name", name) if node.tag and name.lower() == node.tag else name
        shape = call.shape.property(key)
        stream = bool(call.name) and shape.typed and shape.kinds == {"string"} and key not in read
        if key in call.arguments:
            raise Unreadable(f"the parameter {key[:60]!r} is given twice")
        pieces = Pieces()
        put: Callable[[str], None] = pieces.add
        if stream:
            call.open(key)
            if self.turn.options.deltas:
                put = call.passing(pieces.add)
        if not closed:
            leaf = XmlText(name, step.after, nocase=self.turn.wire.nocase, decode=stream, put=put)
            yield leaf
            for repair in leaf.bare:
                call.repaired(repair, "a special character stands unescaped in a value")
        text = pieces.take()
        if stream:
            call.shut(key, text)
        elif not call.name:
            raws.append((key, text))
        else:
            self._read_element(call, node, key, text, read)

    def _read_element(
        self, call: Builder, node: Elements, key: str, text: str, read: dict[str, list[Occurrence]]
    ) -> None:
        reader = ElementReader(node)
        try:
            occurrence = reader.read(text, call.shape.property(key))
        except ValueError as error:
            raise Unreadable(f"the parameter {key[:60]!r}: {error}") from error
        for repair in reader.repairs:
            call.repaired(repair, "a special character stands unescaped in a value")
        read.setdefault(key, []).append(occurrence)

    def _put_elements(
        self, call: Builder, node: Elements, read: dict[str, list[Occurrence]], raws: list[tuple[str, str]]
    ) -> None:
        for key, text in raws:
            self._read_element(call, node, key, text, read)
        for key, occurrences in read.items():
            try:
                value = combine(occurrences, call.shape.property(key))
            except ValueError as error:
                raise Unreadable(f"the parameter {key[:60]!r} {error}") from error
            call.put(key, value)
        read.clear()

    # -- JSON ----------------------------------------------------------------------------------------------------

    def _only_args(self, call: Builder) -> Control:
        yield from self._args(call)
        yield from self._extra(call, _EXTRA_BRACE)

    def _args(self, call: Builder) -> Control:
        self.announce(call)
        found = yield from self._expect(_OBJECT_OR_TEXT, "the arguments are not a JSON object", consume=False)
        if found == "{" and call.name:
            yield call.arguments_leaf(self.turn.fast)
            return
        leaf = Json(JsonScanner(repair=self.turn.options.repair, fast=self.turn.fast))
        text: str = yield leaf
        value = json.loads(text)
        for repair in leaf.scanner.repairs:
            call.repaired(repair, "")
        if isinstance(value, str):  # arguments as a JSON string: decoded once
            try:
                value, text = call.read_json(value) if value.strip() else {}, ""
            except ValueError as error:
                raise Unreadable(f"the arguments are a string that holds no JSON: {error}") from error
        call.whole({} if value is None else value, "" if value is None else text)

    def _json_calls(self, step: Step, node: JsonCall) -> Control:
        found = yield from self._expect(step.here, "a JSON object should begin here", consume=False)
        if found == "{":
            while found == "{":
                yield from self._json_call(node, _EXTRA)
                found = yield Marker(_CONTAINER, consume=False)
            return
        yield Marker(step.here)
        count = 0
        comma = True
        while True:
            marker = Marker(_ITEM, consume=False)
            found = yield marker
            if found == "{" and comma:
                yield from self._json_call(node, _EXTRA_BRACE)
                count += 1
                comma = False
            elif found == "," and not comma:
                yield Marker(_ITEM)
                comma = True
            elif found == "]":
                yield Marker(_ITEM)
                break
            elif count and not found:
                self.missing_close()
                return
            elif marker.cut:
                yield from self._cut_here()
            else:
                raise Unreadable("a JSON object should begin here" if comma else "a comma is missing after a call")
        if count:
            call = self._building()
            if comma:
                call.repaired("trailing_comma", "a comma stands before the closing bracket")
            yield from self._extra(call, _EXTRA)
        elif self.turn.wire.markers:
            self.empty = True
        else:
            raise Unreadable("an empty list is no call")

    def _extra(self, call: Builder, brackets: Literals) -> Control:
        if call.repairing and (yield Marker(brackets, blank=False)):
            call.repaired("extra_close", "")

    def _json_call(self, node: JsonCall, extra: Literals) -> Control:
        call = self._begin_call()
        yield from self._object(call, node)
        if not call.name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        if call.index < 0:
            if node.needs_args:
                raise Unreadable("the arguments are missing")
            self.announce(call)
        call.complete()
        yield from self._extra(call, extra)

    def _object(self, call: Builder, node: JsonCall) -> Control:
        yield from self._expect(_OBJECT, "a JSON object should begin here")
        keys: set[str] = set()
        comma = False
        while True:
            found = yield from self._expect(_KEY_START, "a key in double quotes is missing", consume=False)
            if found == "}":
                if comma:
                    call.repaired("trailing_comma", "a comma stands before the closing bracket")
                yield Marker(_KEY_START)
                return
            leaf = Json(JsonScanner(repair=self.turn.options.repair))
            key = json.loads((yield leaf))
            for repair in leaf.scanner.repairs:
                call.repaired(repair, "")
            if key in keys:
                raise Unreadable(f"the key {key[:60]!r} is given twice")
            keys.add(key)
            yield from self._expect(_COLON, "a colon is missing after a key")
            yield from self._member(call, node, key)
            if (yield from self._expect(_AFTER_PAIR, "a comma or the closing bracket is missing")) == "}":
                return
            comma = True

    def _member(self, call: Builder, node: JsonCall, key: str) -> Control:
        if key in node.args:
            if call.arguments or call.has_arguments:
                raise Unreadable("the arguments are given twice")
            yield from self._args(call)
            return
        if key in node.inside:
            inner = Marker(_OBJECT, consume=False)
            if (yield inner):
                yield from self._object(call, node)
                return
        leaf = Json(JsonScanner(repair=self.turn.options.repair, fast=self.turn.fast))
        value = json.loads((yield leaf))
        for repair in leaf.scanner.repairs:
            call.repaired(repair, "")
        if key in node.name:
            if not isinstance(value, str):
                raise Unreadable("the name of the tool is not a string", "missing_name")
            self._named(call, value)
            if call.has_arguments or self.turn.wire.markers:
                self.announce(call)
            call.settle()
        elif key in node.id and isinstance(value, (str, int)):
            call.id = str(value)
        elif key in node.server and isinstance(value, str):
            call.server = value

    # -- Python --------------------------------------------------------------------------------------------------

    def _python_calls(self, node: PyCalls) -> Control:
        brackets = literals(frozenset({node.open}))
        after = literals(frozenset({",", node.close}))
        block = self.raw
        read: list[tuple[str, dict[str, str], str]] = []
        try:
            yield from self._expect(brackets, f"{node.open} is missing")
            while True:
                read.append((yield from self._python_call()))
                if (yield from self._expect(after, f"{node.close} is missing after the calls")) == node.close:
                    break
        except (Unreadable, EndOfText):
            rest = block.take()
            for _, _, raw in read:
                block.add(raw)
            block.add(rest)
            raise
        closing = block.take()
        for name, arguments, raw in read:
            call = self._begin_call()
            self._named(call, name)
            self.announce(call)
            call.whole({key: json.loads(text) for key, text in arguments.items()})
            call.complete()
            block.add(raw)
        block.add(closing)

    def _python_call(self) -> Generator[Leaf, Any, tuple[str, dict[str, str], str]]:
        name = yield from self._word("the name of a function")
        if not self.turn.wire.markers and name not in self.turn.options.tools:
            raise Unreadable(f"{name[:60]!r} is not a known tool")
        yield from self._expect(_PAREN, "( is missing")
        arguments: dict[str, str] = {}
        found = yield Marker(_KEYWORD_END)
        while found != ")":
            key = yield from self._word("the name of an argument")
            if key in arguments:
                raise Unreadable(f"the argument {key[:60]!r} is given twice")
            yield from self._expect(_EQUALS, "= is missing")
            yield Marker(_EQUALS, consume=False)  # white space
            text: str = yield Json(PythonScanner())
            if not encodable(text):
                raise Unreadable("half of a surrogate pair stands alone")
            arguments[key] = text
            found = yield from self._expect(_AFTER_ARGUMENT, ") is missing")
            if found == ",":
                found = yield Marker(_KEYWORD_END)
        return name, arguments, self.raw.take()
