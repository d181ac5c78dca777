"""Reading 1 of a wire format: text in any chunking -> events, in one pass.

Control is generators, one per kind of node: straight-line code that asks for a leaf (`value = yield leaf`) and runs
only at transitions. The leaves touch the characters. The driver (`Machine.feed`) owns the only hold-back: the text
that a leaf could not yet decide about, always bounded.

Rules:

- Errors happen at a character. What a failed block consumed becomes content, reading goes on at that character, and
  nothing is ever read twice.
- A call is announced when its name is certain. It is complete where its node ends; its end is emitted when its
  wrapper has closed, or is known to be missing.
- Text that was consumed since the last closing marker of a block goes back to content when the block ends.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from toolwire.events import CallEnd, Event, Finish, ProblemFound
from toolwire.jsontext import FastTries, JsonScanner, encodable
from toolwire.messages import MESSAGE_LIMIT, FinishReason, Problem, ProblemKind
from toolwire.pytext import PythonScanner
from toolwire.schema import Shape
from toolwire.tools import ToolDefinition
from toolwire.wire.build import Builder, EndOfText, Unreadable
from toolwire.wire.elements import ElementReader, Occurrence, combine, is_list
from toolwire.wire.leaves import (
    Attributes,
    ElementStart,
    Json,
    Leaf,
    Marker,
    Pieces,
    Probe,
    RawText,
    Rest,
    Word,
    XmlText,
)
from toolwire.wire.literals import Literals, literals
from toolwire.wire.plan import Block, Plan, Step, plan_of
from toolwire.wire.prose import Prose
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

_LOOK = 256
"""Characters beyond a leaf's stop that it may have looked at."""
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


