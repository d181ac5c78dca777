"""Text of others, shown to people: nothing in it steers a terminal, and nothing in it is hidden."""

from __future__ import annotations

BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""Letters and marks by their category, nothing at all on a screen."""


def visible(text: str) -> str:
    """Text in which every character that a terminal obeys, or that hides or reorders others, is written as an escape.

    So is each that shows nothing itself, save the space.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() and c not in BLANK else c.encode("unicode_escape").decode() for c in text)
