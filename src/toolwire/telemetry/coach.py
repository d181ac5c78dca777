"""Choose the wire format that a model uses best, from outcomes and a random number.

An outcome is an answer in which the model made a call or should have made one; it is good if the call has the requested
format, see `TurnRecord.good`. A Wilson score interval bounds the share of good outcomes. While the intervals of the
best format and of another one overlap, a share of the turns explores the others, those with the fewest outcomes first;
once they do not overlap, or there are enough outcomes, every turn uses the best. New evidence may reopen the question.

Intervals that are examined after each turn have less than their nominal confidence: they are a decision rule here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final

EXPLORE: Final = 0.2
"""Share of the turns that explore other formats than the best."""
ENOUGH: Final = 200
"""Number of outcomes of all formats together after which the best is settled, however close others are."""
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Tally:
    """Outcomes of one format.

    Attributes:
        format: its name.
        tried: number of outcomes.
        good: number of good ones.
    """

    format: str
    tried: int = 0
    good: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0 <= self.good <= self.tried:
            raise ValueError(f"{self.good} of {self.tried} outcomes cannot be good")

    def and_one(self, *, good: bool) -> Tally:
        """Return the tally with one more outcome."""
        return Tally(self.format, self.tried + 1, self.good + good)


@dataclass(frozen=True, slots=True)
class Standing:
    """The evidence about one format.

    Attributes:
        tally: its outcomes.
        low, high: the Wilson score interval of its share of good outcomes; 0 and 1 without outcomes.
    """

    tally: Tally
    low: float
    high: float

    @property
    def rate(self) -> float | None:
        """The share of good outcomes; None without outcomes."""
        return self.tally.good / self.tally.tried if self.tally.tried else None

    @property
    def middle(self) -> float:
        """The middle of the interval: the share, pulled towards one half while there are few outcomes."""
        return (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommendation.

    Attributes:
        format: the best by the middle of its interval; among equals the first.
        settled: whether exploration is over.
        reason: the reason, as a sentence.
        standings: the evidence about all formats, in their order.
    """

    format: str
    settled: bool
    reason: str
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The format for one turn.

    Attributes:
        format: its name.
        exploring: whether the turn explores a format that is not the best.
        reason: the reason, as a sentence.
    """

    format: str
    exploring: bool
    reason: str


def wilson(good: int, tried: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the Wilson score interval of a share, as its lower and upper bound.

    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209-212.
    """
    if not tried:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = good / tried, z * z / tried
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * sqrt(share * (1 - share) / tried + square / (4 * tried))
    return max(0.0, middle - half), min(1.0, middle + half)


def advise(tallies: Sequence[Tally], *, enough: int = ENOUGH, confidence: float = CONFIDENCE) -> Advice:
    """Return the format that the outcomes recommend.

    Args:
        tallies: one for each format; without evidence the first is preferred.
        enough: see `ENOUGH`.
        confidence: confidence level of the intervals.

    Raises:
        ValueError: there are no tallies.
    """
    if not tallies:
        raise ValueError("there is no format to choose from")
    standings = tuple(Standing(tally, *wilson(tally.good, tally.tried, confidence)) for tally in tallies)
    best = max(standings, key=lambda standing: standing.middle)  # the first of equals
    rivals = [standing for standing in standings if standing is not best]
    tried = sum(standing.tally.tried for standing in standings)
    name = best.tally.format
    if not rivals:
        return Advice(name, True, "Nothing else was tried.", standings)
    near = max(rivals, key=lambda standing: standing.high)
    if best.low > near.high:
        evidence = f"at least {best.low:.0%} of its outcomes are good, of {near.tally.format} at most {near.high:.0%}"
        return Advice(name, True, f"Settled: {evidence}.", standings)
    if tried >= enough:
        return Advice(name, True, f"Settled after {tried} outcomes; {near.tally.format} may be as good.", standings)
    if not tried:
        return Advice(name, False, "Nothing is known yet.", standings)
    return Advice(name, False, f"Not settled: {near.tally.format} may be as good.", standings)


def choose(
    tallies: Sequence[Tally],
    draw: float,
    *,
    explore: float = EXPLORE,
    enough: int = ENOUGH,
    confidence: float = CONFIDENCE,
) -> Choice:
    """Return the format for the next turn.

    Args:
        tallies: see `advise`.
        draw: a random number from 0 to below 1; see `drawn`.
        explore: see `EXPLORE`.
        enough: see `ENOUGH`.
        confidence: confidence level of the intervals.

    Raises:
        ValueError: there are no tallies.
    """
    advice = advise(tallies, enough=enough, confidence=confidence)
    if advice.settled or draw >= explore:
        return Choice(advice.format, False, advice.reason)
    best = next(standing for standing in advice.standings if standing.tally.format == advice.format)
    other_standings = [standing for standing in advice.standings if standing is not best]
    # A format that is beaten is not tried.
    rivals = [standing for standing in other_standings if standing.high >= best.low]
    least = min(rivals or other_standings, key=lambda standing: standing.tally.tried)
    reason = f"Explored: {least.tally.tried} outcomes are known, and it may be as good as {advice.format}."
    return Choice(least.tally.format, True, reason)


def drawn(seed: int | str, *place: object) -> float:
    """A number from 0 to below 1 that depends on nothing but the seed and the place."""
    digest = hashlib.sha256("\x1f".join(map(str, (seed, *place))).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)
