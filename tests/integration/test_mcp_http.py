"""What our MCP server over HTTP lets in, and what clients leave behind."""

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.mcp_parts import client, serving, web

from toolwire import ToolError
from toolwire.errors import ConfigurationError
from toolwire.execution.registry import ToolRegistry
from toolwire.mcp import http_server
from toolwire.mcp.client_context import current_caller
from toolwire.mcp.http_server import HttpOptions, Listening
from toolwire.mcp.server import McpService
from toolwire.runtime.local_http import own_hosts

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}},
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(lambda: "text", name="text")
    return registry


def headers(at: Listening, **more: str) -> dict[str, str]:
    token = {} if at.token is None else {"authorization": f"Bearer {at.token}"}
    return {**ACCEPT, **token, **more}


def host(at: Listening) -> str:
    return at.url.removeprefix("http://").removesuffix("/mcp")


EVIL = "evil.example"


REQUESTS: list[tuple[dict[str, str], int]] = [
    ({}, 200),
    ({"host": "localhost:PORT"}, 200),
    ({"host": "[::1]:PORT"}, 200),
    ({"origin": "http://localhost:PORT"}, 200),
    ({"sec-fetch-site": "same-origin"}, 200),
    ({"host": EVIL}, 421),
    ({"host": f"{EVIL}:PORT"}, 421),
    ({"host": "127.0.0.1"}, 421),
    ({"host": "127.0.0.1:1"}, 421),
    ({"host": "127.0.0.1:PORT.evil.example"}, 421),
    ({"host": ""}, 421),
    ({"origin": f"http://{EVIL}"}, 403),
    ({"origin": "https://localhost:PORT"}, 403),
    ({"origin": "http://localhost:1"}, 403),
    ({"origin": "null"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"authorization": ""}, 401),
    ({"authorization": "Bearer wrong"}, 401),
    ({"authorization": "Basic TOKEN"}, 401),
    ({"content-type": "text/plain"}, 400),
    ({"accept": "text/plain"}, 406),
]
"""What is changed in a request that is right, and the status of the answer."""


def test_requests_are_checked_for_host_origin_and_token() -> None:
    async def main() -> None:
        async with serving(McpService(registry())) as at, web() as raw:
            port = host(at).rpartition(":")[2]
            for changed, status in REQUESTS:
                filled = {k: item.replace("PORT", port).replace("TOKEN", at.token or "") for k, item in changed.items()}
                answer = await raw.post(at.url, headers={**headers(at), **filled}, json=INITIALIZE)
                assert answer.status_code == status, (changed, answer.text)
                assert "access-control-allow-origin" not in answer.headers
                assert (answer.headers.get("www-authenticate") == "Bearer") == (status == 401)

    asyncio.run(main())


def test_hosts_and_origins_can_be_added_and_the_token_omitted() -> None:
    options = HttpOptions(token=None, hosts=("Tools.example:443",), origins=("https://page.example",))

    async def main() -> None:
        async with serving(McpService(registry()), options) as at, web() as raw:
            assert at.token is None
            more = {"host": "tools.example:443", "origin": "https://page.example"}
            assert (await raw.post(at.url, headers=headers(at, **more), json=INITIALIZE)).status_code == 200

    asyncio.run(main())


def test_duplicate_header_is_refused() -> None:
    async def main() -> None:
        async with serving(McpService(registry())) as at, web() as raw:
            for name, value in (("authorization", f"Bearer {at.token}"), ("origin", f"http://{host(at)}")):
                doubled = [*headers(at, **{name: value}).items(), (name, value)]
                assert (await raw.post(at.url, headers=doubled, json=INITIALIZE)).status_code in (401, 403)

    asyncio.run(main())


def test_other_paths_are_not_found() -> None:
    async def main() -> None:
        async with serving(McpService(registry())) as at, web() as raw:
            for path in ("/", "/mcp/", "/docs", "/.well-known/oauth-protected-resource"):
                answer = await raw.get(f"http://{host(at)}{path}", headers=headers(at))
                assert answer.status_code == 404
            assert (await raw.put(at.url, headers=headers(at))).status_code in (400, 405)
            assert (await raw.options(at.url, headers=headers(at))).status_code in (400, 405)

    asyncio.run(main())


