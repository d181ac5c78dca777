"""Mistral: Chat Completions with ids of nine letters and digits, and with reasoning among the content.

Source: https://docs.mistral.ai/api/endpoint/chat
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolwire.messages import Message, ParsedResponse, Part, ReasoningPart, TextPart, ToolResult
from toolwire.providers.base import Head, Json, dropped
from toolwire.providers.chat_completions import ChatCompletions, Facts
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.request import Notes
from toolwire.providers.response_builder import Assembler

_FACTS = Facts(
    ids=Alphabet("a-zA-Z0-9", 9, least=9),
    strict=False,
    custom=False,
    reasoning="",
    required="any",
    whole_calls=True,
)


class Mistral(ChatCompletions):
    """The API."""

    kind = "mistral"

    def __init__(self, name: str = "", facts: Facts = _FACTS) -> None:
        super().__init__(name, facts)

    def write_results(self, messages: Sequence[Message], notes: Notes) -> list[Json]:
        """The messages; some models refuse one of the user right behind results."""
        made = super().write_results(messages, notes)
        for at in range(1, len(made)):
            if made[at - 1]["role"] == "tool" and made[at]["role"] == "user":
                notes.changed(f"messages/{at}", "some models refuse a message of the user right behind results")
        return made

    def _result(self, result: ToolResult, pictures: list[Json]) -> Json:
        made = super()._result(result, pictures)
        return {**made, "name": result.tool_name} if result.tool_name else made

    def _assistant(self, parts: Sequence[Part], notes: Notes) -> Json:
        made = super()._assistant(parts, notes)
        return {**made, "content": content} if (content := self._thinking(parts)) else made

    def _signed(self, part: ReasoningPart, notes: Notes) -> None:
        if not self._is_own(part):
            dropped(part, self.name, notes)

    def _is_own(self, part: ReasoningPart) -> bool:
        return part.provider in ("", self.kind)

    def _thinking(self, parts: Sequence[Part]) -> list[Json]:
        """The content as blocks, if there is reasoning in it."""
        made: list[Json] = []
        found = False
        for part in parts:
            match part:
                case TextPart(text) if text:
                    made.append({"type": "text", "text": text})
                case ReasoningPart(text, signature) if self._is_own(part) and (text or signature):
                    found = True
                    made.append(_block(text))
                    if signature:
                        made[-1]["signature"] = signature
                case _:
                    pass
        return made if found else []

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """The body of a response."""
        body = super().write_response(response, head, notes)
        message = body["choices"][0]["message"]
        for key in ("refusal", "reasoning_content", "reasoning_details"):
            message.pop(key, None)
        shown: list[Part] = []
        for part in response.parts:
            if isinstance(part, ReasoningPart) and not self._is_own(part):
                notes.dropped("reasoning", f"{self.name} has no place for what {part.provider} wants back with it")
                part = ReasoningPart(part.text)
            shown.append(part)
        if content := self._thinking(shown):
            message["content"] = content
        return body

    def reasoning_delta(self, text: str) -> Json:
        """More reasoning, as a stream says it."""
        return {"content": [_block(text)]}

    @staticmethod
    def read_call(call: Mapping[str, Any], assembler: Assembler) -> None:
        """Tell the assembler of a call; Mistral's own client says "null" where there was no id."""
        if call.get("id") == "null":
            call = {**call, "id": ""}
        ChatCompletions.read_call(call, assembler)


def _block(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


APIS = (Mistral(),)
