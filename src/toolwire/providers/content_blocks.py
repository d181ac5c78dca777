"""Writers of streams that consist of blocks, one open at a time: when a block begins and ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Literal

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    CitationReceived,
    ContentDelta,
    Event,
    OpaquePartReceived,
    ReasoningDelta,
    ReasoningEnd,
)
from toolwire.messages import CitationPart, OpaquePart, ReasoningPart
from toolwire.providers.stream_codec import WAITING, Head, StreamEnd, in_order

Block = Literal["text", "reasoning", "call"]


class BlockWriter(ABC):
    """Writes the events of one stream; a subclass spells the blocks.

    Attributes:
        index: number of the current block; -1 before the first.
        block: the kind of the open block; None between blocks.
    """

    def __init__(self, head: Head, end: StreamEnd) -> None:
        self.head = head
        self.end = end
        self.index = -1
        self.block: Block | None = None

    def write(self, events: Iterable[Event]) -> Iterator[bytes]:
        """Yield the bytes of these events."""
        yield from self.first()
        for event in in_order(events):
            if event is WAITING:
                yield b""
                continue
            match event:
                case ContentDelta(""):
                    if self.block == "text":
                        yield from self.close()
                case ContentDelta(text):
                    yield from self.begin("text")
                    yield from self.piece(text)
                case ReasoningDelta(text):
                    yield from self.begin("reasoning")
                    yield from self.piece(text)
                case ReasoningEnd(part):
                    yield from self.sealed(part)
                    if self.block == "reasoning":
                        yield from self.close()
                case CallStart():
                    yield from self.close()
                    yield from self.begin("call", event)
                case ArgumentsDelta(_, text):
                    yield from self.piece(text)
                case CallEnd():
                    yield from self.close(event)
                case CitationReceived(part):
                    yield from self.cited(part)
                case OpaquePartReceived(part):
                    yield from self.passed(part)
                case _:  # no other event has a place in a stream
                    pass
        yield from self.close()
        yield from self.last()

    def begin(self, block: Block, call: CallStart | None = None) -> Iterator[bytes]:
        """Begin a block, unless one of this kind is open."""
        if self.block != block:
            yield from self.close()
            self.block = block
            self.index += 1
            yield from self.opened(call)

    def close(self, call: CallEnd | None = None) -> Iterator[bytes]:
        """End the open block, if there is one."""
        if self.block is not None:
            yield from self.closed(call)
            self.block = None

    # -- spelled by the API's own module -------------------------------------------------------------------------

    @abstractmethod
    def first(self) -> Iterator[bytes]:
        """Yield the beginning of the stream."""

    @abstractmethod
    def last(self) -> Iterator[bytes]:
        """Yield the end of the stream."""

    @abstractmethod
    def opened(self, call: CallStart | None) -> Iterator[bytes]:
        """Yield the beginning of the open block."""

    @abstractmethod
    def piece(self, text: str) -> Iterator[bytes]:
        """Yield a piece of the open block; of a call that is JSON."""

    @abstractmethod
    def closed(self, call: CallEnd | None) -> Iterator[bytes]:
        """Yield the end of the open block."""

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        """Yield the members of reasoning that have to be sent back; nothing, if the API has no place for them."""
        return iter(())

    def cited(self, part: CitationPart) -> Iterator[bytes]:
        """Yield the sources of a statement in the text so far; nothing, if the API has no place for them."""
        return iter(())

    def passed(self, part: OpaquePart) -> Iterator[bytes]:
        """Yield an item of this API's own; nothing, if a stream has no place for it."""
        return iter(())
