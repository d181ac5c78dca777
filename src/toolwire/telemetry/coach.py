"""Which wire format a model does best with: outcomes in, a choice out, and chance comes in as a number.

An outcome is an answer in which the model called something, or should have: good if it did so in the format that it was
asked for, see `TurnRecord.good`. The share of good ones is known as well as its Wilson score interval says. While the
intervals of the best format and of another overlap, a share of the turns goes to the others, the least known first;
once they do not, or enough was tried, every turn goes to the best. So it is again if the evidence changes its mind.

Intervals that are looked at after each turn hold somewhat less often than they say: this is a rule to decide by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final

EXPLORE: Final = 0.2
"""Share of the turns that go to other formats than the best."""
ENOUGH: Final = 200
"""Outcomes of all formats together, after which the best is settled on, however close others are."""
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Tally:
    """Outcomes of one format.

    Attributes:
        format: its name.
        tried: how many outcomes.
        good: how many of them were good.
    """

    format: str
    tried: int = 0
    good: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be counted."""
        if not 0 <= self.good <= self.tried:
            raise ValueError(f"{self.good} of {self.tried} outcomes cannot be good")

    def and_one(self, *, good: bool) -> Tally:
        """One outcome more."""
        return Tally(self.format, self.tried + 1, self.good + good)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one format.

    Attributes:
        tally: its outcomes.
        low, high: the Wilson score interval of its share of good outcomes; 0 and 1 if nothing was tried.
    """

    tally: Tally
    low: float
    high: float

    @property
    def rate(self) -> float | None:
        """The share of good outcomes; None if nothing was tried."""
        return self.tally.good / self.tally.tried if self.tally.tried else None

    @property
    def middle(self) -> float:
        """The middle of the interval: the share, drawn to one half as far as little is known."""
        return (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommendation.

    Attributes:
        format: the best by the middle of its interval; of equals the first.
        settled: nothing else is tried any more.
        reason: why, in a sentence.
        standings: of all formats, in their order.
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
        exploring: it is not the best, but more is to be known of it.
        reason: why, in a sentence.
    """

    format: str
    exploring: bool
    reason: str


def wilson(good: int, tried: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The Wilson score interval of a share: the shares from which so many good ones would be no surprise.

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
    """What the outcomes recommend.

    Args:
        tallies: one of each format, the one that is preferred without evidence first.
        enough: see `ENOUGH`.
        confidence: of the intervals.

    Raises:
        ValueError: there is none.
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
    """The format for the next turn.

    Args:
        tallies: see `advise`.
        draw: from 0 to below 1, evenly: see `drawn`.
        explore: see `EXPLORE`.
        enough: see `ENOUGH`.
        confidence: of the intervals.

    Raises:
        ValueError: there is none.
    """
    advice = advise(tallies, enough=enough, confidence=confidence)
    if advice.settled or draw >= explore:
        return Choice(advice.format, False, advice.reason)
    unsettled = [standing for standing in advice.standings if standing.tally.format != advice.format]
    rivals = [
        standing for standing in unsettled if standing.high >= _of(advice).low
    ]  # what is beaten already need not be tried
    least = min(rivals or unsettled, key=lambda standing: standing.tally.tried)
    reason = f"Explored: {least.tally.tried} outcomes are known, and it may be as good as {advice.format}."
    return Choice(least.tally.format, True, reason)


def drawn(seed: int | str, *place: object) -> float:
    """A number from 0 to below 1 that depends on nothing but the seed and the place."""
    digest = hashlib.sha256("\x1f".join(map(str, (seed, *place))).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


def _of(advice: Advice) -> Standing:
    return next(item for item in advice.standings if item.tally.format == advice.format)
