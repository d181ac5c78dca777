"""Reading of reasoning without calls, and of calls without reasoning, for engines that read the two apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from toolwire.events import CallStart, ContentDelta, Event, ReasoningDelta
from toolwire.text.identity_cache import IdentityCache
from toolwire.wire.block_reader import Control, ReadOptions
from toolwire.wire.compiled_format import Block
from toolwire.wire.message_reader import MessageReader
from toolwire.wire.syntax import WireFormat

_changed = IdentityCache(256)
"""Changed descriptions, because a format is compiled once per object."""


def without_reasoning(wire: WireFormat) -> WireFormat:
    """Return a format in which the markers of reasoning are content."""
    changed: WireFormat = _changed.get(lambda: replace(wire, spans=()), (wire,), "calls")
    return changed


def formats_without_reasoning(formats: tuple[WireFormat, ...]) -> tuple[WireFormat, ...]:
    """Return formats in which the markers of reasoning are content."""
    changed: tuple[WireFormat, ...] = _changed.get(lambda: tuple(map(without_reasoning, formats)), (formats,), "calls")
    return changed


def any_reasoning(formats: tuple[WireFormat, ...]) -> WireFormat:
    """Return a format without calls that has the markers of reasoning of all formats, except ordinary words."""

    def merge() -> WireFormat:
        spans = {span.open: span for wire in formats for span in wire.spans if not span.prose}
        return WireFormat(name="any_reasoning", spans=tuple(spans.values()))

    merged: WireFormat = _changed.get(merge, (formats,), "reasoning")
    return merged


def _only_reasoning(wire: WireFormat) -> WireFormat:
    # The parser of the rest drops the markers around content.
    changed: WireFormat = _changed.get(lambda: replace(wire, drop=(), answers=()), (wire,), "reasoning")
    return changed


class ReasoningReader:
    """A reader of the first stretch of reasoning in a message; everything else is content, as it was written.

    The first call of the message is read up to where it is announced, because it may end the reasoning.

    Args:
        wire: the format.
        options: the settings.
        position: position of the text's first character; negative for text of the prompt.
    """

    answering = False
    complete_calls = 0

    def __init__(self, wire: WireFormat, options: ReadOptions, *, position: int = 0) -> None:
        self._reader = _BeginningReader(_only_reasoning(wire), options, position=position)
        self._unread = deque[str]()  # pieces of text that may have to be returned as they were written
        self._unread_from = position  # position of their first character
        self._is_over = False

    @property
    def held(self) -> int:
        """Number of characters held back."""
        return self._reader.held

    @property
    def scanned(self) -> int:
        """Number of characters scanned; see `MessageReader.scanned`."""
        return self._reader.scanned

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece; return the events that became certain."""
        if self._is_over:
            return (ContentDelta(text),) if text else ()
        self._unread.append(text)
        events = _texts(self._reader.feed(text))
        self._forget_read_text()
        if not self._reader.decided:
            return events
        self._is_over = True
        return [*events, *self._rest()]

    def finish(self) -> Sequence[Event]:
        """Read the end of the text; return the last events."""
        if self._is_over:
            return ()
        events = _texts(self._reader.finish())
        return [*events, *self._rest()] if self._reader.announced else events

    def _forget_read_text(self) -> None:
        while self._unread and self._unread_from + len(self._unread[0]) <= self._reader.unread_from:
            self._unread_from += len(self._unread.popleft())

    def _rest(self) -> Sequence[Event]:
        rest = "".join(self._unread)[max(0, self._reader.unread_from) - self._unread_from :]
        return (ContentDelta(rest),) if rest else ()


class _BeginningReader(MessageReader):
    """A reader of a message up to its first call, or the end of its reasoning."""

    _until_call = True
    _block_start: int | None = None

    @property
    def unread_from(self) -> int:
        """Position of the block that is being read, or of the next character."""
        return self.position if self._block_start is None else self._block_start

    def _block(self, block: Block, *, heads_line: bool) -> Control:
        self._block_start = self.position
        yield from super()._block(block, heads_line=heads_line)
        if not self.announced:
            self._block_start = None


def _texts(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of text before the first call; the parser of the rest reports its calls and problems."""
    before_call = takewhile(lambda event: not isinstance(event, CallStart), events)
    return [event for event in before_call if isinstance(event, ContentDelta | ReasoningDelta)]
