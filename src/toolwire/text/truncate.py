"""Truncate text, and say what was left out, in one wording.

`truncate` is for content: it says how much is missing. `shorten` is for labels and quotations of one line.
"""

from __future__ import annotations

from typing import Literal

QUOTATION = 300
"""Maximum length of a quotation in a message, in characters."""


def omission(count: int, unit: str = "character") -> str:
    """Return the note that takes the place of text: `… (1,200 characters left out)`."""
    return f"… ({count:,} {unit}{'' if count == 1 else 's'} left out)"


def truncate(text: str, limit: int, *, lines: int | None = None, where: Literal["end", "middle"] = "end") -> str:
    """Return at most this much of a text, and a note of how much was left out.

    Args:
        text: the text.
        limit: the maximum number of its characters; the note comes on top.
        lines: the maximum number of its lines; where lines are missing, the note counts them.
        where: the part that is left out.
    """
    if lines is not None:
        text = text.rstrip("\n")
        first = text[:limit].split("\n", lines)[:lines]
        if missing := text.count("\n") + 1 - len(first):
            return "\n".join([*first, omission(missing, "line")])
    excess = len(text) - limit
    if excess <= 0:
        return text
    if where == "end":
        return text[:limit] + omission(excess)
    head = (limit + 1) // 2
    return f"{text[:head]}{omission(excess)} …{text[head + excess :]}"


def shorten(text: str, limit: int = QUOTATION) -> str:
    """Return a text of at most this many characters; one that was cut ends with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
