"""Serve the tools of a registry to other programs over MCP; policy decides about their calls like about any other.

A call that needs approval is shown to the user of the client. If the client cannot ask its user, the call is refused
with that reason.
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
from toolwire.messages import ToolCall, digest
from toolwire.policy.approval import Approval, ApprovalAnswer, present
from toolwire.policy.policy import Policy
from toolwire.policy.session import Session
from toolwire.text.json_text import DuplicateKeyError, unique_members
from toolwire.text.suggest import check_options
from toolwire.tools import Tier, ToolDefinition

PAGE = 200
"""Number of tools on one page of the list."""
WAITING = 1_000
"""Maximum number of calls that wait for their turn."""
WIDTH = 100
"""Length of a line of a question, in characters."""
MAX_QUESTION = 50_000
"""Maximum length of a question, in characters; a call that takes more to show does not run."""
DUPLICATE_KEY = "a-key-appears-twice"
"""The method that replaces an ambiguous request; it does not exist, so the client receives an error."""
QUESTION_SECONDS = 600.0
"""Seconds after which an unanswered question is forgotten."""
MAX_QUESTIONS = 1_000
"""Maximum number of questions that are unanswered."""

_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Run it", "default": False}},
    "required": ["approve"],
}


@dataclass(slots=True, weakref_slot=True)
class McpSession:
    """A client's session, from its first request to its last.

    Attributes:
        session: the state that policy keeps for it.
        events: events that it has not received; see `toolwire.mcp.http_server`.
    """

    session: Session
    events: OrderedDict[str, tuple[str, str]] = field(default_factory=OrderedDict)


CURRENT_SESSION: ContextVar[McpSession | None] = ContextVar("toolwire_mcp_session", default=None)

_UNANSWERED = ApprovalAnswer(False, unanswered=True)


@dataclass(slots=True)
class _Round:
    """One request of a call whose client is asked by an answer, after which it sends the request again.

    Attributes:
        key: key of the approval that the client was asked for before; "" if none.
        answer: its answer to that.
        unasked: the approval that it has to be asked for now.
    """

    key: str = ""
    answer: ApprovalAnswer = _UNANSWERED
    unasked: Approval | None = None


class McpService:
    """An MCP server for the tools of a registry; `stdio` and `toolwire.mcp.http_server.serve_http` run it.

    Attributes:
        server: the SDK's server, for other transports.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        policy: Policy | None = None,
        tier: Tier = Tier.WALK,
        approve: bool = False,
        name: str = "toolwire",
        instructions: str = "",
        **options: Unpack[RunningOptions],
    ) -> None:
        """Prepare.

        Args:
            registry: the tools; tools that are registered later are served too.
            policy: the rules.
            tier: the highest tier for clients; tools of a higher tier are not listed.
            approve: run calls that need approval without asking.
            name: name of the server for clients.
            instructions: description of the server for the client's model.
            options: see `RunningOptions`.

        Raises:
            TypeError: an option is unknown.
        """
        check_options("McpService", options, RunningOptions.__annotations__)
        self._registry = registry
        self._tier = tier
        self._approve = approve
        self._gate = asyncio.Semaphore(options.get("concurrency", 16))
        self._waiting = 0
        self._asked: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._shared_session = self.open_session()  # for requests that belong to no session
        if (shape := options.get("shape")) is not None:
            options["shape"] = shaped(shape)
        self._executor = ToolExecutor(registry, policy=policy, confirm=self._confirm, **options)
        self._unattended = ToolExecutor(registry, policy=policy, **options)
        self.server: Server[Any] = Server(
            name,
            version=version("toolwire"),
            instructions=instructions or None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, _any_level)

    def open_session(self) -> McpSession:
        """Return the session of a new client."""
        return McpSession(Session(tier=self._tier))

    async def stdio(self) -> None:
        """Serve the client at this process's standard input, until it closes."""
        token = CURRENT_SESSION.set(self.open_session())
        try:
            with _own_input() as lines:
                async with stdio_server(lines) as (reading, writing):
                    await self.server.run(reading, writing, self.server.create_initialization_options())
        finally:
            CURRENT_SESSION.reset(token)

    # -- requests ------------------------------------------------------------------------------------------------

    async def _list(self, _: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        cursor = params.cursor if params is not None else None
        if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise MCPError(INVALID_PARAMS, "There is no such page.")
        start = int(cursor or 0)
        definitions = self._registry.definitions(tier=self._tier)
        more = str(start + PAGE) if start + PAGE < len(definitions) else None
        return ListToolsResult(
            tools=[_tool(definition) for definition in definitions[start : start + PAGE]], next_cursor=more
        )

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if params.name not in self._registry:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r:.200}.")
        if self._waiting >= WAITING:
            raise MCPError(INTERNAL_ERROR, "Too many calls are waiting; try again later.")
        client = CURRENT_SESSION.get() or self._shared_session
        call = ToolCall(params.name, params.arguments or {}, str(context.request_id), format="mcp")
        caller = Caller(context)
        executor = self._executor if self._approve or caller.can_be_asked else self._unattended
        current, round = CURRENT.set(caller), _ROUND.set(turn := self._round(params))
        slot = _Slot(self._gate)
        self._waiting += 1
        try:
            outcome = await executor.run(call, client.session, before_run=slot.take)
        finally:
            slot.give()
            self._waiting -= 1
            CURRENT.reset(current)
            _ROUND.reset(round)
        return to_mcp(outcome.result) if turn.unasked is None else self._question(turn.unasked)

    # -- asking --------------------------------------------------------------------------------------------------

    async def _confirm(self, approval: Approval) -> ApprovalAnswer:
        """Return the user's answer; a refusal is stored for the client's session, and not at all without a session."""
        answer = await self._ask(approval)
        if answer.approved or answer.unanswered or CURRENT_SESSION.get() is not None:
            return answer
        return replace(answer, unanswered=True, reason="the question was declined")

    async def _ask(self, approval: Approval) -> ApprovalAnswer:
        if self._approve:
            return ApprovalAnswer(True)
        caller = CURRENT.get()
        assert caller is not None
        text = present(approval, WIDTH, whole=True)
        if len(text) > MAX_QUESTION:
            why = f"it takes {len(text)} characters to show the call, which is too many"
            return ApprovalAnswer(False, reason=why, unanswered=True)
        if not caller.modern:
            return _agreement(await caller.elicit(text, _FORM))
        turn = _ROUND.get()
        if turn.key == _question_key(approval):
            return turn.answer
        turn.unasked = approval
        return _UNANSWERED

    def _question(self, approval: Approval) -> InputRequiredResult:
        """Return a question as an answer; its approval key is stored here, so that the client cannot change it."""
        state = secrets.token_urlsafe(24)
        now = monotonic()
        self._asked[state] = _question_key(approval), now
        while len(self._asked) > MAX_QUESTIONS or now - next(iter(self._asked.values()))[1] > QUESTION_SECONDS:
            self._asked.popitem(last=False)
        form = ElicitRequestFormParams(message=present(approval, WIDTH, whole=True), requested_schema=_FORM)
        return InputRequiredResult(input_requests={"approve": ElicitRequest(params=form)}, request_state=state)

    def _round(self, params: CallToolRequestParams) -> _Round:
        """Return the question that a request answers, and the answer; each question is answered once."""
        key, at = self._asked.pop(params.request_state or "", ("", 0.0))
        response = (params.input_responses or {}).get("approve")
        if not key or monotonic() - at > QUESTION_SECONDS or not isinstance(response, ElicitResult):
            return _Round()
        return _Round(key, _agreement(response))


