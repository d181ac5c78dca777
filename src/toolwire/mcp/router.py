"""Many MCP servers, one registry: `McpRouter` registers their tools and leads each call to its server.

Two things are asked before anything of a server is used: whether it may be started or reached like this, and, once
its tools were seen, whether each change of what they say of themselves is right. Until somebody agreed, a changed tool
keeps its old words for models, and does not run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Literal

from toolwire._surface import check_items, check_type
from toolwire.errors import ConfigurationError, DefinitionError, ToolError, UnknownTool
from toolwire.execution.registry import ToolRegistry
from toolwire.mcp.approvals import Approvals
from toolwire.mcp.connection import PAUSES, Connection, ServerDown
from toolwire.mcp.definitions import (
    Declared,
    Quarantined,
    described,
    difference,
    effective,
    from_stored,
    read_tools,
    repeatable,
)
from toolwire.mcp.http_client import HttpAuth
from toolwire.mcp.results import from_mcp
from toolwire.mcp.servers import Launch, McpServer, by_name
from toolwire.messages import ToolResult
from toolwire.policy.fingerprint import definition_hash
from toolwire.schema.validation import validate
from toolwire.tools import Tier, ToolDefinition

REFRESH_SECONDS = 0.05
"""How long changes of a server's tools are gathered before they are asked for."""

PENDING = "pending"
"""The annotation of a tool whose description nobody has agreed to: the hash of that description."""

State = Literal["ready", "waiting", "not agreed", "failed", "off"]
ToolState = Literal["agreed", "new", "changed", "quarantined", "off"]


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """Whether a server may be started or reached like this.

    Attributes:
        server: its name.
        shown: how, with nothing left out but secrets.
        before: how it was when somebody last agreed; "" if nobody did.
    """

    server: str
    shown: str
    before: str = ""

    @property
    def text(self) -> str:
        """The question for a reader."""
        if not self.before:
            return f"The MCP server {self.server} has not been used before. It\n{self.shown}"
        changed = "something secret" if self.before == self.shown else f"it\n{self.before}\nand now it\n{self.shown}"
        return f"The MCP server {self.server} is not what was agreed to: {changed}"


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a call has come.

    Attributes:
        server, tool: whose call.
        done: in whatever the server counts.
        total: of how much, if it says.
        message: what the server says to it.
    """

    server: str
    tool: str
    done: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """A tool of a server.

    Attributes:
        name: its name on the server.
        called: what models call it; "" if they cannot.
        state: "agreed", or why its calls are asked about or do not run.
        tier, confirm: what holds for it.
        description: what models are told.
        reason: why it is quarantined, or how it has changed, as a diff.
    """

    name: str
    called: str = ""
    state: ToolState = "agreed"
    tier: Tier = Tier.RUN
    confirm: bool = False
    description: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server and its tools.

    Attributes:
        name: its name.
        state: "waiting": its tools are known, and it is started by the first call.
        reason: why it cannot be used.
        shown: how it is started or reached.
        protocol: the version of the protocol that was agreed on.
        about: what it calls itself.
        tools: its tools.
    """

    name: str
    state: State
    reason: str = ""
    shown: str = ""
    protocol: str = ""
    about: str = ""
    tools: tuple[ToolStatus, ...] = ()


Approve = Callable[[ServerQuestion], Awaitable[bool]]
Report = Callable[[ToolProgress], None]


@dataclass(slots=True)
class _Known:
    """A tool as it is registered: the description that its server gives, and the one that was agreed to."""

    now: Declared
    agreed: Declared | None
    hash: str
    definition: ToolDefinition

    @property
    def state(self) -> ToolState:
        if self.agreed is None:
            return "new"
        return "agreed" if definition_hash(self.agreed.definition) == self.hash else "changed"

    def same(self, other: _Known) -> bool:
        """Whether the other would be registered in the same way."""
        return (self.state, self.hash, self.definition) == (other.state, other.hash, other.definition)


@dataclass(slots=True)
class _Served:
    """A server with its connection and its tools, by the names under which they are registered."""

    server: McpServer
    connection: Connection
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    tools: dict[str, _Known] = field(default_factory=dict)
    off: list[Declared] = field(default_factory=list)
    bad: list[Quarantined] = field(default_factory=list)
    state: State = "waiting"
    reason: str = ""
    stale: bool = False  # what it says of its tools now was not read yet
    news: int = 0  # how often it has told that they are others
    refresh: asyncio.Task[None] | None = None


