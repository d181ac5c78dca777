"""Run calls: look up, repair, validate, decide, ask, run; each call gets exactly one result, in the order of the calls.

What is validated is what is decided about, what somebody agrees to, and what runs: the same arguments, by a copy that
nothing else holds. Whatever goes wrong answers the model with a message that it can act on.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Literal

from toolwire.arguments import fitted
from toolwire.consent import Agreement, Approval
from toolwire.errors import DefinitionError, ToolError, UnknownTool
from toolwire.failures import Caught
from toolwire.hashing import approval_key
from toolwire.isolation import run_isolated
from toolwire.messages import ImagePart, Problem, ToolCall, ToolResult
from toolwire.policy import Ask, Decision, Deny, Policy, full_name
from toolwire.registry import Registered, ToolRegistry
from toolwire.schema import UNUSABLE, validate
from toolwire.session import Session
from toolwire.threads import in_thread

MAX_ERROR = 1_000
"""Characters of an error that the model is told."""
LOST = "The call ran, and its result was lost; it may or may not have done its work."

Shaping = Callable[[ToolCall, ToolResult], ToolResult]
Noted = Callable[[ToolCall, Registered, str], Awaitable[None]]
"""Told of a call that may run, right before it does: the call as it runs, its tool, and its approval key."""


Confirm = Callable[[Approval], Awaitable[Agreement | bool]]


@dataclass(frozen=True, slots=True)
class Issue:
    """Something that stands in a call's way.

    Attributes:
        kind: what it is; `confirmation` can be helped.
        message: for the model, or for the program.
    """

    kind: Literal["unknown_tool", "invalid_arguments", "denied", "confirmation", "not_runnable"]
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call.

    Attributes:
        call: as it ran: repaired, under the tool's own name; as it came, if it did not run.
        result: what the model is told.
        issue: why it did not run; None if it did.
    """

    call: ToolCall
    result: ToolResult
    issue: Issue | None = None


@dataclass(slots=True)
class _Ready:
    """A call that was looked up, repaired and validated."""

    call: ToolCall
    tool: Registered
    typed: dict[str, Any]  # the arguments as the function wants them


