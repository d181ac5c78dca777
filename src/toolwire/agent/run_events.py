"""Events of a run, besides those of the model's answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from toolwire.events import Event
from toolwire.execution.outcomes import Outcome
from toolwire.messages import Message, ToolCall, Usage
from toolwire.policy.approval import Approval
from toolwire.policy.intent import Intent
from toolwire.providers.request import Note

EndReason = Literal[
    "answered",  # the model called nothing more
    "finished",  # a tool that ends the turn ran
    "budget",  # a budget was used up, and the model was asked for a last answer
    "repeats",  # it repeated its calls in spite of a warning, and was asked for a last answer
    "failures",  # too many failures in a row
    "length",  # the answer was cut off
    "error",  # the model could not be asked
]


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """The first event: what the task has unlocked, and why.

    Attributes:
        task: the user's request.
        intent: the tier that the task unlocks, and why.
        locked: names of tools that require a higher tier; the model does not see them.
    """

    task: str
    intent: Intent
    locked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The model is asked for an answer, whose events follow."""

    round: int


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The executor gets a call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """The user is asked to approve a call."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """The outcome of a call; emitted as soon as it is known, though other calls of the turn may still run.

    Attributes:
        outcome: the call as it ran, and its result.
        seconds: duration of the call, including the time in which the user was asked for approval.
    """

    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class CorrectionAdded:
    """A correction that the model reads in its next prompt, and only there."""

    text: str


@dataclass(frozen=True, slots=True)
class TranslationNoted:
    """Part of a request, such as a tool's schema, could not be translated for the model; emitted once in a run."""

    note: Note


@dataclass(frozen=True, slots=True)
class MemberEvent:
    """An event of a member's run."""

    member: str
    event: AgentEvent


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The run was recorded by an earlier process: until `ReplayEnded`, the events are replayed."""


@dataclass(frozen=True, slots=True)
class ReplayEnded:
    """From here on, events are new."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The end of a run: always emitted, always last.

    Attributes:
        reason: why the run ended.
        answer: the model's last text; "" if there is none.
        detail: explanation of the reason.
        messages: the conversation, as history for another run. Notes for a single prompt are not part of it.
        rounds: number of requests to the model.
        calls: number of tool calls.
        usage: tokens of all answers, as far as they were reported.
        money: cost of the answers, by the prices in the budget.
        seconds: duration of the run.
    """

    reason: EndReason
    answer: str
    detail: str
    messages: tuple[Message, ...]
    rounds: int
    calls: int
    usage: Usage
    money: float
    seconds: float

    @property
    def good(self) -> bool:
        """True if the agent completed the task.

        There may be an `answer` even if it did not: the one for which the model is asked when a budget is used up, or
        when it repeats the same calls.
        """
        return self.reason in ("answered", "finished")


AgentEvent = (
    Event | TaskStarted | TurnStarted | ToolStarted | ApprovalRequested | ToolFinished | CorrectionAdded
    | TranslationNoted | MemberEvent | RunResumed | ReplayEnded | RunEnded
)  # fmt: skip

Emit = Callable[[AgentEvent], None]
"""Reports an event to the reader of a run's events."""
