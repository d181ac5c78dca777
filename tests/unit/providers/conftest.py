"""Tools, messages and streams that the tests of provider APIs share."""

from __future__ import annotations

import json
from typing import Any

from tests.streams import streamed

from toolwire import Message, ParsedResponse, TextPart, ToolDefinition, collect
from toolwire.providers.base import ProviderApi

USER = Message("user", (TextPart("hi"),))
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition("weather", "Tells it.", CITY)
CLOCK = ToolDefinition("clock", "The time.")
OPTIONAL_CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
GET_WEATHER = ToolDefinition("get_weather", "The weather.", OPTIONAL_CITY)
SQL = ToolDefinition(
    "sql",
    "Runs SQL.",
    {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
    annotations={"custom": {"format": {"type": "text"}}},
)


def sse_stream(*values: Any, event: str = "", done: bool = False) -> bytes:
    """Return server-sent events with these objects; `done`: with the end marker of Chat Completions."""
    head = f"event: {event}\n" if event else ""
    events = [f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n" for value in values]
    return "".join([*events, "data: [DONE]\n\n"] if done else events).encode()


def chat_stream(*deltas: dict[str, Any], last: dict[str, Any] | None = None, reason: str | None) -> bytes:
    """Return a stream of Chat Completions with these deltas; without a last chunk if there is no finish reason."""
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if reason is not None:
        choices.append({"index": 0, "delta": last or {}, "finish_reason": reason})
    return sse_stream(*({"choices": [choice]} for choice in choices), done=True)


def decoded(api: str | ProviderApi, data: bytes, size: int = 0) -> ParsedResponse:
    """Decode a stream that arrives in pieces of this many bytes; 0: in one piece."""
    return collect(streamed(api, data, size))
