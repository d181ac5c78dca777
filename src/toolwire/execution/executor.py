"""Run calls: look up, repair, validate, decide, ask, run; each call gets exactly one result, in the order of the calls.

What is validated is what is decided about, what somebody agrees to, and what runs: the same arguments, by a copy that
nothing else holds. Whatever goes wrong answers the model with a message that it can act on.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from types import NoneType
from typing import Any, Literal
from weakref import WeakKeyDictionary

from toolwire._surface import check_items, check_type, wrong_type
from toolwire.errors import DefinitionError, PolicyWarning, ToolError, UnknownTool
from toolwire.execution.confirmation import answering
from toolwire.execution.registry import Registered, ToolRegistry
from toolwire.messages import ImagePart, Problem, ToolCall, ToolResult
from toolwire.policy.approval import Agreement, Approval
from toolwire.policy.fingerprint import approval_key
from toolwire.policy.lint import checked, misnomers
from toolwire.policy.policy import Ask, Decision, Deny, Policy, full_name
from toolwire.policy.session import Session
from toolwire.runtime.foreign_code import capture_errors
from toolwire.runtime.isolation.isolated_call import run_isolated
from toolwire.runtime.worker_threads import in_thread
from toolwire.schema.serialization import to_json_value
from toolwire.schema.validation import UNUSABLE, validate
from toolwire.text.escape import replace_surrogates

MAX_ERROR = 1_000
"""Characters of an error that the model is told."""
EVERYTHING = (BaseException,)
_NOT_THEIRS = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
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
        untrusted: the message may quote strangers.
    """

    kind: Literal["unknown_tool", "invalid_arguments", "denied", "confirmation", "not_runnable"]
    message: str
    untrusted: bool = False


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
        confirm_timeout: seconds that somebody has to answer; no answer is none. Where questions wait for each other
            they count from when one is shown; see `toolwire.execution.confirmation.turn`.
        concurrency: calls that run at the same time, whoever made them; those that wait for an answer do not count.
        shape: makes of each result of a call that ran what the model is told, say an envelope's.
        clock: seconds, for limits.
        check: whether to look for names in the policy that name nothing; see `toolwire.policy.lint`. Those that surely
            let calls run which were to be denied are an error here, others a `PolicyWarning` at the first call, when
            all tools should be there, and at the first one after the tools have changed. "warn": none is an error.

    Raises:
        TypeError: `policy` is no policy, or `confirm` is no async function.
        ConfigurationError: a rule that denies or asks, or a limit, has a misspelt name, so it would do nothing.
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
        check: bool | Literal["warn"] = True,
    ) -> None:
        check_type("registry", registry, ToolRegistry, "a ToolRegistry")
        hint = " (PolicyTable.model_validate(...).made() makes one of a dict)" if isinstance(policy, dict) else ""
        check_type("policy", policy, (Policy, NoneType), f"a Policy or None{hint}")
        check_type("timeout", timeout, (int, float, NoneType), "a number of seconds or None")
        check_type("concurrency", concurrency, int, "a number of calls")
        if confirm is not None:
            check_confirm(confirm)
        self._registry = registry
        self._policy = policy or Policy()
        self._confirm = confirm
        self._timeout = timeout
        self._confirm_timeout = confirm_timeout
        self._concurrency = concurrency
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._last: tuple[asyncio.AbstractEventLoop | None, asyncio.Semaphore] = None, asyncio.Semaphore(concurrency)
        self._shape = shape
        self._open: dict[tuple[int, int, str], asyncio.Event] = {}  # questions that are being asked, by loop and call
        self._clock = clock
        self._compares = bool(check) and bool(self._policy.rules or self._policy.limits)
        self._compared = -1
        """The version of the registry that the policy's names were compared with."""
        self._warned: set[str] = set()
        if self._compares and check != "warn":
            checked(self._policy, registry.known())

    def __repr__(self) -> str:
        """Return the sizes of the registry and the policy."""
        rules, limits = len(self._policy.rules), len(self._policy.limits)
        return f"<ToolExecutor: {len(self._registry)} tools, {rules} rules, {limits} limits>"

    async def execute(
        self, calls: Sequence[ToolCall], session: Session, *, problems: Iterable[Problem] = ()
    ) -> list[ToolResult]:
        """One result for each call, in their order.

        Args:
            calls: complete calls of one response; incomplete ones have no business here.
            session: what the conversation has come to.
            problems: of the response; a call that one of them names does not run.
        """
        check_items("calls", calls, ToolCall, "a sequence of ToolCall")
        if not isinstance(session, Session):
            raise wrong_type("session", session, "a Session")
        broken = {problem.index for problem in problems if problem.index is not None}
        if len(calls) == 1 and not broken:
            return [(await self.run(calls[0], session)).result]
        untrusted = session.untrusted  # what one of these calls gives back, the model had not read when it wrote them

        async def one(at: int, call: ToolCall) -> ToolResult:
            if at in broken:
                return _failed(call, "The call could not be read whole, so it did not run.")
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
        begun: list[ToolCall] | None = None,
    ) -> Outcome:
        """What became of one call; every failure is a result, but for cancellation of whoever waits for it.

        Args:
            call: a complete call.
            session: what the conversation has come to.
            untrusted: whether the model had read text of strangers when it wrote the call; None: whether it has by now.
            noted: awaited right before the call runs; what it raises passes through, and the call does not run.
            permitted: the approval key of a call that was let through and counted before: the same runs, unasked.
            begun: gets the call when it begins to run, for whoever may not wait for the outcome.
        """
        begun = [] if begun is None else begun
        unnoted: BaseException | None = None
        with capture_errors() as caught:  # whatever goes wrong on the way, there is a result
            if self._compares and self._compared != self._registry.version:
                self._warn()
            outcome = await self._run(call, session, untrusted, begun, noted, permitted)
            if isinstance(outcome, Outcome):
                return outcome
            unnoted = outcome
        if unnoted is not None:
            raise unnoted
        if begun:
            return Outcome(begun[0], _failed(call, f"{LOST} ({caught.message})"))
        return _refused(call, Issue("not_runnable", f"{call.name} could not be run: {caught.message}"), session)

    async def _run(
        self,
        call: ToolCall,
        session: Session,
        untrusted: bool | None,
        begun: list[ToolCall],
        noted: Noted | None,
        permitted: str,
    ) -> Outcome | BaseException:
        """`run`, for which some errors are left; `begun` gets the call when it begins. Or what `noted` raised."""
        ready = self._prepare(call)
        if isinstance(ready, Issue):
            return _refused(call, ready, session)
        key = approval_key(ready.call, ready.tool.definition) if permitted or noted is not None else ""
        name = full_name(ready.tool.definition)
        if not permitted or permitted != key:
            if (issue := await self._permit(ready, session, untrusted)) is not None:
                return _refused(call, issue, session)
            session.ran(name, self._clock())
        gate = self._gate()
        await gate.acquire()
        start = self._clock()
        session.began(name, start)
        try:
            if noted is not None:
                with capture_errors() as missed:
                    await noted(ready.call, ready.tool, key)
                if missed.error is not None:
                    return missed.error
            begun.append(ready.call)
            with capture_errors(EVERYTHING, propagated=_NOT_THEIRS) as caught:
                result = _result(call, await self._called(ready))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Outcome(ready.call, _failed(call, LOST))  # the tool cancelled itself; nobody else wants to stop
        finally:
            gate.release()
            session.ended(name, start, self._clock())
        if ready.tool.definition.untrusted:
            session.untrusted = True
        if caught.error is not None:
            result = _failed(call, caught.message)
        return Outcome(ready.call, result if self._shape is None else self._shape(ready.call, result))

    def _warn(self) -> None:
        """Warn of names in the policy that name nothing, each once; the registry has other tools than before."""
        version = self._registry.version
        for one in misnomers(self._policy, self._registry.known()):
            if str(one) not in self._warned:
                self._warned.add(str(one))
                warnings.warn(str(one), PolicyWarning, stacklevel=3)  # may be an error: then the call does not run
        self._compared = version

    def _gate(self) -> asyncio.Semaphore:
        """What lets so many calls of a loop run at a time."""
        loop = asyncio.get_running_loop()
        last, gate = self._last
        if last is not loop:
            gate = self._gates.setdefault(loop, asyncio.Semaphore(self._concurrency))
            self._last = loop, gate
        return gate

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
        try:
            arguments = definition.fit(_copied(call.arguments))
        except RecursionError:
            return Issue("invalid_arguments", f"The arguments of {call.name!r} are nested too deeply.")
        issues = validate(arguments, definition.parameters)
        if issues and issues[0].keyword == UNUSABLE:
            return Issue("not_runnable", f"The arguments of {call.name!r} cannot be checked: {issues[0]}")
        why, typed = ("; ".join(map(str, issues)), None) if issues else _typed(arguments, tool)
        if typed is None:
            quotes = definition.untrusted and not issues  # then a check of the tool's own said so
            return Issue("invalid_arguments", f"The arguments of {call.name!r} are not valid: {why}", quotes)
        return _Ready(_with(call, definition.name, arguments), tool, typed)

    def _decided(self, ready: _Ready, session: Session, untrusted: bool | None = None) -> Decision:
        with capture_errors() as caught:
            context = session.context(now=self._clock(), untrusted=untrusted)
            return self._policy.decide(ready.call, ready.tool.definition, context)
        return Deny(f"Whether {ready.call.name} may run cannot be decided, so it did not run: {caught.message}")

    async def _permit(self, ready: _Ready, session: Session, untrusted: bool | None) -> Issue | None:
        decision = self._decided(ready, session, untrusted)
        if isinstance(decision, Ask):
            issue = await self._asked(ready, decision, session, untrusted)
            if issue is not None:
                return issue
            if not self._is_still_there(ready):
                return Issue("denied", f"{ready.call.name} was changed or switched off meanwhile, so it did not run.")
            again = self._decided(ready, session, untrusted)  # others may have run while somebody thought
            return Issue("denied", again.reason) if isinstance(again, Deny) else None
        if isinstance(decision, Deny):
            return Issue("denied", decision.reason)
        if decision.once:
            session.spent(approval_key(ready.call, ready.tool.definition))
        return None

    def _is_still_there(self, ready: _Ready) -> bool:
        """Whether the tool is what it was when it was looked up."""
        was = ready.tool
        try:
            now = self._registry.lookup(was.name, was.definition.server)
        except (UnknownTool, DefinitionError):
            return False
        same = (
            now.run is was.run
            and now.behavior.isolation == was.behavior.isolation
            and now.definition.tier == was.definition.tier
        )
        return same and now.definition.parameters == was.definition.parameters

    def _shown(self, ready: _Ready, ask: Ask) -> Ask | Deny:
        """The question with what the call would do; what cannot be shown is denied."""
        preview = ready.tool.behavior.preview
        if preview is None:
            return ask
        with capture_errors() as caught:
            shown: object = preview(_copied(ready.call.arguments))
            if isinstance(shown, str):
                return Ask(ask.reason, shown)
            if inspect.iscoroutine(shown):
                shown.close()
            raise TypeError(f"its preview gave no text but {type(shown).__name__}")
        return Deny(f"What {ready.call.name} would do cannot be shown, so it did not run: {caught.message}")

    async def _asked(self, ready: _Ready, ask: Ask, session: Session, untrusted: bool | None) -> Issue | None:
        call, definition = ready.call, ready.tool.definition
        if self._confirm is None:
            return Issue("confirmation", f"{ask.reason} Nobody is there to agree, so it did not run.")
        shown = self._shown(ready, ask)  # here and now: questions of one response are asked in the order of its calls
        if isinstance(shown, Deny):
            return Issue("denied", shown.reason, definition.untrusted)
        key = approval_key(call, definition)
        place = id(asyncio.get_running_loop()), session.account, key
        while (asked := self._open.get(place)) is not None:  # the same question is being asked
            await asked.wait()
            again = self._decided(ready, session, untrusted)  # the answer may hold for this one too
            if isinstance(again, Deny):
                return Issue("denied", again.reason)
            if not isinstance(again, Ask):
                return None
        self._open[place] = done = asyncio.Event()
        try:
            return await self._answered(ready, shown, key, session)
        finally:
            del self._open[place]
            done.set()

    async def _answered(self, ready: _Ready, shown: Ask, key: str, session: Session) -> Issue | None:
        """What somebody says to a question; None if it is a yes."""
        assert self._confirm is not None
        call, definition = ready.call, ready.tool.definition
        exactly = _with(call, call.name, _copied(call.arguments))
        answer: Agreement | bool = False
        try:
            with capture_errors() as caught:
                async with answering(self._confirm_timeout):
                    answer = await self._confirm(Approval(exactly, definition, shown.reason, shown.preview))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Issue("denied", f"The question about {call.name} was withdrawn, so it did not run.")
        if isinstance(caught.error, TimeoutError):
            return Issue("denied", f"Nobody agreed to {call.name} in time, so it did not run.")
        if caught.error is not None:
            return Issue("denied", f"Nobody could be asked about {call.name}, so it did not run: {caught.message}")
        agreement = answer if isinstance(answer, Agreement) else Agreement(answer is True)
        if agreement.remember:
            session.decided(key, agreed=agreement.agreed)
        if agreement.agreed:
            return None
        why = f": {agreement.reason}" if agreement.reason else "."
        if agreement.unanswered:
            return Issue("denied", f"Nobody has agreed to this call of {call.name}, so it did not run{why}")
        session.declined(key)
        return Issue("denied", f"The user refused this call of {call.name}{why}")

    # -- running -------------------------------------------------------------------------------------------------

    async def _called(self, ready: _Ready) -> Any:
        run = ready.tool.run
        assert run is not None
        if ready.tool.behavior.isolation is not None:
            work = run_isolated(run, ready.typed, ready.tool.behavior.isolation)
        elif ready.tool.is_async:
            work = run(**ready.typed)
        else:
            work = _called_in_thread(run, ready.typed)
        if self._timeout is None:
            return await work
        try:
            async with asyncio.timeout(self._timeout) as scope:
                return await work
        except TimeoutError as error:
            if not scope.expired():
                raise  # it is the tool's own
            name, goes_on = ready.call.name, "" if _stops(ready.tool) else " It may still be at work."
            raise ToolError(f"{name} took longer than {self._timeout:g} seconds.{goes_on}") from error


