"""Messages and tool definitions as JSON texts in the shape of the semantic conventions for generative AI.

CitedSource: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai: gen-ai-input-messages.json,
gen-ai-output-messages.json, gen-ai-system-instructions.json and gen-ai-tool-definitions.json.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolwire.messages import (
    CitationPart,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolwire.providers.request import ChatRequest
from toolwire.telemetry.request_rows import definition_value, message_secrets
from toolwire.telemetry.row_codec import MAX_RAW, kept
from toolwire.text.redaction import environment_secrets, redact_value

_JsonObject = Mapping[str, Any]
_MODALITIES = frozenset({"image", "audio", "video"})


class MessageEncoder:
    """Encodes the messages of one run; a message that occurs in several requests is encoded once.

    Attributes:
        secrets: secrets to redact, besides those that are recognised by their form.
    """

    def __init__(self) -> None:
        self.secrets = set(environment_secrets(os.environ))
        # With the messages themselves: the identity of one that is gone could be that of another.
        # Encoding is the costly part, and a viewer expects the whole conversation in each span.
        self._encoded: dict[int, tuple[Message, str]] = {}

    def learn(self, secrets: Iterable[str]) -> None:
        """Redact these too from now on."""
        new = set(secrets) - self.secrets
        if new:
            self.secrets |= new
            self._encoded.clear()

    def request(self, request: ChatRequest) -> dict[str, str]:
        """Return the attributes of a request: its instructions, its messages and its tools."""
        self.learn(message_secrets(message for message in request.messages if id(message) not in self._encoded))
        attributes: dict[str, str] = {}
        instructions = [part for message in request.messages if message.role == "system" for part in message.parts]
        if instructions:
            attributes["gen_ai.system_instructions"] = _json(list(map(self._part, instructions)))
        messages = [self._message(message) for message in request.messages if message.role != "system"]
        attributes["gen_ai.input.messages"] = f"[{', '.join(messages)}]"
        if request.tools:
            definitions = [{"type": "function", **definition_value(tool)} for tool in request.tools]
            attributes["gen_ai.tool.definitions"] = kept(_json(definitions), MAX_RAW, self.secrets)
        return attributes

    def text(self, role: str, text: str) -> str:
        """Return one message of text."""
        return _json([{"role": role, "parts": [self._text(text)]}])

    def answer(self, response: ParsedResponse, raw: str) -> str:
        """Return an answer: the text that the model wrote if its calls are text, else its parts."""
        parts = [self._text(raw)] if raw else list(map(self._part, _answer_parts(response)))
        finish_reason = "tool_call" if response.all_calls and not raw else response.finish_reason.value
        return _json([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])

    def _message(self, message: Message) -> str:
        entry = self._encoded.get(id(message))
        if entry is None:
            entry = message, _json({"role": message.role, "parts": list(map(self._part, message.parts))})
            self._encoded[id(message)] = entry
        return entry[1]

    def _text(self, text: str, kind: str = "text") -> _JsonObject:
        return {"type": kind, "content": kept(text, MAX_RAW, self.secrets)}

    def _part(self, part: Part) -> _JsonObject:
        match part:
            case TextPart():
                return self._text(part.text)
            case ReasoningPart():
                return self._text(part.text, "reasoning")
            case ToolCall():
                arguments = kept(_json(redact_value(part.arguments)), MAX_RAW, self.secrets)
                return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": _value(arguments)}
            case ToolResult():
                response = kept(part.text, MAX_RAW, self.secrets)
                return {"type": "tool_call_response", "id": part.call_id, "response": response}
            case ImagePart() | FilePart():
                return self._file(part)
            case CitationPart():
                return {"type": "citation", "sources": [source.url or source.title for source in part.sources]}
            case OpaquePart():
                return {"type": "opaque", "provider": part.provider}

    def _file(self, part: ImagePart | FilePart) -> _JsonObject:
        media_type = part.media_type or ("image/*" if isinstance(part, ImagePart) else "")
        modality = media_type.partition("/")[0]
        about = {"modality": modality if modality in _MODALITIES else "document", "mime_type": part.media_type}
        if part.url:
            return {"type": "uri", **about, "uri": kept(part.url, MAX_RAW, self.secrets)}
        return {"type": "blob", **about, "content": ""}  # the bytes could be larger than all the texts together


def _answer_parts(response: ParsedResponse) -> Sequence[Part]:
    if response.parts:
        return response.parts
    parts: list[Part] = [ReasoningPart(response.reasoning)] if response.reasoning else []
    parts += [TextPart(response.content)] if response.content else []
    return [*parts, *response.all_calls]


def _value(arguments: str) -> Any:
    """Return arguments as a value; as text if they were truncated."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
