"""The attempt of one model to answer in a turn: its request, its events, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolwire.agent.budget import Spending, is_believable
from toolwire.agent.hooks import TurnInfo
from toolwire.agent.output import PartialOutputs
from toolwire.agent.prices import ModelPrices
from toolwire.agent.run_events import ContextReduced
from toolwire.events import Event, UsageCounted, collect
from toolwire.messages import Message, Usage
from toolwire.models.backends import StreamOptions
from toolwire.providers.output_request import OutputRequest
from toolwire.providers.request import ChatRequest, Notes
from toolwire.telemetry.run_observer import PendingTurn
from toolwire.text.tokens import estimate_message_tokens


@dataclass(slots=True, eq=False)
class TurnAttempt:
    """See `toolwire.models.backends.Attempt`.

    Attributes:
        turn: the turn, with the names of this model.
        request: the request as this model reads it.
        options: options of its answer.
        notes: what could not be translated for it.
        reduced: how much of the conversation the request has, if it is less than all of it.
        output: the way in which it is asked for a structured output; None if it is not.
        partial: reads the parts of a structured output; None without one.
        pending: the record of the attempt.
        definition_tokens: estimated tokens of the tool definitions.
        prices: prices of the model.
        spending: what the run has used.
        on_begin: called with the attempt and a reason when its events become the answer.
        on_drop: called with the attempt when they will not, or no longer are.
        events: the events of the answer so far.
    """

    turn: TurnInfo
    request: ChatRequest
    options: StreamOptions
    notes: Notes
    reduced: ContextReduced | None
    output: OutputRequest | None
    partial: PartialOutputs | None
    pending: PendingTurn
    definition_tokens: int
    prices: ModelPrices
    spending: Spending
    on_begin: Callable[[TurnAttempt, str], None]
    on_drop: Callable[[TurnAttempt], None]
    events: list[Event] = field(default_factory=list)

    def begin(self, reason: str, /) -> None:
        """See `Attempt`."""
        self.on_begin(self, reason)

    def drop(self, reason: str, events: Sequence[Event], /, *, billed: bool) -> None:
        """See `Attempt`."""
        response = collect(events)
        if billed:
            self.pay(response.usage if _counts(events) else self.estimated_usage(events))
        if events:
            self.pending.complete(response, events)
        self.pending.fail(reason)
        self.on_drop(self)

    def pay(self, usage: Usage | None) -> None:
        """Count the tokens of the answer."""
        self.spending.add(usage, self.prices)

    def missing_usage(self) -> UsageCounted | None:
        """Return an estimate for an answer whose model reports no tokens: a budget must count those too."""
        return None if _counts(self.events) else UsageCounted(self.estimated_usage(self.events))

    def estimated_usage(self, events: Sequence[Event]) -> Usage:
        """Return about how many tokens the model has read and written."""
        read = sum(map(estimate_message_tokens, self.request.messages)) + self.definition_tokens
        written = estimate_message_tokens(Message("assistant", collect(events).parts))
        return Usage(read, written, estimated=True)


def _counts(events: Sequence[Event]) -> bool:
    """Return whether the model has reported tokens that can be believed."""
    counts = [event.usage for event in events if isinstance(event, UsageCounted)]
    return is_believable(counts[-1] if counts else None)