def test_bodies_and_headers_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "BODY_SECONDS", 0.2)

    async def main() -> None:
        async with serving(McpService(registry())) as at, web() as raw:
            large = b" " * (http_server.MAX_BODY + 1)
            assert (await raw.post(at.url, headers=headers(at), content=large)).status_code == 413

            async def pieces() -> Any:
                yield b"{"
                await asyncio.sleep(2)
                yield b"}"

            assert (await raw.post(at.url, headers=headers(at), content=pieces())).status_code == 408
            answer = await raw.post(
                at.url, headers=headers(at, padding="x" * (http_server.MAX_HEADERS * 4)), json=INITIALIZE
            )
            assert answer.status_code == 431
            for wrong in (b"{", b"[]", b'{"jsonrpc": "1.0"}', b"\xff"):
                assert (await raw.post(at.url, headers=headers(at), content=wrong)).status_code == 400
            assert (await raw.post(at.url, headers=headers(at), json=INITIALIZE)).status_code == 200

    asyncio.run(main())


@pytest.mark.parametrize("answered", [0, 1], ids=["first", "later"])
@pytest.mark.parametrize(
    "sent",
    [
        "",
        "POST /mcp HTTP/1.1\r\nhost: HOST\r\nx: ",
        "POST /mcp HTTP/1.1\r\nhost: HOST\r\ncontent-length: 1000000\r\n\r\n",
    ],
    ids=["nothing", "head", "refused"],
)
def test_incomplete_request_is_disconnected(sent: str, answered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.5)

    async def main() -> None:
        async with serving(McpService(registry())) as at:
            name, _, port = host(at).rpartition(":")
            reader, writer = await asyncio.open_connection(name, int(port))

            async def drips() -> None:
                while sent:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.02)

            for _ in range(answered):
                writer.write(f"GET / HTTP/1.1\r\nhost: {host(at)}\r\n\r\n".encode())
                assert b" 401 " in await reader.readuntil(b"\r\n\r\n")
                await reader.readuntil(b"Bearer.")
            writer.write(sent.replace("HOST", host(at)).encode())
            dripping = asyncio.create_task(drips())
            async with asyncio.timeout(20):
                try:
                    rest = await reader.read()
                except ConnectionError:
                    rest = b""
            assert rest == b"" or b" 401 " in rest
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)
            writer.close()
            async with client(at) as mcp_client:
                assert not (await mcp_client.call_tool("text", {})).is_error

    asyncio.run(main())


def test_unusable_address_is_an_error() -> None:
    async def main(options: HttpOptions) -> None:
        with pytest.raises(ConfigurationError, match="cannot listen on"):
            async with serving(McpService(registry()), options):
                raise AssertionError("it listens")

    with socket.create_server(("127.0.0.1", 0)) as occupied:
        asyncio.run(main(HttpOptions(port=occupied.getsockname()[1])))
    asyncio.run(main(HttpOptions(host="256.0.0.1")))


@pytest.mark.parametrize("token", ["short", "with space in the middle", "ünïcödé-ünïcödé-ünïcödé"])
def test_invalid_token_is_an_error(token: str) -> None:
    async def main() -> None:
        async with serving(McpService(registry()), HttpOptions(token=token)):
            raise AssertionError("it listens")

    with pytest.raises(ConfigurationError, match="a token has at least 16"):
        asyncio.run(main())


def test_server_on_all_addresses_accepts_configured_hosts_alone() -> None:
    assert own_hosts("0.0.0.0", 8000) == {"0.0.0.0:8000"}
    assert own_hosts("127.0.0.1", 80) >= {"localhost", "localhost:80", "[::1]:80"}
    assert own_hosts("::1", 8000) == {"[::1]:8000", "127.0.0.1:8000", "localhost:8000"}


