"""Streams of provider APIs, read in pieces."""

from __future__ import annotations

from typing import Any

from toolwire import Event, get_api
from toolwire.providers.base import ProviderApi


def streamed(api: str | ProviderApi, data: bytes, size: int = 0, *, tools: Any = ()) -> list[Event]:
    """The events of a stream that comes in pieces of so many bytes; 0: in one."""
    decoder = get_api(api).stream_decoder(tools=tools)
    pieces = (data[at : at + size] for at in range(0, len(data), size)) if size else (data,)
    return [*(event for piece in pieces for event in decoder.feed(piece)), *decoder.finish()]
