"""Sets of markers: which one comes next, where is the next one, and may more text change the answer.

For a search, markers are compiled into one trie-shaped regular expression, in which every proper prefix also matches at
the end of the text. So one search finds the first marker, or the partial one that has to be held back, whichever is
earlier. At a known place, markers are looked up by their lengths. The longest marker wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from typing import Any

_Trie = dict[str, "_Trie"]
_END = ""
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
"""Case is ignored in ASCII alone, where each letter has one other form."""


def _trie(markers: Iterable[str]) -> _Trie:
    root: _Trie = {}
    for marker in markers:
        node = root
        for character in marker:
            node = node.setdefault(character, {})
        node[_END] = {}
    return root


def _pattern(node: _Trie, *, partial: bool, root: bool = True) -> str:
    branches = [re.escape(c) + _pattern(child, partial=partial, root=False) for c, child in node.items() if c != _END]
    # The root is excluded, because the empty prefix would match at the end of every text.
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

    __slots__ = (
        "_final_re", "_lead", "_nocase", "_open_re", "_prefixes", "_sizes", "longest", "spelled",
    )  # fmt: skip

    def __init__(self, markers: frozenset[str], *, nocase: bool = False) -> None:
        self._nocase = nocase
        self.spelled = {self._key(marker): marker for marker in markers}
        self.longest = max(map(len, markers), default=0)
        starts = {key[0] for key in self.spelled}
        lead = starts.pop() if len(starts) == 1 else ""
        # A letter has two spellings where case is ignored, and `find` searches for one.
        self._lead = "" if nocase and lead.isalpha() else lead
        self._prefixes = frozenset(key[:n] for key in self.spelled for n in range(1, len(key)))
        # By the character that a marker begins with, in each spelling: the lengths of these markers, longest first.
        self._sizes: dict[str, list[int]] = {}
        for key in sorted(self.spelled, key=len, reverse=True):
            for start in {key[0], key[0].upper() if nocase else key[0]}:
                sizes = self._sizes.setdefault(start, [])
                if len(key) not in sizes:
                    sizes.append(len(key))
        self._open_re: re.Pattern[str] | None = None
        self._final_re: re.Pattern[str] | None = None

    # Most sets of a format are never used by a given text, so each is compiled when it is first used.

    def _compile(self, *, partial: bool) -> re.Pattern[str]:
        markers = _trie(sorted(self.spelled))
        if self._nocase:
            # Both spellings of the first letters are written out: only then does `re` skip, in one quick search, the
            # characters with which no marker begins.
            branches = [
                f"{re.escape(start)}(?i:{_pattern(markers[first], partial=partial, root=False)})"
                for first in markers
                for start in sorted({first, first.upper() if first.isascii() else first})
            ]
            pattern = "|".join(branches)
        else:
            pattern = _pattern(markers, partial=partial)
        return re.compile(pattern if self.spelled else r"(?!)", re.ASCII)

    def _regex(self, final: bool) -> re.Pattern[str]:
        if final:
            if self._final_re is None:
                self._final_re = self._compile(partial=False)
            return self._final_re
        if self._open_re is None:
            self._open_re = self._compile(partial=True)
        return self._open_re

    @property
    def find_any(self) -> Callable[[str], Any]:
        """Search for a marker, or for the beginning of one at the end of the text."""
        return self._regex(final=False).search

    def _key(self, text: str) -> str:
        return text.translate(_LOWER) if self._nocase else text

    def search(self, text: str, pos: int, final: bool) -> tuple[int, int, str]:
        """Return start, end and spelling of the next marker from `pos`.

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
        key = self._key(match[0])
        # A whole marker that begins a longer one has to wait too, because the longest wins.
        if not final and match.end() == len(text) and key in self._prefixes:
            return match.start(), match.start(), ""
        return match.start(), match.end(), self.spelled[key]

    def match(self, text: str, pos: int, final: bool) -> tuple[str, bool]:
        """Return the marker at `pos`, and whether more text is needed to decide."""
        sizes = self._sizes.get(text[pos : pos + 1])
        if sizes is None:
            return "", False
        if not final and len(text) - pos < self.longest and self._key(text[pos:]) in self._prefixes:
            return "", True
        for size in sizes:  # the longest wins
            key = text[pos : pos + size]
            if (marker := self.spelled.get(self._key(key) if self._nocase else key)) is not None:
                return marker, False
        return "", False

    def is_prefix(self, text: str) -> bool:
        """Return whether `text` is a proper prefix of a marker."""
        return self._key(text) in self._prefixes


@lru_cache(maxsize=4096)
def marker_set(markers: frozenset[str], nocase: bool = False) -> MarkerSet:
    """Return the compiled set, made once, without the empty marker (a placeholder for plain text)."""
    return MarkerSet(markers - {""}, nocase=nocase)


CONTAINER = marker_set(frozenset({"{", "["}))
"""Openers of a JSON object or array."""
