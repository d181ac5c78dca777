"""Connection to one MCP server: a task of its own opens and closes it, and any task makes calls.

Open streams belong to that task alone, because their cancel scopes have to be entered and left in one task. When the
server dies, waiting calls fail, and the next call starts it again after a pause that grows with each failure. No
request is ever sent a second time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version
from time import monotonic
from typing import Any

import anyio
import httpx2
from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
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
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from toolwire.errors import ToolError
from toolwire.mcp.definitions import MAX_TOOLS, QuarantinedTool, clean
from toolwire.mcp.dispatcher import MAX_REASON, ListingDispatcher
from toolwire.mcp.http_client import HttpAuth, Refusal, open_url
from toolwire.mcp.servers import Launch, McpServer
from toolwire.mcp.stderr_tail import StderrTail
from toolwire.mcp.stdio_client import open_program

MAX_PAGES = 100
MAX_LISTING = 32 << 20
"""Maximum size of all tools that a server lists, in bytes of JSON."""
LIST_SECONDS = 120.0
"""Seconds for listing all tools of a server; each page has to arrive within its `start_timeout`."""
LOGIN_SECONDS = 300.0
"""Additional seconds for starting where the user has to sign in."""
MAX_QUESTION = 2_000
"""Maximum length of a question of a server, in characters; the rest is left out."""
MAX_QUESTIONS = 20
"""Maximum number of questions of one server that are shown; all are declined."""
STOP_SECONDS = 10.0
"""Seconds that a server has to end by itself before its task is cancelled."""
WRITE_SECONDS = 5.0
"""Seconds added to the time of a call, for a server that does not even read it."""
PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before the next start, by the number of failures in a row."""
GIVE_UP_SECONDS = 60.0
"""Seconds before the next start of a server that failed more often than `PAUSES` has entries."""

Progress = Callable[[float, float | None, str], None]
"""Observer of a call's progress: amount done, total amount, message of the server."""

