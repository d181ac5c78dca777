"""Types of the members of requests that clients send: a value of the wrong type is named, and goes no further."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.messages import FilePart, ImagePart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from toolwire.providers.request import ChatRequest
from toolwire.providers.stream_codec import UNREADABLE

_TEXTS: Mapping[type[Part], tuple[str, ...]] = {
    TextPart: ("text",),
    ReasoningPart: ("text", "signature"),
    ToolCall: ("name", "id", "server"),
    ToolResult: ("call_id", "tool_name"),
    ImagePart: ("data", "media_type", "url"),
    FilePart: ("data", "media_type", "url", "name"),
}
"""Fields of the parts of messages that are text in every API."""


_NESTED = ("messages", "input", "contents", "tools", "system")
"""Members of bodies with values inside of values. Only these are tried, so that a refusal stays cheap."""


def check_member_types(request: ChatRequest) -> None:
    """Check what was copied from a body without being looked at.

    Raises:
        DefinitionError: a value is not of the type that every API has there.
    """
    for at, message in enumerate(request.messages):
        for part in message.parts:
            for name in _TEXTS.get(type(part), ()):
                if not isinstance(value := getattr(part, name), str):
                    raise _wrong(f"the {name} of a {type(part).__name__} in message {at}", "text", value)
    for tool in request.tools:
        for name in ("name", "description"):
            if not isinstance(value := getattr(tool, name), str):
                raise _wrong(f"the {name} of a tool", "text", value)
    for name in request.tool_choice.names:
        if not isinstance(name, str):
            raise _wrong("the name in the tool choice", "text", name)
    for members in request.provider_tools:
        if not isinstance(members, Mapping):
            raise _wrong("a tool", "an object", members)


def unreadable_reason(read: Callable[[dict[str, Any]], object], body: dict[str, Any], error: Exception) -> str:
    """Return why a body cannot be read, for the person who wrote it.

    Args:
        read: the function that failed.
        body: the body.
        error: what it raised.
    """
    missing = f"{error} is missing" if isinstance(error, KeyError) else ""
    for name in _NESTED:
        if name not in body:
            continue
        try:
            read({**body, name: []})
        except (*UNREADABLE, DefinitionError):
            continue
        # A part that refuses its own content says why.
        refusal = str(error) if type(error) is ValueError else ""
        detail = missing or refusal or f"a value has another type than the API documents ({error})"
        return f"{name} cannot be read: {detail}"
    return missing or f"{type(error).__name__} {error}"


def _wrong(place: str, expected: str, value: Any) -> DefinitionError:
    return DefinitionError(f"{place} must be {expected}, not {type(value).__name__}")