class ToolExecutor:
    """Runs calls against a registry, under a policy.

    Args:
        registry: the tools.
        policy: the rules.
        confirm: asks somebody; without it nothing that has to be asked runs.
        timeout: seconds that one call may take; None for no limit. A plain function that takes longer is left behind in
            its thread.
        confirm_timeout: seconds that somebody has to answer; no answer is none.
        concurrency: calls that run at the same time.
        shape: makes of each result of a call that ran what the model is told, say an envelope's.
        clock: seconds, for limits.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        policy: Policy | None = None,
        confirm: Confirm | None = None,
        timeout: float | None = None,
        confirm_timeout: float = 300.0,
        concurrency: int = 16,
        shape: Shaping | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._registry = registry
        self._policy = policy or Policy()
        self._confirm = confirm
        self._timeout = timeout
        self._confirm_timeout = confirm_timeout
        self._concurrency = concurrency
        self._shape = shape
        self._clock = clock

    async def execute(
        self, calls: Sequence[ToolCall], session: Session, *, problems: Iterable[Problem] = ()
    ) -> list[ToolResult]:
        """One result for each call, in their order.

        Args:
            calls: complete calls of one response; incomplete ones have no business here.
            session: what the conversation has come to.
            problems: of the response; a call that one of them names does not run.
        """
        broken = {problem.index for problem in problems if problem.index is not None}
        if len(calls) == 1 and not broken:
            return [(await self.run(calls[0], session)).result]
        untrusted = session.untrusted  # what one of these calls gives back, the model had not read when it wrote them
        gate = asyncio.Semaphore(self._concurrency)

        async def one(at: int, call: ToolCall) -> ToolResult:
            if at in broken:
                return _failed(call, "The call could not be read whole, so it did not run.")
            async with gate:
                return (await self.run(call, session, untrusted=untrusted)).result

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(at, call)) for at, call in enumerate(calls)]
        return [
            _failed(call, LOST) if task.cancelled() else task.result() for call, task in zip(calls, tasks, strict=True)
        ]

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds, as a session's limits count them."""
        return self._clock

    async def run(
        self,
        call: ToolCall,
        session: Session,
        *,
        untrusted: bool | None = None,
        noted: Noted | None = None,
        permitted: str = "",
    ) -> Outcome:
        """What became of one call; every failure is a result, but for cancellation of whoever waits for it.

        Args:
            call: a complete call.
            session: what the conversation has come to.
            untrusted: whether the model had read text of strangers when it wrote the call; None: whether it has by now.
            noted: awaited right before the call runs; what it raises passes through, and the call does not run.
            permitted: the approval key of a call that was let through and counted before: the same runs, unasked.
        """
        ready = self._prepare(call)
        if isinstance(ready, Issue):
            return _refused(call, ready)
        key = approval_key(ready.call, ready.tool.definition) if permitted or noted is not None else ""
        name, start = full_name(ready.tool.definition), self._clock()
        if not permitted or permitted != key:
            if (issue := await self._permit(ready, session, untrusted)) is not None:
                return _refused(call, issue)
            start = self._clock()
            session.ran(name, start)
        if noted is not None:
            await noted(ready.call, ready.tool, key)
        try:
            with Caught() as caught:
                result = _result(call, await self._called(ready))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Outcome(ready.call, _failed(call, LOST))  # the tool cancelled itself; nobody else wants to stop
        finally:
            session.ended(name, self._clock() - start)
        if caught.error is not None:
            result = _failed(call, caught.message)
        if ready.tool.definition.untrusted:
            session.untrusted = True
        return Outcome(ready.call, result if self._shape is None else self._shape(ready.call, result))

    def preflight_check(self, call: ToolCall, session: Session) -> list[Issue]:
        """What stands in the way of a call; nothing runs, and nobody is asked."""
        ready = self._prepare(call)
        if isinstance(ready, Issue):
            return [ready]
        match self._decided(ready, session):
            case Deny(reason):
                return [Issue("denied", reason)]
            case Ask(reason):
                return [Issue("confirmation", reason)]
        return []

    def decide(self, call: ToolCall, session: Session) -> Decision:
        """Whether a call may run, with what it would do where somebody has to be asked; nothing runs."""
        ready = self._prepare(call)
        if isinstance(ready, Issue):
            return Deny(ready.message)
        decision = self._decided(ready, session)
        return self._shown(ready, decision) if isinstance(decision, Ask) else decision

    def plan(self, calls: Iterable[ToolCall], session: Session) -> list[Issue]:
        """Hold on to calls that the model means to make, written down before it read any text of strangers.

        Each may run later, once, without the question that such text raises; what else asks or denies stays as it is.
        A plan ends with the user's next question.

        Returns:
            What stands in the way of calls that cannot be planned, in their order; others are planned all the same.
        """
        issues: list[Issue] = []
        for call in calls:
            ready = self._prepare(call)
            if isinstance(ready, Issue):
                issues.append(ready)
            elif session.untrusted:
                issues.append(Issue("denied", f"{call.name} cannot be planned: text of strangers was read already."))
            else:
                session.planned(approval_key(ready.call, ready.tool.definition))
        return issues

    # -- before it runs ------------------------------------------------------------------------------------------

    def _prepare(self, call: ToolCall) -> _Ready | Issue:
        try:
            tool = self._registry.lookup(call.name, call.server)
        except UnknownTool as error:
            return Issue("unknown_tool", str(error))
        except DefinitionError as error:
            return Issue("not_runnable", f"The tool {call.name!r} cannot be used: {error}")
        if tool.run is None:
            return Issue("not_runnable", f"The tool {call.name!r} is known here, but nothing runs it.")
        definition = tool.definition
        arguments = fitted(_copied(call.arguments), definition)
        issues = validate(arguments, definition.parameters)
        if issues and issues[0].keyword == UNUSABLE:
            return Issue("not_runnable", f"The arguments of {call.name!r} cannot be checked: {issues[0]}")
        why, typed = ("; ".join(map(str, issues)), None) if issues else _typed(arguments, tool)
        if typed is None:
            return Issue("invalid_arguments", f"The arguments of {call.name!r} are not valid: {why}")
        return _Ready(_with(call, definition.name, arguments), tool, typed)

    def _decided(self, ready: _Ready, session: Session, untrusted: bool | None = None) -> Decision:
        with Caught() as caught:
            context = session.context(now=self._clock(), untrusted=untrusted)
            return self._policy.decide(ready.call, ready.tool.definition, context)
        return Deny(f"Whether {ready.call.name} may run cannot be decided, so it did not run: {caught.message}")

    async def _permit(self, ready: _Ready, session: Session, untrusted: bool | None) -> Issue | None:
        decision = self._decided(ready, session, untrusted)
        if isinstance(decision, Ask):
            issue = await self._asked(ready, decision, session)
            if issue is not None:
                return issue
            again = self._decided(ready, session, untrusted)  # others may have run while somebody thought
            return Issue("denied", again.reason) if isinstance(again, Deny) else None
        if isinstance(decision, Deny):
            return Issue("denied", decision.reason)
        if decision.once:
            session.spent(approval_key(ready.call, ready.tool.definition))
        return None

    def _shown(self, ready: _Ready, ask: Ask) -> Ask | Deny:
        """The question with what the call would do; what cannot be shown is denied."""
        preview = ready.tool.preview
        if preview is None:
            return ask
        shown = ""
        with Caught() as caught:
            shown = preview(_copied(ready.call.arguments))
        if caught.error is None:
            return Ask(ask.reason, shown)
        return Deny(f"What {ready.call.name} would do cannot be shown, so it did not run: {caught.message}")

    async def _asked(self, ready: _Ready, ask: Ask, session: Session) -> Issue | None:
        call, definition = ready.call, ready.tool.definition
        if self._confirm is None:
            return Issue("confirmation", f"{ask.reason} Nobody is there to agree, so it did not run.")
        shown = self._shown(ready, ask)
        if isinstance(shown, Deny):
            return Issue("denied", shown.reason)
        exactly = _with(call, call.name, _copied(call.arguments))
        answer: Agreement | bool = False
        with Caught() as caught:
            async with asyncio.timeout(self._confirm_timeout):
                answer = await self._confirm(Approval(exactly, definition, shown.reason, shown.preview))
        if isinstance(caught.error, TimeoutError):
            return Issue("denied", f"Nobody agreed to {call.name} in time, so it did not run.")
        if caught.error is not None:
            return Issue("denied", f"Nobody could be asked about {call.name}, so it did not run: {caught.message}")
        agreement = answer if isinstance(answer, Agreement) else Agreement(answer is True)
        if agreement.remember:
            session.decided(approval_key(call, definition), agreed=agreement.agreed)
        if agreement.agreed:
            return None
        why = f": {agreement.reason}" if agreement.reason else "."
        return Issue("denied", f"The user refused this call of {call.name}{why}")

    # -- running -------------------------------------------------------------------------------------------------

    async def _called(self, ready: _Ready) -> Any:
        run = ready.tool.run
        assert run is not None
        if ready.tool.isolation is not None:
            work = run_isolated(run, ready.typed, ready.tool.isolation)
        elif inspect.iscoroutinefunction(run):
            work = run(**ready.typed)
        else:
            work = _called_in_thread(run, ready.typed)
        if self._timeout is None:
            return await work
        try:
            async with asyncio.timeout(self._timeout):
                return await work
        except TimeoutError as error:
            raise ToolError(f"{ready.call.name} took longer than {self._timeout:g} seconds.") from error


