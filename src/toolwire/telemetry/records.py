"""Records of runs, and the protocol of observers that receive them.

There is a record of a run's beginning, one of each answer with the outcomes of its calls, and one of the end. Records
refer to the values of the run; observers that store them convert, truncate and redact them. An observer is called in
the run's own task, so it must be quick; an exception that it raises disturbs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from toolwire.events import Event
from toolwire.execution.outcomes import Issue
from toolwire.messages import FinishReason, ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.providers.api_registry import apis
from toolwire.providers.request import ChatRequest

NATIVE = "native"
"""Name of native calls, the fields of an API, in place of a format."""

_OF_THE_PROVIDER = "provider_error"
_APIS = frozenset(apis())
_MODEL_ERRED = ("unknown_tool", "invalid_arguments")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run that begins.

    Attributes:
        id: the run's id, unique unless the caller chose it.
        agent: the agent's name.
        model: the model's name.
        api: the API through which it is called, or "".
        format: the wire format that it is asked to write; `NATIVE` for fields of an API.
        task: the user's task.
        parent: id of the run that made this one in a tool call, or "".
        started_at: time in seconds since 1970.
        instance: number that distinguishes runs of one id in this process; nested runs share it.
    """

    id: str
    agent: str
    model: str
    api: str
    format: str
    task: str
    parent: str
    started_at: float
    instance: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """A request for the approval of a call.

    Attributes:
        reason: the reason for the request.
        by: the approver.
        approved: the answer; None if there was none.
        seconds: time until the answer.
    """

    reason: str
    by: str
    approved: bool | None
    seconds: float


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call and its outcome.

    Attributes:
        call: the call as it ran or, if it did not, as it was read.
        result: the result for the model.
        issue: the reason why it did not run; None if it ran.
        approval: the approval; None if none was requested.
        seconds: total time, approval included.
        by_hook: whether a hook of the agent answered it, so that no tool ran.
    """

    call: ToolCall
    result: ToolResult
    issue: Issue | None
    approval: ApprovalRecord | None
    seconds: float
    by_hook: bool = False

    @property
    def decision(self) -> str:
        """The reason why it ran or did not, in up to three words."""
        if self.by_hook:
            return "answered by a hook"
        if self.approval is not None:
            if self.approval.approved is None:
                return "no answer"
            return f"{'approved' if self.approval.approved else 'refused'} by {self.approval.by}"
        return "allowed" if self.issue is None else self.issue.kind


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """An answer of the model and the outcomes of its calls.

    Attributes:
        run: the run's id.
        round: number of the round, from 1.
        attempt: number of the attempt, from 1; further ones follow answers that broke off.
        agent, model, api, format, instance: see `RunRecord`; all but the last may differ from turn to turn.
        choice: the reason for this format, if a coach chose it.
        started_at: time in seconds since 1970.
        time_to_first_event: seconds; None if there was no event.
        seconds: duration of the whole answer.
        response: the answer as it was read.
        events: events of the answer, in order.
        raw: text of the model if calls are text; else "".
        offered: names of the tools that it could call.
        formats: the formats in which calls were written, each once; also formats that the requested one leaves as text.
        calls: in the order of the answer.
        faults: faults of the answer itself that the agent noticed.
        correction: correction that is part of the next prompt only.
        error: the reason why there is no answer, or "".
        replayed: whether the answer was replayed after the run was resumed; `calls` are those made since.
        request: the request that was answered: prompt, conversation and tools. None for a replayed answer.
    """

    run: str
    round: int
    attempt: int
    agent: str
    model: str
    api: str
    format: str
    choice: str
    started_at: float
    time_to_first_event: float | None
    seconds: float
    response: ParsedResponse
    events: tuple[Event, ...]
    raw: str
    offered: tuple[str, ...]
    formats: tuple[str, ...]
    calls: tuple[CallRecord, ...] = ()
    faults: tuple[str, ...] = ()
    correction: str = ""
    error: str = ""
    replayed: bool = False
    instance: int = 0
    request: ChatRequest | None = None

    @property
    def repairs(self) -> Mapping[str, int]:
        """Number of calls with each repair."""
        return Counter(name for call in self.response.tool_calls for name in call.repairs)

    @property
    def problems(self) -> Mapping[str, int]:
        """Number of problems of each kind, except the provider's own errors."""
        return Counter(problem.kind for problem in self.response.problems if problem.kind != _OF_THE_PROVIDER)

    @property
    def mismatched(self) -> tuple[str, ...]:
        """Formats in `formats` that were not requested."""
        return tuple(name for name in self.formats if name != self.format)

    @property
    def answered(self) -> bool:
        """True if there is a complete answer to judge."""
        broke = self.response.finish_reason is FinishReason.ERROR
        return (
            not self.error
            and not broke
            and not any(problem.kind == _OF_THE_PROVIDER for problem in self.response.problems)
        )

    @property
    def good(self) -> bool | None:
        """True if the model wrote its calls in the requested form; None if it made none or could not make any.

        False if a call could not be read, was cut off, was written in another format, named an unknown tool or invalid
        arguments, or if a required call is missing. Repairs do not count against it.
        """
        response = self.response
        tried = response.all_calls or response.incomplete or self.problems or self.formats or "no_call" in self.faults
        if not self.offered or not self.answered or not tried:
            return None
        erred = any(call.issue is not None and call.issue.kind in _MODEL_ERRED for call in self.calls)
        return not (response.incomplete or self.problems or self.mismatched or erred or "no_call" in self.faults)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """The end of a run.

    Attributes:
        run: its id.
        reason: the reason; "stopped" if the run was abandoned.
        good: whether there is an answer to the task.
        detail: further explanation.
        rounds: number of rounds.
        calls: number of calls.
        usage: tokens of all answers.
        money: cost of all answers.
        seconds: duration of the whole run.
        instance: see `RunRecord`.
    """

    run: str
    reason: str
    good: bool
    detail: str = ""
    rounds: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    money: float = 0.0
    seconds: float = 0.0
    instance: int = 0


@runtime_checkable
class Observer(Protocol):
    """Receives records of runs, in order, in the task of the run."""

    def begin(self, run: RunRecord, /) -> None:
        """Receive the beginning of a run."""
        ...

    def turn(self, turn: TurnRecord, /) -> None:
        """Receive an answer whose calls are finished."""
        ...

    def end(self, end: EndRecord, /) -> None:
        """Receive the end of a run; later records of it do not count."""
        ...


def asked_for(format: str) -> str:
    """Return the name of a format in records."""
    return format or NATIVE


def found_in(call: ToolCall, asked: str) -> str:
    """Return the name of a call's format; for a call made by hand, the requested one."""
    if not call.format:
        return asked
    return NATIVE if call.format in _APIS else call.format
