"""Statistics of shares: Wilson's interval, and McNemar's exact test of two columns on the same questions, by SciPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolwire._surface import needs_extra

with needs_extra("An evaluation", "eval"):
    from scipy import stats

LEVEL: Final = 0.95
"""Confidence level of the intervals."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of answers, with its Wilson interval.

    Attributes:
        count: the number of answers that count.
        total: the number of all answers.
        low, high: the ends of the interval, from 0 to 1; 0 and 1 if there is no answer.
    """

    count: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None if there is no answer."""
        return self.count / self.total if self.total else None


def share_of(verdicts: Sequence[bool]) -> Share:
    """Return the share of true values."""
    return share_of_counts(sum(verdicts), len(verdicts))


def share_of_counts(count: int, total: int) -> Share:
    """Return the share of `count` answers in all `total` answers."""
    if not total:
        return Share(0, 0, 0.0, 1.0)
    interval = stats.binomtest(count, total).proportion_ci(LEVEL, method="wilson")
    return Share(count, total, float(interval.low), float(interval.high))


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A comparison of two columns on the questions that both have answered.

    Attributes:
        first, second: the names of the columns.
        questions: the number of questions.
        only_first, only_second: the number of questions that only this column has right.
        p: the probability of a difference at least as large if the columns are equally good (McNemar's exact test).
        adjusted_p: the same, adjusted for the number of comparisons in the report (Benjamini and Hochberg).
    """

    first: str
    second: str
    questions: int
    only_first: int
    only_second: int
    p: float
    adjusted_p: float


def paired_test(first: str, second: str, rights: Mapping[str, Mapping[str, bool]]) -> PairedTest:
    """Compare two columns.

    Args:
        first: the name of a column.
        second: the name of another one.
        rights: of each column, whether the answer to a question is right, by the question's id.
    """
    first_rights, second_rights = rights[first], rights[second]
    common = first_rights.keys() & second_rights.keys()
    only_first = sum(first_rights[id] and not second_rights[id] for id in common)
    only_second = sum(second_rights[id] and not first_rights[id] for id in common)
    differing = only_first + only_second
    # The exact test of McNemar is a binomial test of the questions on which the columns differ.
    p = float(stats.binomtest(only_first, differing, 0.5).pvalue) if differing else 1.0
    return PairedTest(first, second, len(common), only_first, only_second, p, p)


def adjusted(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """Return comparisons with p-values adjusted for their number."""
    if not tests:
        return []
    values = stats.false_discovery_control([test.p for test in tests], method="bh")
    return [replace(test, adjusted_p=float(value)) for test, value in zip(tests, values, strict=True)]