def check_confirm(confirm: object) -> None:
    """Tell who made an executor that nobody could be asked, before the first question.

    Raises:
        TypeError: it is not callable, or a plain function that does not say that it gives something to be awaited.
    """
    if not callable(confirm):
        raise wrong_type("confirm", confirm, "an async function")
    called = confirm if inspect.isroutine(confirm) else type(confirm).__call__
    if inspect.iscoroutinefunction(confirm) or inspect.iscoroutinefunction(called):
        return
    if not (inspect.isfunction(called) or inspect.ismethod(called)) or called.__name__ == "<lambda>":
        return  # what it gives is seen when it is asked
    if getattr(called, "__annotations__", {}).get("return", bool) in (bool, Agreement, "bool", "Agreement", None):
        name = getattr(confirm, "__qualname__", type(confirm).__name__)
        raise TypeError(
            f"confirm must be an async function: make {name} one with `async def`, or say that it returns an Awaitable"
        )


def _stops(tool: Registered) -> bool:
    """Whether a call of the tool ends when nobody waits for it any more."""
    return tool.behavior.isolation is not None or tool.is_async


async def _called_in_thread(run: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    value = await in_thread(run, arguments)
    return await value if inspect.isawaitable(value) else value


def _typed(arguments: dict[str, Any], tool: Registered) -> tuple[str, dict[str, Any] | None]:
    """What is wrong with valid arguments by the tool's own lights; or "", and the arguments as its function wants."""
    if tool.behavior.check is None and tool.read is None:
        return "", _copied(arguments)  # what the function does to them is no part of the record
    with capture_errors() as caught:
        if tool.behavior.check is not None and (why := tool.behavior.check(_copied(arguments))):
            return why, None
        return "", _copied(arguments) if tool.read is None else tool.read(_copied(arguments))
    return str(caught.error) if isinstance(caught.error, ValueError) else caught.message, None


_CONTAINERS = (dict, list, tuple)


def _copied(value: Any) -> Any:
    """A JSON value that nobody else holds; arguments are never nested deeper than reading allows."""
    if isinstance(value, dict):
        return {key: _copied(inner) if isinstance(inner, _CONTAINERS) else inner for key, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) if isinstance(inner, _CONTAINERS) else inner for inner in value]
    if isinstance(value, tuple):
        return [_copied(inner) for inner in value]  # as JSON has it
    return value


