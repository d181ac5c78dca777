"""Figures of one answer, from its events: tokens, calls, repairs, problems, and the time to its first event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from toolwire.agent.budget import is_believable
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    ContentDelta,
    Event,
    Finish,
    ProblemFound,
    ReasoningDelta,
    UsageCounted,
)
from toolwire.messages import FinishReason, Usage
from toolwire.text.tokens import estimate_tokens


@dataclass(slots=True)
class AnswerMeter:
    """Figures of one answer.

    Attributes:
        input_tokens: the estimated tokens of the request.
        clock: returns the time in seconds.
        began: the time of the request.
        first_at: the time of the first event; None if there was none.
        reported: the tokens that the backend reported; None if it did not, or impossible numbers.
        characters: number of characters of the answer: content, reasoning and arguments.
        calls: number of complete calls.
        repairs: the repairs of calls, by name.
        problems: the problems, by kind.
        finish: why the answer ended; None if it did not.
    """

    input_tokens: int = 0
    clock: Callable[[], float] = monotonic
    began: float = field(init=False)
    first_at: float | None = None
    reported: Usage | None = None
    characters: int = 0
    calls: int = 0
    repairs: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    finish: FinishReason | None = None

    def __post_init__(self) -> None:
        """Begin to count the time."""
        self.began = self.clock()

    def observe(self, events: Sequence[Event]) -> None:
        """Count the events that have arrived."""
        if events and self.first_at is None:
            self.first_at = self.clock()
        for event in events:
            match event:
                case ContentDelta(text=text) | ReasoningDelta(text=text) | ArgumentsDelta(text=text):
                    self.characters += len(text)
                case UsageCounted(usage) if is_believable(usage):
                    self.reported = usage
                case CallEnd(_, call, complete):
                    self.calls += complete
                    self.repairs.update(call.repairs)
                case ProblemFound(problem):
                    self.problems[problem.kind] += 1
                case Finish(reason):
                    self.finish = reason

    @property
    def usage(self) -> Usage:
        """The tokens of the answer; estimated if the backend reported none, and none of an answer that never began."""
        if self.reported is not None:
            return self.reported
        if self.first_at is None:
            return Usage(estimated=True)
        return Usage(self.input_tokens, estimate_tokens(self.characters), estimated=True)