def _question_key(approval: Approval) -> str:
    """Return a digest of the call and of its preview, which changes with the files that the call would change."""
    return digest([approval.key, approval.preview])


def _agreement(given: ElicitResult) -> ApprovalAnswer:
    """Return an answer as an approval; a closed question, or an empty form, leaves it unanswered."""
    if given.action == "decline":  # by its user, or by a client that answers no questions
        return ApprovalAnswer(False, by="The client", reason="it declined the question that this server asked")
    approve = (given.content or {}).get("approve") if given.action == "accept" else None
    return ApprovalAnswer(approve is True, unanswered=approve is not True and approve is not False)


@dataclass(slots=True)
class _Slot:
    """A call's place among those that run at the same time; taken when the call runs, not while its question waits."""

    gate: asyncio.Semaphore
    taken: bool = False

    async def take(self, *_: object) -> None:
        await self.gate.acquire()
        self.taken = True

    def give(self) -> None:
        if self.taken:
            self.taken = False
            self.gate.release()


_ROUND: ContextVar[_Round] = ContextVar("toolwire_mcp_round")


def has_duplicate_keys(text: str) -> bool:
    """Return whether a key appears twice in an object of JSON; other readers may take the other value."""
    try:
        json.loads(text, object_pairs_hook=unique_members, parse_int=len, parse_float=len, strict=False)
    except (DuplicateKeyError, RecursionError):
        return True
    except ValueError:  # not JSON: the reader of the request reports that
        pass
    return False


class _Lines(anyio.AsyncFile[str]):
    """Lines of requests; one with a duplicate key becomes a request for a method that does not exist."""

    async def readline(self) -> str:
        line = await super().readline()
        if not has_duplicate_keys(line):
            return line
        try:
            name = json.loads(line).get("id")
        except (ValueError, RecursionError, AttributeError):
            name = None
        identifier = {"id": name} if isinstance(name, str | int) and not isinstance(name, bool) else {}
        return json.dumps({"jsonrpc": "2.0", **identifier, "method": DUPLICATE_KEY}) + "\n"


@contextmanager
def _own_input() -> Iterator[anyio.AsyncFile[str]]:
    """Yield standard input; other code of this process and its children find it empty meanwhile."""
    original = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    try:
        yield _Lines(
            io.TextIOWrapper(io.BufferedReader(io.FileIO(os.dup(original))), encoding="utf-8", errors="replace")
        )
    finally:
        os.dup2(original, 0)
        os.close(original)


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
