"""Mistral: Chat Completions with ids of nine letters and digits, and with reasoning among the content.

Source: https://docs.mistral.ai/api/endpoint/chat
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolwire.media_types import is_address
from toolwire.messages import FilePart, ParsedResponse, Part, ReasoningPart, TextPart, ToolResult
from toolwire.providers.chat_completions import ChatCompletions, Facts
from toolwire.providers.chat_settings import MISTRAL
from toolwire.providers.file_parts import in_words
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.message_parts import Json, without_seal
from toolwire.providers.output_support import STRICT_WITHOUT_TOOLS
from toolwire.providers.request import Notes
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.stream_codec import Head

_FACTS = Facts(
    ids=Alphabet("a-zA-Z0-9", 9, least=9),
    strict=False,
    reasoning="",
    required="any",
    whole_calls=True,
    output=STRICT_WITHOUT_TOOLS,
    settings=MISTRAL,
    files=frozenset(("document", "audio")),
    file_ids=True,
)


class Mistral(ChatCompletions):
    """The API."""

    kind = "mistral"

    def __init__(self, name: str = "", facts: Facts = _FACTS) -> None:
        super().__init__(name, facts)

    def write_result(self, result: ToolResult) -> Json:
        """Return a message that carries one result, with the tool's name."""
        message = super().write_result(result)
        return {**message, "name": result.tool_name} if result.tool_name else message

    def file_block(self, part: FilePart, notes: Notes) -> Json:
        """Return a block for a document or a recording; text for a video, and for a document that is text."""
        if part.kind == "audio":
            return {"type": "input_audio", "input_audio": part.url or part.data}
        # Its document reader takes laid-out pages, such as PDF; text is read best as text.
        if part.kind == "video" or part.text is not None:
            return {"type": "text", "text": in_words(part, self.name, notes).text}
        name = {"document_name": part.name} if part.name else {}
        return {"type": "document_url", "document_url": part.as_url, **name}

    def read_file(self, block: Mapping[str, Any]) -> FilePart | None:
        """Parse a block with a document, or with a recording whose kind its data shows."""
        match block:
            case {"type": "document_url", "document_url": str(url), **rest} if rest.keys() <= {"document_name"}:
                return FilePart(url=url, name=str(rest.get("document_name") or ""))
            case {"type": "input_audio", "input_audio": str(data), **rest} if not rest:
                part = FilePart(url=data) if is_address(data) else FilePart(data)
                return part if part.kind == "audio" else None
        return None

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
