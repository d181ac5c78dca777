"""The members that answers of each API have, the ends of their streams, and the places of their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolwire.providers.base import ProviderApi
from toolwire.providers.member_paths import MISSING

EVENTS: Final = "text/event-stream"
Kinds = tuple[type, ...]
_TEXT: Final = (str,)
_NUMBER: Final = (int,)
_TIME: Final = (int, float)
_LIST: Final = (list,)
_OBJECT: Final = (dict,)


@dataclass(frozen=True, slots=True)
class AnswerMembers:
    """The members of the answers of an API.

    Attributes:
        source: the page that lists them.
        whole: members of a whole answer by their paths, and their types; a number in a path is an index.
        fixed: members with the one value that they have.
        last: the end of a stream, without white space; "" if it has none.
        media_types: the media types of a stream.
        error: the paths of the message of an error.
    """

    source: str
    whole: Mapping[str, Kinds]
    fixed: Mapping[str, Any]
    last: str
    media_types: tuple[str, ...] = (EVENTS,)
    error: tuple[str, ...] = ("error.message",)


# Members that only some servers have, such as system_fingerprint and service_tier, are not asked for.
_CHAT: Final = AnswerMembers(
    "https://platform.openai.com/docs/api-reference/chat/object",
    {
        **{
            "id": _TEXT,
            "object": _TEXT,
            "created": _TIME,
            "model": _TEXT,
            "choices": _LIST,
            "choices.0.index": _NUMBER,
        },
        **{"choices.0.message.role": _TEXT, "choices.0.message": _OBJECT, "choices.0.finish_reason": _TEXT},
    },
    {"object": "chat.completion", "choices.0.index": 0, "choices.0.message.role": "assistant"},
    "data:[DONE]",
)
_MEMBERS: Final[Mapping[str, AnswerMembers]] = {
    "openai_chat": _CHAT,
    "mistral": AnswerMembers(
        "https://docs.mistral.ai/api/#tag/chat", _CHAT.whole, _CHAT.fixed, _CHAT.last, error=("message", "detail.0.msg")
    ),
    "openai_responses": AnswerMembers(
        "https://platform.openai.com/docs/api-reference/responses/object",
        {"id": _TEXT, "created_at": _TIME, "model": _TEXT, "output": _LIST, "status": _TEXT, "output.0.type": _TEXT},
        {"object": "response"},
        '"type":"response.completed"',
    ),
    "anthropic_messages": AnswerMembers(
        "https://docs.claude.com/en/api/messages",
        {
            "id": _TEXT,
            "model": _TEXT,
            "content": _LIST,
            "stop_reason": _TEXT,
            "usage": _OBJECT,
            "content.0.type": _TEXT,
        },
        {"type": "message", "role": "assistant"},
        '"type":"message_stop"',
    ),
    "gemini": AnswerMembers(
        "https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse",
        {
            **{"candidates": _LIST, "candidates.0.content.parts": _LIST, "candidates.0.finishReason": _TEXT},
            "usageMetadata": _OBJECT,
        },
        {"candidates.0.content.role": "model"},
        '"finishReason":',
    ),
    "ollama": AnswerMembers(
        "https://docs.ollama.com/api/chat",
        {"model": _TEXT, "created_at": _TEXT, "message": _OBJECT, "done_reason": _TEXT},
        {"done": True, "message.role": "assistant"},
        '"done":true',
        media_types=("application/x-ndjson",),
        error=("error",),
    ),
}
# An API without a description here is not checked, and its errors are found in any of the known places.
_OTHER: Final = AnswerMembers("", {}, {}, "", (), ("error.message", "message", "error"))


def shape_of(api: ProviderApi) -> AnswerMembers:
    """Return the members of an API's answers; of an API that is not described here, only those of errors."""
    return _MEMBERS.get(api.kind, _OTHER)


def value_at(body: Any, path: str) -> Any:
    """Return the value at a path with names and indexes, or `MISSING`."""
    for name in path.split("."):
        if isinstance(body, list) and name.isdigit():
            body = body[int(name)] if int(name) < len(body) else MISSING
        elif isinstance(body, Mapping):
            body = body.get(name, MISSING)
        else:
            return MISSING
    return body
