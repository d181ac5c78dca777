"""State of one block that is being read, and the services that the readers of its nodes share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwire.events import Event, ProblemFound
from toolwire.messages import Problem
from toolwire.text.json_text import FastJsonReader
from toolwire.text.suggest import first_of
from toolwire.text.truncate import shorten
from toolwire.tools import ToolDefinition
from toolwire.wire.call_builder import CallBuilder, EndOfText, Unreadable
from toolwire.wire.compiled_format import Block, CompiledFormat, Step
from toolwire.wire.leaf_scanners import BLANK, Leaf, NextMarker, RemainingText, Word, WordUpToMarker
from toolwire.wire.marker_sets import MarkerSet
from toolwire.wire.syntax import WireFormat
from toolwire.wire.text_buffer import TextBuffer
from toolwire.wire.tool_names import ToolNames

Control = Generator[Leaf, Any, None]
"""A reader of nodes: yields the leaf that should read on, and is sent the leaf's value."""
Reading = Control | tuple[()]
"""A reader of one node, or nothing where the text of the piece was enough to read it."""


_SHOWN_MEMBERS = 5
_HAS_ARGUMENTS = re.compile(r"[{}<>]|[(=](?!\)\Z)|[,:]\Z")
"""Signs that more than a name is where the name of a tool is expected; `f()` is a name."""


def _no_hint(wire: WireFormat, name: str) -> str:
    return ""


