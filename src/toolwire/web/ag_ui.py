"""AG-UI, the protocol between agents and user interfaces.

Source: docs.ag-ui.com/concepts/events; the tests decode every event with the package `ag-ui-protocol`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

from toolwire._surface import check_type
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.messages import ToolCall, ToolResult
from toolwire.telemetry.run_observer import new_run_id
from toolwire.web.web_encoder import Block, Chunk, WebEncoder, encoded, server_sent_event


def ag_ui_stream(events: AsyncGenerator[AgentEvent], *, thread_id: str = "", run_id: str = "") -> AsyncGenerator[bytes]:
    """Yield a run as AG-UI events, for a response of the type `text/event-stream`; closing the iterator stops the run.

    Args:
        events: the events of the run: `agent.run(task)`.
        thread_id: the id of the conversation, as `RunAgentInput` has it; "" for a new one.
        run_id: the id of the run, likewise.

    Raises:
        TypeError: the events are of another type, such as a list.
    """
    check_type("events", events, AsyncIterator, "an iterator of events, such as agent.run(task) returns")
    return encoded(AgUiEncoder(thread_id, run_id), events)


class AgUiEncoder(WebEncoder):
    """Encodes the events of one run as AG-UI events.

    Progress and requests for approval are `CUSTOM` events, named `progress` and `approval_requested`.

    Args:
        thread_id: the id of the conversation; "" for a new one.
        run_id: the id of the run; "" for a new one.
    """

    def __init__(self, thread_id: str = "", run_id: str = "") -> None:
        run_id = run_id or new_run_id()
        super().__init__(run_id)
        self._ids = {"threadId": thread_id or new_run_id(), "runId": run_id}
        self._step = ""

    def begin(self) -> bytes:
        """See `WebEncoder`."""
        return server_sent_event({"type": "RUN_STARTED", **self._ids})

    def turn(self, round: int) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield from self._end_step()
        self._step = f"round {round}"
        yield {"type": "STEP_STARTED", "stepName": self._step}

    def _end_step(self) -> Iterator[Chunk]:
        if self._step:
            yield {"type": "STEP_FINISHED", "stepName": self._step}
        self._step = ""

    def block_start(self, block: Block, id: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        if block == "text":
            yield {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}
            return
        yield {"type": "REASONING_START", "messageId": id}
        yield {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}

    def block_piece(self, block: Block, id: str, text: str) -> Chunk:
        """See `WebEncoder`."""
        kind = "TEXT_MESSAGE_CONTENT" if block == "text" else "REASONING_MESSAGE_CONTENT"
        return {"type": kind, "messageId": id, "delta": text}

    def block_end(self, block: Block, id: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        if block == "text":
            yield {"type": "TEXT_MESSAGE_END", "messageId": id}
            return
        yield {"type": "REASONING_MESSAGE_END", "messageId": id}
        yield {"type": "REASONING_END", "messageId": id}

    def call_start(self, id: str, name: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}

    def call_piece(self, id: str, text: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        if text:
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": text}

    def call_end(self, id: str, call: ToolCall | None) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {"type": "TOOL_CALL_END", "toolCallId": id}

    def progress(self, call: ToolCall, value: Any) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {"type": "CUSTOM", "name": "progress", "value": {"toolCallId": call.id, "value": value}}

    def approval(self, call: ToolCall, reason: str) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        yield {"type": "CUSTOM", "name": "approval_requested", "value": {"toolCallId": call.id, "reason": reason}}

    def result(self, call: ToolCall, result: ToolResult) -> Iterator[Chunk]:
        """See `WebEncoder`."""
        message = {"messageId": f"{self.id}-{call.id}", "toolCallId": call.id, "content": result.text, "role": "tool"}
        yield {"type": "TOOL_CALL_RESULT", **message}

    def end(self, end: RunEnded) -> Iterator[Chunk]:
        """See `WebEncoder`: a run that waits for approvals has finished too; others without an answer have failed."""
        yield from self._end_step()
        if end.good or end.reason == "pending":
            yield {"type": "RUN_FINISHED", **self._ids, "result": {"reason": end.reason}}
        else:
            yield {"type": "RUN_ERROR", "message": end.detail or end.reason, "code": end.reason}
