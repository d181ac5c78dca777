"""Route calls from one registry to many MCP servers: `McpRouter` registers the servers' tools.

Two approvals are needed before anything of a server is used: one for how it is started or reached, and one for each
later change of a tool's description. Until a change is approved, models keep reading the approved description, and the
tool does not run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from types import NoneType, TracebackType
from typing import Any, Literal

from toolwire._surface import check_items, check_type, wrong_type
from toolwire.errors import ConfigurationError, DefinitionError, ToolError, UnknownTool
from toolwire.execution.confirmation import as_async
from toolwire.execution.registry import ToolRegistry
from toolwire.mcp.approvals import Approvals
from toolwire.mcp.connection import PAUSES, Connection, ServerDown
from toolwire.mcp.definitions import (
    DeclaredTool,
    QuarantinedTool,
    effective,
    from_stored,
    read_tools,
    repeatable,
)
from toolwire.mcp.http_client import HttpAuth
from toolwire.mcp.results import from_mcp
from toolwire.mcp.router_state import RegisteredTool, ServerEntry
from toolwire.mcp.server_status import (
    Approve,
    ServerQuestion,
    ServerState,
    ServerStatus,
    ToolProgress,
    ToolStatus,
)
from toolwire.mcp.servers import Launch, McpServer, by_name, shown_launch
from toolwire.messages import ToolResult
from toolwire.policy.fingerprint import definition_hash
from toolwire.runtime.blocking import run_blocking
from toolwire.schema.validation import validate

REFRESH_SECONDS = 0.05
"""Seconds during which a server's changes are gathered before its tools are read again."""

PENDING = "pending"
"""The annotation of a tool whose description is not approved: the hash of that description."""

Report = Callable[[ToolProgress], None]


