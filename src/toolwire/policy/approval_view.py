"""Text as a person sees it before approving a call: padding is folded, and what is too long is cut in the middle.

A run of white space, of one character or of equal lines becomes one of them and a count, so padding pushes nothing out
of sight. Everything that is left out is counted. Work is linear in the size of the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from toolwire.text.escape import escape_invisible

MIN_RUN = 12
"""Minimum length of a run that is folded, in characters."""
MAX_LINES = 1_000
MAX_LINE = 1_000
"""Maximum length of one line of many, in characters."""
MAX_TEXT = 60_000
"""Maximum length of many lines together, in characters."""
MAX_INDENTATION = 40
"""Maximum length of an indentation that is not folded, in characters."""
_ALIKE = 3
"""Number of similar lines that are shown before the rest is counted."""

# The last branch is text that looks like a count: it gets a backslash, or `z[20 times]` could be written to pass for
# twenty times z.
_RUN = re.compile(
    rf"\s{{{MIN_RUN},}}|\s*\n\s*\n\s*\n\s*|(\S)\1{{{MIN_RUN - 1},}}"
    r"|(\[(?:this line )?\d{1,20} (?:times|spaces|line ends|tabs|carriage returns|\\))"
)
_BLANKS = {" ": "spaces", "\n": "line ends", "\t": "tabs", "\r": "carriage returns"}
_MARKED_LINE = re.compile(rf"(.?(?:[ \t]{{0,{MAX_INDENTATION}}}(?![ \t]))?)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """Text with folded padding: all of it, or both its ends; nothing is escaped yet.

    Attributes:
        start: the beginning.
        hidden: number of characters between the beginning and the end.
        end: the end; "" unless something is hidden.
    """

    start: str
    hidden: int = 0
    end: str = ""

    @classmethod
    def of(cls, text: str, limit: int | None) -> ApprovalView:
        """Return a view of at most `limit` characters; None for no maximum."""
        pieces = list(fold(text))
        if limit is None or sum(len(shown) for shown, _ in pieces) <= limit:
            return cls("".join(shown for shown, _ in pieces))
        # Both ends, because padding in front or behind would push the part that matters out of a view of one end.
        start, first = _take(pieces, limit * 2 // 3)
        reversed_end, last = _take(((shown[::-1], count) for shown, count in reversed(pieces)), limit // 3)
        return cls(start, len(text) - first - last, reversed_end[::-1])


@dataclass(frozen=True, slots=True, eq=False)
class OmittedLines:
    """Lines that nobody would read to the end, and that are only counted.

    Attributes:
        lines: their number.
        characters: the number of their characters.
    """

    lines: int
    characters: int

    @property
    def notice(self) -> str:
        """The line in their place."""
        return f"({self.lines:,} lines are left out here)"


def show_lines(lines: Iterable[str | OmittedLines], *, head: Iterable[str] = ()) -> str:
    """Return lines as text for a person; if something is missing, the first line says how much.

    Args:
        lines: each begins with a mark of ours, such as `+`, which stays. Lines that are alike are counted.
        head: lines that are shown whole, before the others.
    """
    groups = deque(_groups(lines))
    front, back = list[str](), list[str]()
    hidden, room = 0, MAX_TEXT
    while groups:
        # Groups are taken from both ends in turn, for the same reason as the ends of a text in `ApprovalView.of`.
        at_front = len(front) <= len(back)
        group = groups[0 if at_front else -1]
        shown, left_out = ([group.notice], group.characters) if isinstance(group, OmittedLines) else _show_group(group)
        room -= sum(len(line) + 1 for line in shown)
        if room < 0 or len(front) + len(back) + len(shown) > MAX_LINES:
            break
        hidden += left_out
        if at_front:
            front += shown
            groups.popleft()
        else:
            back += reversed(shown)
            groups.pop()
    if groups:
        rest = [
            group if isinstance(group, OmittedLines) else OmittedLines(len(group), sum(map(len, group)) + len(group))
            for group in groups
        ]
        omitted = OmittedLines(sum(part.lines for part in rest), sum(part.characters for part in rest))
        front.append(omitted.notice)
        hidden += omitted.characters
    notice = [f"(NOT ALL OF THIS IS SHOWN: {hidden:,} characters are left out)"] if hidden else []
    return "\n".join([*notice, *(escape_invisible(line, "\t") for line in head), *front, *reversed(back)])


def fold(text: str) -> Iterator[tuple[str, int]]:
    """Yield what is shown for each part of a text, and the number of characters that it represents."""
    unfolded: list[str] = []
    for line, repeated in groupby(text.split("\n")):
        times = sum(1 for _ in repeated)
        # Two equal lines are ordinary text; blank lines are folded as runs of white space below.
        if times < 3 or not line.strip():
            unfolded += [line] * times
            continue
        yield from _fold_runs("\n".join((*unfolded, line, "")) if unfolded else f"{line}\n")
        yield f"[this line {times} times]", (len(line) + 1) * (times - 1) - 1
        unfolded = [""]
    yield from _fold_runs("\n".join(unfolded))


def _fold_runs(text: str) -> Iterator[tuple[str, int]]:
    position = 0
    for run in _RUN.finditer(text):
        if run.start() > position:
            yield text[position : run.start()], run.start() - position
        part, position = run[0], run.end()
        # The text itself contains what looks like our notice of a fold. Marked, it cannot be taken for one.
        if run[2]:
            yield f"\\{part}", len(part)
        elif run[1]:
            yield f"{run[1]}[{len(part)} times]", len(part)
        else:
            counted = ", ".join(
                f"{part.count(c)} {_BLANKS.get(c, escape_invisible(c))}" for c in sorted(set(part), key=part.index)
            )
            yield f"[{counted}]" + ("\n" if "\n" in part else ""), len(part)
    if position < len(text):
        yield text[position:], len(text) - position


def _take(pieces: Iterable[tuple[str, int]], room: int) -> tuple[str, int]:
    """Return as much of the first pieces as fits, and the number of characters that it represents.

    A piece that is folded fits as a whole or not at all.
    """
    parts: list[str] = []
    represented = 0
    for shown, count in pieces:
        # Half of a notice would say something else, while a part of plain text only says less.
        if len(shown) > room and len(shown) != count:
            break
        parts.append(shown[:room])
        represented += count if len(shown) <= room else room
        room -= len(parts[-1])
        if not room:
            break
    return "".join(parts), represented


def _without_padding(line: str) -> str:
    """Return the part of a line by which lines are alike: of a blank one, only its mark."""
    return line if line[1:].strip() else line[:1]


def _groups(lines: Iterable[str | OmittedLines]) -> Iterator[list[str] | OmittedLines]:
    """Yield lines that are alike and follow one another together, and omitted ones each for itself."""
    for is_omitted, run in groupby(lines, key=lambda line: isinstance(line, OmittedLines)):
        if is_omitted:
            yield from cast("Iterator[OmittedLines]", run)
        else:
            yield from ([*group] for _, group in groupby(cast("Iterator[str]", run), key=_without_padding))


def _show_group(lines: list[str]) -> tuple[list[str], int]:
    """Return the first of some lines that are alike, with a count, and the number of characters that are left out."""
    pairs = [_show_line(line) for line in lines[:_ALIKE]]
    shown = [text for text, _ in pairs]
    if len(lines) > _ALIKE:
        kind = "lines like this one" if _without_padding(lines[0])[1:] else "lines that are blank"
        shown.append(f"({len(lines) - _ALIKE:,} more {kind})")
    return shown, sum(left_out for _, left_out in pairs)


def _show_line(line: str) -> tuple[str, int]:
    """Return a line with its mark and its indentation, and the number of its characters that are left out."""
    match = _MARKED_LINE.fullmatch(line)
    assert match is not None
    view = ApprovalView.of(match[2], MAX_LINE)
    text = match[1] + view.start
    if view.hidden:
        text += f" ({view.hidden:,} characters are left out) {view.end}"
    return escape_invisible(text, "\t"), view.hidden
