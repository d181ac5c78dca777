"""Answers of Gemini's Interactions API, whole and streamed: steps, each of which is one call, thought or output.

CitedSource: https://ai.google.dev/gemini-api/docs/streaming
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.events import CallEnd, CallStart
from toolwire.messages import CitationPart, OpaquePart, ReasoningPart, Usage
from toolwire.providers.answer_shapes import AnswerShape, put_members
from toolwire.providers.citations import read_annotation, write_annotations
from toolwire.providers.content_blocks import BlockWriter
from toolwire.providers.finish_reasons import read_reason, write_reason
from toolwire.providers.framing import DONE, Frame, sse
from toolwire.providers.message_parts import Json, UsageReader
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.stream_codec import Head

KIND = "gemini_interactions"

_INPUTS = frozenset(("user_input", "function_result"))
"""Steps of the client, which an answer may repeat."""
_ENDS = ("interaction.completed", "interaction.complete")
_TEXT = "text"


ANSWER = AnswerShape(
    "status",
    """
: id object model status created updated role steps outputs usage error agent input tools generation_config \
system_instruction previous_interaction_id store background stream
steps[model_output]: type content
steps[model_output].content[text]: type text annotations
outputs[text]: type text annotations
""",
)


class InteractionReader:
    """Reads one interaction. Older versions of the API call steps contents, and list them as outputs."""

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._steps: dict[int, Json] = {}  # open steps
        self._thoughts: dict[int, list[str]] = {}  # their texts, where they are thoughts
        self._text_start = 0  # of the last text, in the content

    def read(self, frame: Frame) -> None:
        """Report the content of the next event to the builder."""
        event = frame.value
        name = str(event.get("event_type") or frame.event)
        _, _, action = name.partition(".")
        if name in _ENDS:
            self.end(event["interaction"], streamed=True)
        elif name == "error" or event.get("error"):
            self._fail(event.get("error") or event)
        elif name.startswith(("step.", "content.")):
            index = event["index"]
            match action:
                case "start":
                    self._start(index, dict(event.get("step") or event.get("content") or {}))
                case "delta":
                    self._delta(index, event["delta"])
                case "stop":
                    self._stop(index)

    def whole(self, response: Mapping[str, Any]) -> None:
        """Report a whole interaction to the builder."""
        if response.get("error") and "status" not in response:
            self._fail(response["error"])
            return
        if isinstance(response.get("status"), int):
            return  # that of HTTP: a problem of a proxy, not an interaction
        for index, step in enumerate(response.get("steps") or response.get("outputs") or ()):
            if step.get("type") == "function_call":
                self._builder.add_call(step.get("name"), step.get("arguments"), step.get("id"))
            else:
                self._start(index, dict(step))
                self._stop(index)
        self.end(response)

    def end(self, interaction: Mapping[str, Any], *, streamed: bool = False) -> None:
        """Report the status and the token counts to the builder."""
        self._builder.reason = read_reason(KIND, interaction.get("status")) or self._builder.reason
        if streamed:
            self._builder.add_unread(ANSWER, {**interaction, "steps": (), "outputs": ()})
        if isinstance(usage := interaction.get("usage"), Mapping):
            self._builder.add_usage(_USAGE.read(usage))
        if interaction.get("status") == "failed":
            self._fail(interaction.get("error") or {"message": "the interaction failed"})

    def _fail(self, error: Any) -> None:
        facts = error if isinstance(error, Mapping) else {"message": str(error)}
        code = f"{facts['code']}: " if facts.get("code") else ""
        self._builder.fail(f"{code}{facts.get('message') or 'the interaction failed'}", error=facts)

    def _start(self, index: int, step: Json) -> None:
        builder = self._builder
        self._steps[index] = step
        match step.get("type"):
            case "function_call":
                builder.begin_call(index, step.get("name"), step.get("id"))
                if step.get("arguments"):
                    builder.add_arguments(index, step["arguments"])
            case "thought":
                self._thoughts[index] = []
                for content in step.get("summary") or ():
                    self._think(index, content)
            case "model_output":
                self._text_start = builder.content_length
                for content in step.get("content") or ():
                    self._text_start = builder.content_length
                    self._output(content)
            case "text":
                self._text_start = builder.content_length
                self._output(step)
            case _:
                pass

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        step = self._steps.get(index)
        if step is None:  # the start of older streams has no type: the first piece says what begins
            kind = {"function_call": "function_call", "thought_summary": "thought", "thought_signature": "thought"}
            self._start(index, {**delta, "type": kind.get(str(delta.get("type")), "model_output"), "content": ()})
            step = self._steps[index]
            if delta.get("type") == "function_call":
                return
        match delta.get("type"):
            case "arguments_delta":
                self._builder.add_arguments(index, delta.get("arguments") or "")
            case "function_call" if self._builder.is_open(index):
                self._builder.name_call(index, delta.get("name"), delta.get("id"))
                self._builder.add_arguments(index, delta.get("arguments"))
            case "thought_summary":
                self._think(index, delta.get("content") or {})
            case "thought_signature":
                step["signature"] = delta.get("signature")
            case "text_annotation_delta":
                self._cite(delta)
            case _ if step.get("type") in ("model_output", "text"):
                self._output(delta)
            case _:
                step.update((name, value) for name, value in delta.items() if name != "type" and value is not None)

    def _think(self, index: int, content: Mapping[str, Any]) -> None:
        text = content.get("text")
        self._builder.add_reasoning(text)
        if isinstance(text, str):
            self._thoughts.setdefault(index, []).append(text)

    def _output(self, content: Mapping[str, Any]) -> None:
        if content.get("type") == _TEXT:
            self._builder.add_text(content.get("text"))
            self._cite(content)
        else:
            self._builder.add_opaque({"type": "model_output", "content": [dict(content)]})

    def _cite(self, content: Mapping[str, Any]) -> None:
        """Report the citations of the last text to the builder."""
        for annotation in content.get("annotations") or ():
            self._builder.add_citation(read_annotation(annotation, self._text_start, KIND))

    def _stop(self, index: int) -> None:
        step = self._steps.pop(index, {})
        match step.get("type"):
            case "function_call" if self._builder.is_open(index):
                self._builder.end_call(index)
            case "thought":
                text, signature = "".join(self._thoughts.pop(index, ())), str(step.get("signature") or "")
                if text or signature:
                    self._builder.end_reasoning(ReasoningPart(text, signature, KIND if signature else ""))
            case None | "model_output" | "text" | "function_call":
                pass
            case kind if kind not in _INPUTS:
                self._builder.add_opaque(step)


class InteractionWriter(BlockWriter):
    """Writes the events of one interaction."""

    _start = _length = 0  # of the open text, and of all of it

    def first(self) -> Iterator[bytes]:
        """Yield the interaction, still empty."""
        yield event_of("interaction.created", interaction=interaction_of(self.head, "in_progress"))

    def last(self) -> Iterator[bytes]:
        """Yield the status and the token counts."""
        status = write_reason(KIND, self.end.reason)
        body = {**interaction_of(self.head, status), "usage": usage_of(self.end.usage or Usage())}
        put_members(body, self.end.members)
        yield event_of("interaction.completed", interaction=body)
        yield b"event: done\ndata: " + DONE + b"\n\n"

    def opened(self, call: CallStart | None) -> Iterator[bytes]:
        """Yield the open step, still empty."""
        self._start = self._length
        step: Json = {"type": "thought" if self.block == "reasoning" else "model_output"}
        if call is not None:
            step = call_step(call.name, call.id, {})
        yield event_of("step.start", index=self.index, step=step)

    def piece(self, text: str) -> Iterator[bytes]:
        """Yield a delta of the open step."""
        match self.block:
            case "call":
                delta: Json = {"type": "arguments_delta", "arguments": text}
            case "reasoning":
                delta = {"type": "thought_summary", "content": {"type": _TEXT, "text": text}}
            case _:
                self._length += len(text)
                delta = {"type": _TEXT, "text": text}
        yield event_of("step.delta", index=self.index, delta=delta)

    def closed(self, call: CallEnd | None) -> Iterator[bytes]:
        """Yield the end of the open step."""
        yield event_of("step.stop", index=self.index)

    def sealed(self, part: ReasoningPart) -> Iterator[bytes]:
        """Yield the signature of a thought."""
        if part.provider == KIND and part.signature:
            yield from self.begin("reasoning")
            delta = {"type": "thought_signature", "signature": part.signature}
            yield event_of("step.delta", index=self.index, delta=delta)

    def cited(self, part: CitationPart) -> Iterator[bytes]:
        """Yield the annotations of the open text."""
        if self.block == "text" and (annotations := write_annotations(part, self._start, KIND)):
            delta = {"type": "text_annotation_delta", "annotations": annotations}
            yield event_of("step.delta", index=self.index, delta=delta)

    def passed(self, part: OpaquePart) -> Iterator[bytes]:
        """Yield a step of this API's own."""
        yield from self.close()
        self.index += 1
        yield event_of("step.start", index=self.index, step=part.data)
        yield event_of("step.stop", index=self.index)


def event_of(kind: str, **members: Any) -> bytes:
    """Return an event of a stream as bytes."""
    return sse({**members, "event_type": kind}, kind)


def call_step(name: str, id: str, arguments: Mapping[str, Any]) -> Json:
    """Return a step with a call."""
    return {"type": "function_call", "id": id, "name": name, "arguments": dict(arguments)}


def interaction_of(head: Head, status: str) -> Json:
    """Return an interaction without steps."""
    return {"id": head.id, "object": "interaction", "model": head.model, "status": status}


_USAGE = UsageReader(
    "total_input_tokens total_tool_use_tokens",
    "total_output_tokens total_thought_tokens",
    "total_cached_tokens",
    "total_thought_tokens",
)


def usage_of(usage: Usage) -> Json:
    """Return token counts as this API gives them: thoughts are not part of the output."""
    return {
        "total_input_tokens": usage.input_tokens,
        "total_cached_tokens": usage.cached_tokens,
        "total_output_tokens": max(usage.output_tokens - usage.reasoning_tokens, 0),
        "total_thought_tokens": usage.reasoning_tokens,
        "total_tool_use_tokens": 0,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def result_text(result: Any) -> str:
    """Return a result that is an object as text."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