async def _called_in_thread(run: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    value = await in_thread(run, arguments)
    return await value if inspect.isawaitable(value) else value


def _typed(arguments: dict[str, Any], tool: Registered) -> tuple[str, dict[str, Any] | None]:
    """What is wrong with valid arguments by the tool's own lights; or "", and the arguments as its function wants."""
    if tool.check is None and tool.read is None:
        return "", arguments
    with Caught() as caught:
        if tool.check is not None and (why := tool.check(_copied(arguments))):
            return why, None
        return "", arguments if tool.read is None else tool.read(_copied(arguments))
    return str(caught.error) if isinstance(caught.error, ValueError) else caught.message, None


_CONTAINERS = (dict, list)


def _copied(value: Any) -> Any:
    """A JSON value that nobody else holds; arguments are never nested deeper than reading allows."""
    if isinstance(value, dict):
        return {key: _copied(inner) if isinstance(inner, _CONTAINERS) else inner for key, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) if isinstance(inner, _CONTAINERS) else inner for inner in value]
    return value


def _with(call: ToolCall, name: str, arguments: dict[str, Any]) -> ToolCall:
    """The call as it would run; what `dataclasses.replace` does, in a sixth of the time."""
    return ToolCall(
        name, arguments, call.id, call.server, call.raw, call.format, call.repairs, call.confidence, call.free
    )


def _failed(call: ToolCall, message: str) -> ToolResult:
    return ToolResult(call.id, call.name, error=message[:MAX_ERROR])


def _refused(call: ToolCall, issue: Issue) -> Outcome:
    return Outcome(call, _failed(call, issue.message), issue)


_JSON = json.JSONEncoder(allow_nan=False)


def _result(call: ToolCall, value: Any) -> ToolResult:
    """What a tool gave back, as a result: a result of its own, an image, any JSON value, or text."""
    if isinstance(value, ToolResult):
        return replace(value, call_id=call.id, tool_name=call.name)
    if isinstance(value, ImagePart):
        return ToolResult(call.id, call.name, images=(value,))
    if callable(dump := getattr(value, "model_dump", None)):
        value = dump(mode="json")
    if value is None or isinstance(value, str | bool | int):
        return ToolResult(call.id, call.name, value)
    try:
        _JSON.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _failed(call, f"The tool ran, but what it gave back is no JSON: {type(value).__name__}.")
    return ToolResult(call.id, call.name, value)
