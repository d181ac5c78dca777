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
from toolwire.text.json_text import FastJsonReader
from toolwire.text.truncate import shorten
from toolwire.wire.block_reader import BlockText, Control, MessageState, ReadOptions
from toolwire.wire.broken_calls import RestOfBrokenCall
from toolwire.wire.call_builder import EndOfText, Unreadable
from toolwire.wire.compiled_format import Block, compile_format
from toolwire.wire.content_scanner import ContentScanner
from toolwire.wire.leaf_scanners import Leaf
from toolwire.wire.node_readers import NodeReader
from toolwire.wire.shared_wrappers import after_first_call, with_shared_shapes
from toolwire.wire.syntax import WireFormat

_LOOK = 256
"""Characters beyond its stop that a leaf may have looked at."""


class MessageReader:
    """A reader of one message in one format.

    Args:
        wire: the format.
        options: the settings.
        probe: for a probe, a block's opener: the reader starts at it, and stops when a call is announced or the block
            is over.
        competing: for a probe, other formats matter from where its call is announced, so it stops right there.
        position: position of the text's first character; negative for text of the prompt.
        blank: no content but white space came before.
        fast: number of failed attempts to read JSON the fast way, shared by probes over the same text.

    Attributes:
        decided: the probe has stopped.
        ended: the text is over.
    """

    _until_call = False
    """Reading stops where the first call is announced, and behind the reasoning."""

    def __init__(
        self,
        wire: WireFormat,
        options: ReadOptions,
        *,
        probe: str = "",
        competing: bool = False,
        position: int = 0,
        blank: bool = True,
        fast: FastJsonReader | None = None,
    ) -> None:
        self.wire = wire
        self._events: list[Event] = []
        self._unadvised: list[tuple[int, str]] = []  # places of problems among them, and the tools' names
        shared = () if probe else options.shared
        compiled = compile_format(with_shared_shapes(wire, shared) if shared else wire)
        fast = fast or FastJsonReader()
        self._state = MessageState(wire, compiled, options, self._events.append, position, fast)
        self._tail = ""
        self._state.probing, self._state.competing = bool(probe), competing
        self.decided = self.ended = False
        self._begin = position
        self._rescanned = 0  # number of characters that leaves looked at without consuming them
        self._raw: BlockText | None = None  # text of the block that is being read
        self._announced_before = 0  # number of calls announced before that block
        self._content = ContentScanner(
            self._state.compiled.content,
            self._events.append,
            reasoning=options.reasoning_started,
            blank=blank,
            fences=options.fences,
            lookahead=self._state.compiled.lookahead(options.tools),
        )
        self._content.stops_behind_reasoning = self._until_call
        self._control = self._message(probe)
        self._leaf: Leaf = next(self._control)

    # -- the driver ----------------------------------------------------------------------------------------------

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece; return the events that became certain."""
        leaf = self._leaf
        if self._tail:
            fed, text = len(text), self._tail + text
            # A marker that arrives in pieces is compared once for each piece, and not scanned again.
            if leaf.waiting is not None and leaf.waiting.is_prefix(text):
                self._tail = text
                self._rescanned += fed
                return ()
        quick = leaf.quick
        # The shortest way for most pieces: inside a long value they contain nothing that matters.
        plain = 0
        if quick is not None:
            plain = len(text) if quick(text) is None else leaf.plain_length(text)
        if plain:
            self._tail = ""
            if plain < len(text):
                text, self._tail = text[:plain], text[plain:]
                self._rescanned += len(self._tail)
            self._state.start += plain
            leaf.pass_on(text)
            if self._raw is not None:
                self._raw.add(text)
        else:
            self._tail = text[self.advance(text, 0, False) :]
        return self.take_events() if self._events else ()

    def finish(self) -> Sequence[Event]:
        """Read the end of the text; return the last events."""
        self.end(self._tail, 0)
        self._tail = ""
        return self.take_events()

    def take_events(self) -> Sequence[Event]:
        """Return the events since the last call of this method."""
        events = self._events
        if self._unadvised:
            self._advise()
        taken_events = events.copy()
        events.clear()
        return taken_events

    def _advise(self) -> None:
        """Add an example of a call to the problems that were found since the last call of `take_events`."""
        for at, name in self._unadvised:
            event = self._events[at]
            assert isinstance(event, ProblemFound)
            advice = self._state.options.hint(self.wire, name)
            self._events[at] = ProblemFound(replace(event.problem, message=event.problem.message + advice))
        self._unadvised.clear()

    def advance(self, text: str, pos: int, final: bool) -> int:
        """Read `text` from `pos`; return the position where more text is needed, or a probe is decided."""
        state = self._state
        state.start += state.pos - pos
        state.pos = state.copied = pos
        state.text = text
        while not self.decided:
            leaf = self._leaf
            leaf.waiting = None
            state.pos = leaf.scan(text, state.pos, final)
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
            if state.announced and (state.probing or self._until_call):
                self.decided = True
        if self._raw is not None:
            self._raw.end_piece()
        stop = state.pos
        if not self.decided:
            self._rescanned += min(len(text) - stop, _LOOK)
        return stop

    @property
    def position(self) -> int:
        """Position of the next character, in code points."""
        return self._state.position

    @property
    def scanned(self) -> int:
        """Number of characters that leaves looked at, for tests of linearity."""
        return self.position - self._begin + self._rescanned

    def end(self, text: str, pos: int) -> int:
        """Read `text` from `pos` as the end of the message; return the position where reading stopped."""
        pos = self.advance(text, pos, True)
        if self.ended or self.decided:
            return pos
        if pos < len(text):  # the leaf could not decide about this text, which belongs to what is cut
            if self._raw is not None:
                self._raw.add(text[pos - min(0, self.position) :])
            self._state.start += len(text) - pos
        with contextlib.suppress(StopIteration):
            # A block that only the end of the text breaks reads on, for the rest of the broken call.
            while True:
                self._control.throw(EndOfText())
        self.ended = True
        return len(text)

    # -- probes --------------------------------------------------------------------------------------------------

    @property
    def announced(self) -> bool:
        """True if a call was announced."""
        return self._state.announced > 0

    def stop_probing(self) -> None:
        """Read on as the reader of the whole message."""
        self._state.probing = self._state.competing = self.decided = False
        if self._state.options.shared:  # the blocks after this one may have other shapes
            self._state.compiled = compile_format(after_first_call(self.wire, self._state.options.shared))
            compiled = self._state.compiled
            self._content.use_markers(compiled.content, compiled.lookahead(self._state.options.tools))

    @property
    def complete_calls(self) -> int:
        """Number of calls read to their end."""
        return self._state.complete

    @property
    def answering(self) -> bool:
        """True if text that its format marks as the answer was read."""
        return self._content.answering

    @property
    def held(self) -> int:
        """Number of characters held back."""
        return len(self._tail)

    # -- the message ---------------------------------------------------------------------------------------------

    def _message(self, probe: str) -> Control:
        prose = self._content
        opener = probe
        while True:
            try:
                if not opener:
                    opener = yield prose
                if not opener:  # the reasoning is over, and nothing behind it is read
                    self.decided = True
                    return
            except EndOfText:
                hidden = prose.finish()
                if hidden and self._hides_calls(hidden):
                    self._events.extend(hidden_by_fence(hidden, self.position))
                return
            heads_line = prose.at_line_start
            prose.resume()
            try:
                yield from self._block(self._state.compiled.blocks[opener], heads_line=heads_line)
            except EndOfText:
                return
            if self._state.probing:
                self.decided = True
            opener = ""

    def _hides_calls(self, text: str) -> bool:
        # Reading the hidden text again keeps the parser linear, because it happens once, at the end of the message.
        options = replace(self._state.options, fences=False, deltas=False, reasoning_started=False)
        reader = MessageReader(self.wire, options)
        reader.feed(text)
        reader.finish()
        return reader.complete_calls > 0

    def _block(self, block: Block, *, heads_line: bool) -> Control:
        reader = NodeReader(self._state, block, heads_line=heads_line)
        self._raw = reader.raw
        self._announced_before = self._state.announced
        try:
            yield from reader.read()
        except Unreadable as error:
            text = self._end_broken(reader, error)
            if reader.committed:
                yield from self._rest_of_broken(block, text)
        except EndOfText:
            self._end_cut(reader)
            self._leave_block(reader)
            raise
        self._leave_block(reader)

    def _rest_of_broken(self, block: Block, text: str) -> Control:
        """Read on up to the end of a broken call's text, so that no call is read in the strings that it contains."""
        rest = RestOfBrokenCall(text, frozenset(self._state.compiled.blocks).union(block.closers.spelled))
        if block.has_strings and rest.is_inside:
            with contextlib.suppress(EndOfText):
                yield rest

    def _leave_block(self, reader: NodeReader) -> None:
        """Turn the text that the block did not use into content."""
        rest = reader.raw.take()
        self._raw = None
        heading = not reader.marked and reader.reported
        if (self._block_called or (heading and reader.committed)) and self._content.reasoning:
            self._content.leave_reasoning()
        if not (reader.committed or self._block_called or self._state.probing):
            # The block's opener may also be a marker around content, which is dropped elsewhere too.
            drops = [drop for drop in self._state.compiled.content.drops if rest.startswith(drop)]
            rest = rest.removeprefix(max(drops, key=len, default=""))
        if reader.fence and rest.startswith(reader.fence):  # it shows something else than a call, and hides calls
            self._content.add_rejected_block(rest)
        else:
            self._content.add_content(rest, fence=reader.fence)

    @property
    def _block_called(self) -> bool:
        """True if a call was announced in the block; without one, a marker in reasoning is only mentioned."""
        return self._state.announced > self._announced_before

    def _end_broken(self, reader: NodeReader, error: Unreadable) -> str:
        """End a block that is not what it began as: its text, which is returned, is content, and a problem."""
        reader.end_call()
        text = reader.raw.take()
        reader.raw.add(text)
        name = reader.call.name if reader.call is not None else ""
        index = self._abandon(reader, text)
        if (reader.reported and reader.committed) or index is not None:
            kind: ProblemKind = "missing_name" if error.kind == "missing_name" else "malformed"
            self._problem(kind, text, _sentence(str(error), text), name, index)
        return text

    def _end_cut(self, reader: NodeReader) -> None:
        """End a block in which the text ended: a complete call lacks its closing marker, any other is incomplete."""
        if reader.call is not None and reader.call.payload and reader.call.may_repair:
            reader.missing_close()
            reader.end_call()
            return
        if reader.call is not None and reader.marked:
            # Users see an incomplete call whose name was read, even where announcing it would have waited.
            reader.announce(reader.call)
        text = reader.raw.take()
        index = self._abandon(reader, text)
        if index is not None:
            name = reader.call.name if reader.call is not None else ""
            why = f"The text ends inside the call to {name!r}, so it was not run. Send it again, whole and shorter."
            self._problem("truncated", text, why, name, index)
            return
        pseudo = reader.call is not None and reader.call.pseudo
        if reader.reported and reader.committed and text.strip() and not pseudo:
            why = "The text ends inside a tool call, before its name. Send the call again, whole."
            self._problem("truncated", text, why, "")
        reader.raw.add(text)

    def _abandon(self, reader: NodeReader, text: str) -> int | None:
        """End an announced call as incomplete; return its index, or None if no call was announced."""
        call = reader.call
        if call is None or call.index < 0:
            return None
        call.end(text, self.wire.name, self.wire.confidence, complete=False)
        return call.index

    def _problem(self, kind: ProblemKind, raw: str, message: str, name: str, index: int | None = None) -> None:
        # Reasoning may mention a marker. In ReAct, whose thoughts have no end of their own, it means it.
        if self._content.reasoning and not self._block_called and self.wire.markers:
            return
        if self.position < 0 and index is None:
            return  # the problem is in the prompt's text, which was not fed
        # An example takes longer than the rest of a short message, and most probes' problems are thrown away.
        self._unadvised.append((len(self._events), name))
        self._events.append(ProblemFound(Problem(kind, max(0, self.position - len(raw)), raw, message, index)))


def hidden_by_fence(hidden: str, position: int) -> Iterator[ProblemFound]:
    """Yield the problem that an unclosed fence or other quotation hid calls, if any of its text was fed.

    Args:
        hidden: the text inside the quotation.
        position: where the text ended, in characters; text before the first one was in the prompt.
    """
    hidden = hidden[max(0, len(hidden) - max(0, position)) :]  # the rest is in the prompt
    if hidden:
        why = (
            "A code fence, a CDATA section, a string of JSON, the tag of a parameter or result, or a turn that is not "
            "yours was opened and never closed. The tool call inside it was not read. Write tool calls outside such "
            "text."
        )
        yield ProblemFound(Problem("hidden_by_fence", position - len(hidden), hidden, why))


def _sentence(reason: str, text: str) -> str:
    quoted = repr(shorten(text, MESSAGE_LIMIT))
    if len(quoted) > 2 * MESSAGE_LIMIT:  # escapes
        quoted = repr(shorten(text, MESSAGE_LIMIT // 4))
    return f"A tool call could not be read: {reason}. It was written: {quoted}."
