"""A tool that is nested deeply does not make a message over HTTP unreadable for the tools beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp_types import jsonrpc_message_adapter

from toolwire.mcp.deep_tools import EventLines, WholeBody, with_cut_tools
from toolwire.mcp.definitions import read_tools
from toolwire.mcp.servers import McpServer

SERVER = McpServer(name="a", url="https://a.example")
GOOD = {"name": "good", "inputSchema": {"type": "object"}}


def listing(depth: int) -> bytes:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [GOOD, {"name": "deep", "inputSchema": schema}]}}
    ).encode()


class Pieces:
    """A stream that arrives in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def aclose(self) -> None:
        self.closed = True


def collected(stream: Any) -> list[bytes]:
    async def run() -> list[bytes]:
        pieces = [piece async for piece in stream]
        await stream.aclose()
        return pieces

    return asyncio.run(run())


@pytest.mark.parametrize("depth", [60, 150, 300])
def test_the_tools_beside_a_deep_one_are_read(depth: int) -> None:
    message = jsonrpc_message_adapter.validate_json(with_cut_tools(listing(depth)), by_name=False)
    tools, (deep,) = read_tools(message.result["tools"], SERVER)  # type: ignore[union-attr]
    assert [item.name for item in tools] == ["good"]
    assert (deep.name, "nested deeper than 64 levels" in deep.reason) == ("deep", True)


@pytest.mark.parametrize(
    "message",
    [
        listing(20),
        listing(20).replace(b"good", b"[" * 300),  # brackets in a text are not levels
        b'{"jsonrpc": "2.0", "id": 1, "result": {"content": %s}}' % (b"[" * 150 + b"]" * 150),
        b"[" * 150,
        b"[" * 100_000,
    ],
    ids=["shallow", "text", "result", "broken", "deeper"],
)
def test_other_messages_are_unchanged(message: bytes) -> None:
    assert with_cut_tools(message) is message


def test_a_body_and_a_stream_are_made_readable() -> None:
    message, cut = listing(300), with_cut_tools(listing(300))
    inner = Pieces(message[:99], message[99:])
    assert collected(WholeBody(inner)) == [cut]
    assert inner.closed
    events = b"event: message\r\ndata: " + message + b"\r\n\r\ndata:x\n: a comment\r\r"
    wanted = events.replace(b" " + message, cut)
    for size in (1, 7, 1 << 20):
        inner = Pieces(*(events[at : at + size] for at in range(0, len(events), size)))
        assert b"".join(collected(EventLines(inner, 1 << 20))) == wanted
        assert inner.closed


def test_a_line_is_passed_on_at_once_and_a_long_one_in_pieces() -> None:
    lines = collected(EventLines(Pieces(b"data: a\ndata", b": b\n", b"data: c"), 99))
    assert lines == [b"data: a\n", b"data: b\n", b"data: c"]
    long = collected(EventLines(Pieces(b"data: aaaaaaaaa", b"bbbbbbbbbbb", b"\n"), 10))
    assert long[:2] == [b"data: aaaaaaaaa", b"bbbbbbbbbbb"]
