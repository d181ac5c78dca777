"""Report one run to its observers; the agent's loop knows only this class."""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic

from toolwire.events import Event
from toolwire.execution.outcomes import Outcome
from toolwire.messages import FinishReason, ParsedResponse, ToolCall
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.providers.parsing import parse
from toolwire.runtime.foreign_code import capture_errors
from toolwire.telemetry.records import (
    ApprovalRecord,
    CallRecord,
    EndRecord,
    Observer,
    RunRecord,
    TurnRecord,
    asked_for,
    found_in,
)
from toolwire.tools import ToolDefinition

LOOKED_AT = 4_000
"""Maximum length of prose that is searched for calls in another format, in characters."""

_log = logging.getLogger("toolwire.telemetry")
_lives = count(1)
_running: ContextVar[RunObserver | None] = ContextVar("toolwire_run", default=None)


def new_run_id() -> str:
    """Return a new random run id: 12 hex digits."""
    return secrets.token_hex(6)


class RunObserver:
    """Reports one run to observers; an observer that fails gets no further reports of it.

    Args:
        observers: the observers.
        run: the run's id; a nested run is reported with its parent's id as a prefix.
        agent: the agent's name.
        model, api, format: facts about the agent's model.
    """

    def __init__(
        self, observers: Iterable[Observer], run: str, agent: str, *, model: str, api: str, format: str
    ) -> None:
        self._observers = list(observers)
        self._inside = Counter[str]()
        parent = _running.get()
        id = run if parent is None else parent._child(run)
        within = "" if parent is None else parent.run
        life = next(_lives) if parent is None else parent._run.life
        self._run: RunRecord = RunRecord(id, agent, model, api, asked_for(format), "", within, 0.0, life)
        self._answer: PendingTurn | None = None
        self._approvals: list[_Question] = []  # of calls that are not done yet; several may have one id

    @property
    def run(self) -> str:
        """The id under which the run is reported."""
        return self._run.id

    def _child(self, run: str) -> str:
        self._inside[run] += 1
        times = self._inside[run]
        return f"{self.run}/{run}" if times == 1 else f"{self.run}/{run}-{times}"

    def begin(self, task: str) -> None:
        """Report that the run begins, in the current task."""
        _running.set(self)
        self._run = replace(self._run, task=task, begun=time.time())
        if self._observers:
            self._report("begin", self._run)

    def begin_turn(
        self,
        round: int,
        attempt: int,
        *,
        model: str,
        api: str,
        format: str,
        tools: Sequence[ToolDefinition] = (),
        choice: str = "",
        again: bool = False,
    ) -> PendingTurn:
        """Begin a turn, new or replayed, after reporting the turn before it."""
        self.finish_turn()
        self._answer = PendingTurn(round, attempt, model, api, asked_for(format), tuple(tools), choice, again=again)
        return self._answer

    def request_approval(self, approval: Approval, by: str) -> None:
        """Note that a call waits for an approval."""
        self._approvals.append(_Question(approval, ApprovalRecord(approval.reason, by, None, monotonic())))

    def record_approval(self, approval: Approval, answer: ApprovalAnswer | bool) -> None:
        """Note the answer to a request for approval."""
        approved = answer.approved if isinstance(answer, ApprovalAnswer) else answer is True
        for pending in self._approvals:
            if pending.approval is approval:
                pending.consent = replace(
                    pending.consent, approved=approved, seconds=monotonic() - pending.consent.seconds
                )

    def _take_approval(self, call: ToolCall) -> ApprovalRecord | None:
        """Return the approval of a call; among calls that share an id, the one with the same arguments."""
        candidates = [candidate for candidate in self._approvals if candidate.approval.call.id == call.id]
        if not candidates:
            return None
        question = next((candidate for candidate in candidates if candidate.approval.call is call), None)
        question = question or next(
            (candidate for candidate in candidates if candidate.approval.call == call), candidates[0]
        )
        self._approvals.remove(question)
        consent = question.consent
        return consent if consent.approved is not None else replace(consent, seconds=monotonic() - consent.seconds)

    def record_call(self, outcome: Outcome, seconds: float, *, stepped: bool = False) -> None:
        """Add the outcome of a call to the turn."""
        consent = self._take_approval(outcome.call) if self._approvals else None
        if self._answer is not None:
            record = CallRecord(outcome.call, outcome.result, outcome.issue, consent, seconds, stepped)
            self._answer.calls.append(record)

    def add_faults(self, kinds: Iterable[str]) -> None:
        """Add a fault of the answer itself."""
        if self._answer is not None:
            self._answer.faults = tuple(kinds)

    def add_correction(self, text: str) -> None:
        """Add a correction that the next prompt contains."""
        if self._answer is not None:
            self._answer.told = text

    def finish_turn(self) -> None:
        """Report the last turn, which is complete now."""
        answer, self._answer = self._answer, None
        if answer is not None and self._observers and (answer.calls or not answer.again):
            with capture_errors() as caught:
                record = answer.record(self._run)
            if caught.error is None:
                self._report("turn", record)
            else:  # a run must not fail because of a report
                _log.warning("%s: an answer cannot be reported: %s", self._run.id, caught.message)

    def end(self, end: EndRecord | None) -> None:
        """Report the end of the run; None if it was abandoned."""
        self.finish_turn()
        if self._observers:
            end = end or EndRecord(self._run.id, "stopped", False)
            self._report("end", replace(end, life=self._run.life))

    def _report(self, what: str, record: RunRecord | TurnRecord | EndRecord) -> None:
        for observer in tuple(self._observers):
            with capture_errors() as caught:
                getattr(observer, what)(record)
            if caught.error is not None:
                self._observers.remove(observer)
                _log.warning("%s: %s hears nothing more of this run: %s", self._run.id, observer, caught.message)