class McpRouter:
    """Servers whose tools are in a registry for the duration of the `async with` block.

    Without a registry, the router makes one, and connects to all servers on entry. With a registry, tools of servers
    that were used before are registered on entry as they were approved, and no server is started: that happens with
    the first call, or with `connect`. Calls go through a `ToolExecutor`, which decides about them. The router belongs
    to the event loop in which the block was entered. After a plain `with`, tools can be called in any event loop and by
    the synchronous methods, such as `Agent.ask_sync`.
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        registry: ToolRegistry | None = None,
        *,
        approvals: Approvals | None = None,
        approve: Approve | Literal[True] | None = None,
        progress: Report | None = None,
        changed: Callable[[str], None] | None = None,
        auth: Mapping[str, HttpAuth] | None = None,
        asked: Callable[[str, str], Awaitable[None] | None] | None = None,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            servers: the servers; see `load_servers`.
            registry: registry for their tools, which are registered under the server's name; a new one, if not given.
            approvals: stored approvals; in memory alone, if not given.
            approve: asks whether a server may be started or reached; only True means yes. Without it, only approved
                servers are. True itself approves all of them: for servers that the program names in its own code.
            progress: receives the progress of calls.
            changed: called with a server's name when its tools were registered anew.
            auth: authentication of requests, by server name.
            asked: receives a server's name and each question that it asks the user during a call, which is declined.
                Without it, servers see a client that cannot ask questions. Like `approve`, it may be async; a plain
                function is called in a thread, for one question at a time.

        Raises:
            ConfigurationError: two servers have the same name.
            TypeError: a value is of another type.
        """
        unchecked: object = servers
        if isinstance(unchecked, McpServer) or not isinstance(unchecked, Iterable):  # a model iterates over its fields
            raise wrong_type("servers", unchecked, "an iterable of McpServer")
        check_items("servers", servers := list(servers), McpServer, "an iterable of McpServer")
        check_type("registry", registry, (ToolRegistry, NoneType), "a ToolRegistry or None")
        if approve is not None and approve is not True and not callable(approve):
            raise wrong_type("approve", approve, "a function that asks about a server, or True")
        self._connects = registry is None
        self._registry = ToolRegistry() if registry is None else registry
        self._approvals = approvals or Approvals()
        self._approve = None if approve is None else as_async(_approve_any if approve is True else approve)
        self._progress = progress
        self._changed = changed
        self._configured = by_name(servers)
        self._auth = auth or {}
        self._asked = None if asked is None else as_async(asked)
        self._entries: dict[str, ServerEntry] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serves_all_loops = False

    def __repr__(self) -> str:
        """Return the names of the servers; commands and addresses may contain secrets."""
        return f"<McpRouter of {len(self._configured)} servers: {', '.join(self._configured) or 'none'}>"

    @property
    def registry(self) -> ToolRegistry:
        """The registry with the servers' tools; tools of your own can be registered beside them."""
        return self._registry

    def __enter__(self) -> McpRouter:
        """Do the same as `async with`, for programs without asyncio and for notebooks."""
        self._serves_all_loops = True
        return run_blocking(self.__aenter__)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all servers, and remove their tools."""
        run_blocking(lambda: self.__aexit__(kind, error, trace))

    async def __aenter__(self) -> McpRouter:
        """Register the tools that were approved before; or, in a registry of its own, the tools of all servers.

        Raises:
            ConfigurationError: the router made its own registry, and a server cannot be used.
        """
        self._loop = asyncio.get_running_loop()
        for name, server in self._configured.items():
            connection = Connection(
                server,
                changed=partial(self._mark_stale, name),
                auth=self._auth.get(name),
                asked=None if self._asked is None else partial(self._asked, name),
            )
            entry = self._entries[name] = ServerEntry(server, connection)
            if not server.enabled:
                entry.state = "off"
            elif (approved := self._approvals.server(server)) is not None and approved.listed:
                self._register(entry, [pin for pin in self._pins(server).values() if pin is not None])
        if self._connects:
            async with AsyncExitStack() as stack:
                # The end of the block is never reached if its beginning fails, or is interrupted.
                stack.push_async_callback(self._end)
                await self._connect_all()
                stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all servers, and remove their tools."""
        await self._end()

    async def _end(self) -> None:
        entries, self._entries = list(self._entries.values()), {}
        for entry in entries:
            self._registry.remove_server(entry.server.name)
            if entry.refresh is not None:
                entry.refresh.cancel()
        await asyncio.gather(*(entry.connection.close() for entry in entries))

    async def _connect_all(self) -> None:
        """Connect to all servers.

        Raises:
            ConfigurationError: one of them cannot be used. A program that never looks at their status would not notice
                that tools are missing.
        """
        failed = [status for status in await self.connect() if status.state not in ("ready", "off")]
        if failed:
            hints = {"not approved": ": approve=True or a function approves it"}
            reasons = "; ".join(f"{status.name}: {status.reason}{hints.get(status.state, '')}" for status in failed)
            raise ConfigurationError(f"MCP servers cannot be used: {reasons}")

    async def connect(self, *names: str) -> list[ServerStatus]:
        """Start or reach these servers, or all, and read their tools; return their status.

        All questions are asked first, one after the other. A server that fails does not affect the others;
        `ServerStatus.reason` gives the cause.

        Raises:
            ConfigurationError: there is no server of a name.
        """
        chosen = [self._find(name) for name in names] or list(self._entries.values())
        usable = [entry for entry in chosen if entry.server.enabled]
        approved = [entry for entry in usable if await self._succeeds(self._approved_launch(entry))]
        async with asyncio.TaskGroup() as group:
            for entry in approved:
                group.create_task(self._succeeds(self._make_ready(entry)))
        # Servers answer in any order; registering their tools anew gives models the same order in every run.
        for entry in self._entries.values():
            for tool in list(entry.tools.values()):
                disabled = self._is_disabled(tool, entry)
                with suppress(UnknownTool):
                    self._registry.remove(tool.current.definition.name, entry.server.name)
                self._add(entry, tool, disabled=disabled)
        return [self._status(entry) for entry in chosen]

    def servers(self) -> list[ServerStatus]:
        """Return the current status of all servers."""
        return [self._status(entry) for entry in self._entries.values()]

    def approve(self, server: str, tool: str | None = None) -> None:
        """Approve the current descriptions of a server's tools: of one, or of all.

        Raises:
            ConfigurationError: there is no such server, or no such tool of it.
        """
        entry = self._find(server)
        declared = [registered.current for registered in entry.tools.values()]
        if tool is not None and tool not in {current.name for current in declared}:
            raise ConfigurationError(f"the server {server} has no tool {tool!r}")
        self._pin(entry, [current for current in declared if tool in (None, current.name)])

    # -- servers -------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> ServerEntry:
        if name not in self._entries:
            names = ", ".join(self._entries) or "none"
            raise ConfigurationError(f"there is no MCP server {name!r}; there are: {names}")
        return self._entries[name]

    @staticmethod
    async def _succeeds(work: Awaitable[object]) -> bool:
        try:
            await work
        except ToolError:
            return False
        return True

    async def _approved_launch(self, entry: ServerEntry) -> Launch:
        """Return how the server is started, once that is approved.

        Raises:
            ServerDown: it is not approved, or the server cannot be started at all.
        """
        if entry.server.name not in self._entries:
            raise ServerDown(entry.server.name, "it is not used any more")
        entry.state, entry.reason = "waiting", ""
        try:
            # The files that it runs may be large.
            launch = await asyncio.to_thread(entry.server.launch)
            await self._require_approval(entry, launch)
        except ConfigurationError as error:
            entry.state, entry.reason = "failed", str(error)
            raise ServerDown(entry.server.name, str(error)) from error
        return launch

    async def _make_ready(self, entry: ServerEntry) -> None:
        """Start or reach the server unless it is open, and read its tools unless they are current.

        Raises:
            ToolError: it cannot be used.
        """
        if entry.connection.open and not entry.stale and entry.server.name in self._entries:
            return  # it runs as it was approved
        async with entry.lock:
            launch = await self._approved_launch(entry)
            if not entry.connection.open:
                entry.stale = True
            try:
                if await entry.connection.start(launch) or entry.stale:
                    await self._list(entry)
            except ToolError as error:
                entry.state, entry.reason = "failed", error.reason if isinstance(error, ServerDown) else str(error)
                raise
            entry.state = "ready"

    async def _require_approval(self, entry: ServerEntry, launch: Launch) -> None:
        server, approved = entry.server, self._approvals.server(entry.server)
        if approved is not None and approved.hash == launch.hash:
            return
        await entry.connection.close()  # it may still run as it was approved before
        question = ServerQuestion(server.name, launch.shown, approved.shown if approved else "")
        if self._approve is None or await self._approve(question) is not True:
            entry.state = "not approved"
            entry.reason = "how it is started has changed" if approved else "it has not been approved yet"
            raise ServerDown(server.name, entry.reason)
        self._approvals.approve(server, launch)

    async def _list(self, entry: ServerEntry) -> None:
        # It stays stale until all is read: no call is made meanwhile, and after an interruption the next one reads.
        entry.stale = True
        changes = entry.changes
        listed, unreadable = await entry.connection.tools()
        declared, quarantined = read_tools(listed, entry.server, self._configured)
        approved = self._approvals.server(entry.server)
        if approved is not None and not approved.listed:
            self._approvals.pin(entry.server, {tool.name: tool.stored() for tool in declared})
        entry.quarantined = [*unreadable, *quarantined]
        self._register(entry, declared)
        entry.stale = entry.changes != changes

    def _mark_stale(self, name: str) -> None:
        """Have a server's tools read again soon; many announcements lead to one reading."""
        if (entry := self._entries.get(name)) is not None:
            entry.stale = True
            entry.changes += 1
            if entry.refresh is None or entry.refresh.done():
                entry.refresh = asyncio.create_task(self._refresh(entry))

    async def _refresh(self, entry: ServerEntry) -> None:
        failures = 0
        while entry.connection.open and failures < len(PAUSES):
            await asyncio.sleep(REFRESH_SECONDS + PAUSES[failures])
            async with entry.lock:
                if not entry.stale:  # a call has read the tools meanwhile
                    return
                try:
                    await self._list(entry)
                except ToolError as error:
                    entry.reason, failures = str(error), failures + 1
                else:
                    entry.state, entry.reason, failures = "ready", "", 0

    # -- tools ---------------------------------------------------------------------------------------------------

    def _pins(self, server: McpServer) -> dict[str, DeclaredTool | None]:
        """Return the approved descriptions by name; None for one that cannot be read."""
        return {name: from_stored(stored, server) for name, stored in self._approvals.tools(server).items()}

    def _register(self, entry: ServerEntry, declared: Iterable[DeclaredTool]) -> None:
        """Make the registry hold exactly these tools of the server."""
        server, pins = entry.server, self._pins(entry.server)
        before, entry.tools, entry.disabled = entry.tools, {}, []
        for current in declared:
            if not server.settings(current.name).enabled:
                entry.disabled.append(current)
                continue
            tool = self._registered_tool(server, current, pins.get(current.name))
            entry.tools[current.definition.name] = tool
            earlier = before.pop(current.definition.name, None)
            if earlier is not None and earlier.same(tool):
                continue
            disabled = earlier is not None and self._is_disabled(earlier, entry)
            if earlier is not None:
                self._registry.remove(current.definition.name, server.name)
            self._add(entry, tool, disabled=disabled)
        for name in before:
            self._registry.remove(name, server.name)
        if self._changed is not None:
            self._changed(server.name)

    def _registered_tool(
        self, server: McpServer, current: DeclaredTool, approved: DeclaredTool | None
    ) -> RegisteredTool:
        tool = RegisteredTool(current, approved, definition_hash(current.definition), current.definition)
        shown = current if approved is None else approved  # models keep reading the approved description
        tool.definition = effective(shown, server, ask=tool.state != "approved")
        if tool.state != "approved":  # the annotation binds an approval for the session to this very change
            annotations = {**tool.definition.annotations, PENDING: tool.hash}
            tool.definition = replace(tool.definition, annotations=annotations)
        return tool

    def _is_disabled(self, tool: RegisteredTool, entry: ServerEntry) -> bool:
        """Return whether the program has disabled the tool; it stays so when it is registered anew."""
        try:
            self._registry.lookup(tool.current.definition.name, entry.server.name)
        except UnknownTool:
            return True
        except DefinitionError:
            pass
        return False

    def _add(self, entry: ServerEntry, tool: RegisteredTool, *, disabled: bool = False) -> None:
        async def run(**arguments: Any) -> ToolResult:
            return await self._in_own_loop(lambda: self._call(entry, tool, arguments))

        try:
            self._registry.register(
                tool.definition,
                server=entry.server.name,
                run=run,
                preview=None if tool.state == "approved" else lambda _: tool.question,
                idempotent=repeatable(tool.current, entry.server),
            )
        except DefinitionError as error:
            del entry.tools[tool.current.definition.name]
            entry.quarantined.append(QuarantinedTool(tool.current.name, str(error)))
            return
        if disabled:
            self._registry.enable(tool.current.definition.name, entry.server.name, enabled=False)

    def _pin(self, entry: ServerEntry, tools: list[DeclaredTool]) -> None:
        self._approvals.pin(entry.server, {tool.name: tool.stored() for tool in tools})
        self._register(entry, [tool.current for tool in entry.tools.values()] + entry.disabled)

    async def _in_own_loop(self, work: Callable[[], Coroutine[Any, Any, ToolResult]]) -> ToolResult:
        """Run a call in the event loop to which the connections belong; in another one it would wait for ever.

        Raises:
            ToolError: that loop may be blocked by this very call.
        """
        loop = self._loop
        if loop is None or asyncio.get_running_loop() is loop:
            return await work()
        if not self._serves_all_loops:
            raise ToolError(
                "The MCP servers belong to another event loop: use `async with` and `await` in the same one, or a "
                "plain `with` for calls from any."
            )
        # The loop of the synchronous methods has a thread of its own, which no caller blocks.
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))

    async def _call(self, entry: ServerEntry, tool: RegisteredTool, arguments: dict[str, Any]) -> ToolResult:
        server, name = entry.server.name, tool.current.name
        await self._make_ready(entry)
        listed = entry.tools.get(tool.current.definition.name)
        if listed is None:
            raise ToolError(f"The MCP server {server} has no tool {name} any more; it did not run.")
        if listed.hash != tool.hash:
            raise ToolError(
                f"The MCP server {server} describes {name} in another way now; it did not run. The change has to be "
                "approved when it is called again."
            )
        if tool.state != "approved":  # the executor has asked about this very description
            self._pin(entry, [tool.current])
            if issues := validate(arguments, tool.current.definition.parameters):
                raise ToolError(f"{name} wants other arguments now: {'; '.join(map(str, issues))}")
        report = self._progress

        def progress(done: float, total: float | None, message: str) -> None:
            if report is not None:
                report(ToolProgress(server, name, done, total, message))

        answer = await entry.connection.call(name, arguments, progress if report is not None else None)
        return from_mcp(answer, tool.current)

    # -- status --------------------------------------------------------------------------------------------------

    def _status(self, entry: ServerEntry) -> ServerStatus:
        server, connection = entry.server, entry.connection
        try:
            shown = shown_launch(server)
        except ConfigurationError as error:
            shown = str(error)
        state: ServerState = entry.state
        if state == "ready" and not connection.open:
            state = "waiting"
        tools = [self._tool_status(server, tool) for tool in entry.tools.values()]
        tools += [
            ToolStatus(tool.name, state="off", description=tool.definition.description) for tool in entry.disabled
        ]
        tools += [ToolStatus(tool.name, state="quarantined", reason=tool.reason) for tool in entry.quarantined]
        return ServerStatus(
            server.name, state, entry.reason, shown, connection.protocol, connection.about, tuple(tools)
        )

    def _tool_status(self, server: McpServer, tool: RegisteredTool) -> ToolStatus:
        name, definition = tool.current.name, tool.definition
        try:
            exposed = self._registry.lookup(definition.name, server.name).definition.name
        except UnknownTool:  # the program has disabled it
            return ToolStatus(name, state="off", description=definition.description)
        reason = tool.question if tool.state != "approved" else ""
        return ToolStatus(
            name,
            exposed,
            tool.state,
            definition.tier,
            definition.requires_confirmation,
            definition.description,
            reason,
        )


async def _approve_any(question: ServerQuestion) -> bool:
    return True
