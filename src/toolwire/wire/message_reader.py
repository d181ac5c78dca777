"""Reading of a message in one wire format: text in any chunking -> events, in one pass.

Control is in generators, one per kind of node: straight-line code that asks for a leaf (`value = yield leaf`) and
runs only at transitions. The leaves touch the characters. The driver, `MessageReader.feed`, owns the only hold-back:
the text that a leaf cannot decide about yet, which is always bounded.

Rules:

- Errors happen at a character. The text that a failed block consumed becomes content, and reading continues at that
  character. Nothing is ever read twice.
- A call is announced when its name is certain. It is complete where its node ends. Its end is emitted when its
  wrapper has closed, or is known to be missing.
- Text that was consumed since the last closing marker of a block becomes content when the block ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolwire.events import Event, ProblemFound
from toolwire.messages import MESSAGE_LIMIT, Problem, ProblemKind
from toolwire.text.json_scanner import FastTries
from toolwire.wire.block_reader import Control, MessageState, ReadOptions
from toolwire.wire.call_builder import EndOfText, Unreadable
from toolwire.wire.compiled_format import Block, compile_format
from toolwire.wire.content_scanner import ContentScanner
from toolwire.wire.leaf_scanners import Leaf, TextBuffer
from toolwire.wire.node_readers import NodeReader
from toolwire.wire.syntax import WireFormat

_LOOK = 256
"""Characters beyond a leaf's stop that it may have looked at."""


