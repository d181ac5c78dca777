"""One MCP server: a task of its own starts or reaches it, and ends it; calls are made from anywhere.

What is open belongs to that task from beginning to end. When the server dies, calls that wait are told so, and the next
one starts it again, after a pause that grows while that fails. Nothing is ever sent a second time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version
from time import monotonic
from typing import Any

import anyio
import httpx2
from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from toolwire.errors import ToolError
from toolwire.mcp.definitions import MAX_TOOLS, Quarantined, cleaned
from toolwire.mcp.http_client import HttpAuth, Reach, open_url
from toolwire.mcp.servers import Launch, McpServer
from toolwire.mcp.stderr_tail import Stderr
from toolwire.mcp.stdio_client import open_program

MAX_PAGES = 100
MAX_LISTING = 32 << 20
"""Bytes of all tools that a server lists, as JSON."""
LIST_SECONDS = 120.0
"""What a server has to list them all; each page has to come within its `start_timeout`."""
LOGIN_SECONDS = 300.0
"""What somebody has to sign in, where that is asked for."""
MAX_REASON = 500
MAX_QUESTION = 2_000
"""Characters of a question of a server's that are passed on."""
STOP_SECONDS = 10.0
"""What a server has to end in when it is asked to; then it is cancelled."""
WRITE_SECONDS = 5.0
"""What a call may take beyond its time, for a server that does not even read it."""
PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each new start after as many failures in a row."""
GIVE_UP_SECONDS = 60.0
"""How long a server that failed more often is left alone."""

Progress = Callable[[float, float | None, str], None]
"""How far a call has come: what is done, of how much, and what the server says to it."""

_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class ServerDown(ToolError):
    """A server cannot be used.

    Attributes:
        reason: why, without its name.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The MCP server {name} cannot be used: {reason}.")
        self.reason = reason


