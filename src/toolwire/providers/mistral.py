"""Mistral: Chat Completions with ids of nine letters and digits, and with reasoning among the content.

Source: https://docs.mistral.ai/api/endpoint/chat
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolwire.messages import Message, ParsedResponse, Part, ReasoningPart, TextPart, ToolResult
from toolwire.providers.chat_completions import ChatCompletions, Facts
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.message_parts import Json, without_seal
from toolwire.providers.request import Notes
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.stream_codec import Head

_FACTS = Facts(
    ids=Alphabet("a-zA-Z0-9", 9, least=9), strict=False, custom=False, reasoning="", required="any", whole_calls=True
)


class Mistral(ChatCompletions):
    """The API."""

    kind = "mistral"

    def __init__(self, name: str = "", facts: Facts = _FACTS) -> None:
        super().__init__(name, facts)

    def write_messages(self, messages: Iterable[Message], notes: Notes) -> list[Json]:
        """Return the messages; note each of the user that some models refuse."""
        written = super().write_messages(messages, notes)
        for at in range(1, len(written)):
            if written[at - 1]["role"] == "tool" and written[at]["role"] == "user":
                notes.changed(f"messages/{at}", "some models refuse a message of the user directly after results")
        return written

    def write_result(self, result: ToolResult) -> Json:
        """Return a message that carries one result, with the tool's name."""
        message = super().write_result(result)
        return {**message, "name": result.tool_name} if result.tool_name else message

    def write_answer(self, parts: Sequence[Part], notes: Notes) -> Json:
        """Return a message of the model; reasoning is part of its content."""
        message = super().write_answer(parts, notes)
        return {**message, "content": blocks} if (blocks := self._thinking(parts)) else message

    def drop_reasoning(self, part: ReasoningPart, notes: Notes) -> None:
        """Note reasoning of other APIs; the content contains this one's."""
        if not self._is_own(part):
            super().drop_reasoning(part, notes)

    def _is_own(self, part: ReasoningPart) -> bool:
        return part.provider in ("", self.kind)

    def _thinking(self, parts: Iterable[Part]) -> list[Json]:
        """Return the content as blocks, if it contains reasoning."""
        blocks: list[Json] = []
        for part in parts:
            match part:
                case TextPart(text) if text:
                    blocks.append({"type": "text", "text": text})
                case ReasoningPart(text, signature) if self._is_own(part) and (text or signature):
                    blocks.append(_thinking_block(text, **({"signature": signature} if signature else {})))
                case _:
                    pass
        return blocks if any(block["type"] == "thinking" for block in blocks) else []

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        body = super().write_response(response, head, notes)
        message = body["choices"][0]["message"]
        for key in ("refusal", "reasoning_content", "reasoning_details"):
            message.pop(key, None)
        parts = (without_seal(part, self.name, notes, self.kind) for part in response.parts)
        if blocks := self._thinking(parts):
            message["content"] = blocks
        return body

    def reasoning_delta(self, text: str) -> Json:
        """Return a delta of reasoning."""
        return {"content": [_thinking_block(text)]}

    def add_call(self, call: Mapping[str, Any], builder: ResponseBuilder) -> None:
        """Report a whole call; Mistral's own client writes "null" for a missing id."""
        super().add_call({**call, "id": ""} if call.get("id") == "null" else call, builder)


def _thinking_block(text: str, **members: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **members}


APIS = (Mistral(),)
