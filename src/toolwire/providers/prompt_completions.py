"""OpenAI's completions of prompts, for those that pass them on: the text of a prompt is in no template.

Source: https://platform.openai.com/docs/api-reference/completions
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.messages import Message, TextPart
from toolwire.providers.chat_completions import ChatCompletions
from toolwire.providers.framing import Frame
from toolwire.providers.message_parts import Json
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.request import ChatRequest, Notes
from toolwire.providers.response_builder import ResponseBuilder


class PromptCompletions(ChatCompletions):
    """The API beside Chat Completions. The prompt is a member that only this API has."""

    members = frozenset(("model", "stream"))

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body; its texts are messages, so that their tokens can be estimated."""
        prompt = body["prompt"]
        texts = [text for text in ([prompt] if isinstance(prompt, str) else prompt) if isinstance(text, str)]
        return self._request_of(body, [Message("user", (TextPart(text),)) for text in texts])

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body, with the prompt that was read."""
        body: Json = {"model": request.model, **({"stream": True} if request.stream else {})}
        return self._with_settings(body, request, notes)

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response to the builder."""
        super().read_response(_with_content(response, "message"), builder)

    def stream_reader(self, builder: ResponseBuilder) -> Callable[[Frame], None]:
        """Return the function that reads the chunks of one stream."""
        read = super().stream_reader(builder)
        return lambda frame: read(replace(frame, value=_with_content(frame.value, "delta")))


def _with_content(answer: Json, name: str) -> Json:
    """Return an answer with the texts of its choices as the content of messages, or of deltas."""
    choices: Any = answer.get("choices") or ()
    texts = [choice if isinstance(choice, Mapping) else {} for choice in choices]
    return {**answer, "choices": [{**text, name: {"content": text.get("text")}} for text in texts]}
