"""Sets of words, written one after the other."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, which white space separates, as a set."""
    return frozenset(text.split())
