"""Numbers with their nouns, in messages and reports."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 round" or "2 rounds"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
