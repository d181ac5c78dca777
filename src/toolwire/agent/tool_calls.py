"""The calls of an answer: those that are known are told again, the others made at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from toolwire.agent.budget import Spent
from toolwire.agent.hooks import Hooks, TurnInfo
from toolwire.agent.journal import JOURNAL, CallRecorder, RecordedOutcome, RunRecorder
from toolwire.agent.parent_run import LEAD, Emit, ParentCall
from toolwire.agent.run_events import CallBegun, CallDone
from toolwire.agent.run_limits import Limits
from toolwire.errors import JournalError
from toolwire.execution.disclosure import Disclosure
from toolwire.execution.executor import Confirm, Issue, Outcome, ToolExecutor
from toolwire.messages import ToolCall, ToolResult
from toolwire.policy.session import Session
from toolwire.runtime.foreign_code import Caught
from toolwire.telemetry.run_observer import Watch

OVER = "All the calls that may be made have been made, so this one did not run."
LATE = "The time of the whole run is used up, so this call did not run."
STOPPED = "The time of the whole run is used up, so this call was stopped. Its work may be done, or not, or in part."


@dataclass(frozen=True, slots=True)
class _Due:
    """A call that is to be made.

    Attributes:
        place: names it among all calls of all runs.
        record: where the run is recorded.
        over: why the budget has no room for it; "" if it has.
    """

    call: ToolCall
    place: str
    record: CallRecorder | None
    over: str

    def known(self) -> Outcome | None:
        """What becomes of it without running it; None if it may run."""
        if self.record is not None and self.record.lost is not None:
            return self.record.lost
        if self.over:
            result = ToolResult(self.call.id, self.call.name, error=self.over)
            return Outcome(self.call, result, Issue("denied", self.over))
        return None


class ToolCallRunner:
    """The calls of a run.

    Args:
        executor: makes them.
        hooks: what they and their results pass through.
        session: what the conversation has come to.
        run_id: of the run.
        limits: what it may use.
        confirm: asks somebody, also for runs inside calls.
        depth: how many runs stand around its calls.
        disclosure: finds tools that the model asks for.
        watch: hears for those who observe.
        emit: hears for whoever reads the run's events.
    """

    def __init__(
        self,
        executor: ToolExecutor,
        hooks: Hooks,
        session: Session,
        run_id: str,
        limits: Limits,
        confirm: Confirm | None,
        depth: int,
        disclosure: Disclosure,
        watch: Watch,
        emit: Emit,
    ) -> None:
        self._executor = executor
        self._chains = hooks
        self._session = session
        self._run_id = run_id
        self._limits = limits
        self._confirm = confirm
        self._depth = depth
        self._disclosure = disclosure
        self._watch = watch
        self._emit = emit

    async def outcomes(
        self,
        calls: Sequence[ToolCall],
        turn: TurnInfo,
        *,
        untrusted: bool,
        record: RunRecorder | None,
        happening: Callable[[], None],
    ) -> list[Outcome]:
        """What became of the calls of an answer, in their order; each is told as soon as it is known.

        Args:
            calls: complete ones.
            turn: which they belong to.
            untrusted: the model had read text of strangers when it wrote them.
            record: of the run, if it is recorded; what is known by it is told before anything happens.
            happening: called before anything does.
        """
        limit, made = self._limits.budget.calls, self._limits.spent.calls
        self._limits.spent.calls += len(calls)
        late = LATE if self._limits.out_of_time else ""
        outcomes: dict[int, Outcome] = {}
        left: dict[int, _Due] = {}
        for at, call in enumerate(calls):
            kept = None if record is None else record.call(turn.round, at)
            if kept is not None and kept.done is not None:
                outcomes[at] = self._called_before(call, kept.done, turn)
            else:
                over = OVER if limit is not None and made + at >= limit else late
                left[at] = _Due(call, f"{self._run_id}.{turn.round}.{at}", kept, over)
        if left:
            happening()
        if len(left) == 1:
            ((at, due),) = left.items()
            outcomes[at] = await self._call(due, turn, untrusted)
        else:
            tasks = {at: asyncio.create_task(self._call(due, turn, untrusted)) for at, due in left.items()}
            await _all_done(tasks.values())
            outcomes |= {at: task.result() for at, task in tasks.items()}
        return [outcomes[at] for at in range(len(calls))]

    def _called_before(self, call: ToolCall, done: RecordedOutcome, turn: TurnInfo) -> Outcome:
        """What became of a call before, told again."""
        self._disclosure.answer(call, self._session.tier)  # what it found stays found
        self._emit(CallBegun(done.outcome.call))
        outcome = done.outcome if done.stepped else self._stepped(done.outcome, turn)
        self._emit(CallDone(outcome, done.seconds))
        return outcome

    def _stepped(self, outcome: Outcome, turn: TurnInfo) -> Outcome:
        return replace(outcome, result=self._chains.told(outcome.call, outcome.result, turn))

    async def _call(self, due: _Due, turn: TurnInfo, untrusted: bool) -> Outcome:
        spent = self._limits.spent
        inside = spent.opened()
        try:
            return await self._made(due, turn, untrusted, inside)
        finally:
            spent.closed(inside)

    async def _made(self, due: _Due, turn: TurnInfo, untrusted: bool, inside: list[Spent]) -> Outcome:
        call = due.call
        begun = monotonic()
        outcome, stepped = due.known(), False
        if outcome is None:
            made = self._disclosure.answer(call, self._session.tier) or self._chains.invoked(call, turn)
            stepped = isinstance(made, ToolResult)
            if isinstance(made, ToolResult):
                outcome = Outcome(call, replace(made, call_id=call.id, tool_name=call.name))
            else:
                self._emit(CallBegun(made))
                outcome = await self._executed(made, due, untrusted, inside)
        elif outcome.issue is None:
            self._emit(CallBegun(outcome.call))  # in an earlier life
        seconds = monotonic() - begun
        with Caught() as caught:
            outcome = self._stepped(outcome, turn)
        if due.record is not None:  # a step that fails is mended; that the call was made stays known
            # From this record on, what was used inside the call is the run's own.
            outcome = await due.record.finish(
                outcome, seconds, stepped=caught.error is None, settle=partial(self._limits.spent.closed, inside)
            )
        if caught.error is not None:
            raise caught.error
        self._watch.called(outcome, seconds, stepped=stepped)
        self._emit(CallDone(outcome, seconds))
        return outcome

    async def _executed(self, call: ToolCall, due: _Due, untrusted: bool, inside: list[Spent]) -> Outcome:
        record, limits = due.record, self._limits
        # Runs inside the call are recorded with it, or not at all: never in the journal of a run further out.
        inner = JOURNAL.set(None if record is None else record.inner())
        lead = LEAD.set(
            ParentCall(
                due.place, self._emit, self._session, inside, limits.overspent, limits.left, self._confirm, self._depth
            )
        )
        begun: list[ToolCall] = []
        try:
            async with asyncio.timeout(limits.left()) as scope:
                return await self._executor.run(
                    call,
                    self._session,
                    untrusted=untrusted,
                    noted=None if record is None else record.noted,
                    permitted="" if record is None else record.permitted,
                    begun=begun,
                )
        except TimeoutError:
            if not scope.expired():
                raise
            if not begun:  # somebody was asked, say
                return Outcome(call, ToolResult(call.id, call.name, error=LATE), Issue("denied", LATE))
            return Outcome(begun[0], ToolResult(call.id, call.name, error=STOPPED))
        finally:
            JOURNAL.reset(inner)
            LEAD.reset(lead)


async def _all_done(tasks: Collection[asyncio.Task[Outcome]]) -> None:
    """Wait for all calls of a turn; when nothing can be recorded any more, what is still at work is stopped."""
    left = set(tasks)
    try:
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_EXCEPTION)
            if any(not one.cancelled() and isinstance(one.exception(), JournalError) for one in done):
                break
    finally:
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)
