"""Short names of a report's columns: what all columns share is shown once, above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolwire.evaluation.report import Column
from toolwire.evaluation.verdicts import NATIVE

_UNNAMED: Final = {"model": "", "constrain": "", "prompt": "", "reading": NATIVE}
"""The parts that columns may share, with the values that are not in a name.

The format is part of each short name, so that none is empty.
"""


class ColumnNames:
    """The names of columns without the parts that all of them share.

    Args:
        columns: the columns of a report.

    Attributes:
        shared: the shared parts; "" if there are none, or if there is one column.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        first = columns[0] if len(columns) > 1 else None
        shared = {
            part: unnamed
            for part, unnamed in _UNNAMED.items()
            if first is not None and len({getattr(column, part) for column in columns}) == 1
        }
        self.shared = "" if first is None else first.words(*shared)
        self._short: dict[str, str] = {}
        for column in columns:
            short = replace(column, **shared)
            self._short |= {column.name: short.name, column.asked: short.asked}

    def __call__(self, name: str) -> str:
        """Return the short name of a column, or of a model and how it is asked."""
        return self._short.get(name, name)
