"""The streams of Anthropic Messages, and what they share with whole answers: thinking, errors, counts.

Source: https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.events import CallStart
from toolwire.messages import FinishReason, OpaquePart, ReasoningPart, Usage
from toolwire.providers.base import Head, Json, object_of
from toolwire.providers.content_blocks import Block, BlockWriter
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import Frame, sse
from toolwire.providers.response_builder import Assembler

KIND = "anthropic_messages"


class StreamReader:
    """Reads the events of one stream."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._blocks: dict[int, Json] = {}  # those that are open
        self._pieces: dict[int, list[str]] = {}  # of the text or the JSON of a block that is kept
        self._counted: Json = {}

    def read(self, frame: Frame) -> None:
        """Tell the assembler what the next event says."""
        event = frame.value
        assembler = self._assembler
        match event.get("type"):
            case "content_block_delta":
                self._delta(event["index"], event["delta"])
            case "content_block_start":
                self._start(event["index"], dict(event["content_block"]))
            case "content_block_stop":
                self._stop(event["index"])
            case "message_start":
                self._counted = dict(event["message"].get("usage") or {})
            case "message_delta":
                reason = read_reason(KIND, event["delta"].get("stop_reason"))
                assembler.reason = reason or assembler.reason
                read_usage(event.get("usage"), self._counted, assembler)
            case _:
                failed(event, assembler)

    def _start(self, index: int, block: Json) -> None:
        assembler = self._assembler
        self._blocks[index] = block
        self._pieces[index] = []
        match block.get("type"):
            case "text":
                assembler.text(block.get("text"))
            case "tool_use":
                assembler.begin(index, block.get("name"), block.get("id"))
                if block.get("input"):
                    assembler.arguments(index, block["input"])
            case "thinking":
                assembler.reasoning(block.get("thinking"))
                self._pieces[index].append(block.get("thinking") or "")
            case _:
                pass

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        assembler = self._assembler
        block = self._blocks.get(index)
        match delta.get("type"):
            case "text_delta":
                assembler.text(delta["text"])
            case "input_json_delta":
                if block is not None and block.get("type") == "tool_use":
                    assembler.arguments(index, delta["partial_json"])
                elif block is not None:
                    self._pieces[index].append(delta["partial_json"])
            case "thinking_delta":
                assembler.reasoning(delta["thinking"])
                self._pieces.setdefault(index, []).append(delta["thinking"])
            case "signature_delta" if block is not None:
                block["signature"] = block.get("signature", "") + delta["signature"]
            case _:
                pass

    def _stop(self, index: int) -> None:
        assembler = self._assembler
        block, pieces = self._blocks.pop(index, None), "".join(self._pieces.pop(index, ()))
        match block:
            case None:
                return
            case {"type": "tool_use"}:
                assembler.end(index)
            case {"type": "thinking"}:
                assembler.reasoned(thinking_part({**block, "thinking": pieces}))
            case {"type": "redacted_thinking"}:
                assembler.reasoned(thinking_part(block))
            case {"type": "text"}:
                pass
            case _:
                if pieces:
                    block["input"] = object_of(pieces)
                assembler.passed(block)


_OPENED: dict[str, Json] = {
    "text": {"type": "text", "text": ""},
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
}
_DELTAS = {
    "text": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


class StreamWriter(BlockWriter):
    """Writes the events of one stream."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self._head = head

    def first(self) -> Iterator[bytes]:
        """The message, still empty."""
        yield event_of("message_start", message=message_of(self._head, Usage()))

    def last(self) -> Iterator[bytes]:
        """Why it ended, and what was counted."""
        usage = {"input_tokens": self.usage.input_tokens, "output_tokens": self.usage.output_tokens}
        delta = {"stop_reason": write_reason(KIND, self.reason), "stop_sequence": None}
        yield event_of("message_delta", delta=delta, usage=usage)
        yield event_of("message_stop")

    def opened(self, block: Block, call: CallStart | None) -> Iterator[bytes]:
        """The block, still empty."""
        made = _OPENED[block] if call is None else {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield event_of("content_block_start", index=self.index, content_block=made)

    def piece(self, block: Block, text: str) -> bytes:
        """A delta."""
        kind, member = _DELTAS[block]
        return self._delta(kind, **{member: text})

    def closed(self) -> bytes:
        """The end of a block."""
        return event_of("content_block_stop", index=self.index)

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        """The signature; or the whole block, where text and signature do not say it."""
        if part.provider == KIND and part.data is not None:
            yield from self._whole(part.data)
        elif part.provider == KIND and part.signature:
            yield from self.begin("reasoning")
            yield self._delta("signature_delta", signature=part.signature)

    def passed(self, part: OpaquePart) -> Iterator[bytes]:
        """A block of this API's own, as it was."""
        if part.provider == KIND:
            yield from self._whole(part.data)

    def _whole(self, block: Json) -> Iterator[bytes]:
        yield from self.close()
        self.index += 1
        yield event_of("content_block_start", index=self.index, content_block=block)
        yield self.closed()

    def _delta(self, kind: str, **facts: Any) -> bytes:
        return event_of("content_block_delta", index=self.index, delta={"type": kind, **facts})


def event_of(kind: str, **facts: Any) -> bytes:
    """An event of a stream, as bytes."""
    return sse({"type": kind, **facts}, kind)


def message_of(head: Head, usage: Usage) -> Json:
    """An answer that says nothing yet."""
    return {
        "id": f"msg_{head.id}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }


def failed(body: Mapping[str, Any], assembler: Assembler) -> bool:
    """Whether an error stands for the answer; a problem then."""
    if body.get("type") != "error" and not (body.get("error") and "content" not in body):
        return False
    error = body.get("error") or {}
    assembler.reason = FinishReason.ERROR
    assembler.problem("provider_error", f"{error.get('type', 'error')}: {error.get('message', '')}")
    return True


def thinking_part(block: Mapping[str, Any]) -> ReasoningPart:
    """Thinking as it has to travel back; without a signature it is plain reasoning."""
    text, signature = block.get("thinking") or "", block.get("signature") or ""
    if block.get("type") == "redacted_thinking" or block.keys() - {"type", "thinking", "signature"}:
        return ReasoningPart(text, signature, KIND, dict(block))
    return ReasoningPart(text, signature, KIND if signature else "")


def read_usage(usage: Any, counted: Mapping[str, Any], assembler: Assembler) -> None:
    """Token counts; a stream says those of the input at its beginning."""
    if not isinstance(usage, Mapping):
        return
    known = {**counted, **{key: value for key, value in usage.items() if value is not None}}
    cached = int(known.get("cache_read_input_tokens") or 0)
    created = int(known.get("cache_creation_input_tokens") or 0)
    read = int(known.get("input_tokens") or 0) + cached + created
    assembler.usage(Usage(read, int(known.get("output_tokens") or 0), cached))
