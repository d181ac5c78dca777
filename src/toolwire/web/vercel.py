"""The data stream of Vercel's AI SDK, which `useChat` reads.

The chunks are those that versions 5 and 6 have in common, with no member besides those of their strict schemas.

Source: ai-sdk.dev/docs/ai-sdk-ui/stream-protocol, and the schema of the chunks in the package `ai`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from toolwire._surface import check_type
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.messages import ToolCall, ToolResult
from toolwire.telemetry.run_observer import new_run_id
from toolwire.web.web_encoder import Block, Chunk, WebEncoder, encoded, server_sent_event

VERCEL_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-vercel-ai-ui-message-stream": "v1",
        "x-accel-buffering": "no",
    }
)
"""Headers of the response; without the third one the AI SDK does not recognise the stream."""


def vercel_stream(events: AsyncGenerator[AgentEvent], *, message_id: str = "") -> AsyncGenerator[bytes]:
    """Yield a run as a data stream of the AI SDK; send it with `VERCEL_HEADERS`. Closing the iterator stops the run.

    Args:
        events: the events of the run: `agent.run(task)`.
        message_id: the id of the answer; "" for a new one.

    Raises:
        TypeError: the events are of another type, such as a list.
    """
    check_type("events", events, AsyncIterator, "an iterator of events, such as agent.run(task) returns")
    return encoded(VercelEncoder(message_id), events)


class VercelEncoder(WebEncoder):
    """Encodes the events of one run as chunks of the AI SDK.

    The tools are dynamic ones, since the front end does not know their types. A request for approval is a part
    `data-approval`, and progress is a preliminary output.

    Args:
        message_id: the id of the answer; "" for a new one.
    """

    def __init__(self, message_id: str = "") -> None:
        super().__init__(message_id or new_run_id())
        self._names: dict[str, str] = {}  # of calls, by id
        self._in_step = False

    def begin(self) -> bytes:
        """See `WebEncoder`."""
        return server_sent_event({"type": "start", "messageId": self.id})

    def turn(self, round: int) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield from self._end_step()
        self._in_step = True
        yield {"type": "start-step"}

    def _end_step(self) -> Iterator[Chunk]:
        if self._in_step:
            yield {"type": "finish-step"}
        self._in_step = False

    def block_start(self, block: Block, id: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {"type": f"{block}-start", "id": id}

    def block_piece(self, block: Block, id: str, text: str) -> Chunk:
        """See `WebEncoder`."""
        return {"type": f"{block}-delta", "id": id, "delta": text}

    def block_end(self, block: Block, id: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {"type": f"{block}-end", "id": id}

    def call_start(self, id: str, name: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        self._names[id] = name
        yield {"type": "tool-input-start", "toolCallId": id, "toolName": name, "dynamic": True}

    def call_piece(self, id: str, text: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        if text:
            yield {"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": text}

    def call_end(self, id: str, call: ToolCall | None) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        about = {"toolCallId": id, "toolName": self._names[id], "dynamic": True}
        if call is None:
            error = "the call was cut off, or cannot be read"
            yield {"type": "tool-input-error", **about, "input": None, "errorText": error}
        else:
            yield {"type": "tool-input-available", **about, "input": call.arguments}

    def progress(self, call: ToolCall, value: Any) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {**self._output(call), "output": value, "preliminary": True}

    def approval(self, call: ToolCall, reason: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {"type": "data-approval", "data": {"toolCallId": call.id, "toolName": call.name, "reason": reason}}

    def result(self, call: ToolCall, result: ToolResult) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        if result.success:
            yield {**self._output(call), "output": result.result}
        else:
            yield {"type": "tool-output-error", "toolCallId": call.id, "errorText": result.text, "dynamic": True}

    @staticmethod
    def _output(call: ToolCall) -> Chunk:
        return {"type": "tool-output-available", "toolCallId": call.id, "dynamic": True}

    def end(self, end: RunEnded) -> Iterator[Chunk]:
        """See `WebEncoder`: a run that waits for approvals has finished too; others without an answer have failed."""
        yield from self._end_step()
        # An error is not the last chunk: the front end waits for the end of the message in any case.
        if not end.good and end.reason != "pending":
            yield {"type": "error", "errorText": end.detail or end.reason}
        yield {"type": "finish"}

    def finish(self) -> bytes:
        """See `WebEncoder`."""
        return b"data: [DONE]\n\n"
