"""The part of a stopped answer that stays in the conversation: what was said and done before it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolwire.agent.run_events import (
    AgentChanged,
    AgentEvent,
    ApprovalRequested,
    ContextReduced,
    CorrectionAdded,
    MemberEvent,
    ModelChosen,
    PartialOutput,
    ProgressReported,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
    ToolFinished,
    ToolStarted,
    TranslationNoted,
    TurnStarted,
)
from toolwire.events import Event, collect
from toolwire.execution.outcomes import Outcome
from toolwire.messages import Message, Part, TextPart, ToolResult

STOPPED = "The user stopped this before its result was there. It may have done its work or not."


@dataclass(slots=True)
class PartialTurn:
    """The events and tool outcomes of one model turn.

    Attributes:
        round: number of the round.
        events: its stream events.
        started_ids: ids of the calls that started, one entry per start.
        outcomes: outcomes of the calls that ended.
    """

    round: int
    events: list[Event] = field(default_factory=list)
    started_ids: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def messages(self) -> list[Message]:
        """Return the answer and the results of its calls; calls that never started are left out."""
        response = collect(self.events)
        outcomes, results = list(self.outcomes), dict[int, ToolResult]()
        for exact in (True, False):  # a model that counts badly gives several calls one id
            for at, call in enumerate(response.all_calls):
                candidates = (outcome for outcome in outcomes if outcome.call.id == call.id and at not in results)
                match = next(
                    (outcome for outcome in candidates if not exact or outcome.call.arguments == call.arguments), None
                )
                if match is not None:
                    outcomes.remove(match)
                    results[at] = match.result
        started = list(self.started_ids)
        for result in results.values():
            if result.call_id in started:
                started.remove(result.call_id)
        for at, call in enumerate(response.all_calls):
            if at not in results and call.id in started:
                started.remove(call.id)
                results[at] = ToolResult(call.id, call.name, error=STOPPED)
        calls = [call for at, call in enumerate(response.all_calls) if at in results]
        parts: list[Part] = [TextPart(response.content)] if response.content.strip() else []
        parts += calls
        messages = [Message("assistant", tuple(parts))] if parts else []
        tool_results = tuple(results[at] for at in sorted(results))
        return [*messages, Message("tool", tool_results)] if tool_results else messages


@dataclass(slots=True)
class PartialAnswer:
    """The part of a stopped answer that stays in the conversation."""

    task: Message
    turns: list[PartialTurn] = field(default_factory=list)

    def add(self, event: AgentEvent) -> None:
        """Record an event."""
        match event:
            case TurnStarted():
                if self.turns and self.turns[-1].round == event.round:
                    self.turns.pop()  # the stream broke off, and the turn is requested again
                self.turns.append(PartialTurn(event.round))
            case ToolStarted(call):
                self.turns[-1].started_ids.append(call.id)
            case ToolFinished(outcome):
                self.turns[-1].outcomes.append(outcome)
            case TaskStarted() | MemberEvent() | RunEnded() | RunResumed() | ReplayEnded():
                pass
            case ProgressReported() | ApprovalRequested() | CorrectionAdded() | TranslationNoted() | PartialOutput():
                pass
            case ModelChosen() | ContextReduced() | AgentChanged():
                pass
            case _:
                self.turns[-1].events.append(event)

    def messages(self, before: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the conversation with the partial answer; the same conversation if there is none."""
        messages = [message for turn in self.turns for message in turn.messages()]
        return (*before, self.task, *messages) if messages else before