def unread_members(name: str, members: Collection[str]) -> str:
    """Return the message that a call of a tool was read without these members."""
    keys = first_of([repr(shorten(key, 60)) for key in members], _SHOWN_MEMBERS)
    return f"The call to {name!r} was read without these members beside its arguments: {keys}."


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings for reading one message.

    Attributes:
        tools: tool definitions by name.
        reasoning_started: the prompt had already opened the reasoning.
        repair: make safe repairs.
        seed: goes into the ids of calls.
        deltas: emit arguments deltas; a caller that only collects the calls does not need them.
        fences: respect code fences and CDATA sections, where the format does.
        shared: formats whose shapes are read too, inside the wrappers that they share with the format of the message.
        hint: return the advice that ends a problem's message, for the format and the tool's name ("" if not known).
    """

    tools: Mapping[str, ToolDefinition]
    reasoning_started: bool = False
    repair: bool = True
    seed: str = ""
    deltas: bool = True
    fences: bool = True
    shared: tuple[WireFormat, ...] = ()
    hint: Callable[[WireFormat, str], str] = _no_hint


@dataclass(slots=True)
class MessageState:
    """State that the blocks of one message share.

    Attributes:
        wire, compiled, options: the format, its compiled form, and the settings.
        emit: takes events.
        start: position of the first character of the piece of text that is being read, in the message.
        fast: number of failed attempts to read JSON the fast way.
        probing: reading stops where a call is announced.
        competing: other formats matter from there on, so that position must not depend on the chunking.
        text, pos: that piece, and the position in it up to which it was consumed.
        copied: the position in it up to which the block has its text.
        announced, complete: number of calls announced, and of calls read to their end.
        names: the names that may be written for the known tools; None until one is needed.
    """

    wire: WireFormat
    compiled: CompiledFormat
    options: ReadOptions
    emit: Callable[[Event], None]
    start: int
    fast: FastJsonReader = field(default_factory=FastJsonReader)
    probing: bool = False
    competing: bool = False
    text: str = ""
    pos: int = 0
    copied: int = 0
    announced: int = 0
    complete: int = 0
    names: ToolNames | None = None

    @property
    def position(self) -> int:
        """Position of the next character in the message; negative in what the prompt had written."""
        return self.start + self.pos

    def known_tool(self, name: str) -> str:
        """Return the one known tool that a written name can mean, or ""; without repairs only its own name does."""
        if name in self.options.tools or not self.options.repair:
            return name if name in self.options.tools else ""
        if self.names is None:
            self.names = ToolNames(self.options.tools)
        return self.names.resolve(name)


class BlockText(TextBuffer):
    """The text that was consumed since a block began or a call was taken out of it.

    Markers consume a few characters each, so the text of a piece is only copied once it is needed or the piece ends.
    """

    __slots__ = ("_state",)

    def __init__(self, state: MessageState) -> None:
        super().__init__()
        self._state = state
        state.copied = state.pos

    def end_piece(self) -> None:
        """Copy the text of the piece that was consumed."""
        state = self._state
        begin = max(state.copied, -state.start)  # not what the prompt had written
        if begin < state.pos:
            self.add(state.text[begin : state.pos])
        state.copied = state.pos

    def take(self) -> str:
        """Return all of the text and forget it."""
        self.end_piece()
        return super().take()


class BlockReader(ABC):
    """A reader of one block; `node_readers.NodeReader` adds the reading of the nodes.

    Attributes:
        state: the state of the message.
        raw: the text consumed since the block began or a call was taken out.
        call: the call being read.
        block: the compiled block.
        marked: the block began with a marker; else only known tools count.
        reported: a failure is a problem, and not only content.
        empty: the block is a wrapper without calls.
        committed: a marker was read that is more than a hint of a call.
        tag_closed: the last tag closed itself (`<tool name="f"/>`).
        fence: the fence that the format's own markers opened and did not close yet; "" outside.
        late: readers of elements that came before the call's name, and so before their types were known.
        parameter: name of the parameter whose header was read last.
        mark: how that parameter's value is marked: True for raw text, False for JSON, None for no mark.
        closed: a closing marker that was read inside what it closes, because closing markers before it are missing.
    """

    def __init__(self, state: MessageState, block: Block, *, heads_line: bool) -> None:
        self.state = state
        self.block = block
        self.raw = BlockText(state)
        self.call: CallBuilder | None = None
        self.marked = block.marked
        self.reported = block.marked or (block.heading and heads_line)
        self.empty = False
        self.committed = False
        self.unwrapped = False  # the wrapper's opener, which is optional, did not come
        self.closed = ""
        self.tag_closed = False
        self.fence = ""
        self.late: list[Callable[[], None]] = []
        self.parameter = ""
        self.mark: bool | None = None

    @abstractmethod
    def node(self, step: Step) -> Reading:
        """Read one node."""

    def read(self) -> Control:
        """Read the block up to its last closing marker.

        Raises:
            Unreadable: the text is not what it began as.
            EndOfText: the text ends inside the block.
        """
        yield from self.sequence(self.block.steps)
        self.end_call()
        if self.empty:
            self.raw.take()
        # Models repeat closers; the repetitions would otherwise become content. After a call without markers, a closer
        # may belong to an opener that the prompt had written.
        closers = self.block.closers if self.block.marked else self.state.compiled.closers
        while (yield from self.marker(closers))[0]:
            self.raw.take()

    def sequence(self, steps: Iterable[Step]) -> Control:
        """Read nodes one after the other."""
        for step in steps:
            yield from self.node(step)

    # -- calls ---------------------------------------------------------------------------------------------------

    def begin_call(self) -> CallBuilder:
        """End the call before and begin another."""
        # A pseudo call is not emitted: its text goes with the next call, so that nothing is lost.
        if self.call is None or not self.call.pseudo:
            self.end_call()
        container = self.call
        self.call = CallBuilder(
            self.state.emit,
            self.state.options.tools,
            deltas=self.state.options.deltas,
            repair=self.state.options.repair,
            seed=self.state.options.seed,
        )
        if container is not None:  # an object around a list of calls, whose text goes with the first of them
            self.call.members.update(container.members)
            container.members.clear()
        return self.call

    def building(self) -> CallBuilder:
        """Return the call being read."""
        assert self.call is not None
        return self.call

    def name_error(self, name: str) -> str:
        """Return why a name cannot be that of a tool, or ""."""
        if name in self.state.options.tools:
            return ""
        if not self.marked:
            return f"{name[:60]!r} is not a known tool"
        if name and not any(map(str.isalnum, name)):  # such as the dots that prose writes in place of a call
            return f"{name[:60]!r} is not a name"
        if _HAS_ARGUMENTS.search(name) and (name in self.state.wire.pseudo or not self.state.known_tool(name)):
            return f"{name[:60]!r} is not a name, but has arguments in it"
        return ""

    def set_name(self, call: CallBuilder, name: str) -> None:
        """Set the name of the call, which was just read."""
        if error := self.name_error(name):
            raise Unreadable(error)
        if name in self.state.wire.pseudo:
            call.silence()
        elif name not in self.state.options.tools and (tool := self.state.known_tool(name)):
            call.record_repair("name_resolved", "")
            name = tool
        call.set_name(name)

    def announce(self, call: CallBuilder) -> None:
        """Announce the call if its name is known and it was not announced yet."""
        if call.index < 0 and call.name and not call.pseudo:
            call.start(self.state.announced)
            self.state.announced += 1

    def end_call(self) -> None:
        """Emit the end of the call if its payload is complete; the text consumed so far is its raw text."""
        call = self.call
        if call is None or not call.payload:
            return
        if call.pseudo:
            self.call = None
            # A pseudo call with arguments or other members says something, so its text stays, as content.
            if not call.arguments and not call.members:
                self.raw.take()
            return
        consumed = self.raw.take()
        raw = consumed.rstrip()
        if len(raw) < len(consumed):
            # The white space was skipped in search of a closing marker that did not come: it is content.
            self.raw.add(consumed[len(raw) :])
        self.call = None
        call.end(raw, self.state.wire.name, self.state.wire.confidence, complete=True)
        self.state.complete += 1
        if call.members:
            position = max(0, self.state.position - len(consumed))
            self.state.emit(
                ProblemFound(Problem("unread_members", position, raw, unread_members(call.name, call.members)))
            )

    def missing_close(self) -> None:
        """Record that the closing marker of a complete call is missing; without repairs the call does not count."""
        call = self.call
        if call is not None and call.payload:
            call.payload = call.may_repair
            call.record_repair("missing_close", "the closing marker of the call is missing")

    # -- text ----------------------------------------------------------------------------------------------------

    def cut_here(self) -> Control:
        """Take in the rest of a text that ends where more was needed, then raise EndOfText."""
        yield RemainingText()
        raise EndOfText

    # A turn of the driver costs more than most leaves, and none is needed where the text of this piece decides. While
    # other formats compete, the driver has to look after each leaf.

    def marker_here(self, markers: MarkerSet, *, consume: bool = True, skip_space: bool = True) -> str | None:
        """Read as `NextMarker` does; return the marker, or None where more text than that of this piece is needed."""
        state = self.state
        text, pos = state.text, state.pos
        if pos >= len(text) or state.competing:
            return None
        if skip_space and text[pos].isspace() and (match := BLANK.match(text, pos)):
            pos = match.end()
            if pos == len(text):
                return None
        marker, wait = markers.match(text, pos, False)
        if wait:
            return None
        state.pos = pos + len(marker) if consume else pos
        return marker

    def is_done_here(self, leaf: Leaf) -> bool:
        """Let a leaf read the text of this piece; return whether it has its value. Otherwise it has to be yielded."""
        state = self.state
        text = state.text
        if state.pos >= len(text) or state.competing:
            return False
        state.pos = leaf.scan(text, state.pos, False)
        if leaf.error:
            raise Unreadable(leaf.error)
        return leaf.done

    def marker(
        self, markers: MarkerSet, *, consume: bool = True, skip_space: bool = True
    ) -> Generator[Leaf, Any, tuple[str, bool]]:
        """Read as `NextMarker` does; return the marker, and whether the text was cut before it was certain."""
        marker = self.marker_here(markers, consume=consume, skip_space=skip_space)
        if marker is not None:
            return marker, False
        leaf = NextMarker(markers, consume=consume, skip_space=skip_space)
        marker = yield leaf
        return marker, leaf.cut

    def expect(self, expected: MarkerSet, otherwise: str, *, consume: bool = True) -> Generator[Leaf, Any, str]:
        """Read one of these markers and return it; raise Unreadable with the message `otherwise` for other text."""
        marker, cut = yield from self.marker(expected, consume=consume)
        if not marker:
            if cut:
                yield from self.cut_here()
            raise Unreadable(otherwise)
        return marker

    def word(
        self, subject: str, kind: str = "malformed", *, phrase: bool = False, stops: MarkerSet | None = None
    ) -> Generator[Leaf, Any, str]:
        """Read a name and return it; raise Unreadable, which names the `subject`, where there is none."""
        leaf = Word(phrase=phrase) if stops is None else WordUpToMarker(stops)
        if not self.is_done_here(leaf):
            yield leaf
        text: str = leaf.value
        if leaf.cut:
            raise EndOfText
        if not text:
            raise Unreadable(f"{subject} is missing", kind)
        return text
