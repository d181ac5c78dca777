"""Previews of changes to files and of commands, for the person who has to approve them.

Text of a model cannot reach beyond its place in a preview: characters that hide or reorder text are escapes, each line
of a file is behind `+`, `-` or a space, and what the preview itself says is in brackets at the beginning of a line.
`approval_view.show_lines` counts padding and cuts what is too long. Commands are never cut.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from toolwire.builtin.matching import split_lines
from toolwire.errors import ToolError
from toolwire.policy.approval_view import OmittedLines, show_lines
from toolwire.text.escape import escape_invisible

MAX_COMMAND = 8_000
MAX_WORDS = 500
CONTEXT = 3
"""Lines shown around a change."""
_MAX_RUN = 250_000
"""Maximum number of lines that follow one another and are looked at for a preview; the middle of more is counted."""
_EFFORT = 500_000
"""Maximum number of lines, and of pairs of equal ones, that are compared; the rest counts as changed."""
_SPACES = re.compile(r" {41,}|\t{9,}")

Change = tuple[int, int, int, int]
"""Lines of the old text, from and to, and the lines of the new text that replace them."""


def diff(path: str, old: str | None, new: str) -> str:
    """Return the changes to a file as a unified diff; `old` is None if the file does not exist."""
    before, after = split_lines(old or ""), split_lines(new)
    name = _SPACES.sub(lambda run: f"({len(run[0]):,} {'spaces' if run[0][0] == ' ' else 'tabs'})", path)
    head = [f"--- {name if old is not None else '(no such file)'}", f"+++ {name}"]
    if old == new:
        return show_lines(["(nothing changes)"], head=head)
    return show_lines(_hunks(before, after, _changes(before, after)), head=head)


def command(words: Sequence[str]) -> str:
    """Return the words of a command, each on its own line, quoted as in JSON.

    Raises:
        ToolError: they are too long to be shown whole.
    """
    if sum(map(len, words)) > MAX_COMMAND or len(words) > MAX_WORDS:
        raise ToolError(
            f"a command of more than {MAX_COMMAND:,} characters or {MAX_WORDS} words cannot be shown; "
            "write long text to a file first"
        )
    return "\n".join(f"  {_quoted(word)}" for word in words)


def path_name(path: str) -> str:
    """Return a path for a line of a preview: without hidden characters, and with runs of spaces counted."""
    shown = escape_invisible(path)
    return _SPACES.sub(lambda run: f"({len(run[0]):,} {'spaces' if run[0][0] == ' ' else 'tabs'})", shown)


def _quoted(word: str) -> str:
    """Quote a word, count runs of spaces, and name characters that only look like others."""
    inner = escape_invisible(word.replace("\\", "\\\\").replace('"', '\\"'))
    inner = _SPACES.sub(lambda run: f'" + {len(run.group()):,} spaces + "', inner)
    odd = sorted({c for c in word if not c.isascii() and escape_invisible(c) == c})[:5]
    names = ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, '')}".strip() for c in odd)
    return f'"{inner}"' + (f"  (not ASCII: {names})" if names else "")


def _changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the changes; one large change if a finer comparison would take too long."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = list(old[start : len(old) - end]), list(new[start : len(new) - end])
    changes, i, j = list[Change](), 0, 0
    for a, b, size in [*_shared(before, after), (len(before), len(after), 0)]:
        if i < a or j < b:
            changes.append((start + i, start + a, start + j, start + b))
        i, j = a + size, b + size
    return changes


def _shared(old: list[str], new: list[str]) -> list[tuple[int, int, int]]:
    """Return runs of equal lines, the longest first until the effort is spent: both starts and the length of each.

    Each search goes through all lines between the runs found before, so the number of searches is what costs. Texts
    that share many runs of unequal length in an unusual order need a search over almost all lines for each of them.
    """
    if not old or not new or len(old) > _EFFORT:
        return []
    counts = Counter(new)
    costs = list(accumulate((1 + counts[line] for line in old), initial=0))
    if costs[-1] > _EFFORT:
        return []  # without the index of the lines, which costs more than the comparison
    matcher = difflib.SequenceMatcher(None, old, new)
    runs, todo, left = list[tuple[int, int, int]](), [(0, len(old), 0, len(new))], _EFFORT
    while todo:
        a, a_end, b, b_end = todo.pop()
        cost = costs[a_end] - costs[a]
        if a == a_end or b == b_end or cost > left:
            continue
        left -= cost
        i, j, size = matcher.find_longest_match(a, a_end, b, b_end)
        if size:
            runs.append((i, j, size))
            todo += [(a, i, b, j), (i + size, a_end, j + size, b_end)]
    return sorted(runs)


def _hunks(old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> Iterator[str | OmittedLines]:
    near: list[Change] = []
    for change in changes:
        if near and change[0] - near[-1][1] > 2 * CONTEXT:
            yield from _hunk(old, new, near)
            near = []
        near.append(change)
    if near:
        yield from _hunk(old, new, near)


def _hunk(old: Sequence[str], new: Sequence[str], changes: Sequence[Change]) -> Iterator[str | OmittedLines]:
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


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str | OmittedLines]:
    if len(lines) > _MAX_RUN:
        half = _MAX_RUN // 2
        middle = lines[half:-half]
        yield from _marked(mark, lines[:half])
        # Each has a mark, and ends with a line end as it does in the file.
        yield OmittedLines(len(middle), sum(map(len, middle)) + len(middle))
        yield from _marked(mark, lines[-half:])
        return
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "(no newline at the end)"
