"""Streams of provider APIs and of text, read in pieces."""

from __future__ import annotations

from typing import Any

from toolwire import Event, ParsedResponse, StreamParser, collect, get_api
from toolwire.providers.base import ProviderApi


def streamed(api: str | ProviderApi, data: bytes, size: int = 0, *, tools: Any = ()) -> list[Event]:
    """The events of a stream that comes in pieces of so many bytes; 0: in one."""
    decoder = get_api(api).stream_decoder(tools=tools)
    pieces = (data[at : at + size] for at in range(0, len(data), size)) if size else (data,)
    return [*(event for piece in pieces for event in decoder.feed(piece)), *decoder.finish()]


def parsed(text: str, size: int = 0, **options: Any) -> ParsedResponse:
    """A text that comes in pieces of so many characters; 0: in one."""
    parser = StreamParser(**options)
    size = size or max(1, len(text))
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()])


def called(response: ParsedResponse) -> list[tuple[str, dict[str, Any]]]:
    """Its calls, as names and arguments."""
    return [(call.name, call.arguments) for call in response.tool_calls]