def _with(call: ToolCall, name: str, arguments: dict[str, Any]) -> ToolCall:
    """The call as it would run; what `dataclasses.replace` does, in a sixth of the time."""
    return ToolCall(
        name, arguments, call.id, call.server, call.raw, call.format, call.repairs, call.confidence, call.free
    )


def _failed(call: ToolCall, message: str) -> ToolResult:
    return ToolResult(call.id, call.name, error=replace_surrogates(message[:MAX_ERROR]))


def _refused(call: ToolCall, issue: Issue, session: Session) -> Outcome:
    if issue.untrusted:
        session.untrusted = True
    return Outcome(call, _failed(call, issue.message), issue)


def _result(call: ToolCall, value: Any) -> ToolResult:
    """What a tool gave back, as a result: of its own, an image or several, any value that has a JSON form, or text.

    Raises:
        ToolError: it has none.
    """
    if isinstance(value, ToolResult):
        return replace(value, call_id=call.id, tool_name=call.name, result=_json(value.result))
    if isinstance(value, ImagePart):
        return ToolResult(call.id, call.name, images=(value,))
    if isinstance(value, list | tuple) and value and all(isinstance(one, ImagePart) for one in value):
        return ToolResult(call.id, call.name, images=tuple(value))
    return ToolResult(call.id, call.name, _json(value))


def _json(value: Any) -> Any:
    try:
        made = to_json_value(value)
    except ToolError as error:
        raise ToolError(f"The tool ran, but what it gave back is no JSON: {error}") from error
    # What a tool does later to what it gave back changes nothing of what it gave back.
    return _copied(made) if isinstance(made, _CONTAINERS) else made
