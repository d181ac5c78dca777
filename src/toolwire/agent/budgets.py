"""How much a run may use."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolwire.messages import Usage


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
    """What a run may use; None: as much as it likes. When something is used up, one last answer is asked for.

    Attributes:
        rounds: how often the model is asked, the last answer included.
        calls: that may be made.
        tokens: read and written, as far as the model tells them.
        seconds: of the whole run; a turn that has begun is finished.
        money: by `prices`.
        prices: of the model.
    """

    rounds: int = 20
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        """Refuse what leaves no room for an answer."""
        if self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, not {self.rounds}")

    def exceeded(self, spent: Spent) -> str:
        """What is used up before the next round, in words; "" if nothing is."""
        limits = (
            (self.rounds - 1, spent.rounds, "rounds"),
            (self.calls, spent.calls, "calls"),
            (self.tokens, spent.usage.input_tokens + spent.usage.output_tokens, "tokens"),
            (self.seconds, spent.seconds, "seconds"),
            (self.money, self.prices.of(spent.usage), "money"),
        )
        for limit, used, name in limits:
            if limit is not None and used >= limit:
                whole = limit + 1 if name == "rounds" else limit
                return f"the budget of {whole:g} {name}"
        return ""


@dataclass(slots=True)
class Spent:
    """What a run has used."""

    rounds: int = 0
    calls: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def add(self, usage: Usage | None) -> None:
        """Count the tokens of an answer."""
        if usage is not None:
            mine = self.usage
            self.usage = Usage(
                mine.input_tokens + usage.input_tokens,
                mine.output_tokens + usage.output_tokens,
                mine.cached_tokens + usage.cached_tokens,
                mine.reasoning_tokens + usage.reasoning_tokens,
            )
