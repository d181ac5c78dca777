"""The tool calls of an answer: those that were recorded are replayed, the others run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolwire.agent.budget import Spending
from toolwire.agent.deferral import Deferral
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.journal import CallRecorder, RecordedOutcome, RunRecorder
from toolwire.agent.parent_run import CURRENT_CALL, ParentCall
from toolwire.agent.run_context import RunContext
from toolwire.agent.run_events import Emit, ProgressReported, ToolFinished, ToolStarted
from toolwire.errors import JournalError, capture_errors
from toolwire.execution.approval_requests import AsyncConfirm
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Issue, Outcome
from toolwire.execution.tool_context import CallEnvironment
from toolwire.messages import ToolCall, ToolResult

OVER = "The budget of calls is used up, so this call did not run."
LATE = "The time of the whole run is used up, so this call did not run."
STOPPED = "The time of the whole run is used up, so this call was stopped. Its work may be done, or not, or in part."


@dataclass(frozen=True, slots=True)
class _PendingCall:
    """A call that has no recorded outcome.

    Attributes:
        call: the call.
        place: name of the call that is unique among all runs.
        recorder: records the call; None if the run is not recorded.
        refusal: why the call must not run, such as a budget without room for it; "" if it may.
        untrusted: whether the model had read untrusted content when it wrote the call.
    """

    call: ToolCall
    place: str
    recorder: CallRecorder | None
    refusal: str
    untrusted: bool

    def outcome_without_running(self) -> Outcome | None:
        """Return the outcome of a call that must not run; None if it may."""
        if self.recorder is not None and self.recorder.lost is not None:
            return self.recorder.lost
        if self.refusal:
            result = ToolResult(self.call.id, self.call.name, error=self.refusal)
            return Outcome(self.call, result, Issue("denied", self.refusal))
        return None


class ToolCallRunner:
    """Runs the calls of a run.

    Args:
        context: the run.
        executor: runs one call.
        confirm: asks for approval, in runs nested in the calls.
    """

    def __init__(self, context: RunContext, executor: ToolExecutor, confirm: AsyncConfirm | None) -> None:
        self._context = context
        self._executor = executor
        self._confirm = confirm
        self._deferral = confirm if isinstance(confirm, Deferral) else None
        report = partial(_emit_progress, context.emit, asyncio.get_running_loop())
        self._environment = CallEnvironment(context.deps, context.run_id, report, context.limits.left)
        self._depth = 1 if context.parent is None else context.parent.depth + 1

    async def run(
        self,
        calls: Sequence[ToolCall],
        turn: TurnInfo,
        *,
        untrusted: bool,
        refusals: Mapping[int, str],
        recorder: RunRecorder | None,
        before_first: Callable[[], None],
    ) -> list[Outcome]:
        """Return the outcomes of an answer's calls, in their order; each is emitted as soon as it is known.

        Args:
            calls: complete calls.
            turn: the turn to which they belong.
            untrusted: whether the model had read untrusted content when it wrote them.
            refusals: why calls at these places must not run.
            recorder: records the run; None if it is not recorded.
            before_first: called after the recorded outcomes are replayed, before the first call runs.
        """
        limits, run_id = self._context.limits, self._context.run_id
        maximum = limits.budget.calls
        late = LATE if limits.out_of_time else ""
        # Recorded outcomes are replayed first, in the order of the calls: those events happened before any new one.
        outcomes: dict[int, Outcome] = {}
        pending: dict[int, _PendingCall] = {}
        for at, call in enumerate(calls):
            if (output := self._output(call, refusals.get(at, ""))) is not None:
                outcomes[at] = output
                continue
            earlier = limits.spending.calls
            limits.spending.calls += 1
            call_recorder = None if recorder is None else recorder.call(turn.round, at)
            if call_recorder is not None and call_recorder.outcome is not None:
                outcomes[at] = self._replay(call, call_recorder.outcome, turn)
            else:
                refusal = OVER if maximum is not None and earlier >= maximum else late or refusals.get(at, "")
                pending[at] = _PendingCall(call, f"{run_id}.{turn.round}.{at}", call_recorder, refusal, untrusted)
        if pending:
            before_first()
        if len(pending) == 1:  # without the cost of a task
            ((at, only),) = pending.items()
            outcomes[at] = await self._run_call(only, turn)
        else:
            tasks = {at: asyncio.create_task(self._run_call(entry, turn)) for at, entry in pending.items()}
            await _wait_for_all(tasks.values())
            outcomes |= {at: task.result() for at, task in tasks.items()}
        return [outcomes[at] for at in range(len(calls))]

    def _output(self, call: ToolCall, refusal: str) -> Outcome | None:
        """Return the outcome of a call that gives the output of the run, where nothing runs; None for other calls.

        It is not recorded: it depends on recorded answers and outcomes alone.
        """
        output = self._context.output
        outcome = None if output is None else output.outcome(call, refusal)
        if outcome is not None:
            self._context.emit(ToolFinished(outcome, 0.0))
        return outcome

    def _replay(self, call: ToolCall, recorded: RecordedOutcome, turn: TurnInfo) -> Outcome:
        # A search for tools is answered again: the tools that it found stay disclosed.
        self._context.disclosure.answer(call, self._context.session.tier)
        self._context.emit(ToolStarted(recorded.outcome.call))
        outcome = recorded.outcome if recorded.hooks_applied else self._apply_hooks(recorded.outcome, turn)
        self._context.emit(ToolFinished(outcome, recorded.seconds))
        return outcome

    def _apply_hooks(self, outcome: Outcome, turn: TurnInfo) -> Outcome:
        return replace(outcome, result=self._context.config.hooks.change_result(outcome.call, outcome.result, turn))

    async def _run_call(self, pending: _PendingCall, turn: TurnInfo) -> Outcome:
        spending = self._context.limits.spending
        nested = spending.open_call()
        try:
            return await self._settle(pending, turn, nested)
        finally:
            spending.close_call(nested)

    async def _settle(self, pending: _PendingCall, turn: TurnInfo, nested: list[Spending]) -> Outcome:
        """Run a call, or answer it without; apply the result hooks, record the outcome and report it."""
        context, call, recorder = self._context, pending.call, pending.recorder
        began = context.limits.clock()
        outcome, answered_by_hook = pending.outcome_without_running(), False
        if outcome is None:
            answer = context.disclosure.answer(call, context.session.tier)
            changed = answer or context.config.hooks.change_call(call, turn)
            answered_by_hook = isinstance(changed, ToolResult)
            if isinstance(changed, ToolResult):
                outcome = Outcome(call, replace(changed, call_id=call.id, tool_name=call.name))
            else:
                context.emit(ToolStarted(changed))
                outcome = await self._execute(changed, pending, nested)
                if self._deferral is not None and self._deferral.is_open(pending.place):
                    return outcome  # not recorded, so it is asked about again when the run is resumed
        elif outcome.issue is None:  # lost: it began in an earlier process
            context.emit(ToolStarted(outcome.call))
        seconds = context.limits.clock() - began
        with capture_errors() as caught:
            outcome = self._apply_hooks(outcome, turn)
        if recorder is not None:
            # A hook that fails is a bug that will be fixed; that the call ran must be known all the same. From this
            # record on, what nested runs have used belongs to this run.
            settle = partial(context.limits.spending.close_call, nested)
            outcome = await recorder.record_outcome(outcome, seconds, hooks_applied=caught.error is None, settle=settle)
        if caught.error is not None:
            raise caught.error
        context.observer.record_call(outcome, seconds, by_hook=answered_by_hook)
        context.emit(ToolFinished(outcome, seconds))
        return outcome

    async def _execute(self, call: ToolCall, pending: _PendingCall, nested: list[Spending]) -> Outcome:
        context, recorder = self._context, pending.recorder
        # Nested runs are recorded in this run's journal or not at all: never in that of a run further out, which would
        # replay them though this run, which is not recorded, begins anew.
        journal = None if recorder is None else recorder.nested_journal()
        parent_call = ParentCall(
            pending.place,
            context.emit,
            context.session,
            nested,
            context.limits,
            self._confirm,
            self._depth,
            journal,
            context.deps,
        )
        token = CURRENT_CALL.set(parent_call)
        started: list[ToolCall] = []
        try:
            async with asyncio.timeout(context.limits.seconds_left()) as scope:
                return await self._executor.run(
                    call,
                    context.session,
                    untrusted=pending.untrusted,
                    before_run=None if recorder is None else recorder.record_start,
                    approved_key="" if recorder is None else recorder.approval_key,
                    started=started,
                    environment=self._environment,
                    ask="" if self._deferral is None else self._deferral.reason_to_ask(pending.place),
                )
        except TimeoutError:
            if not scope.expired():
                raise
            if not started:  # for example while the user was asked for approval
                return Outcome(call, ToolResult(call.id, call.name, error=LATE), Issue("denied", LATE))
            return Outcome(started[0], ToolResult(call.id, call.name, error=STOPPED))
        finally:
            CURRENT_CALL.reset(token)


def _emit_progress(emit: Emit, loop: asyncio.AbstractEventLoop, call: ToolCall, value: Any) -> None:
    """Emit the progress of a call, from the thread of the event loop or from that of a plain function."""
    event = ProgressReported(call, value)
    try:
        in_loop = asyncio.get_running_loop() is loop
    except RuntimeError:
        in_loop = False
    if in_loop:
        emit(event)
        return
    with suppress(RuntimeError):  # the loop is closed: nobody reads the events any more
        loop.call_soon_threadsafe(emit, event)


async def _wait_for_all(tasks: Collection[asyncio.Task[Outcome]]) -> None:
    """Wait for all calls of a turn; cancel the rest as soon as nothing can be recorded any more.

    Another exception is a failed hook: it cancels no call beside it, whose work would be lost.
    """
    running = set(tasks)
    try:
        while running:
            finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            if any(not task.cancelled() and isinstance(task.exception(), JournalError) for task in finished):
                break
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
