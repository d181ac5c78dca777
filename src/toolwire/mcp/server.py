"""The tools of a registry for other programs, as an MCP server: their calls are decided about like any other.

What has to be asked is asked of the person behind the client, if it can ask; else the call is refused, and says so.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from time import monotonic
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmptyResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    SetLevelRequestParams,
    Tool,
    ToolAnnotations,
)
from typing_extensions import Unpack

from toolwire.execution.executor import RunningOptions, ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.mcp.client_context import CURRENT, Caller
from toolwire.mcp.definitions import HINTS
from toolwire.mcp.results import shaped, to_mcp
from toolwire.messages import ToolCall
from toolwire.policy.approval import Agreement, Approval, present
from toolwire.policy.policy import Policy
from toolwire.policy.session import Session
from toolwire.text.json_text import DuplicateKeyError, unique_members
from toolwire.text.suggest import check_options
from toolwire.tools import Tier, ToolDefinition

PAGE = 200
"""Tools that one answer lists."""
WAITING = 1_000
"""Calls that may wait for their turn."""
WIDTH = 100
"""Characters of a line of a question."""
MAX_QUESTION = 50_000
"""Characters of a question; what takes more is not asked, and does not run."""
TWICE = "a-key-stands-twice"
"""The method that a client is told does not exist, when its request cannot be read in one way only."""
ASKED_SECONDS = 600.0
MAX_ASKED = 1_000

_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"agree": {"type": "boolean", "title": "Run it", "default": False}},
    "required": ["agree"],
}


@dataclass(slots=True, weakref_slot=True)
class Visit:
    """A client that came, from its first request to its last.

    Attributes:
        session: what its conversation has come to.
        events: what it may come back for; see `toolwire.mcp.http_server`.
    """

    session: Session
    events: OrderedDict[str, tuple[str, str]] = field(default_factory=OrderedDict)


VISIT: ContextVar[Visit | None] = ContextVar("toolwire_mcp_visit", default=None)


_UNANSWERED = Agreement(False, unanswered=True)


@dataclass(slots=True)
class _Round:
    """One request of a call whose client is asked by an answer.

    Attributes:
        key: what the client was asked before; "" if nothing.
        answer: what it said to that.
        unasked: what it has to be asked now; the request then comes again.
    """

    key: str = ""
    answer: Agreement = _UNANSWERED
    unasked: Approval | None = None


class McpService:
    """Our tools as an MCP server; `stdio` and `toolwire.mcp.http_server.serve_http` run it.

    Attributes:
        server: the SDK's server, for other transports.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        policy: Policy | None = None,
        tier: Tier = Tier.WALK,
        agree: bool = False,
        name: str = "toolwire",
        instructions: str = "",
        **options: Unpack[RunningOptions],
    ) -> None:
        """Prepare.

        Args:
            registry: the tools; those that are registered later are served too.
            policy: the rules.
            tier: how far every client is let; tools of a higher one are not even listed.
            agree: run what has to be asked without asking.
            name: what clients know the server by.
            instructions: what clients tell their model about it.
            options: see `RunningOptions`.

        Raises:
            TypeError: an option is unknown.
        """
        check_options("McpService", options, RunningOptions.__annotations__)
        self._registry = registry
        self._tier = tier
        self._agree = agree
        self._gate = asyncio.Semaphore(options.get("concurrency", 16))
        self._waiting = 0
        self._asked: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._visit = self.visit()  # of all who have none of their own
        if (shape := options.get("shape")) is not None:
            options["shape"] = shaped(shape)
        self._executor = ToolExecutor(registry, policy=policy, confirm=self._confirm, **options)
        self._alone = ToolExecutor(registry, policy=policy, **options)
        self.server: Server[Any] = Server(
            name,
            version=version("toolwire"),
            instructions=instructions or None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, _any_level)

    def visit(self) -> Visit:
        """Somebody comes."""
        return Visit(Session(tier=self._tier))

    async def stdio(self) -> None:
        """Serve whoever writes to this process's standard input, until it closes."""
        visit = VISIT.set(self.visit())
        try:
            with _own_input() as lines:
                async with stdio_server(lines) as (reading, writing):
                    await self.server.run(reading, writing, self.server.create_initialization_options())
        finally:
            VISIT.reset(visit)

    # -- requests ------------------------------------------------------------------------------------------------

    async def _list(self, _: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        cursor = params.cursor if params is not None else None
        if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise MCPError(INVALID_PARAMS, "There is no such page.")
        at = int(cursor or 0)
        known = self._registry.definitions(tier=self._tier)
        more = str(at + PAGE) if at + PAGE < len(known) else None
        return ListToolsResult(tools=[_tool(one) for one in known[at : at + PAGE]], next_cursor=more)

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if params.name not in self._registry:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r:.200}.")
        if self._waiting >= WAITING:
            raise MCPError(INTERNAL_ERROR, "Too many calls are waiting; try again later.")
        visit = VISIT.get() or self._visit
        call = ToolCall(params.name, params.arguments or {}, str(context.request_id), format="mcp")
        caller = Caller(context)
        executor = self._executor if self._agree or caller.can_be_asked else self._alone
        current, round = CURRENT.set(caller), _ROUND.set(this := self._round(params))
        slot = _Slot(self._gate)
        self._waiting += 1
        try:
            outcome = await executor.run(call, visit.session, before_run=slot.take)
        finally:
            slot.give()
            self._waiting -= 1
            CURRENT.reset(current)
            _ROUND.reset(round)
        return to_mcp(outcome.result) if this.unasked is None else self._question(this.unasked)

    # -- asking --------------------------------------------------------------------------------------------------

    async def _confirm(self, approval: Approval) -> Agreement:
        """What somebody says; a refusal is remembered for one visit, and so not at all if the client has none."""
        answer = await self._answered(approval)
        if answer.agreed or answer.unanswered or VISIT.get() is not None:
            return answer
        return replace(answer, unanswered=True, reason="the question was declined")

    async def _answered(self, approval: Approval) -> Agreement:
        if self._agree:
            return Agreement(True)
        caller = CURRENT.get()
        assert caller is not None
        text = present(approval, WIDTH, whole=True)
        if len(text) > MAX_QUESTION:
            why = f"it takes {len(text)} characters to show what it would do, which is too many"
            return Agreement(False, reason=why, unanswered=True)
        if not caller.modern:
            return _agreement(await caller.elicit(text, _FORM))
        this = _ROUND.get()
        if this.key == approval.key:
            return this.answer
        this.unasked = approval
        return _UNANSWERED

    def _question(self, approval: Approval) -> InputRequiredResult:
        """The question as an answer; what it is about is kept here, so that the client cannot change it."""
        state = secrets.token_urlsafe(24)
        now = monotonic()
        self._asked[state] = approval.key, now
        while len(self._asked) > MAX_ASKED or now - next(iter(self._asked.values()))[1] > ASKED_SECONDS:
            self._asked.popitem(last=False)
        form = ElicitRequestFormParams(message=present(approval, WIDTH, whole=True), requested_schema=_FORM)
        return InputRequiredResult(input_requests={"agree": ElicitRequest(params=form)}, request_state=state)

    def _round(self, params: CallToolRequestParams) -> _Round:
        """What was asked before, and whether somebody agreed; once for each question."""
        key, at = self._asked.pop(params.request_state or "", ("", 0.0))
        given = (params.input_responses or {}).get("agree")
        if not key or monotonic() - at > ASKED_SECONDS or not isinstance(given, ElicitResult):
            return _Round()
        return _Round(key, _agreement(given))


