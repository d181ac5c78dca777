"""The end of `toolwire serve` by a signal: answers end, then everything that is open is closed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from tests.integration.test_gateway_process import HEAD, Backend, ask, served, within_time
from tests.integration.test_otlp import collecting

from toolwire.gateway.allowances import Allowance
from toolwire.gateway.state_store import opened_store
from toolwire.gateway.virtual_keys import VirtualKeys

SERVER = """
import json, sys, time

def answer(message):
    match message["method"]:
        case "initialize":
            info = {"name": "shop", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            schema = {"type": "object", "properties": {}}
            hints = {"readOnlyHint": True}
            return {"tools": [{"name": "stock", "inputSchema": schema, "annotations": hints}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "12"}]}
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}), flush=True)
time.sleep(0.5)  # a gateway that does not wait for the end of this process ends before
open(sys.argv[1], "w").close()
"""
"""A server of MCP that creates a file once its input has ended."""


class CallingBackend(Backend):
    """A backend whose model calls a tool of the gateway before it speaks."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.models:
            return await super().answer(reader, writer)
        self.models.append("m")
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))
        call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "stock", "arguments": "{}"}}
        choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
        data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        writer.write(HEAD + b"data: " + json.dumps(data).encode() + b"\n\ndata: [DONE]\n\n")
        await writer.drain()
        writer.close()


def test_after_sigterm_streams_end_and_then_everything_is_closed(tmp_path: Path) -> None:
    closed, store = tmp_path / "closed", tmp_path / "keys.sqlite"
    (tmp_path / "shop.py").write_text(SERVER)

    async def work() -> None:
        behind = CallingBackend()
        server = await asyncio.start_server(behind.answer, "127.0.0.1", 0)
        behind.port = server.sockets[0].getsockname()[1]
        async with opened_store(f"sqlite:///{store}") as opened:
            key, _ = await VirtualKeys(opened).add("tester", allowances=[Allowance("tokens", 100_000)])
        (tmp_path / "g.toml").write_text(
            f"""
            [profiles.m]
            provider = "openai_compatible"
            model = "m"
            url = "http://127.0.0.1:{behind.port}/v1"

            [mcp.servers.shop]
            command = {json.dumps(sys.executable)}
            args = [{json.dumps(str(tmp_path / "shop.py"))}, {json.dumps(str(closed))}]

            [gateway]
            port = 0
            virtual_keys = true
            store = "sqlite:///{store}"

            [gateway.tools]
            mcp = ["shop"]

            [gateway.models.m]
            tools = true
            calls_in_text = "none"
            """
        )
        approve = ("mcp", "approve", "shop", "--yes", "--config", str(tmp_path / "g.toml"))
        approving = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "toolwire", *approve, env={**os.environ, "TOOLWIRE_STATE": str(tmp_path)}
        )
        assert await approving.wait() == 0
        closed.unlink()
        with collecting() as collector:
            async with served(tmp_path / "g.toml", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as process:
                reader, writer = await ask(process.port, key=key)
                await reader.readuntil(b"one")
                process.process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.3)
                assert process.process.returncode is None
                assert store.with_name("keys.sqlite-wal").exists() and not closed.exists()
                behind.go_on.set()
                rest = await reader.read()
                assert b"two" in rest and b"message_stop" in rest
                assert await process.process.wait() == -signal.SIGTERM
                assert closed.exists()
                # SQLite removes its log with the last connection that is closed.
                assert not store.with_name("keys.sqlite-wal").exists()
                writer.close()
            names = {span.name for span in collector.spans}
        assert names >= {"POST /v1/messages", "chat m", "execute_tool stock"}
        server.close()

    within_time(work)
