"""The base of encoders for web front ends: blocks of text and reasoning with ids, and calls that begin and end once."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, Literal, final

from toolwire.agent.run_events import (
    AgentEvent,
    ApprovalRequested,
    ProgressReported,
    RunEnded,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, ReasoningDelta
from toolwire.messages import ToolCall, ToolResult

Block = Literal["text", "reasoning"]
Chunk = dict[str, Any]
"""A message of the protocol, as a JSON object."""


class WebEncoder(ABC):
    """Encodes the events of one run; subclasses write the messages of a protocol.

    A front end sees the text, the reasoning, the calls with their results, progress, requests for approval and the end.
    Events of members of a team are left out, since a front end has no place for a run inside another.

    Args:
        id: identifies the answer; ids of its blocks begin with it.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self._block: Block | None = None
        self._blocks = 0
        self._open_calls: dict[int, str] = {}  # ids of calls that are being written, by their number in the answer
        self._written: set[str] = set()  # ids of calls that were written in full

    @final
    def encode(self, event: AgentEvent) -> bytes:
        """Return the server-sent events of an event; no bytes if the front end does not see it."""
        return b"".join(map(server_sent_event, self._chunks(event)))

    def _chunks(self, event: AgentEvent) -> Iterator[Chunk]:
        match event:
            case TurnStarted(round):
                yield from self._close()
                yield from self.turn(round)
            case ContentDelta(text) if text:
                yield from self._piece("text", text)
            case ReasoningDelta(text) if text:
                yield from self._piece("reasoning", text)
            case CallStart(index, name, id):
                yield from self._close_block()
                self._open_calls[index] = id
                yield from self.call_start(id, name)
            case ArgumentsDelta(index, text) if index in self._open_calls:
                yield from self.call_piece(self._open_calls[index], text)
            case CallEnd(index, call, complete) if index in self._open_calls:
                yield from self._end_call(index, call if complete else None)
            case ToolStarted(call):
                yield from self._announce(call)
            case ProgressReported(call, value):
                yield from self.progress(call, value)
            case ApprovalRequested(approval):
                yield from self._announce(approval.call)
                yield from self.approval(approval.call, approval.reason)
            case ToolFinished(outcome):
                yield from self._announce(outcome.call)
                yield from self.result(outcome.call, outcome.result)
            case RunEnded():
                yield from self._close()
                yield from self.end(event)
            case _:
                pass

    def _piece(self, block: Block, text: str) -> Iterator[Chunk]:
        if self._block != block:
            yield from self._close_block()
            self._blocks += 1
            self._block = block
            yield from self.block_start(block, self._block_id)
        yield self.block_piece(block, self._block_id, text)

    @property
    def _block_id(self) -> str:
        return f"{self.id}-{self._blocks}"

    def _close_block(self) -> Iterator[Chunk]:
        block, self._block = self._block, None
        if block is not None:
            yield from self.block_end(block, self._block_id)

    def _close(self) -> Iterator[Chunk]:
        """End what is open; calls are open here if the answer broke off."""
        yield from self._close_block()
        for index in list(self._open_calls):
            yield from self._end_call(index, None)

    def _end_call(self, index: int, call: ToolCall | None) -> Iterator[Chunk]:
        id = self._open_calls.pop(index)
        self._written.add(id)
        yield from self.call_end(id, call)

    def _announce(self, call: ToolCall) -> Iterator[Chunk]:
        """Write a call whose pieces were not streamed."""
        # Text that is searched for calls at its end, and hooks, give calls that no piece announced.
        if call.id in self._written or call.id in self._open_calls.values():
            return
        yield from self._close_block()
        self._written.add(call.id)
        yield from self.call_start(call.id, call.name)
        yield from self.call_piece(call.id, json_text(call.arguments))
        yield from self.call_end(call.id, call)

    @abstractmethod
    def begin(self) -> bytes:
        """Return the bytes at the beginning of the stream."""

    @abstractmethod
    def turn(self, round: int) -> Iterator[Chunk]:
        """Begin a turn of the model."""

    @abstractmethod
    def block_start(self, block: Block, id: str) -> Iterator[Chunk]:
        """Begin a block of text or reasoning."""

    @abstractmethod
    def block_piece(self, block: Block, id: str, text: str) -> Chunk:
        """Return a piece of a block."""

    @abstractmethod
    def block_end(self, block: Block, id: str) -> Iterator[Chunk]:
        """End a block."""

    @abstractmethod
    def call_start(self, id: str, name: str) -> Iterator[Chunk]:
        """Begin a call."""

    @abstractmethod
    def call_piece(self, id: str, text: str) -> Iterator[Chunk]:
        """Write a piece of the JSON text of a call's arguments."""

    @abstractmethod
    def call_end(self, id: str, call: ToolCall | None) -> Iterator[Chunk]:
        """End the arguments of a call; None for a call that was cut off or cannot be read."""

    @abstractmethod
    def progress(self, call: ToolCall, value: Any) -> Iterator[Chunk]:
        """Write the progress of a call."""

    @abstractmethod
    def approval(self, call: ToolCall, reason: str) -> Iterator[Chunk]:
        """Write that a call waits for an approval."""

    @abstractmethod
    def result(self, call: ToolCall, result: ToolResult) -> Iterator[Chunk]:
        """Write the result of a call."""

    @abstractmethod
    def end(self, end: RunEnded) -> Iterator[Chunk]:
        """End the run."""

    def finish(self) -> bytes:
        """Return the bytes at the end of the stream."""
        return b""


async def encoded(encoder: WebEncoder, events: AsyncGenerator[AgentEvent]) -> AsyncGenerator[bytes]:
    """Yield the bytes of a run; closing the iterator stops the run."""
    async with aclosing(events):
        # The first bytes are sent before the model answers, so that a front end shows at once that the run has begun.
        yield encoder.begin()
        async for event in events:
            if data := encoder.encode(event):
                yield data
        yield encoder.finish()


def server_sent_event(value: Chunk) -> bytes:
    """Return one server-sent event."""
    return f"data: {json_text(value)}\n\n".encode("utf-8", "replace")


def json_text(value: Any) -> str:
    """Return JSON text without blanks; values that JSON does not have become text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
