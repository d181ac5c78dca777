"""What is told of a run: its beginning, each answer with what became of its calls, and its end; and whom it is told.

A record holds the values of the run themselves, not copies; they are made into text, cut and freed of secrets by
whoever keeps them. An observer is called in the run's own task: it has to be quick, and what it raises breaks nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from toolwire.events import Event
from toolwire.execution.executor import Issue
from toolwire.messages import FinishReason, ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.providers.api_registry import apis

NATIVE = "native"
"""Stands for the fields of an API where a format is named."""

_OF_THE_PROVIDER = "provider_error"
_APIS = frozenset(apis())
_MODEL_ERRED = ("unknown_tool", "invalid_arguments")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run that begins.

    Attributes:
        id: the run's name, unique unless somebody chose it.
        agent: the agent's name.
        model: the model's name.
        api: the API that it is asked through, or "".
        format: the wire format that it is asked to write; `NATIVE` where calls have fields of their own.
        task: what the user asks.
        parent: the run of which this one is a tool call, or "".
        begun: seconds since 1970.
        life: tells runs of one id in this process apart; those inside one another have the same.
    """

    id: str
    agent: str
    model: str
    api: str
    format: str
    task: str
    parent: str
    begun: float
    life: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """Somebody was asked about a call.

    Attributes:
        reason: why.
        by: who.
        agreed: the answer; None if there was none.
        seconds: until it came.
    """

    reason: str
    by: str
    agreed: bool | None
    seconds: float


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call and what became of it.

    Attributes:
        call: as it ran; as it was read, if it did not run.
        result: what the model is told.
        issue: why it did not run; None if it did.
        consent: what somebody said about it; None if nobody was asked.
        seconds: all together, questions included.
        stepped: a step of the agent answered it, and no tool ran.
    """

    call: ToolCall
    result: ToolResult
    issue: Issue | None
    consent: ApprovalRecord | None
    seconds: float
    stepped: bool = False

    @property
    def decision(self) -> str:
        """Why it ran or did not, in a word or three."""
        if self.stepped:
            return "answered by a step"
        if self.consent is not None:
            if self.consent.agreed is None:
                return "no answer"
            return f"{'agreed' if self.consent.agreed else 'refused'} by {self.consent.by}"
        return "allowed" if self.issue is None else self.issue.kind


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """An answer of the model, and what followed from it.

    Attributes:
        run: the run's id.
        round: how often the model was asked in it, this time included.
        attempt: 1, or more where answers broke off before.
        agent, model, api, format, life: see `RunRecord`; all but the last may differ from turn to turn.
        choice: why this format, where something chose it.
        begun: seconds since 1970.
        first: seconds to the first event of the answer; None if there was none.
        seconds: of the whole answer.
        response: the answer as it was read.
        events: of the answer, in order.
        raw: what the model wrote, where everything is text; else "".
        offered: names of the tools that it could call.
        found: the formats that calls were found in, each once; among them those of calls that the format asked for
            leaves as text.
        calls: in the order of the answer.
        faults: what was wrong with the answer itself, by the agent's lights.
        told: what the model reads in its next prompt, and only there.
        error: why there is no answer, or "".
        again: the answer came in an earlier life of the run, which may have told it; the calls are those made since.
    """

    run: str
    round: int
    attempt: int
    agent: str
    model: str
    api: str
    format: str
    choice: str
    begun: float
    first: float | None
    seconds: float
    response: ParsedResponse
    events: tuple[Event, ...]
    raw: str
    offered: tuple[str, ...]
    found: tuple[str, ...]
    calls: tuple[CallRecord, ...] = ()
    faults: tuple[str, ...] = ()
    told: str = ""
    error: str = ""
    again: bool = False
    life: int = 0

    @property
    def repairs(self) -> Mapping[str, int]:
        """How many calls each repair was made in."""
        return Counter(name for call in self.response.tool_calls for name in call.repairs)

    @property
    def problems(self) -> Mapping[str, int]:
        """How many problems there are of each kind, the provider's own left out."""
        return Counter(problem.kind for problem in self.response.problems if problem.kind != _OF_THE_PROVIDER)

    @property
    def mismatched(self) -> tuple[str, ...]:
        """The formats that were found and not asked for."""
        return tuple(name for name in self.found if name != self.format)

    @property
    def answered(self) -> bool:
        """There is a whole answer to judge."""
        broke = self.response.finish_reason is FinishReason.ERROR
        return (
            not self.error
            and not broke
            and not any(problem.kind == _OF_THE_PROVIDER for problem in self.response.problems)
        )

    @property
    def good(self) -> bool | None:
        """Whether the model wrote its calls as it was asked to; None where it could or would not call anything.

        It did not if something could not be read, was cut, was written in another format, or named a tool or arguments
        that are not there, or if a call was required and none came. Repairs do not count against it.
        """
        response = self.response
        tried = response.tool_calls or response.incomplete or self.problems or self.found or "no_call" in self.faults
        if not self.offered or not self.answered or not tried:
            return None
        erred = any(call.issue is not None and call.issue.kind in _MODEL_ERRED for call in self.calls)
        return not (response.incomplete or self.problems or self.mismatched or erred or "no_call" in self.faults)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """A run that is over.

    Attributes:
        run: its id.
        reason: why; "stopped" if nobody waited for its end.
        good: there is an answer to the task.
        detail: what more is to say.
        rounds: how often the model was asked.
        calls: how many calls were made.
        usage: tokens of all answers.
        money: what they cost.
        seconds: of the whole run.
        life: see `RunRecord`.
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
    life: int = 0


class Observer(Protocol):
    """Somebody who is told of runs, in the order in which things happen; each of a run in the run's task."""

    def begin(self, run: RunRecord, /) -> None:
        """A run begins."""
        ...

    def turn(self, turn: TurnRecord, /) -> None:
        """The model answered, and what its answer called is done."""
        ...

    def end(self, end: EndRecord, /) -> None:
        """A run is over; what is told of it after that does not count."""
        ...


def asked_for(format: str) -> str:
    """The name of a format in records."""
    return format or NATIVE


def found_in(call: ToolCall, asked: str) -> str:
    """The name of the format that a call was found in; of one made by hand, what was asked for."""
    if not call.format:
        return asked
    return NATIVE if call.format in _APIS else call.format
