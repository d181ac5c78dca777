"""Text in an envelope that fits its reader: truncated at line ends where possible, with a handle for the whole.

A size is a number of characters as they are written: a line that begins as a marker takes one more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from toolwire.envelope.grammar import EnvelopeDocument, EnvelopeHeader, EnvelopeSection, count_lines, extra
from toolwire.envelope.store import MAX_KEPT

Keep = Callable[[str, EnvelopeHeader], str | None]
"""Stores a whole text and returns its handle; None if it cannot be stored."""

CRUMBS: Final = 420
"""Maximum length of all breadcrumbs of an envelope, in characters."""


def compose_text(
    text: str,
    header: EnvelopeHeader,
    *,
    limit: int,
    keep: Keep,
    lines: int | None = None,
    tail: float = 0.0,
    more: str = "",
) -> EnvelopeDocument:
    """Return a text in an envelope: the whole if it fits, otherwise its ends and a handle.

    Args:
        text: the text.
        header: the header, without the fields that truncation sets.
        limit: maximum length of the envelope, in characters.
        keep: where the whole is stored.
        lines: maximum number of lines; None for no maximum.
        tail: share of the lines and characters for the end.
        more: a description of content that is not even in the text.
    """
    crumbs = (more,) if more else ()
    document = EnvelopeDocument(replace(header, truncated=bool(more)), (EnvelopeSection(text, crumbs),))
    if len(document.text) <= limit and not cut(text, limit, lines=lines).left_out:
        return document
    handle = keep(text, header)
    header = replace(header, truncated=True, handle=handle)
    room = limit - len(header.text) - 2 - CRUMBS
    shown = cut(text, max(room, 1), lines=lines, tail=tail)
    left_out = shown.left_out + ("" if handle else " (not kept)")
    if handle and len(text) > MAX_KEPT:
        crumbs = (f"of these the first {MAX_KEPT} characters are kept", *crumbs)
    if not shown.tail:
        return EnvelopeDocument(header, (EnvelopeSection(shown.head, (left_out, *crumbs)),))
    return EnvelopeDocument(header, (EnvelopeSection(shown.head, (left_out,)), EnvelopeSection(shown.tail, crumbs)))


@dataclass(frozen=True, slots=True)
class Cut:
    """Both ends of a text, and a description of what is between them.

    Attributes:
        head: the beginning.
        left_out: a description of what is not shown; "" if nothing is left out.
        tail: the end; "" if it is not shown.
    """

    head: str
    left_out: str = ""
    tail: str = ""


def cut(text: str, room: int, *, lines: int | None = None, tail: float = 0.0) -> Cut:
    """Truncate a text, at line ends where possible.

    Args:
        text: the text.
        room: maximum length, in characters.
        lines: maximum number of lines; None for no maximum.
        tail: share of the lines and characters for the end.
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
    """Yield a whole text in pieces of a maximum length, which end at line ends where possible."""
    start = 0
    while start < len(text):
        end = _end(text, start, room)
        yield text[start:end]
        start = end


def _end(text: str, start: int, room: int) -> int:
    """Return the end of the longest part of `text[start:]` that fits, which is at least one character."""
    window = text[start : start + room]
    room -= extra(window)
    if len(text) - start <= room:
        return len(text)
    at = text.rfind("\n", start, start + room) + 1
    return at if at > start else start + max(room, 1)


def _begin(text: str, room: int) -> int:
    """Return the start of the longest end of a text that fits."""
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
    """Return the position after a number of lines."""
    at = 0
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _line_start(text: str, lines: int) -> int:
    """Return the position before a number of lines at the end."""
    at = len(text) - text.endswith("\n")
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return min(at + 1, len(text)) if lines else len(text)


def _between(text: str, start: int, end: int, total: int) -> str:
    """Describe the text between two positions."""
    if start >= end:
        return ""
    first = text.count("\n", 0, start) + 1
    last = text.count("\n", 0, end - 1) + 1
    size = f"{end - start} characters"
    within = (start > 0 and text[start - 1] != "\n") or (end < len(text) and text[end - 1] != "\n")
    if first == last:
        return f"{size} of line {first} of {total}" if within else f"line {first} of {total}, {size}"
    return f"lines {first}-{last} of {total}, {size}"
