"""Patterns of models' names: `*` stands for any text, and every other character for itself."""

from __future__ import annotations

import re
from functools import lru_cache


def fits(name: str, pattern: str) -> bool:
    """Return whether a name fits a pattern."""
    return _compiled(pattern).fullmatch(name) is not None


@lru_cache(1_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Names such as "coder[1m]" contain characters that patterns of file names give a meaning.
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
