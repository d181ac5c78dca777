"""What somebody sees before agreeing: all of it, or, said in its first line, how much of it is not there.

Text of a model cannot reach beyond its place in a preview: every control character, and whatever else hides or
reorders text, is written as an escape; each line of a file stands behind `+`, `-` or a space, and what the preview
itself says stands in brackets at the beginning of a line. What only takes room is counted instead of shown: equal
lines that follow one another, and long runs of spaces. So padding pushes nothing out of sight. Text that is still too
long is cut in the middle of its longest lines first, then in the middle of the whole. Commands are never cut.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from toolwire.display import visible
from toolwire.errors import ToolError

MAX_SHOWN_LINES = 1_000
MAX_SHOWN_LINE = 1_000
MAX_SHOWN = 60_000
"""Characters."""
MAX_COMMAND = 8_000
MAX_WORDS = 500
CONTEXT = 3
"""Lines shown around a change."""
_REPEATED = 3
_EFFORT = 200_000
"""Pairs of equal lines up to which two texts are compared line by line."""
_SPACES = re.compile(r" {41,}|\t{9,}")

Change = tuple[int, int, int, int]
"""Lines of the old text, from and to, and those of the new one that take their place."""


def diff(path: str, old: str | None, new: str) -> str:
    """What writing a file changes, as a unified diff; `old` is None for a file that is not there."""
    before, after = _lines(old or ""), _lines(new)
    head = [f"--- {path if old is not None else '(no such file)'}", f"+++ {path}"]
    if old == new:
        return bounded(["(nothing changes)"], head=head)
    return bounded(_hunks(before, after, _changes(before, after)), head=head)


def bounded(lines: Iterable[str], *, head: Iterable[str] = ()) -> str:
    """Lines for a person: made visible, with what only takes room counted; the first line says if more is missing.

    The lines of the head are never cut.
    """
    shown, hidden = list[str](), 0
    for alike, group in groupby(lines, key=_alike):
        times = 0
        for line in group:
            times += 1
            if times <= _REPEATED:
                text, left_out = _line(line)
                shown.append(text)
                hidden += left_out
        if times > _REPEATED:
            kind = "lines like this one" if alike[1:] else "lines that are blank"
            shown.append(f"({times - _REPEATED:,} more {kind})")
    shown, cut = _middle_out(shown)
    notice = [f"(NOT ALL OF THIS IS SHOWN: {hidden + cut:,} characters are left out)"] if hidden + cut else []
    return "\n".join([*notice, *map(_readable, head), *shown])


def command(words: Sequence[str]) -> str:
    """The words of a command, each on a line of its own, as JSON writes them.

    Raises:
        ToolError: they are too long to be shown whole.
    """
    if sum(map(len, words)) > MAX_COMMAND or len(words) > MAX_WORDS:
        raise ToolError(
            f"a command of more than {MAX_COMMAND:,} characters or {MAX_WORDS} words cannot be shown; "
            "write what is long to a file first"
        )
    return "\n".join(f"  {_quoted(word)}" for word in words)


def _alike(line: str) -> str:
    """What lines have in common that are counted together; blank ones only their mark."""
    return line if line[1:].strip() else line[:1]


def _quoted(word: str) -> str:
    """A word in quotes; runs of spaces are counted, and characters that only look like others are named."""
    inner = visible(word.replace("\\", "\\\\").replace('"', '\\"'))
    inner = _SPACES.sub(lambda run: f'" + {len(run.group()):,} spaces + "', inner)
    odd = sorted({c for c in word if not c.isascii() and visible(c) == c})[:5]
    names = ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, '')}".strip() for c in odd)
    return f'"{inner}"' + (f"  (not ASCII: {names})" if names else "")


def _readable(line: str) -> str:
    """A line made visible, but for its tabs; long runs of them and of spaces are counted."""
    text = "\t".join(map(visible, line.split("\t")))
    return _SPACES.sub(lambda run: f"({len(run.group()):,} {'tabs' if run.group()[0] == chr(9) else 'spaces'})", text)


def _line(line: str) -> tuple[str, int]:
    text = _readable(line)
    if len(text) <= MAX_SHOWN_LINE:
        return text, 0
    half = MAX_SHOWN_LINE // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]} ({left_out:,} characters are left out) {text[-half:]}", left_out


def _middle_out(lines: list[str]) -> tuple[list[str], int]:
    """The first and the last lines, as many as may be shown, and how many characters stand between them."""
    head, tail = list[str](), list[str]()
    room, count = MAX_SHOWN, MAX_SHOWN_LINES
    first, last = 0, len(lines)
    while first < last:
        at = first if len(head) <= len(tail) else last - 1
        room, count = room - len(lines[at]) - 1, count - 1
        if room < 0 or count < 0:
            break
        if at == first and len(head) <= len(tail):
            head.append(lines[at])
            first += 1
        else:
            tail.append(lines[at])
            last -= 1
    between = lines[first:last]
    if not between:
        return lines, 0
    cut = sum(len(line) + 1 for line in between)
    return [*head, f"({len(between):,} lines are left out here)", *reversed(tail)], cut


def _lines(text: str) -> list[str]:
    """Lines with their ends; carriage returns make none: they are characters that are shown."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """What has changed; as one change, where finding out more would take long."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    counts = Counter(after)
    if sum(counts[line] for line in before) > _EFFORT:
        return [(start, len(old) - end, start, len(new) - end)]
    codes = difflib.SequenceMatcher(None, before, after).get_opcodes()
    return [(start + a, start + b, start + c, start + d) for tag, a, b, c, d in codes if tag != "equal"]


def _hunks(old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> Iterator[str]:
    near: list[Change] = []
    for change in changes:
        if near and change[0] - near[-1][1] > 2 * CONTEXT:
            yield from _hunk(old, new, near)
            near = []
        near.append(change)
    if near:
        yield from _hunk(old, new, near)


def _hunk(old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> Iterator[str]:
    first, last = changes[0], changes[-1]
    before = min(CONTEXT, first[0])
    after = min(CONTEXT, len(old) - last[1])
    a, b = first[0] - before, last[1] + after
    c, d = first[2] - before, last[3] + after
    yield f"@@ -{a + (b > a)},{b - a} +{c + (d > c)},{d - c} @@"
    at = a
    for start, end, new_start, new_end in changes:
        yield from _marked(" ", old[at:start])
        yield from _marked("-", old[start:end])
        yield from _marked("+", new[new_start:new_end])
        at = end
    yield from _marked(" ", old[at:b])


def _marked(mark: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "(no newline at the end)"
