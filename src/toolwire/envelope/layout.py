"""Text in an envelope that fits its reader: truncated at line ends where possible, with a handle for the whole.

A size is a number of characters as they are written: a line that begins as a marker takes one more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from toolwire.envelope.grammar import Document, EnvelopeHeader, Section, count_lines, extra
from toolwire.envelope.store import MAX_KEPT

Keep = Callable[[str, EnvelopeHeader], str | None]
"""Keeps a whole text and gives its handle back; None if it cannot be kept."""

CRUMBS: Final = 420
"""Characters that all breadcrumbs of an envelope have room in."""


def compose_text(
    text: str,
    header: EnvelopeHeader,
    *,
    limit: int,
    keep: Keep,
    lines: int | None = None,
    tail: float = 0.0,
    more: str = "",
) -> Document:
    """A text in an envelope; where it has no room, its ends, and a handle for the whole.

    Args:
        text: the text.
        header: what is said of it, but for what cutting it adds.
        limit: characters of the envelope.
        keep: where the whole goes.
        lines: lines that may be shown.
        tail: the share that its end has of what is shown.
        more: what is not even in the text, in words.
    """
    crumbs = (more,) if more else ()
    whole = Document(replace(header, truncated=bool(more)), (Section(text, crumbs),))
    if len(whole.text) <= limit and not cut(text, limit, lines=lines).left_out:
        return whole
    handle = keep(text, header)
    header = replace(header, truncated=True, handle=handle)
    room = limit - len(header.text) - 2 - CRUMBS
    shown = cut(text, max(room, 1), lines=lines, tail=tail)
    left_out = shown.left_out + ("" if handle else " (not kept)")
    if handle and len(text) > MAX_KEPT:
        crumbs = (f"of these the first {MAX_KEPT} characters are kept", *crumbs)
    if not shown.tail:
        return Document(header, (Section(shown.head, (left_out, *crumbs)),))
    return Document(header, (Section(shown.head, (left_out,)), Section(shown.tail, crumbs)))


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
    # Where the cut is within a line, its rest may look like a marker: `\r` and the like begin a line, but nothing is
    # cut there.
    room -= extra(text[-room:]) + 1
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
