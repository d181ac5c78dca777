"""Find where search/replace edits fit in a text, by rules that must each fit in exactly one place.

The rules are tried in this order:

1. The search text is in the file exactly.
2. It is, once its line ends are the file's. The replacement gets these line ends too.
3. Its lines are, apart from white space at their ends.
4. Its lines are, all of them indented by the same white space more or less. The replacement is indented likewise.

If a rule fits in several places the edit fails: which one was meant is not guessed. Rules 3 and 4 replace whole lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from time import thread_time
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from toolwire.errors import ToolError
from toolwire.text.escape import escape_invisible
from toolwire.text.suggest import closest

MAX_TOLD = 3
"""Maximum number of failed edits that one error describes."""
MAX_EDITS = 1_000
MAX_PLACES = 5
"""Maximum number of places that an error lists."""
MAX_PAIRS = 500_000
"""Pairs of lines whose indentation is compared, for all edits together."""
MAX_COMPARED = 5_000
"""Maximum number of lines that are compared to find the nearest one."""
MAX_COMPARED_RUNS = 50
"""Maximum number of places of a line at which several lines are compared one by one."""
MAX_SHOWN_LINE = 100
AROUND = 2
"""Lines shown before and after the nearest one."""


class Edit(TypedDict):
    """Text of a file, and its replacement."""

    search: Annotated[
        str, Field(description="Text that is in the file exactly once; whole lines, with enough of them to be unique.")
    ]
    replace: Annotated[str, Field(description="What it becomes.")]


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of an edit, its replacement, and a description of the rule if it is not the first."""

    start: int
    end: int
    text: str
    rule: str = ""


class _Misfit(Exception):
    """An edit fits nowhere, or in several places."""


def applied(path: str, text: str, edits: Sequence[Edit], *, seconds: float | None = None) -> tuple[str, list[str]]:
    """Return the text with all edits applied, and notes on those that did not fit exactly.

    Args:
        path: name of the file, for errors.
        text: its text.
        edits: what to replace, and by what.
        seconds: maximum processor time for the search, in seconds; None for no maximum.

    Raises:
        ToolError: an edit does not fit in exactly one place, changes nothing, or overlaps another.
    """
    if not edits:
        raise ToolError("there is no edit")
    if len(edits) > MAX_EDITS:
        raise ToolError(f"there are {len(edits):,} edits; at most {MAX_EDITS:,} can be made at once")
    places: list[_Place] = []
    wrong: list[str] = []
    lines = _Lines(text)
    began = thread_time()
    untried = 0
    for number, edit in enumerate(edits, 1):
        if seconds is not None and thread_time() - began > seconds:
            raise ToolError(
                f"{path} was not changed: {len(edits):,} edits of {len(text):,} characters take too long; make fewer"
            )
        try:
            places.append(_place(lines, edit["search"], edit["replace"]))
        except _Misfit as misfit:
            wrong.append(f"edit {number} {misfit}" if len(edits) > 1 else f"the edit {misfit}")
        # Edits that fit nowhere cost the most, and the model has enough to correct by now.
        if len(wrong) == MAX_TOLD:
            untried = len(edits) - number
            break
    if wrong:
        more = f"\n({untried} more were not tried)" if untried else ""
        raise ToolError(f"{path} was not changed: " + "\n".join(wrong) + more)
    # Edits are found in the original text, so they are applied from its beginning to its end.
    order = sorted(range(len(places)), key=lambda at: (places[at].start, places[at].end))
    pieces, end = list[str](), 0
    for at in order:
        place = places[at]
        if place.start < end:
            raise ToolError(f"{path} was not changed: edit {at + 1} overlaps another; combine them into one edit")
        pieces += [text[end : place.start], place.text]
        end = place.end
    notes = [f"edit {at + 1} fits {place.rule}" for at, place in enumerate(places) if place.rule]
    return "".join([*pieces, text[end:]]), notes


class _Lines:
    """A text, its lines and their positions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = split_lines(text)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
        self.pairs = MAX_PAIRS

    @cached_property
    def trimmed(self) -> _LineIndex:
        """The lines without white space at their ends."""
        return _LineIndex([line.rstrip() for line in self.lines])

    @cached_property
    def stripped(self) -> _LineIndex:
        """The lines without white space around them."""
        return _LineIndex([line.strip() for line in self.lines])

    @cached_property
    def known(self) -> dict[str, int]:
        """The first position of each line that is compared to find the nearest one."""
        some = list(enumerate(self.lines[:MAX_COMPARED]))
        return {line.strip()[:MAX_SHOWN_LINE]: at for at, line in reversed(some)}

    def number(self, position: int) -> int:
        """Return the number of the line at a position, from 1."""
        return self.text.count("\n", 0, position) + 1


class _LineIndex:
    """Lines, and where each of them is."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._places: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            self._places.setdefault(line, []).append(number)

    @cached_property
    def _text(self) -> str:
        return _between_newlines(self._lines)

    def runs(self, wanted: list[str]) -> Iterator[int]:
        """Yield the numbers of the lines, from 0, at which some lines begin."""
        places, at = min(((self._places.get(line, []), at) for at, line in enumerate(wanted)), key=_count)
        if len(places) > MAX_COMPARED_RUNS:
            yield from self._search(wanted)
            return
        for place in places:
            begin = place - at
            if begin >= 0 and self._lines[begin : begin + len(wanted)] == wanted:
                yield begin

    def _search(self, wanted: list[str]) -> Iterator[int]:
        # Comparing at every place of a frequent line could take quadratic time; a search for text is linear.
        text, search = self._text, _between_newlines(wanted)
        position, number, counted = text.find(search), 0, 0
        while position >= 0:
            number += text.count("\n", counted, position)
            yield number
            counted = position
            position = text.find(search, position + 1)


