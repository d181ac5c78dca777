"""What an agent tells while it works, besides the events of the model's answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from toolwire.events import Event
from toolwire.execution.executor import Outcome
from toolwire.messages import Message, ToolCall, Usage
from toolwire.policy.approval import Approval
from toolwire.policy.intent import Intent
from toolwire.providers.request import Note

EndReason = Literal[
    "answered",  # the model called nothing more
    "finished",  # a tool that ends the turn ran
    "budget",  # and a last answer was asked for
    "repeats",  # the same calls with the same results, though it was warned; and a last answer was asked for
    "failures",  # too many of one kind
    "length",  # the answer was cut
    "error",  # the model could not be asked
]


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """The first that is told: what the task has unlocked, and why.

    Attributes:
        task: what the user asked.
        intent: the tier.
        held: names of tools that want a higher one; the model is not told of them.
    """

    task: str
    intent: Intent
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The model is asked; the events of its answer follow."""

    round: int


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call goes to the executor."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """Somebody is asked whether a call may run."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """What became of a call; told as soon as it is known, whatever the others do.

    Attributes:
        outcome: the call as it ran, and its result.
        seconds: from its beginning, questions included.
    """

    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class CorrectionAdded:
    """The model will read this in its next prompt, and only there."""

    text: str


@dataclass(frozen=True, slots=True)
class TranslationNoted:
    """Something could not be said to the model as it was, a tool's schema say; told once in a run."""

    note: Note


@dataclass(frozen=True, slots=True)
class MemberEvent:
    """Something that a member of a team tells."""

    member: str
    event: AgentEvent


@dataclass(frozen=True, slots=True)
class RunResumed:
    """An earlier life of the run was recorded: what follows has happened, and is told again, until `ReplayEnded`."""


@dataclass(frozen=True, slots=True)
class ReplayEnded:
    """What follows happens now."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The end, always told, always last.

    Attributes:
        reason: why it ended.
        answer: what the model said last; "" if it said nothing.
        detail: what more is to say of the reason.
        messages: the conversation, to be gone on with; nothing of it is only for one prompt.
        rounds: how often the model was asked.
        calls: how many calls were made.
        usage: tokens of all answers, as far as they were told.
        money: what they cost, by the budget's prices.
        seconds: of the whole run.
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
        """Whether the agent brought the task to an end.

        An `answer` may be there though it did not: what the model said when its calls were cut short, by a budget or
        since they went round in circles.
        """
        return self.reason in ("answered", "finished")


AgentEvent = (
    Event | TaskStarted | TurnStarted | ToolStarted | ApprovalRequested | ToolFinished | CorrectionAdded
    | TranslationNoted | MemberEvent | RunResumed | ReplayEnded | RunEnded
)  # fmt: skip

Emit = Callable[[AgentEvent], None]
"""Reports an event to the reader of a run's events."""