def _agreement(given: ElicitResult) -> Agreement:
    """An answer; a question that was closed, or a form that was not filled in, is none."""
    agree = (given.content or {}).get("agree") if given.action == "accept" else None
    refused = given.action == "decline" or agree is False
    return Agreement(agree is True, unanswered=agree is not True and not refused)


@dataclass(slots=True)
class _Slot:
    """A call's place among those that run at the same time; taken when it runs, so no question holds one."""

    gate: asyncio.Semaphore
    held: bool = False

    async def take(self, *_: object) -> None:
        await self.gate.acquire()
        self.held = True

    def give(self) -> None:
        if self.held:
            self.held = False
            self.gate.release()


_ROUND: ContextVar[_Round] = ContextVar("toolwire_mcp_round")


def repeats(text: str) -> bool:
    """Whether JSON has an object with the same key twice, of which others may read another value than we do."""
    try:
        json.loads(text, object_pairs_hook=unique_members, parse_int=len, parse_float=len, strict=False)
    except (DuplicateKeyError, RecursionError):
        return True
    except ValueError:  # whoever reads it will say so
        pass
    return False


class _Lines(anyio.AsyncFile[str]):
    """Lines of requests; one in which a key stands twice becomes a request for something that nobody has."""

    async def readline(self) -> str:
        line = await super().readline()
        if not repeats(line):
            return line
        try:
            name = json.loads(line).get("id")
        except (ValueError, RecursionError, AttributeError):
            name = None
        known = {"id": name} if isinstance(name, str | int) and not isinstance(name, bool) else {}
        return json.dumps({"jsonrpc": "2.0", **known, "method": TWICE}) + "\n"


@contextmanager
def _own_input() -> Iterator[anyio.AsyncFile[str]]:
    """Standard input, which other code of this process and its children find empty meanwhile."""
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield _Lines(io.TextIOWrapper(io.BufferedReader(io.FileIO(os.dup(own))), encoding="utf-8", errors="replace"))
    finally:
        os.dup2(own, 0)
        os.close(own)


def _tool(definition: ToolDefinition) -> Tool:
    schema: Mapping[str, Any] = definition.parameters
    hints = {key: value for key, value in definition.annotations.items() if key in HINTS and isinstance(value, bool)}
    hints["readOnlyHint"] = definition.tier < Tier.RUN
    hints["destructiveHint"] = definition.requires_confirmation or hints.get("destructiveHint") is True
    title = definition.annotations.get("title")
    return Tool(
        name=definition.name,
        title=title if isinstance(title, str) else None,
        description=definition.description,
        input_schema=dict(schema) if schema.get("type") == "object" else {"type": "object", **schema},
        annotations=ToolAnnotations.model_validate(hints),
    )


async def _any_level(_: ServerRequestContext[Any, Any], __: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()
