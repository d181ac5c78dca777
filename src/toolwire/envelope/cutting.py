"""Text cut to a room, at ends of lines wherever one is near.

A room is a number of characters as they are written: a line that begins as a marker takes one more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolwire.envelope.grammar import extra


@dataclass(frozen=True, slots=True)
class Cut:
    """The two ends of a text that are shown, and what lies between.

    Attributes:
        head: its beginning.
        left_out: what is not shown, in words; "" if nothing is.
        tail: its end; "" if nothing of it is shown.
    """

    head: str
    left_out: str = ""
    tail: str = ""


def count_lines(text: str) -> int:
    """Lines of a text, whether its last one ends with a line break or not."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def cut(text: str, room: int, *, lines: int | None = None, tail: float = 0.0) -> Cut:
    """Show as much of a text as there is room for.

    Args:
        text: the text.
        room: characters that may be shown of it.
        lines: lines that may be shown of it; None for any number.
        tail: the share of both that is for its end.
    """
    total = count_lines(text)
    most = total if lines is None else lines
    if total <= most and len(text) + extra(text) <= room:
        return Cut(text)
    last = int(room * tail)
    end = _end(text, 0, room - last)
    below = len(text)
    if tail:
        below = max(_begin(text, last), end)
    last_lines = int(most * tail)
    end = min(end, _line_end(text, most - last_lines))
    below = max(below, _line_start(text, last_lines), end)
    head, rest = text[:end], text[below:]
    return Cut(head.removesuffix("\n"), _between(text, end, below, total), rest.removesuffix("\n"))


def pieces(text: str, room: int) -> Iterator[str]:
    """The whole text, piece by piece; each has room, and ends where a line does if a line has room."""
    start = 0
    while start < len(text):
        end = _end(text, start, room)
        yield text[start:end]
        start = end


def _end(text: str, start: int, room: int) -> int:
    """Where the longest beginning of `text[start:]` ends that has room; at least one character is taken."""
    window = text[start : start + room]
    room -= extra(window)
    if len(text) - start <= room:
        return len(text)
    at = text.rfind("\n", start, start + room) + 1
    return at if at > start else start + max(room, 1)


def _begin(text: str, room: int) -> int:
    """Where the longest end of a text begins that has room."""
    if room <= 0:
        return len(text)
    room -= extra(text[-room:]) + 1  # cut within a line, the rest of it may look like a marker
    if room <= 0:
        return len(text)
    if len(text) <= room:
        return 0
    start = len(text) - room
    if text[start - 1] == "\n":
        return start
    at = text.find("\n", start) + 1
    return at if 0 < at < len(text) else start


def _line_end(text: str, lines: int) -> int:
    """Where so many lines end."""
    at = 0
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _line_start(text: str, lines: int) -> int:
    """Where the last so many lines begin."""
    at = len(text) - text.endswith("\n")
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return min(at + 1, len(text)) if lines else len(text)


def _between(text: str, start: int, end: int, total: int) -> str:
    """What lies between two places, in words."""
    if start >= end:
        return ""
    first = text.count("\n", 0, start) + 1
    last = text.count("\n", 0, end - 1) + 1
    size = f"{end - start} characters"
    within = (start > 0 and text[start - 1] != "\n") or (end < len(text) and text[end - 1] != "\n")
    if first == last:
        return f"{size} of line {first} of {total}" if within else f"line {first} of {total}, {size}"
    return f"lines {first}-{last} of {total}, {size}"
