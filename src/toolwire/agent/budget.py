"""How much a run may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from toolwire.messages import Usage

LAST_SECONDS = 60.0
"""What the last answer may take when the seconds are used up."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in any currency.

    Attributes:
        input: tokens read.
        output: tokens written.
        cached: tokens read from the provider's cache; None: as `input`.
    """

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """What these tokens cost."""
        fresh = usage.input_tokens - usage.cached_tokens
        cached = self.input if self.cached is None else self.cached
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use, members of a team included; None: as much as it likes.

    When something is used up, one last answer is asked for. Tokens and money are known when an answer ends, so the one
    that uses them up is whole.

    Attributes:
        rounds: how often the model is asked, the last answer included; members count their own.
        calls: that may be made; members count their own.
        tokens: read and written, as far as the model tells them.
        seconds: of the whole run, questions to somebody included. What is at work then is stopped, a plain function
            left behind in its thread.
        money: by `prices`, each member's by its own.
        prices: of the model; has to be there for `money`: `Prices()` is a model that costs nothing.
        last_seconds: what the last answer may take besides, when the seconds are used up.
    """

    rounds: int = 20
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None
    prices: Prices | None = None
    last_seconds: float = LAST_SECONDS

    def __post_init__(self) -> None:
        """Refuse what leaves no room for an answer, and money that nothing is counted by.

        Raises:
            ValueError: it is such a budget.
        """
        if self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, not {self.rounds}")
        if self.money is not None and self.prices is None:
            raise ValueError("money is counted by prices: give those of the model, Prices() if it costs nothing")

    def exceeded(self, spent: Spent) -> str:
        """What is used up before the next round, in words; "" if nothing is."""
        if spent.rounds >= self.rounds - 1:
            return f"the budget of {self.rounds} rounds"
        if self.calls is not None and spent.calls >= self.calls:
            return f"the budget of {self.calls} calls"
        return self.overspent(spent)

    def overspent(self, spent: Spent) -> str:
        """What is used up of that which runs inside calls use as well, in words; "" if nothing is."""
        limits = (
            (self.tokens, spent.tokens, "tokens"),
            (self.seconds, spent.seconds, "seconds"),
            (self.money, spent.cost, "money"),
        )
        for limit, used, name in limits:
            if limit is not None and used >= limit:
                return f"the budget of {limit:g} {name}"
        return ""


@dataclass(slots=True, eq=False)
class Spent:
    """What a run has used.

    Attributes:
        prices: of its model.
        usage: tokens of its answers, and of runs inside its calls that are over.
        money: what these cost.
    """

    prices: Prices = field(default_factory=Prices)
    rounds: int = 0
    calls: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    money: float = 0.0
    _inside: list[list[Spent]] = field(default_factory=list)

    def add(self, usage: Usage | None) -> None:
        """Count the tokens of an answer."""
        if usage is not None:
            self.usage = _sum(self.usage, usage)
            self.money += self.prices.of(usage)

    def opened(self) -> list[Spent]:
        """For a call: what runs inside it use goes in here, and counts while they use it."""
        inside: list[Spent] = []
        self._inside.append(inside)
        return inside

    def closed(self, inside: list[Spent]) -> None:
        """The call is over: what was used inside it is part of `usage` from now on."""
        left = [one for one in self._inside if one is not inside]
        if len(left) < len(self._inside):
            self._inside = left
            for one in inside:
                self.usage = _sum(self.usage, one.whole)
                self.money += one.cost

    @property
    def whole(self) -> Usage:
        """Tokens of all answers, those of runs inside included."""
        return reduce(_sum, (one.whole for inside in self._inside for one in inside), self.usage)

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        whole = self.whole
        return whole.input_tokens + whole.output_tokens

    @property
    def cost(self) -> float:
        """What they cost."""
        return self.money + sum(one.cost for inside in self._inside for one in inside)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cached_tokens + other.cached_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
    )
