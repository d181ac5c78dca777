"""Run calls: look up, repair, validate, decide, ask, run; each call gets exactly one result, in the order of the calls.

The arguments that were validated are the arguments that the policy decides about, that a person approves, and that run.
Every failure becomes a result that the model can act on.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic
from types import NoneType
from typing import Literal, TypedDict
from weakref import WeakKeyDictionary

from typing_extensions import Unpack

from toolwire._surface import check_items, check_number, check_type, wrong_type
from toolwire.errors import PolicyWarning, ToolError, capture_errors
from toolwire.execution.approval_requests import ApprovalRequests, Confirm, add_preview, approved_as_shown
from toolwire.execution.outcomes import LOST, Issue, Outcome, Shaping, Watching, build_result, failed_result, refuse
from toolwire.execution.prepared_call import PreparedCall, prepare
from toolwire.execution.registry import Registered, ToolRegistry
from toolwire.execution.tool_context import NO_ENVIRONMENT, CallEnvironment
from toolwire.messages import Problem, ToolCall, ToolResult
from toolwire.policy.fingerprint import approval_key
from toolwire.policy.lint import checked, misnomers
from toolwire.policy.policy import Allow, Ask, Decision, Deny, Policy, full_name
from toolwire.policy.session import Session
from toolwire.text.suggest import check_options

_log = logging.getLogger("toolwire.execution")
_ALL_ERRORS = (BaseException,)
_INTERRUPTS = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)

BeforeRun = Callable[[ToolCall, Registered, str], Awaitable[None]]
"""Called right before a call runs, with the call as it runs, its tool, and its approval key."""


class RunningOptions(TypedDict, total=False):
    """Options for calls that run.

    Attributes:
        timeout: maximum time of one call, in seconds; None for no limit, which is the default. A plain function that
            takes longer is abandoned in its thread.
        concurrency: maximum number of calls that run at the same time, 16 by default. Calls that wait for an approval
            do not count.
        shape: rewrites the result of each call that ran, for example as an envelope.
    """

    timeout: float | None
    concurrency: int
    shape: Shaping | None


class ExecutorOptions(RunningOptions, total=False):
    """Options of a `ToolExecutor`.

    Attributes:
        confirm_timeout: time to answer a question, in seconds, 300 by default; without an answer the call is denied.
            Where questions wait for each other, the time counts from when a question is shown; see
            `toolwire.execution.confirmation.turn`.
        clock: returns seconds, for limits; `time.monotonic` by default.
        check: whether to look for misspelled names in the policy, True by default; see `toolwire.policy.lint`. If such
            a name certainly lets calls run that were to be denied, the constructor raises an error. Others are a
            `PolicyWarning` at the first call, and at the first call after the tools changed. With "warn", none is an
            error.
    """

    confirm_timeout: float
    clock: Callable[[], float]
    check: bool | Literal["warn"]


class ToolExecutor:
    """Runs calls against a registry, under a policy.

    Args:
        registry: the tools.
        policy: the rules.
        confirm: asks a person for an approval; without it, calls that need an approval do not run. A plain function
            is called in a thread, for one question at a time.
        options: `timeout` of one call in seconds, by default None for no limit; `concurrency`, the maximum number of
            calls that run at the same time, by default 16; `shape`, which rewrites the results; `confirm_timeout`, the
            seconds to answer a question, by default 300; `clock`, for limits; `check`, whether misspelled names in the
            policy are errors (True), warnings ("warn") or ignored (False).

    Raises:
        TypeError: `policy` is not a policy, `confirm` is not a function, or an option is unknown.
        ConfigurationError: a rule that denies or asks, or a limit, has a misspelled name and so has no effect.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        policy: Policy | None = None,
        confirm: Confirm | None = None,
        **options: Unpack[ExecutorOptions],
    ) -> None:
        check_options("ToolExecutor", options, ExecutorOptions.__annotations__)
        check_type("registry", registry, ToolRegistry, "a ToolRegistry")
        hint = " (PolicyTable.model_validate(...).to_policy() reads a dict)" if isinstance(policy, dict) else ""
        check_type("policy", policy, (Policy, NoneType), f"a Policy or None{hint}")
        timeout, concurrency = options.get("timeout"), options.get("concurrency", 16)
        check_number("timeout", timeout, "a number of seconds", optional=True)
        check_number("concurrency", concurrency, "a number of calls", least=1, whole=True)
        check_number("confirm_timeout", options.get("confirm_timeout", 0), "a number of seconds")
        self._registry = registry
        self._policy = policy or Policy()
        self._requests = ApprovalRequests(confirm, options.get("confirm_timeout", 300.0))
        self._timeout = timeout
        self._shape = options.get("shape")
        self._clock = options.get("clock", monotonic)
        # A semaphore belongs to one event loop, and programs may run one executor in several loops, one after the
        # other. The last one is remembered, since a lookup by weak reference costs more than running a small tool.
        self._concurrency = concurrency
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._last: tuple[asyncio.AbstractEventLoop | None, asyncio.Semaphore] = (
            None,
            asyncio.Semaphore(self._concurrency),
        )
        check = options.get("check", True)
        self._checks_names = bool(check) and bool(self._policy.rules or self._policy.limits)
        self._checked_version = -1
        """The version of the registry that the policy's names were compared with."""
        self._warned: set[str] = set()
        if self._checks_names and check != "warn":
            checked(self._policy, registry.known())

    def __repr__(self) -> str:
        """Return the sizes of the registry and the policy."""
        rules, limits = len(self._policy.rules), len(self._policy.limits)
        return f"<ToolExecutor: {len(self._registry)} tools, {rules} rules, {limits} limits>"

    async def execute(
        self,
        calls: Sequence[ToolCall],
        session: Session,
        *,
        problems: Iterable[Problem] = (),
        environment: CallEnvironment = NO_ENVIRONMENT,
        watching: Callable[[ToolCall], AbstractContextManager[Callable[[Outcome], None]]] | None = None,
    ) -> list[ToolResult]:
        """Run calls at the same time and return one result for each, in their order.

        Args:
            calls: the complete calls of one response.
            session: the state of the conversation.
            problems: of the response; a call that one of them names does not run.
            environment: what the program gives to tools that ask for a `ToolContext`.
            watching: opens a context for each call that may run, such as a span of a trace; the context's value is
                called with the outcome. None for none.
        """
        check_items("calls", calls, ToolCall, "a sequence of ToolCall")
        if not isinstance(session, Session):
            raise wrong_type("session", session, "a Session")
        broken = {problem.index for problem in problems if problem.index is not None}
        if len(calls) == 1 and not broken:
            return [(await self._watched(calls[0], session, None, environment, watching)).result]
        # The model wrote all of these calls before it read the result of any. Without this, the first web page would
        # make its siblings suspect, and which ones are asked about would depend on the order in which they end.
        untrusted = session.untrusted

        async def run_at(index: int, call: ToolCall) -> ToolResult:
            if index in broken:
                return failed_result(call, "The call could not be read whole, so it did not run.")
            return (await self._watched(call, session, untrusted, environment, watching)).result

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run_at(index, call)) for index, call in enumerate(calls)]
        return [
            failed_result(call, LOST) if task.cancelled() else task.result()
            for call, task in zip(calls, tasks, strict=True)
        ]

    async def _watched(
        self,
        call: ToolCall,
        session: Session,
        untrusted: bool | None,
        environment: CallEnvironment,
        watching: Watching | None,
    ) -> Outcome:
        if watching is None:
            return await self.run(call, session, untrusted=untrusted, environment=environment)
        with watching(call) as watch:
            outcome = await self.run(call, session, untrusted=untrusted, environment=environment)
            watch(outcome)
        return outcome

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of a session's limits, in seconds."""
        return self._clock

    async def run(
        self,
        call: ToolCall,
        session: Session,
        *,
        untrusted: bool | None = None,
        before_run: BeforeRun | None = None,
        approved_key: str = "",
        started: list[ToolCall] | None = None,
        environment: CallEnvironment = NO_ENVIRONMENT,
        ask: str = "",
    ) -> Outcome:
        """Run one call and return its outcome; every failure is a result, except cancellation from outside.

        Args:
            call: a complete call.
            session: the state of the conversation.
            untrusted: whether the model had read untrusted content when it wrote the call; None: whether it has by now.
            before_run: awaited right before the call runs; what it raises propagates, and the call does not run.
            approved_key: the approval key of a call that was allowed and counted before: the same call runs unasked.
            started: gets the call when it starts to run, for callers that may not wait for the outcome.
            environment: what the program gives to tools that ask for a `ToolContext`.
            ask: why an approval is needed even where the policy allows the call; "" if the policy alone decides.
        """
        check_type("call", call, ToolCall, "a ToolCall")
        started = [] if started is None else started
        hook_error: BaseException | None = None
        # Previews, checks, clocks and `shape` are foreign code. Whatever they raise, the model gets a result: an API
        # refuses a conversation in which a call has none.
        with capture_errors() as caught:
            if self._checks_names and self._checked_version != self._registry.version:
                self._warn()
            outcome = await self._run(call, session, untrusted, started, before_run, approved_key, environment, ask)
            if isinstance(outcome, Outcome):
                return outcome
            hook_error = outcome
        if hook_error is not None:
            raise hook_error
        if started:
            # The model must know that the tool may have acted, so that it does not simply repeat the call.
            return Outcome(started[0], failed_result(call, f"{LOST} ({caught.message})"))
        return refuse(call, Issue("not_runnable", f"{call.name} could not be run: {caught.message}"), session)

    async def _run(
        self,
        call: ToolCall,
        session: Session,
        untrusted: bool | None,
        started: list[ToolCall],
        before_run: BeforeRun | None,
        approved_key: str,
        environment: CallEnvironment,
        ask: str,
    ) -> Outcome | BaseException:
        """Do the steps of `run`; return what `before_run` raised, which `run` raises outside its own handler."""
        prepared = prepare(self._registry, call)
        if isinstance(prepared, Issue):
            return refuse(call, prepared, session)
        # The key hashes the definition and the arguments, so it is computed only where something uses it.
        definition = prepared.tool.definition
        key = approval_key(prepared.call, definition) if approved_key or before_run is not None else ""
        name = full_name(definition)
        # A key that differs means that the tool or the arguments changed since: then it is a new call.
        if not approved_key or approved_key != key:
            decision = self._decide(prepared, session, untrusted, ask)
            if not isinstance(decision, Allow):
                issue = await self._resolve(prepared, decision, session, untrusted, ask)
                if issue is not None:
                    return refuse(call, issue, session)
            elif decision.once:
                session.record_use(approval_key(prepared.call, definition))
            # Counted without an await after the decision. Otherwise parallel calls would all pass the same limit.
            session.record_call(name, self._clock())
        # Waiting for a person takes no place here, so that one open question does not block other calls.
        gate = self._gate()
        await gate.acquire()
        try:
            start = self._clock()
            session.record_start(name, start)
            try:
                if before_run is not None:
                    with capture_errors() as missed:
                        await before_run(prepared.call, prepared.tool, key)
                    if missed.error is not None:
                        return missed.error
                # After the hook, because a journal has to be written before the tool can have acted.
                started.append(prepared.call)
                # A tool may raise SystemExit or its own kind of BaseException. Neither must end the program.
                with capture_errors(_ALL_ERRORS, propagated=_INTERRUPTS) as caught:
                    result = build_result(call, await prepared.run(self._timeout, session, environment))
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # The tool cancelled itself, and nobody this task.
                return Outcome(prepared.call, failed_result(call, LOST))
            finally:
                session.record_end(name, start, self._clock())
        finally:
            gate.release()
        # An error message of an untrusted tool is untrusted content too, so this does not depend on success.
        if definition.untrusted:
            session.untrusted = True
        if caught.error is not None:
            result = failed_result(call, caught.message)
            if not isinstance(caught.error, ToolError):  # the others are mistakes of its author, who needs to see where
                _log.debug("the tool %s failed", name, exc_info=caught.error)
        return Outcome(prepared.call, result if self._shape is None else self._shape(prepared.call, result))

    def _warn(self) -> None:
        """Warn once of each name in the policy that names nothing."""
        version = self._registry.version
        for misnomer in misnomers(self._policy, self._registry.known()):
            if str(misnomer) not in self._warned:
                self._warned.add(str(misnomer))
                warnings.warn(str(misnomer), PolicyWarning, stacklevel=3)
        # Stored last: where warnings are errors, the next call is refused too, and does not run under a faulty policy.
        self._checked_version = version

    def _gate(self) -> asyncio.Semaphore:
        """Return the semaphore that bounds the running calls of this event loop."""
        loop = asyncio.get_running_loop()
        last, gate = self._last
        if last is not loop:
            gate = self._gates.setdefault(loop, asyncio.Semaphore(self._concurrency))
            self._last = loop, gate
        return gate

    def preflight_check(self, call: ToolCall, session: Session) -> list[Issue]:
        """Return the issues that keep a call from running; nothing runs, and nobody is asked."""
        prepared = prepare(self._registry, call)
        if isinstance(prepared, Issue):
            return [prepared]
        match self._decide(prepared, session):
            case Deny(reason):
                return [Issue("denied", reason)]
            case Ask(reason):
                return [Issue("confirmation", reason)]
        return []

    def decide(self, call: ToolCall, session: Session) -> Decision:
        """Decide whether a call may run, with a preview if an approval is needed; nothing runs."""
        prepared = prepare(self._registry, call)
        if isinstance(prepared, Issue):
            return Deny(prepared.message)
        decision = self._decide(prepared, session)
        return add_preview(prepared, decision) if isinstance(decision, Ask) else decision

    def plan(self, calls: Iterable[ToolCall], session: Session) -> list[Issue]:
        """Record calls that the model plans to make, before it has read any untrusted content.

        Each may run later, once, without the question that untrusted content raises. Other rules that ask or deny still
        apply. A plan ends with the user's next question.

        Returns:
            The issues of calls that cannot be planned, in their order; the other calls are planned nevertheless.
        """
        issues: list[Issue] = []
        for call in calls:
            prepared = prepare(self._registry, call)
            if isinstance(prepared, Issue):
                issues.append(prepared)
            elif session.untrusted:
                # Untrusted content may have dictated this plan, so the plan vouches for nothing.
                issues.append(Issue("denied", f"{call.name} cannot be planned: untrusted content was read already."))
            else:
                session.record_plan(approval_key(prepared.call, prepared.tool.definition))
        return issues

    def _decide(
        self,
        prepared: PreparedCall,
        session: Session,
        untrusted: bool | None = None,
        ask: str = "",
        *,
        is_answered: bool = False,
    ) -> Decision:
        """Decide about a call; after an answer, no preview replaces the one that the person has seen."""
        # Matchers may be the program's own. One that fails denies: a fault in a rule must not let a call through.
        with capture_errors() as caught:
            context = session.context(now=self._clock(), untrusted=untrusted)
            if context.approved and not is_answered:
                context.approved = approved_as_shown(prepared, context.approved)
            decision = self._policy.decide(prepared.call, prepared.tool.definition, context)
            return Ask(ask) if ask and isinstance(decision, Allow) else decision
        return Deny(f"Whether {prepared.call.name} may run cannot be decided, so it did not run: {caught.message}")

    async def _resolve(
        self, prepared: PreparedCall, decision: Ask | Deny, session: Session, untrusted: bool | None, ask: str
    ) -> Issue | None:
        """Ask for an approval where the decision says so; return the issue if the call must not run."""
        if isinstance(decision, Deny):
            return Issue("denied", decision.reason)
        decide = partial(self._decide, prepared, session, untrusted, ask)
        issue = await self._requests.request(prepared, decision, session, decide)
        if issue is not None:
            return issue
        name = prepared.call.name
        # Minutes may have passed. The person approved the tool as it was, so a tool that was replaced must not run.
        if not prepared.is_current(self._registry):
            return Issue("denied", f"{name} was changed or switched off meanwhile, so it did not run.")
        # Other calls may have used up a limit meanwhile. An approval answers `Ask`, and never overrules `Deny`.
        again = self._decide(prepared, session, untrusted, is_answered=True)
        return Issue("denied", again.reason) if isinstance(again, Deny) else None
