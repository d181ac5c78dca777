"""What tests of MCP share: scripted servers, routers that approve everything, calls."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from toolwire import Tier, ToolCall, ToolResult
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.mcp.approvals import Approvals
from toolwire.mcp.http_server import HttpOptions, Listening, serve_http
from toolwire.mcp.router import McpRouter
from toolwire.mcp.server import McpService
from toolwire.mcp.server_status import ServerQuestion
from toolwire.mcp.servers import McpServer
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.session import Session

HERE = Path(__file__).parent
EMPTY = {"type": "object"}


def tool(name: str, description: str = "Does something.", **more: Any) -> dict[str, Any]:
    """A tool as a server lists it; it says that it destroys nothing, so that calls run without a question."""
    hints = {"destructiveHint": False}
    return {"name": name, "description": description, "inputSchema": EMPTY, "annotations": hints, **more}


def raw(folder: Path, name: str = "raw", *, tools: list[Any] | None = None, **script: Any) -> McpServer:
    """A server that does what a script says; further words are of the server's configuration."""
    settings = {key: script.pop(key) for key in list(script) if key in McpServer.model_fields}
    path = folder / f"{name}.json"
    pages = script.pop("pages", None) or [tools or []]
    path.write_text(json.dumps({"log": str(folder / f"{name}.log"), "tools": pages, **script}))
    settings.setdefault("args", ("-I", "-S", str(HERE / "raw_mcp.py"), str(path)))
    return McpServer(name=name, command=sys.executable, **settings)


def heard(folder: Path, name: str = "raw") -> list[dict[str, Any]]:
    """What a scripted server was sent, in order."""
    path = folder / f"{name}.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def calls(folder: Path, name: str = "raw") -> list[str]:
    """The tools whose calls reached a scripted server."""
    return [one["params"]["name"] for one in heard(folder, name) if one.get("method") == "tools/call"]


def starts(folder: Path, name: str = "raw") -> int:
    """How often a scripted server was started."""
    return sum("start" in one for one in heard(folder, name))


class Desk:
    """Servers, a registry and somebody who answers questions."""

    def __init__(
        self,
        *servers: McpServer,
        approvals: Approvals | None = None,
        approve: Callable[[ServerQuestion], bool] | None = lambda _: True,
        approve_call: Callable[[Approval], bool] = lambda _: True,
        **options: Any,
    ) -> None:
        self.registry = ToolRegistry()
        self.approvals = approvals or Approvals()
        self.questions: list[ServerQuestion] = []
        self.asked: list[Approval] = []
        self.session = Session(tier=Tier.RUN)

        async def asked(question: ServerQuestion) -> bool:
            self.questions.append(question)
            assert approve is not None
            return approve(question)

        async def confirm(approval: Approval) -> ApprovalAnswer:
            self.asked.append(approval)
            return ApprovalAnswer(approve_call(approval))

        self.router = McpRouter(
            servers,
            self.registry,
            approvals=self.approvals,
            approve=asked if approve is not None else None,
            **options,
        )
        self.executor = ToolExecutor(self.registry, confirm=confirm)

    async def call(self, name: str, server: str = "", /, **arguments: Any) -> ToolResult:
        """A call in a conversation without untrusted content."""
        self.session.untrusted = False
        outcome = await self.executor.run(ToolCall(name, arguments, "c1", server), self.session)
        return outcome.result

    def states(self, name: str = "raw") -> dict[str, str]:
        """The states of a server's tools."""
        (status,) = (one for one in self.router.servers() if one.name == name)
        return {one.name: one.state for one in status.tools}


@asynccontextmanager
async def at(*servers: McpServer, connect: bool = True, **options: Any) -> AsyncIterator[Desk]:
    """A desk whose servers are there."""
    desk = Desk(*servers, **options)
    async with desk.router:
        if connect:
            await desk.router.connect()
        yield desk


def web(**options: Any) -> httpx2.AsyncClient:
    """A client for this machine, which needs no certificates."""
    return httpx2.AsyncClient(timeout=30, verify=False, **options)


@asynccontextmanager
async def serving(service: McpService, options: HttpOptions | None = None) -> AsyncIterator[Listening]:
    """A service over HTTP, on any free port."""
    told = asyncio.Queue[Listening]()
    task = asyncio.create_task(serve_http(service, options, ready=told.put_nowait))
    try:
        first = asyncio.create_task(told.get())
        await asyncio.wait({task, first}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            first.cancel()
            task.result()
        yield await first
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def client(listening: Listening, **options: Any) -> AsyncIterator[Client]:
    """The SDK's client of a service."""
    headers = {} if listening.token is None else {"authorization": f"Bearer {listening.token}"}
    http = web(headers=headers)
    async with http, Client(streamable_http_client(listening.url, http_client=http), **options) as opened:
        yield opened