_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class ServerDown(ToolError):
    """A server cannot be used.

    Attributes:
        reason: the cause, without the server's name.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The MCP server {name} cannot be used: {reason}.")
        self.reason = reason


class Connection:
    """A server, started or reached when it is first needed.

    Attributes:
        server: its configuration.
        protocol: the negotiated version of the protocol; "" before that.
        about: the name and version that the server reports; "" if it reports none.
        failure: why it is not open; "" if it is, or was never started.
    """

    def __init__(
        self,
        server: McpServer,
        *,
        changed: Callable[[], None],
        auth: HttpAuth | None = None,
        asked: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            server: the server.
            changed: called when the server announces that its tools have changed.
            auth: authentication of its requests.
            asked: receives each question that the server asks the user, which is declined. Without it, the server sees
                a client that cannot ask questions.
        """
        self.server = server
        self.protocol = self.about = self.failure = ""
        self._changed = changed
        self._auth = auth
        self._asked = asked
        self._questions = 0
        self._lock = asyncio.Lock()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._live: tuple[ClientSession, ListingDispatcher] | None = None
        self._stderr = StderrTail(server.name)
        self._refusal = Refusal()
        self._failures = 0
        self._failed_at = 0.0

    @property
    def open(self) -> bool:
        """True if calls can be made."""
        return self._live is not None and not self._live[1].ended.is_set()

    async def start(self, launch: Launch) -> bool:
        """Start or reach the server, unless it is open; return whether that was needed.

        Raises:
            ServerDown: it cannot be started or reached.
        """
        async with self._lock:
            if self.open:
                return False
            await self._end()
            await self._pause()
            opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._stop = asyncio.Event()
            self._task = task = asyncio.create_task(self._run(launch, opened), name=f"mcp {self.server.name}")
            try:
                seconds = self.server.start_timeout + (LOGIN_SECONDS if self._auth is not None else 0)
                await asyncio.wait({task, opened}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ready = opened.done() and not task.done()
                late = not task.done()
                if not ready:
                    await self._end()
            if not ready:
                await self._stderr.drain()
                self._failures, self._failed_at = self._failures + 1, monotonic()
                self.failure = self._with_stderr(
                    f"it did not answer within {seconds:g} seconds" if late else self._task_error(task)
                )
                raise ServerDown(self.server.name, self.failure)
            self._failures, self.failure = 0, ""
            return True

    async def tools(self) -> tuple[list[Any], list[QuarantinedTool]]:
        """Return all tools that the server lists, as received, and entries that cannot be read as tools.

        Raises:
            ServerDown: it is not open, or does not answer.
        """
        session, dispatcher = self._open_session()
        tools: list[Any] = []
        quarantined: list[QuarantinedTool] = []
        cursor: str | None = None
        cursors: set[str] = set()
        size = 0
        deadline = asyncio.get_running_loop().time() + LIST_SECONDS
        for _ in range(MAX_PAGES):
            page = await self._page(session, cursor, deadline)
            if page is None:
                return tools, quarantined
            size += dispatcher.size
            if size > MAX_LISTING:
                raise self._listing_error(f"their descriptions have more than {MAX_LISTING} bytes")
            readable = {tool.name for tool in page.tools}
            tools += [tool for tool in dispatcher.listed if tool["name"] in readable]
            quarantined += dispatcher.unreadable
            quarantined += [
                QuarantinedTool(clean(tool["name"], MAX_REASON), "its x-mcp-header is wrong")
                for tool in dispatcher.listed
                if tool["name"] not in readable
            ]
            cursor = page.next_cursor
            if not cursor or cursor in cursors or len(tools) > MAX_TOOLS:
                return tools, quarantined
            cursors.add(cursor)
        raise self._listing_error(f"they fill more than {MAX_PAGES} pages")

    async def _page(self, session: ClientSession, cursor: str | None, deadline: float) -> ListToolsResult | None:
        """Return a page of the list of tools; None if the server has no such list."""
        now = asyncio.get_running_loop().time()
        until = min(deadline, now + self.server.start_timeout)
        try:
            async with asyncio.timeout_at(until):
                return await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return None
            raise self._call_error(error) from error
        except (ValueError, RecursionError) as error:
            raise self._call_error(error) from error
        except TimeoutError as error:
            if until == deadline:
                raise self._listing_error(f"that took longer than {LIST_SECONDS:g} seconds") from error
            raise self._listing_error(f"a page did not arrive within {self.server.start_timeout:g} seconds") from error

    def _listing_error(self, why: str) -> ServerDown:
        return ServerDown(self.server.name, f"it was asked for its tools, but {why}")

    async def call(self, tool: str, arguments: dict[str, Any], report: Progress | None = None) -> CallToolResult:
        """Call a tool, once. Cancelling the waiting task cancels the call on the server.

        Raises:
            ServerDown: the server is not open.
            ToolError: the server ended meanwhile, refused the call, took too long, or sent an invalid answer.
        """
        session, dispatcher = self._open_session()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if report is not None:
                report(progress, total, clean(message or "", MAX_REASON))

        async def send(params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
            seconds = self.server.timeout
            try:
                async with asyncio.timeout(seconds + WRITE_SECONDS):
                    return await session.send_request(
                        CallToolRequest(params=params),
                        _ANSWER,
                        request_read_timeout_seconds=seconds,
                        progress_callback=on_progress if report is not None else None,
                    )
            except (MCPError, TimeoutError, ValueError, RecursionError) as error:
                if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
                    dispatcher.ended.set()  # the dispatcher sets it later; the next call must not use it until then
                    await self._stderr.drain()
                raise self._call_error(error) from error

        params = CallToolRequestParams(name=tool, arguments=arguments)
        answer = await send(params)
        if isinstance(answer, InputRequiredResult) and (declined := await self._refusals(answer)):
            update = {"input_responses": declined, "request_state": answer.request_state}
            answer = await send(params.model_copy(update=update))
        if isinstance(answer, InputRequiredResult):
            raise ToolError(f"{tool} needs an answer from the user first, which is not possible here; it did not run.")
        return answer

    async def _refusals(self, answer: InputRequiredResult) -> dict[str, ElicitResult]:
        """Return refusals of the questions that a call waits for; {} if it waits for anything else."""
        requests = answer.input_requests or {}
        if self._asked is None or not all(isinstance(request, ElicitRequest) for request in requests.values()):
            return {}
        return {
            key: await self._decline(request.params)
            for key, request in requests.items()
            if isinstance(request, ElicitRequest)
        }

    async def _decline(self, params: ElicitRequestParams) -> ElicitResult:
        # Each question is a line on the user's screen; a server that asks on and on fills it.
        self._questions += 1
        if self._asked is not None and self._questions <= MAX_QUESTIONS:
            more = " (further questions of this server are not shown)" if self._questions == MAX_QUESTIONS else ""
            await self._asked(" ".join(clean(params.message, MAX_QUESTION).split()) + more)
        return ElicitResult(action="decline")

    async def _on_elicitation(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return await self._decline(params)

    async def close(self) -> None:
        """End the server, if it is open."""
        async with self._lock:
            await self._end()
            self.failure = ""

    # -- errors -------------------------------------------------------------------------------------------------

    def _open_session(self) -> tuple[ClientSession, ListingDispatcher]:
        if self._live is None or self._live[1].ended.is_set():
            raise ServerDown(self.server.name, self.failure or "it is not open")
        return self._live

    def _call_error(self, error: MCPError | TimeoutError | ValueError | RecursionError) -> ToolError:
        """Return the error of a call; end a connection that cannot be used any more."""
        name, seconds = self.server.name, self.server.timeout
        if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT):
            return ToolError(
                f"The MCP server {name} did not answer within {seconds:g} seconds; the call was cancelled."
            )
        # The SDK raises more than errors of validation, for deep results for example.
        if not isinstance(error, MCPError):
            return ToolError(f"The MCP server {name} returned an invalid result: {_error_text(error)}.")
        if error.code == CONNECTION_CLOSED:
            self.failure = self._with_stderr(self._refusal.reason or "it went away")
            why = f" ({self._refusal.reason})" if self._refusal.reason else ""
            return ToolError(
                f"The MCP server {name} went away while the call ran{why}; it may or may not have done its work. "
                "It was not called again."
            )
        if error.code == HEADER_MISMATCH:
            self._changed()
            return ToolError(f"The MCP server {name} describes the tool in another way now; it did not run.")
        if self._refusal.reason or error.message == "Session terminated":
            self._stop.set()
        why = self._refusal.reason or _error_text(error)
        return ToolError(f"The MCP server {name} refused: {why}.")

    def _task_error(self, task: asyncio.Task[None]) -> str:
        error = None if task.cancelled() else task.exception()
        return self._refusal.reason or (_error_text(error) if error is not None else "it ended at once")

    def _with_stderr(self, why: str) -> str:
        stderr = self._stderr.last(MAX_REASON)
        return f"{why.rstrip('.')}; it said: {stderr}" if stderr else why.rstrip(".")

    # -- the task that owns the open streams ---------------------------------------------------------------------

    async def _pause(self) -> None:
        waited = monotonic() - self._failed_at
        if self._failures >= len(PAUSES):
            left = GIVE_UP_SECONDS - waited
            if left > 0:
                again = f"it is tried again in {left:.0f} seconds"
                raise ServerDown(self.server.name, f"{self.failure} ({self._failures} times in a row; {again})")
        elif self._failures:
            await asyncio.sleep(max(0.0, PAUSES[self._failures] - waited))

    async def _run(self, launch: Launch, opened: asyncio.Future[None]) -> None:
        self._stderr.forget()
        self._refusal = Refusal()
        async with AsyncExitStack() as stack:
            if launch.argv:
                errors = stack.enter_context(self._stderr.capture())
                transport = open_program(launch, errors, limit=self.server.max_message, on_refusal=self._refusal.record)
            else:
                server = self.server
                transport = open_url(
                    launch, self._refusal, self._auth, server.timeout, server.max_message, private=server.private
                )
            dispatcher = ListingDispatcher(*await stack.enter_async_context(transport))
            session = await stack.enter_async_context(
                ClientSession(
                    dispatcher=dispatcher,
                    message_handler=self._on_message,
                    elicitation_callback=None if self._asked is None else self._on_elicitation,
                    client_info=Implementation(name="toolwire", version=version("toolwire")),
                )
            )
            await _negotiate(session)
            self.protocol = dispatcher.version = session.protocol_version or ""
            info = session.server_info
            self.about = clean(f"{info.name} {info.version}".strip(), MAX_REASON) if info else ""
            self._live = session, dispatcher
            opened.set_result(None)
            await self._wait_for_end(session, dispatcher)

    async def _wait_for_end(self, session: ClientSession, dispatcher: ListingDispatcher) -> None:
        ends = [asyncio.create_task(self._stop.wait()), asyncio.create_task(dispatcher.ended.wait())]
        listening = asyncio.create_task(self._listen(session))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._live = None
            for task in (*ends, listening):
                task.cancel()
            await asyncio.wait((*ends, listening))

    async def _listen(self, session: ClientSession) -> None:
        """Subscribe to changes of the tools, where the protocol version requires that."""
        tools = session.server_capabilities.tools if session.server_capabilities else None
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        with suppress(MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
            async with listen(session, tools_list_changed=True) as events:
                async for _ in events:
                    self._changed()

    async def _on_message(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        self._stop.set()
        if self._live is None:
            task.cancel()  # it is still negotiating, and does not wait for the event
        ended, _ = await asyncio.wait({task}, timeout=STOP_SECONDS)
        if not ended:
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()


async def _negotiate(session: ClientSession) -> None:
    """Negotiate the newest version that both sides support, else use the handshake of older servers."""
    try:
        await session.discover()
    except (MCPError, RuntimeError, ValidationError):
        try:
            await session.initialize()
        except MCPError as error:
            if error.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise
            await session.discover()  # a new server, which only answered too late the first time


def _error_text(error: BaseException) -> str:
    """Return an error in one line; text of the server in it is cleaned."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case FileNotFoundError():
            hint = "; arguments of a program belong in args" if " " in str(error.filename) else ""
            text = f"there is no program or directory {error.filename}{hint}"
        case OSError():
            text = f"{error.filename or ''} {error.strerror or error}".strip()
        case MCPError() if error.code == CONNECTION_CLOSED:
            text = "it closed the connection before it answered as an MCP server does"
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
    return " ".join(clean(text, MAX_REASON).split()).rstrip(".")