class _Dispatcher(JSONRPCDispatcher):
    """The SDK's, which also knows when it has ended, and sets aside single tools that the SDK cannot read.

    Attributes:
        ended: nothing comes any more.
        listed: the tools of the last page, as they came.
        unreadable: those of them that were set aside.
        size: bytes of that page, as JSON.
    """

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.ended = asyncio.Event()
        self.version = ""
        self.listed: list[Any] = []
        self.unreadable: list[Quarantined] = []
        self.size = 0

    async def run(self, *args: Any, **options: Any) -> None:
        try:
            await super().run(*args, **options)
        finally:
            self.ended.set()

    async def send_raw_request(self, method: str, *args: Any, **options: Any) -> dict[str, Any]:
        raw = await super().send_raw_request(method, *args, **options)
        if method == "tools/list":
            self.listed, self.unreadable = [], []
            self.size = len(json.dumps(raw, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
            tools = raw.get("tools")
            raw = {
                **raw,
                "tools": [tool for tool in (tools if isinstance(tools, list) else []) if self._readable(tool)],
            }
        return raw

    def _readable(self, tool: Any) -> bool:
        try:
            validate_server_result("tools/list", self.version, {"tools": [tool]} | _COMPLETE)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(key) for key in first["loc"] if key != "tools")
            name = tool.get("name") if isinstance(tool, dict) else None
            shown = cleaned(name, MAX_REASON) if isinstance(name, str) else "(no name)"
            self.unreadable.append(Quarantined(shown, cleaned(f"{place}: {first['msg']}", MAX_REASON)))
            return False
        self.listed.append(tool)
        return True


_COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Connection:
    """A server, started or reached when it is first needed.

    Attributes:
        server: what the user says of it.
        protocol: the version that was agreed on; "" before that.
        about: what the server calls itself; "" if it does not say.
        failure: why it is not there; "" if it is, or was not asked for yet.
    """

    def __init__(
        self,
        server: McpServer,
        *,
        changed: Callable[[], None],
        auth: HttpAuth | None = None,
        asked: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            server: the server.
            changed: called when it says that its tools are others now.
            auth: what signs its requests in.
            asked: hears what the server asks of the user, which is declined; without it the server is told that nobody
                can be asked.
        """
        self.server = server
        self.protocol = self.about = self.failure = ""
        self._changed = changed
        self._auth = auth
        self._asked = asked
        self._lock = asyncio.Lock()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._live: tuple[ClientSession, _Dispatcher] | None = None
        self._stderr = Stderr(server.name)
        self._reach = Reach()
        self._failures = 0
        self._failed_at = 0.0

    @property
    def open(self) -> bool:
        """Whether it is there."""
        return self._live is not None and not self._live[1].ended.is_set()

    async def start(self, launch: Launch) -> bool:
        """Start it or reach it, unless it is there; whether it had to be.

        Raises:
            ServerDown: it cannot be.
        """
        async with self._lock:
            if self.open:
                return False
            await self._end()
            await self._pause()
            opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._stop = asyncio.Event()
            self._task = task = asyncio.create_task(self._own(launch, opened), name=f"mcp {self.server.name}")
            try:
                seconds = self.server.start_timeout + (LOGIN_SECONDS if self._auth is not None else 0)
                await asyncio.wait({task, opened}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ready = opened.done() and not task.done()
                late = not task.done()
                if not ready:
                    await self._end()
            if not ready:
                self._failures, self._failed_at = self._failures + 1, monotonic()
                self.failure = self._because(
                    f"it did not answer within {seconds:g} seconds" if late else self._why(task)
                )
                raise ServerDown(self.server.name, self.failure)
            self._failures, self.failure = 0, ""
            return True

    async def tools(self) -> tuple[list[Any], list[Quarantined]]:
        """All tools that the server lists, as they came, and those that are no tools.

        Raises:
            ServerDown: it is not there, or does not answer.
        """
        session, dispatcher = self._there()
        found: list[Any] = []
        bad: list[Quarantined] = []
        cursor: str | None = None
        seen: set[str] = set()
        size = 0
        deadline = asyncio.get_running_loop().time() + LIST_SECONDS
        for _ in range(MAX_PAGES):
            page = await self._page(session, cursor, deadline)
            if page is None:
                return found, bad
            size += dispatcher.size
            if size > MAX_LISTING:
                raise self._endless(f"their descriptions have more than {MAX_LISTING} bytes")
            kept = {tool.name for tool in page.tools}
            found += [tool for tool in dispatcher.listed if tool["name"] in kept]
            bad += dispatcher.unreadable
            bad += [
                Quarantined(cleaned(tool["name"], MAX_REASON), "its x-mcp-header is wrong")
                for tool in dispatcher.listed
                if tool["name"] not in kept
            ]
            cursor = page.next_cursor
            if not cursor or cursor in seen or len(found) > MAX_TOOLS:
                return found, bad
            seen.add(cursor)
        raise self._endless(f"they stand on more than {MAX_PAGES} pages")

    async def _page(self, session: ClientSession, cursor: str | None, deadline: float) -> ListToolsResult | None:
        """A page of the tools that the server lists; None if it knows no such thing."""
        now = asyncio.get_running_loop().time()
        until = min(deadline, now + self.server.start_timeout)
        try:
            async with asyncio.timeout_at(until):
                return await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return None
            raise self._broken(error) from error
        except ValidationError as error:
            raise self._broken(error) from error
        except TimeoutError as error:
            if until == deadline:
                raise self._endless(f"that took longer than {LIST_SECONDS:g} seconds") from error
            raise self._endless(f"a page did not come within {self.server.start_timeout:g} seconds") from error

    def _endless(self, why: str) -> ServerDown:
        return ServerDown(self.server.name, f"it was asked for its tools, but {why}")

    async def call(self, tool: str, arguments: dict[str, Any], report: Progress | None = None) -> CallToolResult:
        """Call a tool, once. Cancelling the task that waits cancels the call on the server.

        Raises:
            ServerDown: it is not there.
            ToolError: it went away meanwhile, refused the call, took too long, or answered with what is no answer.
        """
        session, dispatcher = self._there()

        async def told(progress: float, total: float | None, message: str | None) -> None:
            if report is not None:
                report(progress, total, cleaned(message or "", MAX_REASON))

        async def sent(params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
            seconds = self.server.timeout
            try:
                async with asyncio.timeout(seconds + WRITE_SECONDS):
                    return await session.send_request(
                        CallToolRequest(params=params),
                        _ANSWER,
                        request_read_timeout_seconds=seconds,
                        progress_callback=told if report is not None else None,
                    )
            except (MCPError, TimeoutError, ValidationError) as error:
                if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
                    dispatcher.ended.set()  # it knows in a moment; the next call must not wait for that
                raise self._broken(error) from error

        params = CallToolRequestParams(name=tool, arguments=arguments)
        answer = await sent(params)
        if isinstance(answer, InputRequiredResult) and (declined := self._declined(answer)):
            update = {"input_responses": declined, "request_state": answer.request_state}
            answer = await sent(params.model_copy(update=update))
        if isinstance(answer, InputRequiredResult):
            raise ToolError(f"{tool} wants to ask somebody first, and cannot be answered here; it did not run.")
        return answer

    def _declined(self, answer: InputRequiredResult) -> dict[str, ElicitResult]:
        """The answers to questions that a call waits for; none if it waits for something else."""
        asked = answer.input_requests or {}
        if self._asked is None or not all(isinstance(one, ElicitRequest) for one in asked.values()):
            return {}
        return {key: self._decline(one.params) for key, one in asked.items() if isinstance(one, ElicitRequest)}

    def _decline(self, params: ElicitRequestParams) -> ElicitResult:
        if self._asked is not None:
            self._asked(" ".join(cleaned(params.message, MAX_QUESTION).split()))
        return ElicitResult(action="decline")

    async def _elicited(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return self._decline(params)

    async def close(self) -> None:
        """End it, if it is there."""
        async with self._lock:
            await self._end()
            self.failure = ""

    # -- what went wrong -----------------------------------------------------------------------------------------

    def _there(self) -> tuple[ClientSession, _Dispatcher]:
        if self._live is None or self._live[1].ended.is_set():
            raise ServerDown(self.server.name, self.failure or "it is not there")
        return self._live

    def _broken(self, error: MCPError | TimeoutError | ValidationError) -> ToolError:
        """What a call is told; a connection that is of no more use is given up."""
        name, seconds = self.server.name, self.server.timeout
        if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT):
            return ToolError(
                f"The MCP server {name} did not answer within {seconds:g} seconds; the call was cancelled."
            )
        if isinstance(error, ValidationError):
            return ToolError(f"The MCP server {name} gave back what is no result: {_said(error)}.")
        if error.code == CONNECTION_CLOSED:
            self.failure = self._because(self._reach.refused or "it went away")
            why = f" ({self._reach.refused})" if self._reach.refused else ""
            return ToolError(
                f"The MCP server {name} went away while the call ran{why}; it may or may not have done its work. "
                "It was not called again."
            )
        if error.code == HEADER_MISMATCH:
            self._changed()
            return ToolError(f"The MCP server {name} describes the tool in another way now; it did not run.")
        if self._reach.refused or error.message == "Session terminated":
            self._stop.set()
        why = self._reach.refused or _said(error)
        return ToolError(f"The MCP server {name} refused: {why}.")

    def _why(self, task: asyncio.Task[None]) -> str:
        error = None if task.cancelled() else task.exception()
        return self._reach.refused or (_said(error) if error is not None else "it ended at once")

    def _because(self, why: str) -> str:
        said = self._stderr.last(MAX_REASON)
        return f"{why.rstrip('.')}; it said: {said}" if said else why.rstrip(".")

    # -- the task that owns what is open -------------------------------------------------------------------------

    async def _pause(self) -> None:
        waited = monotonic() - self._failed_at
        if self._failures >= len(PAUSES):
            left = GIVE_UP_SECONDS - waited
            if left > 0:
                again = f"it is tried again in {left:.0f} seconds"
                raise ServerDown(self.server.name, f"{self.failure} ({self._failures} times in a row; {again})")
        elif self._failures:
            await asyncio.sleep(max(0.0, PAUSES[self._failures] - waited))

    async def _own(self, launch: Launch, opened: asyncio.Future[None]) -> None:
        self._stderr.forget()
        self._reach = Reach()
        async with AsyncExitStack() as stack:
            if launch.argv:
                errors = stack.enter_context(self._stderr.taken())
                transport = open_program(launch, errors, limit=self.server.max_message, told=self._reach.refuse)
            else:
                given = self.server
                transport = open_url(
                    launch, self._reach, self._auth, given.timeout, given.max_message, private=given.private
                )
            dispatcher = _Dispatcher(*await stack.enter_async_context(transport))
            session = await stack.enter_async_context(
                ClientSession(
                    dispatcher=dispatcher,
                    message_handler=self._heard,
                    elicitation_callback=None if self._asked is None else self._elicited,
                    client_info=Implementation(name="toolwire", version=version("toolwire")),
                )
            )
            await _negotiate(session)
            self.protocol = dispatcher.version = session.protocol_version or ""
            info = session.server_info
            self.about = cleaned(f"{info.name} {info.version}".strip(), MAX_REASON) if info else ""
            self._live = session, dispatcher
            opened.set_result(None)
            await self._until_the_end(session, dispatcher)

    async def _until_the_end(self, session: ClientSession, dispatcher: _Dispatcher) -> None:
        waits = [asyncio.create_task(self._stop.wait()), asyncio.create_task(dispatcher.ended.wait())]
        listening = asyncio.create_task(self._listen(session))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._live = None
            for one in (*waits, listening):
                one.cancel()
            await asyncio.wait((*waits, listening))

    async def _listen(self, session: ClientSession) -> None:
        """Hear of changed tools, where the protocol wants that to be asked for."""
        tools = session.server_capabilities.tools if session.server_capabilities else None
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        with suppress(MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
            async with listen(session, tools_list_changed=True) as events:
                async for _ in events:
                    self._changed()

    async def _heard(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        self._stop.set()
        if self._live is None:
            task.cancel()  # it still negotiates
        done, _ = await asyncio.wait({task}, timeout=STOP_SECONDS)
        if not done:
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()


async def _negotiate(session: ClientSession) -> None:
    """Agree on a version: the newest that both know, else the handshake of older servers."""
    try:
        await session.discover()
    except (MCPError, RuntimeError, ValidationError):
        try:
            await session.initialize()
        except MCPError as error:
            if error.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise
            await session.discover()  # it was only slow to answer the first time


def _said(error: BaseException) -> str:
    """An error in one line; what servers wrote into it is made harmless."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case FileNotFoundError():
            text = f"there is no program or directory {error.filename}"
        case OSError():
            text = f"{error.filename or ''} {error.strerror or error}".strip()
        case MCPError():
            text = error.message
        case ValidationError():
            first = error.errors()[0]
            text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        case httpx2.ConnectError():
            text = f"it cannot be reached: {error}"
        case anyio.ClosedResourceError() | anyio.BrokenResourceError():
            text = "the connection broke"
        case _:
            text = f"{error}" or type(error).__name__
    return " ".join(cleaned(text, MAX_REASON).split()).rstrip(".")