@dataclass(slots=True, eq=False)
class _Question:
    """A request for approval; until it is answered, `seconds` is the clock time of the request."""

    approval: Approval
    consent: ApprovalRecord


@dataclass(slots=True, eq=False)
class PendingTurn:
    """An answer while it is streamed."""

    _round: int
    _attempt: int
    _model: str
    _api: str
    _format: str
    _tools: tuple[ToolDefinition, ...]
    _choice: str
    again: bool = False
    _begun: float = field(default_factory=time.time)
    _started: float = field(default_factory=monotonic)
    _first: float | None = None
    _seconds: float | None = None
    _response: ParsedResponse | None = None
    _events: tuple[Event, ...] = ()
    _error: str = ""
    raw: list[str] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    faults: tuple[str, ...] = ()
    told: str = ""

    def mark_first_event(self) -> None:
        """Note the time of the first event."""
        self._first = monotonic() - self._started

    def complete(self, response: ParsedResponse, events: Sequence[Event]) -> None:
        """Note the complete answer."""
        self._seconds = monotonic() - self._started
        self._response = response
        self._events = tuple(events)

    def fail(self, error: str) -> None:
        """Note that the answer failed or broke off."""
        self._error = error

    def record(self, run: RunRecord) -> TurnRecord:
        """Return the record of the turn."""
        response = self._response or ParsedResponse(finish_reason=FinishReason.ERROR)
        seconds = monotonic() - self._started if self._seconds is None else self._seconds
        return TurnRecord(
            run=run.id,
            round=self._round,
            attempt=self._attempt,
            agent=run.agent,
            model=self._model,
            api=self._api,
            format=self._format,
            choice=self._choice,
            begun=self._begun,
            first=self._first,
            seconds=seconds,
            response=response,
            events=self._events,
            raw="".join(self.raw),
            offered=tuple(tool.name for tool in self._tools),
            found=self._formats_of(response),
            calls=_in_order(self.calls, response.tool_calls),
            faults=self.faults,
            told=self.told,
            error=self._error,
            again=self.again,
            life=run.life,
        )

    def _formats_of(self, response: ParsedResponse) -> tuple[str, ...]:
        """Return the formats of the calls; without calls, formats in which the text names a tool."""
        calls = response.tool_calls or response.incomplete
        if calls:
            return tuple(dict.fromkeys(found_in(call, self._format) for call in calls))
        text = response.content[:LOOKED_AT]
        tools = {tool.name: tool for tool in self._tools if tool.name in text}
        if not tools:
            return ()
        return tuple(
            dict.fromkeys(call.format for call in parse(text, tools=tools.values()).tool_calls if call.name in tools)
        )


def _in_order(records: Sequence[CallRecord], calls: Sequence[ToolCall]) -> tuple[CallRecord, ...]:
    """Return the records in the order of the calls; calls may share an id, and repairs may have changed arguments."""
    places: dict[str, list[int]] = {}
    for at, call in enumerate(calls):
        places.setdefault(call.id, []).append(at)
    positions: list[tuple[int, int]] = []
    for number, record in enumerate(records):
        left = places.get(record.call.id)
        if not left:
            positions.append((len(calls), number))
            continue
        at = next((at for at in left if calls[at].arguments == record.call.arguments), left[0])
        left.remove(at)
        positions.append((at, number))
    return tuple(records[number] for _, number in sorted(positions))
