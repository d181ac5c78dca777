"""Messages over HTTP in which a tool is nested too deeply for the SDK's reader, made readable.

The SDK reads a message with a reader that stops at 200 levels and then refuses all of it, so that one such tool would
stop the tools beside it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from toolwire.providers.framing import json_bytes
from toolwire.text.json_text import is_nested_too_deeply

MAX_LEVELS = 100
"""Maximum number of levels of a tool: more than a usable one has, and fewer than the SDK's reader takes."""


def with_cut_tools(message: bytes) -> bytes:
    """Return a message in which tools that are listed have at most `MAX_LEVELS` levels.

    A tool that was cut is still too deep to be used, and is set aside for this reason when it is read.
    """
    # Nearly every message has too few brackets.
    if message.count(b"{") + message.count(b"[") <= MAX_LEVELS:
        return message
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return message
    match value:
        case {"result": {"tools": list(tools)} as result} if is_nested_too_deeply(tools, message, MAX_LEVELS):
            result["tools"] = [_cut(tool, MAX_LEVELS) for tool in tools]
            return json_bytes(value)
        case _:
            return message


def _cut(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return None
    if isinstance(value, dict):
        return {key: _cut(inner, levels - 1) for key, inner in value.items()}
    return [_cut(inner, levels - 1) for inner in value]


class WholeBody(httpx2.AsyncByteStream):
    """A response's body, read as a whole.

    Args:
        inner: the body, which is bounded.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body, once it has arrived."""
        yield with_cut_tools(b"".join([piece async for piece in self._inner]))

    async def aclose(self) -> None:
        """Close the response."""
        await self._inner.aclose()


class EventLines(httpx2.AsyncByteStream):
    """A stream of events, passed on line by line.

    Args:
        inner: the stream.
        limit: maximum size of a line that is looked at, in bytes; the reader refuses longer ones itself.
    """

    def __init__(self, inner: Any, limit: int) -> None:
        self._inner, self._limit = inner, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield each line once it has arrived."""
        pending: list[bytes] = []
        size = 0
        async for piece in self._inner:
            # An event counts only once its lines have ended, so that waiting for the end of one delays nothing.
            end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            pending.append(piece[:end] if end else piece)
            size += len(pending[-1])
            if not end and size <= self._limit:
                continue
            yield b"".join(map(_line, b"".join(pending).splitlines(keepends=True)))
            pending = [piece[end:]] if end else []
            size = len(piece) - end if end else 0
        yield b"".join(pending)

    async def aclose(self) -> None:
        """Close the response."""
        await self._inner.aclose()


def _line(line: bytes) -> bytes:
    if not line.startswith(b"data:"):
        return line
    data = line[5:].rstrip(b"\r\n")
    return line if (cut := with_cut_tools(data)) is data else b"data:" + cut + line[5 + len(data) :]