class Machine:
    """Reads one message in one format.

    Args:
        wire: the format.
        options: how to read.
        probe: a block's opener; the machine starts at it and stops when a call is announced or the block is over.
        position: of the text's first character.
        blank: no content but white space came before it.
        fast: the count of failed fast tries over the same text.

    Attributes:
        position: of the next character to be read, in code points.
        decided: a probe has stopped.
        ended: the text is over.
        scanned: characters that leaves looked at, for tests of linearity.
        complete_calls: how many calls were read.
    """

    def __init__(
        self,
        wire: WireFormat,
        options: Options,
        *,
        probe: str = "",
        position: int = 0,
        blank: bool = True,
        fast: FastTries | None = None,
    ) -> None:
        if not options.fences and wire.fences:
            wire = replace(wire, fences=False)
        self.wire = wire
        self.options = options
        self.plan: Plan = plan_of(wire)
        self._events: list[Event] = []
        self._tail = ""
        self.position = position
        self._probing = bool(probe)
        self.decided = False
        self._raw: Pieces | None = None  # consumed since the block began or a call was taken out
        self._raw_start = 0
        self._call: Builder | None = None
        self._call_raw = ""
        self._calls = 0
        self._fast = fast or FastTries()
        self._closed = False  # the tag that was read last closed itself
        self._empty = False  # a wrapper without calls was read
        self._late: tuple[Elements, list[tuple[str, str]]] | None = None  # arguments written before the name
        self._parameter = ""  # the parameter whose header was read last
        self.ended = False
        self.complete_calls = 0
        self.scanned = 0
        self._prose = Prose(self.plan.outside, self._events.append, reasoning=options.reasoning_started, blank=blank)
        self._control = self._message(probe)
        self._leaf: Leaf = next(self._control)

    # -- the driver ----------------------------------------------------------------------------------------------

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece; the events that became certain."""
        if self._tail:
            text = self._tail + text
        else:
            leaf = self._leaf
            quick = leaf.quick
            if quick is not None and text and quick(text) is None:
                size = len(text)
                self.position += size
                self.scanned += size
                leaf.take(text)
                if self._raw is not None:
                    self._raw.add(text)
                return self.take_events()
        self._tail = text[self.advance(text, 0, False) :]
        return self.take_events()

    def finish(self) -> Sequence[Event]:
        """The text is over."""
        self.end(self._tail, 0)
        self._tail = ""
        return self.take_events()

    def take_events(self) -> Sequence[Event]:
        """The events that became certain since they were last taken."""
        events = self._events
        if not events:
            return ()
        made = events.copy()
        events.clear()
        return made

    def advance(self, text: str, pos: int, final: bool) -> int:
        """Read on in `text` from `pos`; the position where more text is needed (or a probe is decided)."""
        while not self.decided:
            leaf = self._leaf
            stop = leaf.scan(text, pos, final)
            if stop > pos:
                self.scanned += stop - pos
                self.position += stop - pos
                if self._raw is not None:
                    self._raw.add(text[pos:stop])
                pos = stop
            try:
                if leaf.done:
                    self._leaf = self._control.send(leaf.value)
                elif leaf.error:
                    self._leaf = self._control.throw(Unreadable(leaf.error))
                else:
                    break
            except StopIteration:  # only at the end of the text
                self.ended = True
                break
            if self._probing and self._calls:
                self.decided = True
        self.scanned += min(len(text) - pos, _LOOK)
        return pos

    def end(self, text: str, pos: int) -> int:
        """The text is over after `text`: read what is left of it; the position where a probe was decided."""
        pos = self.advance(text, pos, True)
        if self.ended or self.decided:
            return pos
        if pos < len(text):  # a leaf could not decide; it belongs to what is cut
            if self._raw is not None:
                self._raw.add(text[pos:])
            self.position += len(text) - pos
        with contextlib.suppress(StopIteration):
            self._control.throw(EndOfText())
        self.ended = True
        return len(text)

    # -- a probe: one block, to find out whether it is this format's ---------------------------------------------

    @property
    def announced(self) -> bool:
        """Whether a call was announced."""
        return self._calls > 0

    def keep(self) -> None:
        """The probe was right: read on as a machine of its own."""
        self._probing = self.decided = False

    @property
    def held(self) -> int:
        """Characters held back."""
        return len(self._tail)

    # -- the message ---------------------------------------------------------------------------------------------

    def _message(self, probe: str) -> Control:
        prose = self._prose
        opener = probe
        while True:
            try:
                if not opener:
                    opener = yield prose
            except EndOfText:
                hidden = prose.finish()
                if hidden and self._hides_calls(hidden):
                    self._events.append(hidden_by_fence(hidden, self.position))
                return
            if prose.reasoning:
                prose.leave_reasoning()
            try:
                yield from self._block(self.plan.blocks[opener])
            except EndOfText:
                return
            if self._probing:
                self.decided = True
            opener = ""
            prose.resume()

    def _hides_calls(self, text: str) -> bool:
        shadow = Machine(self.wire, replace(self.options, fences=False, deltas=False, reasoning_started=False))
        shadow.feed(text)
        shadow.finish()
        return shadow.complete_calls > 0

    def _block(self, block: Block) -> Control:
        self._raw = Pieces()
        self._raw_start = self.position
        self._call = None
        self._empty = False
        try:
            yield from self._sequence(block.steps)
            self._end_call()
            if self._empty:
                self._raw.take()
            while (yield Marker(block.closers)):
                self._raw.take()
        except Unreadable as error:
            self._broken(error)
        except EndOfText:
            self._cut()
            raise
        self._leave()

    def _leave(self) -> None:
        rest = self._raw.take() if self._raw is not None else ""
        self._raw = None
        self._call = None
        self._prose.released(rest)

    def _broken(self, error: Unreadable) -> None:
        """The block is not what it began as: what it consumed becomes content."""
        call, raw = self._call, self._raw
        if call is not None and call.payload:
            self._end_call()
            call = None
        text = raw.take() if raw is not None else ""
        index = None
        if call is not None and call.index >= 0:
            index = call.index
            call.end(text, self.wire.name, self.wire.confidence, complete=False)
        if self.wire.markers or index is not None:
            kind: ProblemKind = "missing_name" if error.kind == "missing_name" else "malformed"
            self._problem(kind, self.position - len(text), text, _sentence(kind, str(error), text), index)
        if raw is not None and text:
            raw.add(text)

    def _cut(self) -> None:
        """The text ended inside the block."""
        call, raw = self._call, self._raw
        assert raw is not None
        if call is not None and call.payload:
            self._missing_close()
            self._end_call()
            self._leave()
            return
        text = raw.take()
        if call is not None and self.wire.markers:
            self._announce(call)
        if call is not None and call.index >= 0:
            call.end(text, self.wire.name, self.wire.confidence, complete=False)
            why = f"The text ends inside the call to {call.name!r}, so it was not run. Send it again, whole and shorter."
            self._problem("truncated", self.position - len(text), text, why, call.index)
            self._leave()
            return
        if self.wire.markers and text.strip():
            why = "The text ends inside a tool call whose name was not read yet. Send the call again, whole."
            self._problem("truncated", self.position - len(text), text, why)
        raw.add(text)
        self._leave()

    def _problem(self, kind: ProblemKind, position: int, raw: str, message: str, index: int | None = None) -> None:
        self._events.append(ProblemFound(Problem(kind, position, raw, message, index)))

    # -- calls ---------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> Shape | None:
        definition = self.options.tools.get(name)
        return definition.shape if definition is not None else None

    def _begin_call(self) -> Builder:
        self._end_call()
        self._call = Builder(
            self._events.append,
            self._known,
            deltas=self.options.deltas,
            repair=self.options.repair,
            seed=self.options.seed,
        )
        return self._call

    def _named(self, call: Builder, name: str) -> None:
        if not self.wire.markers and name not in self.options.tools:
            raise Unreadable(f"{name[:60]!r} is not a known tool")
        call.named(name)

    def _announce(self, call: Builder) -> None:
        """Announce the call if that was not done yet and its name is known."""
        if call.index < 0 and call.name:
            call.start(self._calls)
            self._calls += 1

    def _end_call(self) -> None:
        """Emit the end of the call whose payload is complete; all that was consumed so far is its text."""
        call = self._call
        if call is None or not call.payload:
            return
        assert self._raw is not None
        taken = self._raw.take()
        raw = taken.rstrip()
        if len(raw) < len(taken):  # white space before a closing marker that did not come
            self._raw.add(taken[len(raw) :])
        self._call = None
        call.end(raw, self.wire.name, self.wire.confidence, complete=True)
        self.complete_calls += 1

    def _missing_close(self) -> None:
        if self._call is not None and self._call.payload:
            self._call.repaired("missing_close", "the closing marker of the call is missing")

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _sequence(self, steps: Iterable[Step]) -> Control:
        for step in steps:
            yield from self._node(step)

    def _node(self, step: Step) -> Control:
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
        elif self._call is not None and self._call.payload:  # wrapper after a complete call
            if node.need != "optional":
                self._missing_close()
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
        assert self._call is not None
        return self._call

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
                self._empty = True
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
        self._late = None
        for inner in step.groups[0]:
            yield from self._node(inner)
            if self._closed:
                break
        if not call.name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        self._announce(call)
        if self._late is not None:
            node, raws = self._late
            self._put_elements(call, node, {}, raws)
        call.complete()

    # -- parameters ----------------------------------------------------------------------------------------------

    def _params(self, step: Step) -> Control:
        call = self._building()
        self._announce(call)
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

    def _value(
        self, call: Builder, key: str, step: Step, value: Step, listed: dict[str, list[Occurrence]]
    ) -> Control:
        node = value.node
        assert isinstance(node, Value)
        shape = call.shape.property(key)
        several = is_list(shape)
        if key in call.arguments or (key in listed and not several):
            raise Unreadable(f"the parameter {key[:60]!r} is given twice")
        before = ""
        if shape.typed and shape.kinds <= {"object", "array", "null"} and (yield Marker(_CONTAINER, consume=False)):
            before = yield Probe(JsonScanner(repair=self.options.repair, fast=self._fast))
        stream = shape.keeps_text
        pieces = Pieces()
        put = pieces.add
        if stream:
            call.open(key)
            if self.options.deltas:
                put = call.passing(pieces.add)
        stops, special = self.plan.stops(step, node)
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
        self._announce(call)
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
            self._late = (node, raws)
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
        put = pieces.add
        if stream:
            call.open(key)
            if self.options.deltas:
                put = call.passing(pieces.add)
        if not closed:
            leaf = XmlText(name, step.after, nocase=self.wire.nocase, decode=stream, put=put)
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
        self._announce(call)
        found = yield from self._expect(_OBJECT_OR_TEXT, "the arguments are not a JSON object", consume=False)
        if found == "{" and call.name:
            yield call.arguments_leaf(self._fast)
            return
        leaf = Json(JsonScanner(repair=self.options.repair, fast=self._fast))
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
                self._missing_close()
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
        elif self.wire.markers:
            self._empty = True
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
            self._announce(call)
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
            leaf = Json(JsonScanner(repair=self.options.repair))
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
        leaf = Json(JsonScanner(repair=self.options.repair, fast=self._fast))
        value = json.loads((yield leaf))
        for repair in leaf.scanner.repairs:
            call.repaired(repair, "")
        if key in node.name:
            if not isinstance(value, str):
                raise Unreadable("the name of the tool is not a string", "missing_name")
            self._named(call, value)
            if call.has_arguments or self.wire.markers:
                self._announce(call)
            call.settle()
        elif key in node.id and isinstance(value, (str, int)):
            call.id = str(value)
        elif key in node.server and isinstance(value, str):
            call.server = value

    # -- Python --------------------------------------------------------------------------------------------------

    def _python_calls(self, node: PyCalls) -> Control:
        brackets = literals(frozenset({node.open}))
        after = literals(frozenset({",", node.close}))
        assert self._raw is not None
        block = self._raw
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
            self._announce(call)
            call.whole({key: json.loads(text) for key, text in arguments.items()})
            call.complete()
            block.add(raw)
        block.add(closing)

    def _python_call(self) -> Generator[Leaf, Any, tuple[str, dict[str, str], str]]:
        name = yield from self._word("the name of a function")
        if not self.wire.markers and name not in self.options.tools:
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
        assert self._raw is not None
        return name, arguments, self._raw.take()


def hidden_by_fence(hidden: str, position: int) -> ProblemFound:
    """The problem that an unclosed fence hid calls; `position` is where the text ended."""
    return ProblemFound(
        Problem(
            "hidden_by_fence",
            position - len(hidden),
            hidden,
            "A code fence was opened and never closed, and a tool call stands inside it, so the call was not read. "
            "Write tool calls outside code fences.",
        )
    )


def _sentence(kind: ProblemKind, reason: str, text: str) -> str:
    quoted = text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + "..."
    return f"A tool call could not be read: {reason}. It was written: {quoted!r}."
