"""Streams of numbered blocks, one open at a time: when a block begins and ends, for the APIs that have them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Literal

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.messages import FinishReason, OpaquePart, ReasoningPart, Usage

Block = Literal["text", "reasoning", "call"]


class BlockWriter(ABC):
    """Writes the events of one stream; what an API says of a block is its own.

    Attributes:
        index: of the block that was begun last; -1 before the first.
        reason: why the answer ended.
        usage: what was counted.
    """

    def __init__(self) -> None:
        self.index = -1
        self.reason = FinishReason.STOP
        self.usage = Usage()
        self._open: Block | None = None

    def write(self, events: Iterable[Event]) -> Iterator[bytes]:
        """The bytes that say these events."""
        yield from self.first()
        for event in events:
            yield from self._event(event)
        yield from self.close()
        yield from self.last()

    def _event(self, event: Event) -> Iterator[bytes]:
        match event:
            case ContentDelta(text):
                yield from self.begin("text")
                yield self.piece("text", text)
            case ReasoningDelta(text):
                yield from self.begin("reasoning")
                yield self.piece("reasoning", text)
            case ReasoningEnd(part):
                yield from self.sealed(part)
                if self._open == "reasoning":
                    yield from self.close()
            case CallStart():
                yield from self.close()
                yield from self.begin("call", event)
            case ArgumentsDelta(_, text):
                yield self.piece("call", text)
            case CallEnd():
                yield from self.close()
            case Passed(part):
                yield from self.passed(part)
            case UsageCounted(usage):
                self.usage = usage
            case Finish(reason):
                self.reason = reason
            case _:  # a problem: nothing stands for it
                pass

    def begin(self, block: Block, call: CallStart | None = None) -> Iterator[bytes]:
        """Go on in a block of this kind, or begin one."""
        if self._open != block:
            yield from self.close()
            self._open = block
            self.index += 1
            yield from self.opened(block, call)

    def close(self) -> Iterator[bytes]:
        """End the open block, if there is one."""
        if self._open is not None:
            self._open = None
            yield self.closed()

    # -- what an API's file says ---------------------------------------------------------------------------------

    @abstractmethod
    def first(self) -> Iterator[bytes]:
        """How the stream begins."""

    @abstractmethod
    def last(self) -> Iterator[bytes]:
        """How it ends."""

    @abstractmethod
    def opened(self, block: Block, call: CallStart | None) -> Iterator[bytes]:
        """That a block begins; with the call that it is."""

    @abstractmethod
    def piece(self, block: Block, text: str) -> bytes:
        """More of a block; of a call that is JSON."""

    @abstractmethod
    def closed(self) -> bytes:
        """That a block ends."""

    @abstractmethod
    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        """What reasoning needs to travel back."""

    def passed(self, part: OpaquePart) -> Iterator[bytes]:
        """What no event of ours says; nothing, where an API has no place for it."""
        return iter(())
