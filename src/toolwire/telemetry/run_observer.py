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

from toolwire.errors import capture_errors
from toolwire.events import Event
from toolwire.execution.outcomes import Outcome
from toolwire.messages import FinishReason, ParsedResponse, ToolCall, Usage
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.providers.parsing import parse
from toolwire.providers.request import ChatRequest
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
_debug = logging.getLogger("toolwire")
"""Receives a line for each request, answer and call at the level DEBUG: names and figures, never texts or values."""
_instances = count(1)
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
        instance = next(_instances) if parent is None else parent._run.instance
        self._run: RunRecord = RunRecord(id, agent, model, api, asked_for(format), "", within, 0.0, instance)
        self._answer: PendingTurn | None = None
        self._approvals: list[_Question] = []  # of calls that are not done yet; several may have one id

    @property
    def run(self) -> str:
        """The id under which the run is reported."""
        return self._run.id

    @property
    def has_observers(self) -> bool:
        """True if the run is observed."""
        return bool(self._observers)

    def _child(self, run: str) -> str:
        self._inside[run] += 1
        times = self._inside[run]
        return f"{self.run}/{run}" if times == 1 else f"{self.run}/{run}-{times}"

    def begin(self, task: str) -> None:
        """Report that the run begins, in the current task."""
        _running.set(self)
        self._run = replace(self._run, task=task, started_at=time.time())
        _debug.debug("run %s: %s begins, with %s", self.run, self._run.agent, self._run.model or "a model")
        if self._observers:
            self._report("begin", self._run)

    def pending_turn(
        self,
        round: int,
        attempt: int,
        *,
        model: str,
        api: str,
        format: str,
        tools: Sequence[ToolDefinition] = (),
        choice: str = "",
        replayed: bool = False,
    ) -> PendingTurn:
        """Return a turn, new or replayed, whose time begins now; `watch` begins to report on it."""
        return PendingTurn(round, attempt, model, api, asked_for(format), tuple(tools), choice, replayed=replayed)

    def watch(self, pending: PendingTurn) -> None:
        """Report the turn before this one, and this one when it is complete."""
        self.finish_turn()
        self._answer = pending

    def record_request(self, turn: PendingTurn, request: ChatRequest) -> None:
        """Note the request of a turn, which is about to be sent."""
        turn.request = request
        if _debug.isEnabledFor(logging.DEBUG):
            _debug.debug("run %s: %s", self.run, turn.request_line(request))

    def record_answer(self, turn: PendingTurn, response: ParsedResponse, events: Sequence[Event]) -> None:
        """Note the complete answer of a turn."""
        turn.complete(response, events)
        if _debug.isEnabledFor(logging.DEBUG):
            _debug.debug("run %s: %s", self.run, turn.answer_line(response))

    def request_approval(self, approval: Approval, by: str) -> None:
        """Note that a call waits for an approval."""
        self._approvals.append(_Question(approval, ApprovalRecord(approval.reason, by, None, monotonic())))

    def record_approval(self, approval: Approval, answer: ApprovalAnswer | bool) -> None:
        """Note the answer to a request for approval."""
        approved = answer.approved if isinstance(answer, ApprovalAnswer) else answer is True
        for pending in self._approvals:
            if pending.approval is approval:
                pending.record = replace(
                    pending.record, approved=approved, seconds=monotonic() - pending.record.seconds
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
        record = question.record
        return record if record.approved is not None else replace(record, seconds=monotonic() - record.seconds)

    def record_call(self, outcome: Outcome, seconds: float, *, by_hook: bool = False) -> None:
        """Add the outcome of a call to the turn."""
        approval = self._take_approval(outcome.call) if self._approvals else None
        record = CallRecord(outcome.call, outcome.result, outcome.issue, approval, seconds, by_hook)
        if self._answer is not None:
            self._answer.calls.append(record)
        if _debug.isEnabledFor(logging.DEBUG):
            # A name that a model makes up is its text, which could be anything.
            offered = self._answer is None or self._answer.offers(outcome.call.name)
            name = outcome.call.name if offered else "an unknown tool"
            success = "succeeded" if outcome.result.success else "failed"
            _debug.debug("run %s: call of %s: %s, %s in %.3f s", self.run, name, record.decision, success, seconds)

    def add_faults(self, kinds: Iterable[str]) -> None:
        """Add a fault of the answer itself."""
        if self._answer is not None:
            self._answer.faults = tuple(kinds)

    def add_correction(self, text: str) -> None:
        """Add a correction that the next prompt contains."""
        if self._answer is not None:
            self._answer.correction = text

    def finish_turn(self) -> None:
        """Report the last turn, which is complete now."""
        answer, self._answer = self._answer, None
        if answer is not None and self._observers and (answer.calls or not answer.replayed):
            with capture_errors() as caught:
                record = answer.record(self._run)
            if caught.error is None:
                self._report("turn", record)
            else:  # a run must not fail because of a report
                _log.warning("%s: an answer cannot be reported: %s", self._run.id, caught.message)

    def end(self, end: EndRecord | None) -> None:
        """Report the end of the run; None if it was abandoned."""
        self.finish_turn()
        _debug.debug("run %s: ended: %s", self.run, "stopped" if end is None else _end_line(end))
        if self._observers:
            end = end or EndRecord(self._run.id, "stopped", False)
            self._report("end", replace(end, instance=self._run.instance))

    def _report(self, what: str, record: RunRecord | TurnRecord | EndRecord) -> None:
        for observer in tuple(self._observers):
            with capture_errors() as caught:
                getattr(observer, what)(record)
            if caught.error is not None:
                self._observers.remove(observer)
                _log.warning("%s: %s gets no more records of this run: %s", self._run.id, observer, caught.message)


@dataclass(slots=True, eq=False)
class _Question:
    """A request for approval; until it is answered, `seconds` is the clock time of the request."""

    approval: Approval
    record: ApprovalRecord


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
    replayed: bool = False
    _started_at: float = field(default_factory=time.time)
    _started: float = field(default_factory=monotonic)
    _time_to_first_event: float | None = None
    _seconds: float | None = None
    _response: ParsedResponse | None = None
    _events: tuple[Event, ...] = ()
    _error: str = ""
    raw: list[str] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    faults: tuple[str, ...] = ()
    correction: str = ""
    request: ChatRequest | None = None

    def offers(self, name: str) -> bool:
        """Return whether the model can see a tool of this name."""
        return any(tool.name == name for tool in self._tools)

    def request_line(self, request: ChatRequest) -> str:
        """Return the figures of the request in one line."""
        size = f"{len(request.messages)} messages and {len(request.tools)} tools"
        model = f"{self._model or 'a model'} through {self._api or 'this process'}"
        return f"round {self._round}, attempt {self._attempt}: {size} for {model}, calls in {self._format}"

    def answer_line(self, response: ParsedResponse) -> str:
        """Return the figures of the answer in one line."""
        usage = response.usage or Usage()
        tokens = f"{usage.input_tokens} + {usage.output_tokens} tokens"
        calls = f"{len(response.all_calls)} calls, {len(response.problems)} problems"
        return f"round {self._round}: {calls}, {tokens} in {self._seconds or 0.0:.3f} s, {response.finish_reason.value}"

    def mark_first_event(self) -> None:
        """Note the time of the first event."""
        self._time_to_first_event = monotonic() - self._started

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
            started_at=self._started_at,
            time_to_first_event=self._time_to_first_event,
            seconds=seconds,
            response=response,
            events=self._events,
            raw="".join(self.raw),
            offered=tuple(tool.name for tool in self._tools),
            formats=self._formats_of(response),
            calls=_in_order(self.calls, response.all_calls),
            faults=self.faults,
            correction=self.correction,
            error=self._error,
            replayed=self.replayed,
            instance=run.instance,
            request=self.request,
        )

    def _formats_of(self, response: ParsedResponse) -> tuple[str, ...]:
        """Return the formats of the calls; without calls, formats in which the text names a tool."""
        calls = response.all_calls or response.incomplete
        if calls:
            return tuple(dict.fromkeys(found_in(call, self._format) for call in calls))
        text = response.content[:LOOKED_AT]
        tools = {tool.name: tool for tool in self._tools if tool.name in text}
        if not tools:
            return ()
        return tuple(
            dict.fromkeys(call.format for call in parse(text, tools=tools.values()).tool_calls if call.name in tools)
        )


def _end_line(end: EndRecord) -> str:
    cost = f", {end.money:.4g} money" if end.money else ""
    return f"{end.reason} after {end.rounds} rounds and {end.calls} calls{cost} in {end.seconds:.3f} s"


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
