"""Reading the nodes of one block: a generator per kind of node, which asks for leaves and builds the calls."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, assert_never

from toolwire.events import Event
from toolwire.schema.shape import Shape
from toolwire.text.json_scanner import FastTries
from toolwire.tools import ToolDefinition
from toolwire.wire.call_builder import Builder, EndOfText, Unreadable
from toolwire.wire.json_calls import escaped_args, json_calls, only_args, token_args
from toolwire.wire.leaves import FreeWord, Leaf, Marker, Pieces, Rest, Word
from toolwire.wire.literals import Literals
from toolwire.wire.markup import Attributes
from toolwire.wire.parameters import elements, params, put_elements, token_elements
from toolwire.wire.plan import Block, Plan, Step
from toolwire.wire.python_calls import python_calls
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Header,
    Ident,
    JsonCall,
    Key,
    Lit,
    Many,
    Mark,
    Name,
    OneOf,
    Params,
    PyCalls,
    Server,
    Tag,
    TokenArgs,
    Value,
    WireFormat,
)

Control = Generator[Leaf, Any, None]


def _no_hint(wire: WireFormat, name: str) -> str:
    return ""


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
        hint: how to write a call right, for the message of a problem; it gets the format and the tool's name, if known.
    """

    tools: dict[str, ToolDefinition]
    reasoning_started: bool = False
    repair: bool = True
    seed: str = ""
    deltas: bool = True
    fences: bool = True
    hint: Callable[[WireFormat, str], str] = _no_hint


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
        committed: a marker was read that is more than a hint of a call.
    """

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.raw = Pieces()
        self.call: Builder | None = None
        self.empty = False
        self.committed = False  # a marker was read that is more than a hint
        self._unwrapped = False  # the wrapper's opener, which is optional, did not come
        self.closed = False  # the tag that was read last closed itself
        self.late: list[tuple[Elements, list[tuple[str, str]]]] = []  # arguments written before the name
        self.parameter = ""  # the parameter whose header was read last
        self.mark: bool | None = None  # its value is marked as raw text, or as JSON

    def read(self, block: Block) -> Control:
        """Read it, up to its last closing marker.

        Raises:
            Unreadable: it is not what it began as.
            EndOfText: it is cut.
        """
        *steps, last = block.steps
        yield from self.sequence(steps)
        if self._unwrapped and isinstance(last.node, Lit):
            yield Marker(last.here)  # without the wrapper's opener its closer is not missing
        else:
            yield from self.node(last)
        self.end_call()
        if self.empty:
            self.raw.take()
        while (yield Marker(block.closers)):
            self.raw.take()

    # -- calls ---------------------------------------------------------------------------------------------------

    def known(self, name: str) -> Shape | None:
        """The shape of a tool's arguments, if the tool is known."""
        definition = self.turn.options.tools.get(name)
        return definition.shape if definition is not None else None

    def begin_call(self) -> Builder:
        """A call begins here; the one before it is over. The text of one that was none goes with the next."""
        if self.call is None or not self.call.pseudo:
            self.end_call()
        self.call = Builder(
            self.turn.emit,
            self.known,
            deltas=self.turn.options.deltas,
            repair=self.turn.options.repair,
            seed=self.turn.options.seed,
        )
        return self.call

    def named(self, call: Builder, name: str) -> None:
        """The name of the call was read."""
        if not self.turn.wire.markers and name not in self.turn.options.tools:
            raise Unreadable(f"{name[:60]!r} is not a known tool")
        if name in self.turn.wire.pseudo:
            call.silence()
        call.named(name)

    def announce(self, call: Builder) -> None:
        """Announce the call if that was not done yet and its name is known."""
        if call.index < 0 and call.name and not call.pseudo:
            call.start(self.turn.announced)
            self.turn.announced += 1

    def end_call(self) -> None:
        """Emit the end of the call whose payload is complete; all that was consumed so far is its text."""
        call = self.call
        if call is None or not call.payload:
            return
        if call.pseudo:
            self.call = None
            if not call.arguments:  # else it says something after all
                self.raw.take()
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

    def sequence(self, steps: Iterable[Step]) -> Control:
        """Read nodes one after the other."""
        for step in steps:
            yield from self.node(step)

    def node(self, step: Step) -> Control:  # noqa: C901 - one case per node
        """Read one node."""
        node = step.node
        match node:
            case Lit():
                return self._lit(step, node)
            case Tag():
                return self._tag(step, node)
            case Name():
                return self._name(node)
            case Header():
                return self._header()
            case Ident():
                return self._ident()
            case Server():
                return self._server()
            case Key():
                return self._key(step, node)
            case Mark():
                return self._mark(node)
            case Value():
                raise AssertionError("a value outside parameters")
            case Params():
                return params(self, step)
            case Elements():
                return token_elements(self, step, node) if node.token else elements(self, step, node)
            case Args():
                return escaped_args(self, step, node) if node.element else only_args(self)
            case TokenArgs():
                return token_args(self, node)
            case JsonCall():
                return json_calls(self, step, node)
            case PyCalls():
                return python_calls(self, step, node)
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

    def cut_here(self) -> Control:
        """The text ends where more was needed: take in what is left of it, then stop."""
        yield Rest()
        raise EndOfText

    def expect(self, expected: Literals, otherwise: str, *, consume: bool = True) -> Generator[Leaf, Any, str]:
        """Read one of some markers; `otherwise` says what is wrong if none comes."""
        marker = Marker(expected, consume=consume)
        found: str = yield marker
        if not found:
            if marker.cut:
                yield from self.cut_here()
            raise Unreadable(otherwise)
        return found

    def _lit(self, step: Step, node: Lit) -> Control:
        marker = Marker(step.here)
        found = yield marker
        if found:
            self.committed = self.committed or not node.hint
            while node.repeats and (yield Marker(step.here)):
                pass
        elif self.call is not None and self.call.payload:  # wrapper after a complete call
            if node.need != "optional":
                self.missing_close()
        elif marker.cut and (node.need == "required" or self.call is not None):
            yield from self.cut_here()
        elif node.need == "required":
            raise Unreadable(f"{node.text} is missing")
        elif self.call is None:
            self._unwrapped = True
        elif node.need == "forgiven":  # the call's own closer: what follows the call has to be there
            following = Marker(step.after, consume=False)
            if not (yield following):
                if following.cut:
                    yield from self.cut_here()
                raise Unreadable(f"{node.text} is missing")
            self.call.repaired("missing_close", f"{node.text} is missing")

    def _tag(self, step: Step, node: Tag) -> Control:
        yield from self.expect(step.here, f"the tag <{node.name} {node.attribute}=...> is missing")
        self.committed = True
        attributes, self.closed = yield Attributes(node.close, nocase=self.turn.wire.nocase)
        value = attributes.get(node.attribute)
        if value is None:
            raise Unreadable(f"the attribute {node.attribute!r} of <{node.name}> is missing")
        if node.role == "key":
            self.parameter = value
            written = attributes.get(node.mark.attribute) if node.mark is not None else None
            self.mark = None if node.mark is None or written is None else node.mark.raw(written)
            return
        call = self.building()
        if "id" in attributes:
            call.id = attributes["id"]
        self.named(call, value)

    def building(self) -> Builder:
        """The call that is being read."""
        assert self.call is not None
        return self.call

    def word(
        self, what: str, kind: str = "malformed", *, phrase: bool = False, stops: Literals | None = None
    ) -> Generator[Leaf, Any, str]:
        """Read a name; `what` it is goes into the problem if there is none."""
        word = Word(phrase=phrase) if stops is None else FreeWord(stops)
        text: str = yield word
        if word.cut:
            raise EndOfText
        if not text:
            raise Unreadable(f"{what} is missing", kind)
        return text

    def _name(self, node: Name) -> Control:
        text = yield from self.word("the name of the tool", "missing_name", phrase=node.phrase)
        call = self.building()
        name = text.removeprefix(node.prefix)
        if node.is_id:
            head, colon, number = name.rpartition(":")
            name = head if colon and number.isdecimal() else name
            call.id = text
        self.named(call, name)

    def _key(self, step: Step, node: Key) -> Control:
        stops = step.after if node.free else None
        self.parameter = yield from self.word("the name of a parameter", phrase=node.phrase, stops=stops)
        self.mark = None

    def _mark(self, node: Mark) -> Control:
        self.mark = node.raw((yield from self.word("the type of a parameter")))

    def _header(self) -> Control:
        yield from self.word("the name in the header")

    def _ident(self) -> Control:
        self.building().id = yield from self.word("the id of the call")

    def _server(self) -> Control:
        self.building().server = yield from self.word("the name of the server")

    # -- several -------------------------------------------------------------------------------------------------

    def _many(self, step: Step) -> Control:
        count = 0
        while True:
            marker = Marker(step.either, consume=False)
            found = yield marker
            if found and found in step.first:
                yield from self.sequence(step.groups[0])
                count += 1
                continue
            if count:
                return
            if found:
                self.empty = True
                return
            if marker.cut:
                yield from self.cut_here()
            raise Unreadable("a tool call should begin here")

    def _one_of(self, step: Step) -> Control:
        marker = Marker(step.here, consume=False)
        found = yield marker
        for group, begins in zip(step.groups, step.firsts, strict=True):
            if found in begins:
                if marker.cut:
                    yield from self.cut_here()
                yield from self.sequence(group)
                return
        if marker.cut:
            yield from self.cut_here()
        if step.empty is None:
            raise Unreadable("what follows is not a tool call")
        yield from self.sequence(step.groups[step.empty])

    def _any_order(self, step: Step) -> Control:
        read: set[int] = set()
        while True:
            marker = Marker(step.either, consume=False)
            found = yield marker
            if marker.cut:
                yield from self.cut_here()
            at = next((i for i, begins in enumerate(step.firsts) if found in begins and i not in read), None)
            if at is None:
                if not found and not read:
                    raise Unreadable(f"{' or '.join(sorted(step.first))} should begin here")
                return
            read.add(at)
            yield from self.sequence(step.groups[at])

    def _one_call(self, step: Step) -> Control:
        call = self.begin_call()
        self.closed = False
        self.late.clear()
        for inner in step.groups[0]:
            yield from self.node(inner)
            if self.closed:
                break
        if not call.name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        self.announce(call)
        call.settle()
        for node, raws in self.late:
            put_elements(self, call, node, {}, raws)
        call.complete()
