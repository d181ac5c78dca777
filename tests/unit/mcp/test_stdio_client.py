"""Messages of programs: read one by one, also where a part of one is nested deeply."""

import json

from mcp.shared.message import SessionMessage

from toolwire.mcp.stdio_client import _message


def listing(depth: int) -> bytes:
    schema: object = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    tools = [{"name": "good", "inputSchema": {"type": "object"}}, {"name": "deep", "inputSchema": schema}]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode()


def test_a_schema_that_is_nested_deeply_does_not_stop_the_tools_beside_it() -> None:
    message = _message(listing(300))
    assert isinstance(message, SessionMessage)
    assert "good" in str(message)[:2_000]


def test_a_message_that_cannot_be_read_is_an_error() -> None:
    assert isinstance(_message(b"{"), ValueError)
    assert isinstance(_message(b"[" * 100_000), ValueError)
