"""Ollama's completions of prompts, as conversations of one message.

Source: https://docs.ollama.com/api/generate
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from toolwire.errors import DefinitionError
from toolwire.events import Event
from toolwire.messages import ParsedResponse
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.framing import json_line
from toolwire.providers.message_parts import Json
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.ollama import Ollama
from toolwire.providers.request import ChatRequest, Notes
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.providers.stream_codec import Head, StreamEnd


class OllamaGenerate(Ollama):
    """The API beside Ollama's chat: answers have their text in other members."""

    members = frozenset(("model", "prompt", "system", "images", "stream"))
    _answer = AnswerShape(
        "done_reason",
        """
: model created_at done done_reason response thinking context prompt_eval_count eval_count total_duration \
load_duration prompt_eval_duration eval_duration
""",
    )

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body for a request that was read from one."""
        body = super().write_request(request, tools, notes)
        for message in body.pop("messages"):
            body["system" if message["role"] == "system" else "prompt"] = message["content"]
            body |= {"images": message["images"]} if "images" in message else {}
        return body

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body."""
        rest = {name: value for name, value in body.items() if name not in ("prompt", "system", "images")}
        prompt, system = body.get("prompt") or "", body.get("system") or ""
        if not isinstance(prompt, str) or not isinstance(system, str):
            raise DefinitionError("the prompt and the system message must be text")
        message = {"role": "user", "content": prompt, "images": body.get("images")}
        rest["messages"] = [*([{"role": "system", "content": system}] if system else []), message]
        return Ollama().read_request(rest)

    def read_response(self, response: Json, builder: ResponseBuilder) -> None:
        """Report the content of a response, or of a line of a stream, to the builder."""
        message = {"content": response.get("response"), "thinking": response.get("thinking")}
        super().read_response({**response, "message": message}, builder)

    def write_response(self, response: ParsedResponse, head: Head, notes: Notes) -> Json:
        """Return the body of a response."""
        return _generated(super().write_response(response, head, notes))

    def write_stream(self, events: Iterable[Event], head: Head, end: StreamEnd) -> Iterator[bytes]:
        """Yield the lines of a stream."""
        for line in super().write_stream(events, head, end):
            yield json_line(_generated(json.loads(line))) if line else line


def _generated(body: Json) -> Json:
    """Return an answer of the chat with the members of a completion."""
    message = body.pop("message", {})
    message.pop("role", None)
    return {**body, "response": message.pop("content", ""), **message}
