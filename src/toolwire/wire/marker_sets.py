"""Sets of literal markers: which one comes next, where is the next one, and may more text change the answer.

Markers are compiled into one trie-shaped regular expression, in which every proper prefix also matches at the end of
the text: so one search finds the first marker or the partial one that has to be held back, whichever is earlier, and
the longest marker wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

_Trie = dict[str, "_Trie"]
_END = ""


def _trie(literals: Iterable[str]) -> _Trie:
    root: _Trie = {}
    for literal in literals:
        node = root
        for character in literal:
            node = node.setdefault(character, {})
        node[_END] = {}
    return root


def _pattern(node: _Trie, *, partial: bool, root: bool = True) -> str:
    branches = [re.escape(c) + _pattern(child, partial=partial, root=False) for c, child in node.items() if c != _END]
    if partial and branches and not root:
        branches.append(r"\Z")
    if _END in node:
        branches.append("")
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


class MarkerSet:
    """A compiled set of markers.

    Attributes:
        longest: length of the longest marker, in code points.
        spelled: the markers as they are written, by their form for comparison.
    """

    __slots__ = ("_final_re", "_first", "_fold", "_lead", "_open_re", "_prefixes", "longest", "spelled")

    def __init__(self, literals: frozenset[str], *, nocase: bool = False) -> None:
        self._fold = nocase
        self.spelled = {self._key(literal): literal for literal in literals}
        self.longest = max(map(len, literals), default=0)
        starts = {key[0] for key in self.spelled}
        lead = starts.pop() if len(starts) == 1 else ""
        self._lead = "" if nocase and lead.isalpha() else lead
        self._prefixes = frozenset(key[:n] for key in self.spelled for n in range(1, len(key)))
        self._open_re: re.Pattern[str] | None = None
        self._final_re: re.Pattern[str] | None = None
        self._first: Callable[[str], Any] | None = None

    # Most sets of a format are never needed by a given text, so nothing is compiled before it is.

    def _compile(self, *, partial: bool) -> re.Pattern[str]:
        flags = (re.IGNORECASE | re.ASCII) if self._fold else 0
        pattern = _pattern(_trie(sorted(self.spelled)), partial=partial) if self.spelled else r"(?!)"
        return re.compile(pattern, flags)

    def _regex(self, final: bool) -> re.Pattern[str]:
        if final:
            if self._final_re is None:
                self._final_re = self._compile(partial=False)
            return self._final_re
        if self._open_re is None:
            self._open_re = self._compile(partial=True)
        return self._open_re

    @property
    def first(self) -> Callable[[str], Any]:
        """A search for a character that could begin a marker."""
        if self._first is None:
            starts = {c for key in self.spelled for c in (key[0], key[0].upper() if self._fold else key[0])}
            self._first = re.compile("[" + "".join(map(re.escape, sorted(starts))) + "]" if starts else r"(?!)").search
        return self._first

    def _key(self, text: str) -> str:
        return text.lower() if self._fold else text

    def search(self, text: str, pos: int, final: bool) -> tuple[int, int, str]:
        """The next marker from `pos`: its start, end and spelling.

        Returns:
            `(len(text), len(text), "")` if there is none; `(start, start, "")` if the text from `start` on may
            become one and has to wait.
        """
        if self._lead:  # jump to the one character that all markers begin with
            pos = text.find(self._lead, pos)
            if pos < 0:
                return len(text), len(text), ""
        match = self._regex(final).search(text, pos)
        if match is None:
            return len(text), len(text), ""
        found = self._key(match[0])
        if not final and match.end() == len(text) and found in self._prefixes:
            return match.start(), match.start(), ""
        return match.start(), match.end(), self.spelled[found]

    def match(self, text: str, pos: int, final: bool) -> tuple[str, bool]:
        """The marker that stands at `pos`, and whether more text is needed to tell."""
        match = self._regex(final).match(text, pos)
        if match is None:
            return "", False
        found = self._key(match[0])
        if not final and match.end() == len(text) and found in self._prefixes:
            return "", True
        return self.spelled.get(found, ""), False

    def begins(self, text: str) -> bool:
        """Whether `text` is a proper prefix of a marker."""
        return self._key(text) in self._prefixes


@lru_cache(maxsize=4096)
def marker_set(markers: frozenset[str], nocase: bool = False) -> MarkerSet:
    """The compiled set, made once; the empty marker, which stands for plain text, is left out."""
    return MarkerSet(markers - {""}, nocase=nocase)


CONTAINER = marker_set(frozenset({"{", "["}))
"""What a JSON object or array begins with."""