class MessageReader:
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
    """

    def __init__(
        self,
        wire: WireFormat,
        options: ReadOptions,
        *,
        probe: str = "",
        position: int = 0,
        blank: bool = True,
        fast: FastTries | None = None,
    ) -> None:
        self.wire = wire
        self._events: list[Event] = []
        self._state = MessageState(wire, compile_format(wire), options, self._events.append, fast or FastTries())
        self._tail = ""
        self.position = position
        self._probing = bool(probe)
        self.decided = self.ended = False
        self.scanned = 0
        self._raw: TextBuffer | None = None  # of the block that is being read
        self._before = 0  # calls announced before it
        self._prose = ContentScanner(
            self._state.compiled.outside,
            self._events.append,
            reasoning=options.reasoning_started,
            blank=blank,
            fences=options.fences,
            lookahead=self._state.compiled.lookahead(options.tools),
        )
        self._control = self._message(probe)
        self._leaf: Leaf = next(self._control)

    # -- the driver ----------------------------------------------------------------------------------------------

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece; the events that became certain."""
        leaf = self._leaf
        if self._tail:
            fed, text = len(text), self._tail + text
            if leaf.waiting is not None and leaf.waiting.begins(text):
                self._tail = text
                self.scanned += fed
                return ()
        else:
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
            leaf.waiting = None
            stop = leaf.scan(text, pos, final)
            if stop > pos:
                self.scanned += stop - pos
                if self._raw is not None:
                    self._raw.add(text[pos - min(0, self.position) : stop])  # not what the prompt had written
                self.position += stop - pos
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
            if self._probing and self._state.announced:
                self.decided = True
        if not self.decided:
            self.scanned += min(len(text) - pos, _LOOK)
        return pos

    def end(self, text: str, pos: int) -> int:
        """The text is over after `text`: read what is left of it; the position where a probe was decided."""
        pos = self.advance(text, pos, True)
        if self.ended or self.decided:
            return pos
        if pos < len(text):  # a leaf could not decide; it belongs to what is cut
            if self._raw is not None:
                self._raw.add(text[pos - min(0, self.position) :])
            self.position += len(text) - pos
        with contextlib.suppress(StopIteration):
            self._control.throw(EndOfText())
        self.ended = True
        return len(text)

    # -- a probe: one block, to find out whether it is this format's ---------------------------------------------

    @property
    def announced(self) -> bool:
        """Whether a call was announced."""
        return self._state.announced > 0

    def keep(self) -> None:
        """The probe was right: read on as a machine of its own."""
        self._probing = self.decided = False

    @property
    def complete_calls(self) -> int:
        """How many calls were read whole."""
        return self._state.complete

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
                    self._events.extend(hidden_by_fence(hidden, self.position))
                return
            prose.resume()
            try:
                yield from self._block(self._state.compiled.blocks[opener])
            except EndOfText:
                return
            if self._probing:
                self.decided = True
            opener = ""

    def _hides_calls(self, text: str) -> bool:
        options = replace(self._state.options, fences=False, deltas=False, reasoning_started=False)
        reader = MessageReader(self.wire, options)
        reader.feed(text)
        reader.finish()
        return reader.complete_calls > 0

    def _block(self, block: Block) -> Control:
        reader = NodeReader(self._state)
        self._raw = reader.raw
        self._before = self._state.announced
        try:
            yield from reader.read(block)
        except Unreadable as error:
            self._broken(reader, error)
        except EndOfText:
            self._cut(reader)
            self._leave(committed=reader.committed)
            raise
        self._leave(committed=reader.committed)

    def _leave(self, *, committed: bool) -> None:
        """The block is over: what it did not use is content."""
        rest = self._raw.take() if self._raw is not None else ""
        self._raw = None
        if self._called and self._prose.reasoning:
            self._prose.leave_reasoning()
        if not (committed or self._called or self._probing):  # it began with what is no content elsewhere either
            found = [drop for drop in self._state.compiled.outside.drops if rest.startswith(drop)]
            rest = rest.removeprefix(max(found, key=len, default=""))
        self._prose.released(rest)

    @property
    def _called(self) -> bool:
        """Whether the block held a call: only then it counts inside reasoning."""
        return self._state.announced > self._before

    def _broken(self, reader: NodeReader, error: Unreadable) -> None:
        """The block is not what it began as: what it consumed stays content, and is a problem."""
        reader.end_call()
        text = reader.raw.take()
        reader.raw.add(text)
        name = reader.call.name if reader.call is not None else ""
        index = self._abandon(reader, text)
        if (self.wire.markers and reader.committed) or index is not None:
            kind: ProblemKind = "missing_name" if error.kind == "missing_name" else "malformed"
            self._problem(kind, text, _sentence(str(error), text), name, index)

    def _cut(self, reader: NodeReader) -> None:
        """The text ended inside the block: a complete call lacks its closing marker, any other is incomplete."""
        if reader.call is not None and reader.call.payload and reader.call.repairing:
            reader.missing_close()
            reader.end_call()
            return
        if reader.call is not None and self.wire.markers:
            reader.announce(reader.call)
        text = reader.raw.take()
        index = self._abandon(reader, text)
        if index is not None:
            name = reader.call.name if reader.call is not None else ""
            why = f"The text ends inside the call to {name!r}, so it was not run. Send it again, whole and shorter."
            self._problem("truncated", text, why, name, index)
            return
        pseudo = reader.call is not None and reader.call.pseudo
        if self.wire.markers and reader.committed and text.strip() and not pseudo:
            why = "The text ends inside a tool call whose name was not read yet. Send the call again, whole."
            self._problem("truncated", text, why, "")
        reader.raw.add(text)

    def _abandon(self, reader: NodeReader, text: str) -> int | None:
        """End an announced call that will not become complete; its index."""
        call = reader.call
        if call is None or call.index < 0:
            return None
        call.end(text, self.wire.name, self.wire.confidence, complete=False)
        return call.index

    def _problem(self, kind: ProblemKind, raw: str, message: str, name: str, index: int | None = None) -> None:
        if self._prose.reasoning and not self._called:
            return  # a marker that is only mentioned
        if self.position < 0 and index is None:
            return  # nobody fed it
        message += self._state.options.hint(self.wire, name)
        self._events.append(ProblemFound(Problem(kind, max(0, self.position - len(raw)), raw, message, index)))


def hidden_by_fence(hidden: str, position: int) -> Iterator[ProblemFound]:
    """The problem that an unclosed fence hid calls, if any of it was fed; `position` is where the text ended."""
    hidden = hidden[max(0, len(hidden) - max(0, position)) :]  # the rest stands in the prompt
    if hidden:
        why = (
            "A code fence was opened and never closed, and a tool call stands inside it, so the call was not read. "
            "Write tool calls outside code fences."
        )
        yield ProblemFound(Problem("hidden_by_fence", position - len(hidden), hidden, why))


def _sentence(reason: str, text: str) -> str:
    quoted = repr(text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + "...")
    if len(quoted) > 2 * MESSAGE_LIMIT:  # escapes
        quoted = repr(text[: MESSAGE_LIMIT // 4] + "...")
    return f"A tool call could not be read: {reason}. It was written: {quoted}."
