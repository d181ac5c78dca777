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
        before: the tokens of the requests for this answer that were made before the present one.
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
    before: Usage = field(default_factory=Usage)
    _characters_before: int = 0
    _is_reported: bool = False

    def __post_init__(self) -> None:
        """Begin to count the time."""
        self.began = self.clock()

    def next_request(self, input_tokens: int) -> None:
        """Count a further request to the model for the same answer.

        Args:
            input_tokens: the estimated tokens of the request.
        """
        self.before, self.input_tokens = self.usage, input_tokens
        self._characters_before, self._is_reported = self.characters, False

    def observe(self, events: Sequence[Event]) -> None:
        """Count the events that have arrived."""
        if events and self.first_at is None:
            self.first_at = self.clock()
        for event in events:
            match event:
                case ContentDelta(text=text) | ReasoningDelta(text=text) | ArgumentsDelta(text=text):
                    self.characters += len(text)
                case UsageCounted(usage) if is_believable(usage):
                    self.reported, self._is_reported = usage, True
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
        if self.reported is not None and self._is_reported:
            return self.reported
        if self.first_at is None:
            return Usage(estimated=True)
        written = estimate_tokens(self.characters - self._characters_before)
        return self.before + Usage(self.input_tokens, written, estimated=True)