async def _opened(raw: httpx2.AsyncClient, at: Listening) -> dict[str, str]:
    answer = await raw.post(at.url, headers=headers(at), json=INITIALIZE)
    session_headers = headers(
        at, **{"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    )
    await raw.post(at.url, headers=session_headers, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    return session_headers


def _events(text: str) -> list[dict[str, str]]:
    blocks = (block for block in text.replace("\r\n", "\n").split("\n\n") if block.strip())
    return [
        dict(line.split(": ", 1) if ": " in line else (line.rstrip(":"), "") for line in block.split("\n"))
        for block in blocks
    ]


def test_closed_stream_is_resumed() -> None:
    """A client that knows 2025-11-25 gets a first event without data, how long to wait, and then the rest."""
    go_on = asyncio.Event()
    registry = ToolRegistry()

    @registry.register
    async def leave() -> str:
        caller = current_caller()
        if caller is None:
            raise ToolError("nobody calls")
        await caller.leave()
        await go_on.wait()
        return "the rest"

    async def main() -> None:
        async with serving(McpService(registry)) as at, web() as raw:
            session_headers, other = await _opened(raw, at), await _opened(raw, at)
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "leave"}}
            first = _events((await raw.post(at.url, headers=session_headers, json=call)).text)
            assert first[0]["data"] == ""
            assert first[0]["retry"] == str(http_server.RETRY_MILLISECONDS)
            last = {"last-event-id": first[-1]["id"]}
            go_on.set()
            stranger = await raw.get(at.url, headers={**other, **last})
            assert "the rest" not in stranger.text
            async with raw.stream("GET", at.url, headers={**session_headers, **last}) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data: {"):
                        body = json.loads(line.removeprefix("data: "))
                        break
            assert body["id"] == 2
            assert body["result"]["content"][0]["text"] == "the rest"

    asyncio.run(main())


def test_sessions_are_isolated() -> None:
    """Untrusted content of one conversation is not in another, and nor are its limits."""
    registry = ToolRegistry()
    registry.register(lambda: "x", name="read", untrusted=True)

    async def main() -> None:
        service = McpService(registry)
        states_seen = list[bool]()
        run = service._executor.run

        async def watched(call: Any, session: Any, **more: Any) -> Any:
            states_seen.append(session.untrusted)
            return await run(call, session, **more)

        service._executor.run = service._unattended.run = watched  # type: ignore[method-assign, assignment]
        async with serving(service) as at:
            for _ in range(2):
                async with client(at, mode="legacy") as mcp_client:
                    await mcp_client.call_tool("read")
                    await mcp_client.call_tool("read")
        assert states_seen == [False, True, False, True]

    asyncio.run(main())


def _descriptors() -> int:
    """How many files and sockets are open, where the system tells."""
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def test_vanished_clients_leave_no_sessions() -> None:
    started, ended = asyncio.Semaphore(0), asyncio.Semaphore(0)
    registry = ToolRegistry()

    @registry.register
    async def forever() -> str:
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            ended.release()
        return ""

    async def main() -> None:
        service = McpService(registry)
        async with serving(service, HttpOptions(idle_seconds=0.2)) as at:
            async with client(at, mode="legacy") as mcp_client:
                await mcp_client.list_tools()
            before = len(asyncio.all_tasks()), _descriptors()
            for protocol in ("2025-11-25", "2026-07-28") * 10:
                _, writer = await asyncio.open_connection(*host(at).split(":"))
                session_headers = {"mcp-protocol-version": protocol}
                params: dict[str, Any] = {"name": "forever", "arguments": {}}
                if protocol < "2026":
                    async with web() as raw:
                        session_headers = await _opened(raw, at)
                else:
                    session_headers |= {"mcp-method": "tools/call", "mcp-name": "forever"}
                    params["_meta"] = {
                        "io.modelcontextprotocol/protocolVersion": protocol,
                        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
                        "io.modelcontextprotocol/clientCapabilities": {},
                    }
                body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
                lines = {**headers(at), **session_headers, "host": host(at), "content-length": str(len(body))}
                head = "".join(f"{key}: {value}\r\n" for key, value in lines.items())
                writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
                await writer.drain()
                await asyncio.wait_for(started.acquire(), 10)
                writer.transport.abort()
            for _ in range(20):
                await asyncio.wait_for(ended.acquire(), 20)
            async with asyncio.timeout(20):
                while len(asyncio.all_tasks()) > before[0] or _descriptors() > before[1]:
                    await asyncio.sleep(0.01)
            assert not service._waiting

    asyncio.run(main())


def test_connections_that_send_nothing_do_not_lock_the_owner_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 12)
    monkeypatch.setattr(http_server, "MAX_SILENT", 6)

    async def main() -> None:
        async with serving(McpService(registry())) as at, web() as raw:
            port = int(host(at).rpartition(":")[2])
            # At once, so that the server makes several before those that it closes are gone.
            sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
            silent = [await asyncio.open_connection(sock=connected) for connected in sockets]
            answer = await raw.post(at.url, headers=headers(at), json=INITIALIZE)
            assert answer.status_code == 200
            for _, writer in silent:
                writer.close()

    asyncio.run(main())