def _count(candidate: tuple[list[int], int]) -> int:
    return len(candidate[0])


def _between_newlines(lines: Iterable[str]) -> str:
    return "\n" + "\n".join(lines) + "\n"


def split_lines(text: str) -> list[str]:
    """Split text into lines with their line breaks; a carriage return does not end a line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _place(lines: _Lines, search: str, replace: str) -> _Place:
    """Return where an edit fits."""
    if not search:
        raise _Misfit("has no search text; write_file creates files")
    if search == replace:
        raise _Misfit("changes nothing: its search text and its replacement are equal")
    if lines.windows:
        replace = replace.replace("\r\n", "\n").replace("\n", "\r\n")
    if (position := _exactly(lines, search)) is not None:
        return _Place(position, position + len(search), replace)
    if "\n" in search and lines.windows:
        ended = search.replace("\r\n", "\n").replace("\n", "\r\n")
        if (position := _exactly(lines, ended)) is not None:
            return _Place(position, position + len(ended), replace)
    search_lines = split_lines(search)
    if any(line.strip() for line in search_lines):
        for place in (_trimmed(lines, search_lines, replace), _shifted(lines, search_lines, replace)):
            if place is not None:
                return place
    raise _Misfit(_nowhere(lines, search_lines, replace))


def _exactly(lines: _Lines, search: str) -> int | None:
    """Apply rule 1: return the one position of the text, or None."""
    position = lines.text.find(search)
    if position < 0:
        return None
    again = lines.text.find(search, position + 1)  # places that overlap are several places too
    if again >= 0:
        positions = [position, again]
        while len(positions) < MAX_PLACES and (again := lines.text.find(search, again + 1)) >= 0:
            positions.append(again)
        raise _Misfit(_several([lines.number(at) for at in positions], more=again >= 0))
    return position


def _trimmed(lines: _Lines, wanted: list[str], replace: str) -> _Place | None:
    """Apply rule 3."""
    starts = list(islice(lines.trimmed.runs([line.rstrip() for line in wanted]), MAX_PLACES + 1))
    if not starts:
        return None
    if len(starts) > 1:
        raise _Misfit(_several([at + 1 for at in starts[:MAX_PLACES]], more=len(starts) > MAX_PLACES))
    return _whole(lines, starts[0], wanted, replace, "apart from white space at the ends of lines")


def _shifted(lines: _Lines, wanted: list[str], replace: str) -> _Place | None:
    """Apply rule 4."""
    fits: list[tuple[int, str, bool]] = []
    for at in lines.stripped.runs([line.strip() for line in wanted]):
        lines.pairs -= len(wanted)
        if lines.pairs < 0:
            raise _Misfit("could be in too many places, none of them exact; copy its text exactly")
        pairs = [
            (_indent(file_line), _indent(line))
            for file_line, line in zip(lines.lines[at : at + len(wanted)], wanted, strict=True)
            if line.strip()
        ]
        file_indent, line = pairs[0]
        if file_indent.endswith(line) and all(a == file_indent.removesuffix(line) + b for a, b in pairs):
            fits.append((at, file_indent.removesuffix(line), True))
        elif line.endswith(file_indent) and all(b == line.removesuffix(file_indent) + a for a, b in pairs):
            fits.append((at, line.removesuffix(file_indent), False))
        if len(fits) > MAX_PLACES:
            break
    if not fits:
        return None
    if len(fits) > 1:
        raise _Misfit(_several([at + 1 for at, _, _ in fits[:MAX_PLACES]], more=len(fits) > MAX_PLACES))
    at, shift, deeper = fits[0]
    shown = escape_invisible(shift)
    if deeper:
        moved = [shift + line if line.strip() else line for line in split_lines(replace)]
        return _whole(lines, at, wanted, "".join(moved), f'with its lines indented by "{shown}" more')
    if not all(line.startswith(shift) or not line.strip() for line in split_lines(replace)):
        raise _Misfit(f'is at line {at + 1} indented by "{shown}" less, and its replacement does not begin with that')
    moved = [line.removeprefix(shift) if line.strip() else line for line in split_lines(replace)]
    return _whole(lines, at, wanted, "".join(moved), f'with its lines indented by "{shown}" less')


def _whole(lines: _Lines, at: int, wanted: list[str], replace: str, rule: str) -> _Place:
    """Replace whole lines, including the last line break only if the search text ends with one."""
    end = lines.starts[at + len(wanted)]
    last = lines.lines[at + len(wanted) - 1]
    if not wanted[-1].endswith("\n"):
        end -= len(last) - len(last.rstrip("\r\n"))
    return _Place(lines.starts[at], end, replace, rule)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _several(numbers: list[int], *, more: bool) -> str:
    places = ", ".join(map(str, dict.fromkeys(numbers))) + (" and more" if more else "")
    return f"fits in several places (lines {places}); add the lines around the one you mean"


def _nowhere(lines: _Lines, wanted: list[str], replace: str) -> str:
    """Return an error that shows the lines nearest to the search text."""
    message = "fits nowhere"
    if len(replace.strip()) > 1 and replace in lines.text:
        message += " (its replacement is in the file already)"
    telling = max((line.strip() for line in wanted), key=len, default="")[:MAX_SHOWN_LINE]
    near = closest(telling, lines.known) if telling else []
    if not near:
        return f"{message}, and nothing in the file is like it; read the file again"
    at = lines.known[near[0]]
    shown = [
        f"{number + 1}: {escape_invisible(lines.lines[number].rstrip())[:MAX_SHOWN_LINE]}"
        for number in range(max(0, at - AROUND), min(len(lines.lines), at + AROUND + 1))
    ]
    return "\n".join([f"{message}; the nearest lines are", *shown])
