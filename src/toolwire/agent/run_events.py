"""Events of a run, besides those of the model's answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from toolwire.agent.codec import RECORDED
from toolwire.agent.pending import PendingApprovals
from toolwire.events import Event
from toolwire.execution.outcomes import Outcome
from toolwire.messages import Message, TextPart, ToolCall, ToolResult, Usage
from toolwire.policy.approval import Approval
from toolwire.policy.intent import Intent
from toolwire.providers.request import Note
from toolwire.telemetry.records import EndRecord
from toolwire.text.html_view import html_table
from toolwire.text.truncate import shorten

MAX_SHOWN = 2_000
"""Maximum length of a result in a notebook, in characters."""

EndReason = Literal[
    "answered",  # the model called nothing more
    "finished",  # a tool that ends the turn ran
    "budget",  # a budget was used up, and the model was asked for a last answer
    "repeats",  # it repeated its calls in spite of a warning, and was asked for a last answer
    "failures",  # too many failures in a row
    "length",  # the answer was cut off
    "error",  # the model could not be asked
    "pending",  # calls wait for an approval
]
"""The reason why a run ended."""
GOOD_ENDS: Final[Collection[EndReason]] = ("answered", "finished")
"""Reasons for which a run ends when the task is completed."""


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
class ProgressReported:
    """A tool that is running reports progress; see `toolwire.ToolContext.report`.

    Attributes:
        call: the call that is running.
        value: what the tool reported, or a value that its async generator yielded.
    """

    call: ToolCall
    value: Any


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

    def _repr_html_(self) -> str:
        """Return the call and its result as a table for notebooks."""
        call, result = self.outcome.call, self.outcome.result
        arguments = [(name, json.dumps(value, ensure_ascii=False)) for name, value in call.arguments.items()]
        outcome = ("result" if result.success else "error", shorten(result.text, MAX_SHOWN))
        return html_table(call.name, [*arguments, outcome, ("used", f"{self.seconds:.1f} s")])


@dataclass(frozen=True, slots=True)
class CorrectionAdded:
    """A correction that the model reads in its next prompt, and only there."""

    text: str


@dataclass(frozen=True, slots=True)
class PartialOutput:
    """The structured output, as far as the model has written it.

    Attributes:
        value: JSON data that is not validated: its last text may be cut, and properties may be missing.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class TranslationNoted:
    """Part of a request, such as a tool's schema, could not be translated for the model; emitted once in a run."""

    note: Note


@dataclass(frozen=True, slots=True)
class ModelChosen:
    """One of several models answers: the events that follow are its answer.

    If the answer of another model began before it, that one is void, and `TurnStarted` comes before this event.

    Attributes:
        model: name of the model.
        api: the API that it is reached through, or "".
        format: the wire format in which it is asked to write; "" where calls have fields of their own.
        reason: why it was chosen, for people: the route, or what happened to the models before it.
    """

    model: str
    api: str
    format: str
    reason: str


@dataclass(frozen=True, slots=True)
class ContextReduced:
    """The conversation was too long, so the model reads less of it.

    Without a summary this is true for one prompt. A summary replaces what it summarises, in `RunEnded.messages` too.

    Attributes:
        tokens: estimated tokens of the conversation before.
        reduced_tokens: estimated tokens after.
        left_out: number of messages that are left out.
        shortened: number of results of calls that are truncated.
        summary: text in place of the messages that are left out; "" if there is none.
        problem: why no summary could be written; "" if none was needed, or there is one.
    """

    tokens: int
    reduced_tokens: int
    left_out: int
    shortened: int
    summary: str = ""
    problem: str = ""

    def __str__(self) -> str:
        """The change, in words."""
        changes = [f"{self.left_out} messages {'summarised' if self.summary else 'left out'}"] if self.left_out else []
        changes += [f"{self.shortened} results shortened"] if self.shortened else []
        changes += [f"no summary: {self.problem}"] if self.problem else []
        return f"{self.tokens} tokens became {self.reduced_tokens}: {', '.join(changes)}"


@dataclass(frozen=True, slots=True)
class Compacted:
    """A conversation after compaction.

    Attributes:
        messages: the conversation.
        event: what was done.
    """

    messages: tuple[Message, ...]
    event: ContextReduced


@dataclass(frozen=True, slots=True)
class AgentChanged:
    """The conversation was handed over: from here on, the events are of another agent.

    Attributes:
        agent: name of the agent that works now.
        previous: name of the one before.
        locked: names of its tools that require a higher tier than the task unlocks; the model does not see them.
    """

    agent: str
    previous: str
    locked: tuple[str, ...] = ()


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
        output: what `Agent.ask` returns: the validated value of the agent's output type, or the answer of an agent
            without one; None if the run ended without it.
        pending: what waits for an approval, to be resumed with `Agent.resume`; None for another reason than "pending".
        agent: name of the agent that worked at the end; another one than at the beginning after a hand-off.
        has_result: whether a call of a tool succeeded, which is what `require_tool_call` requires. A tool that ends the
            turn counts, since its result is the answer. A hand-off does not, nor does a tool that gives the
            model's own answer, such as `answer_tool`.
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
    output: Any = field(default=None, metadata={RECORDED: False})  # of any type, and made of the answer
    pending: PendingApprovals | None = None
    agent: str = ""
    has_result: bool = False

    @property
    def good(self) -> bool:
        """True if the agent completed the task.

        There may be an `answer` even if it did not: the one for which the model is asked when a budget is used up, or
        when it repeats the same calls.
        """
        return self.reason in GOOD_ENDS

    def _repr_html_(self) -> str:
        """Return the run as a table for notebooks: its messages, calls with their results, and what it used."""
        rows = [(label, text) for message in self.messages for label, text in _shown(message)]
        spending = f"{self.rounds} rounds, {self.calls} calls, {self.usage.input_tokens} tokens read, "
        spending += f"{self.usage.output_tokens} written, {self.seconds:.1f} s"
        if self.money:
            spending += f", cost {self.money:.4f}"
        return html_table(f"{self.reason}: {self.detail}" if self.detail else self.reason, [*rows, ("used", spending)])


def _shown(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the parts of a message that a reader wants to see, each with a label."""
    for part in message.parts:
        match part:
            case TextPart(text) if text.strip():
                yield message.role, text
            case ToolCall(name, arguments):
                yield "call", f"{name} {json.dumps(arguments, ensure_ascii=False)}"
            case ToolResult():
                yield "result" if part.success else "error", shorten(part.text, MAX_SHOWN)
            case _:
                pass


def end_record(run: str, ended: RunEnded) -> EndRecord:
    """Return the record of the end of a run."""
    return EndRecord(
        run, ended.reason, ended.good, ended.detail, ended.rounds, ended.calls, ended.usage, ended.money, ended.seconds
    )


AgentEvent = (
    Event | TaskStarted | TurnStarted | ToolStarted | ProgressReported | ApprovalRequested | ToolFinished
    | CorrectionAdded | PartialOutput | TranslationNoted | ModelChosen | ContextReduced | AgentChanged | MemberEvent
    | RunResumed | ReplayEnded | RunEnded
)  # fmt: skip
"""An event of a run: of an answer, of a call, or of the run itself."""

Emit = Callable[[AgentEvent], None]
"""Reports an event to the reader of a run's events."""