class McpRouter:
    """Servers whose tools stand in a registry, as long as the `async with` block lasts.

    At its beginning the tools of servers that were used before are registered as they were agreed to, and nothing is
    started: that happens with the first call, or with `connect`. Calls go through a `ToolExecutor`, which decides about
    them; everything here belongs to the event loop in which the block was entered.
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        registry: ToolRegistry,
        *,
        approvals: Approvals | None = None,
        approve: Approve | None = None,
        progress: Report | None = None,
        changed: Callable[[str], None] | None = None,
        auth: Mapping[str, HttpAuth] | None = None,
        asked: Callable[[str, str], None] | None = None,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            servers: the servers; see `load_servers`.
            registry: where their tools are registered, under the server's name.
            approvals: what was agreed to; in memory alone, if not given.
            approve: asks whether a server may be started or reached; without it none is that was not agreed to before.
            progress: hears how far calls have come.
            changed: called with a server's name when its tools were registered anew.
            auth: what signs requests in, by server name.
            asked: hears a server's name and what it asks of the user in the middle of a call, which is declined;
                without it servers are told that nobody can be asked.

        Raises:
            ConfigurationError: two servers have the same name.
        """
        check_type("servers", servers, Iterable, "an iterable of McpServer")
        check_items("servers", servers := list(servers), McpServer, "an iterable of McpServer")
        check_type("registry", registry, ToolRegistry, "a ToolRegistry")
        self._registry = registry
        self._approvals = approvals or Approvals()
        self._approve = approve
        self._progress = progress
        self._changed = changed
        self._known = by_name(servers)
        self._auth = auth or {}
        self._asked = asked
        self._served: dict[str, _Served] = {}

    def __repr__(self) -> str:
        """Return the names of the servers; commands and addresses may hold secrets."""
        return f"<McpRouter of {len(self._known)} servers: {', '.join(self._known) or 'none'}>"

    async def __aenter__(self) -> McpRouter:
        """Register what is known already."""
        for name, server in self._known.items():
            connection = Connection(
                server,
                changed=partial(self._stale, name),
                auth=self._auth.get(name),
                asked=None if self._asked is None else partial(self._asked, name),
            )
            served = self._served[name] = _Served(server, connection)
            if not server.enabled:
                served.state = "off"
            elif (agreed := self._approvals.server(server)) is not None and agreed.listed:
                pins = (from_stored(given, server) for given in self._approvals.tools(server).values())
                self._register(served, [pin for pin in pins if pin is not None])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all servers, and forget their tools."""
        served, self._served = list(self._served.values()), {}
        for one in served:
            self._registry.remove_server(one.server.name)
            if one.refresh is not None:
                one.refresh.cancel()
        await asyncio.gather(*(one.connection.close() for one in served))

    async def connect(self, *names: str) -> list[ServerStatus]:
        """Start or reach servers and read their tools: these, or all; what became of them.

        First all is asked that has to be, one after the other. One that fails does so for itself;
        `ServerStatus.reason` says why.

        Raises:
            ConfigurationError: there is no server of a name.
        """
        chosen = [self._find(name) for name in names] or list(self._served.values())
        usable = [served for served in chosen if served.server.enabled]
        agreed = [served for served in usable if await self._tried(self._permitted(served))]
        async with asyncio.TaskGroup() as group:
            for served in agreed:
                group.create_task(self._tried(self._ready(served)))
        for served in self._served.values():  # models see them in the same order, whichever server was first
            for known in list(served.tools.values()):
                off = self._switched_off(known, served)
                with suppress(UnknownTool):
                    self._registry.remove(known.now.definition.name, served.server.name)
                self._add(served, known, off=off)
        return [self._status(served) for served in chosen]

    def servers(self) -> list[ServerStatus]:
        """All servers, as they are now."""
        return [self._status(served) for served in self._served.values()]

    def agree(self, server: str, tool: str | None = None) -> None:
        """Somebody has seen how these tools describe themselves now, and agrees: one tool of a server, or all.

        Raises:
            ConfigurationError: there is no such server, or no such tool of it.
        """
        served = self._find(server)
        names = {known.now.name for known in served.tools.values()}
        if tool is not None and tool not in names:
            raise ConfigurationError(f"the server {server} has no tool {tool!r}")
        self._pin(served, [known.now for known in served.tools.values() if tool in (None, known.now.name)])

    # -- servers -------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> _Served:
        if name not in self._served:
            known = ", ".join(self._served) or "none"
            raise ConfigurationError(f"there is no MCP server {name!r}; there are: {known}")
        return self._served[name]

    @staticmethod
    async def _tried(work: Awaitable[object]) -> bool:
        try:
            await work
        except ToolError:
            return False
        return True

    async def _permitted(self, served: _Served) -> Launch:
        """How the server is started, which somebody has agreed to.

        Raises:
            ServerDown: nobody has, or it cannot be started at all.
        """
        if served.server.name not in self._served:
            raise ServerDown(served.server.name, "it is not used any more")
        served.state, served.reason = "waiting", ""
        try:
            launch = served.server.launch()
            await self._agreed(served, launch)
        except ConfigurationError as error:
            served.state, served.reason = "failed", str(error)
            raise ServerDown(served.server.name, str(error)) from error
        return launch

    async def _ready(self, served: _Served) -> None:
        """Have the server there, and its tools as it describes them now.

        Raises:
            ToolError: it cannot be used.
        """
        if served.connection.open and not served.stale and served.server.name in self._served:
            return  # it runs as somebody agreed to
        async with served.lock:
            launch = await self._permitted(served)
            if not served.connection.open:
                served.stale = True
            try:
                if await served.connection.start(launch) or served.stale:
                    await self._list(served)
            except ToolError as error:
                served.state, served.reason = "failed", error.reason if isinstance(error, ServerDown) else str(error)
                raise
            served.state = "ready"

    async def _agreed(self, served: _Served, launch: Launch) -> None:
        server, known = served.server, self._approvals.server(served.server)
        if known is not None and known.hash == launch.hash:
            return
        await served.connection.close()  # it may run as it was agreed to before
        question = ServerQuestion(server.name, launch.shown, known.shown if known else "")
        if self._approve is None or not await self._approve(question):
            served.state = "not agreed"
            served.reason = "how it is started has changed" if known else "nobody has agreed to it yet"
            raise ServerDown(server.name, served.reason)
        self._approvals.agree(server, launch)

    async def _list(self, served: _Served) -> None:
        served.stale = (
            True  # until all is read: nobody calls meanwhile, and if this is cut short, whoever is next reads
        )
        news = served.news
        given, unreadable = await served.connection.tools()
        declared, bad = read_tools(given, served.server, self._known)
        agreed = self._approvals.server(served.server)
        if agreed is not None and not agreed.listed:
            self._approvals.pin(served.server, {one.name: one.stored() for one in declared})
        served.bad = [*unreadable, *bad]
        self._register(served, declared)
        served.stale = served.news != news

    def _stale(self, name: str) -> None:
        """The server's tools are others now; they are read soon, many such news at once."""
        if (served := self._served.get(name)) is not None:
            served.stale = True
            served.news += 1
            if served.refresh is None or served.refresh.done():
                served.refresh = asyncio.create_task(self._refresh(served))

    async def _refresh(self, served: _Served) -> None:
        failures = 0
        while served.connection.open and failures < len(PAUSES):
            await asyncio.sleep(REFRESH_SECONDS + PAUSES[failures])
            async with served.lock:
                if not served.stale:  # all is known, or a call has asked meanwhile
                    return
                try:
                    await self._list(served)
                except ToolError as error:
                    served.reason, failures = str(error), failures + 1
                else:
                    served.state, served.reason, failures = "ready", "", 0

    # -- tools ---------------------------------------------------------------------------------------------------

    def _register(self, served: _Served, declared: Iterable[Declared]) -> None:
        """Have exactly these tools in the registry."""
        server = served.server
        pins = {name: from_stored(given, server) for name, given in self._approvals.tools(server).items()}
        before, served.tools, served.off = served.tools, {}, []
        for now in declared:
            if not server.settings(now.name).enabled:
                served.off.append(now)
                continue
            known = self._judged(server, now, pins.get(now.name))
            served.tools[now.definition.name] = known
            earlier = before.pop(now.definition.name, None)
            if earlier is not None and earlier.same(known):
                continue
            off = earlier is not None and self._switched_off(earlier, served)
            if earlier is not None:
                self._registry.remove(now.definition.name, server.name)
            self._add(served, known, off=off)
        for name in before:
            self._registry.remove(name, server.name)
        if self._changed is not None:
            self._changed(server.name)

    def _judged(self, server: McpServer, now: Declared, agreed: Declared | None) -> _Known:
        known = _Known(now, agreed, definition_hash(now.definition), now.definition)
        told = now if agreed is None else agreed  # models keep reading what was agreed to
        known.definition = effective(told, server, ask=known.state != "agreed")
        if known.state != "agreed":  # what is agreed to for the session is bound to this very change
            known.definition = replace(
                known.definition, annotations={**known.definition.annotations, PENDING: known.hash}
            )
        return known

    def _switched_off(self, known: _Known, served: _Served) -> bool:
        """Whether the program has switched the tool off; it stays so when it is registered anew."""
        try:
            self._registry.lookup(known.now.definition.name, served.server.name)
        except UnknownTool:
            return True
        except DefinitionError:
            pass
        return False

    def _add(self, served: _Served, known: _Known, *, off: bool = False) -> None:
        asked = known.state != "agreed"

        async def run(**arguments: Any) -> ToolResult:
            return await self._call(served, known, arguments)

        try:
            self._registry.register(
                known.definition,
                server=served.server.name,
                run=run,
                preview=(lambda _: _question(known)) if asked else None,
                idempotent=repeatable(known.now, served.server),
            )
        except DefinitionError as error:
            del served.tools[known.now.definition.name]
            served.bad.append(Quarantined(known.now.name, str(error)))
            return
        if off:
            self._registry.enable(known.now.definition.name, served.server.name, enabled=False)

    def _pin(self, served: _Served, tools: list[Declared]) -> None:
        self._approvals.pin(served.server, {one.name: one.stored() for one in tools})
        self._register(served, [known.now for known in served.tools.values()] + served.off)

    async def _call(self, served: _Served, known: _Known, arguments: dict[str, Any]) -> ToolResult:
        name = known.now.name
        await self._ready(served)
        current = served.tools.get(known.now.definition.name)
        if current is None:
            raise ToolError(f"The MCP server {served.server.name} has no tool {name} any more; it did not run.")
        if current.hash != known.hash:
            raise ToolError(
                f"The MCP server {served.server.name} describes {name} in another way now; it did not run. Somebody "
                "has to agree to that when it is called again."
            )
        if known.state != "agreed":  # the executor has asked about this very description
            self._pin(served, [known.now])
            if issues := validate(arguments, known.now.definition.parameters):
                raise ToolError(f"{name} wants other arguments now: {'; '.join(map(str, issues))}")
        report = self._progress

        def progress(done: float, total: float | None, message: str) -> None:
            if report is not None:
                report(ToolProgress(served.server.name, name, done, total, message))

        answer = await served.connection.call(name, arguments, progress if report is not None else None)
        return from_mcp(answer, known.now)

    # -- what there is -------------------------------------------------------------------------------------------

    def _status(self, served: _Served) -> ServerStatus:
        server, connection = served.server, served.connection
        try:
            shown = server.launch().shown
        except ConfigurationError as error:
            shown = str(error)
        state: State = served.state
        if state == "ready" and not connection.open:
            state = "waiting"
        tools = [self._tool(server, known) for known in served.tools.values()]
        tools += [ToolStatus(one.name, state="off", description=one.definition.description) for one in served.off]
        tools += [ToolStatus(one.name, state="quarantined", reason=one.reason) for one in served.bad]
        return ServerStatus(
            server.name, state, served.reason, shown, connection.protocol, connection.about, tuple(tools)
        )

    def _tool(self, server: McpServer, known: _Known) -> ToolStatus:
        one = known.definition
        try:
            called = self._registry.lookup(one.name, server.name).definition.name
        except UnknownTool:  # the program has switched it off
            return ToolStatus(known.now.name, state="off", description=one.description)
        reason = _question(known) if known.state != "agreed" else ""
        return ToolStatus(
            known.now.name, called, known.state, one.tier, one.requires_confirmation, one.description, reason
        )


def _question(known: _Known) -> str:
    """What somebody has to see before a tool runs whose description nobody has agreed to."""
    if known.agreed is None:
        return f"This tool is new on its server. To agree is to agree to its description:\n{described(known.now)}"
    return (
        "The server describes this tool in another way than what was agreed to. To agree is to agree to the change:\n"
        f"{difference(known.agreed, known.now)}"
    )
