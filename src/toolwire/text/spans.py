"""Parts of a text, to find out whether another part overlaps any of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate


class Spans:
    """Parts of a text, each from one position to another, in any order; they may overlap."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))

    def overlap(self, start: int, end: int) -> bool:
        """Return whether one of them overlaps this part."""
        before = bisect_left(self._starts, end)
        return before > 0 and self._ends[before - 1] > start
