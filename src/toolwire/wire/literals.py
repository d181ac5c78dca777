"""Sets of literal markers: which one comes next, where is the next one, and may more text change the answer.

Markers are compiled into one trie-shaped regular expression, in which every proper prefix also matches at the end of
the text: so one search finds the first marker or the partial one that has to be held back, whichever is earlier, and
the longest marker wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

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


class Literals:
    """A compiled set of markers.

    Attributes:
        longest: length of the longest marker, in code points.
        first: search for a character that could begin a marker.
    """

    __slots__ = ("_final", "_fold", "_open", "_prefixes", "first", "longest", "spelled")

    def __init__(self, literals: frozenset[str], *, nocase: bool = False) -> None:
        self._fold = nocase
        self.spelled = {self._key(literal): literal for literal in literals}
        self.longest = max(map(len, literals), default=0)
        flags = (re.IGNORECASE | re.ASCII) if nocase else 0
        trie = _trie(sorted(self.spelled))
        nothing = r"(?!)"
        self._open = re.compile(_pattern(trie, partial=True) if literals else nothing, flags)
        self._final = re.compile(_pattern(trie, partial=False) if literals else nothing, flags)
        self._prefixes = frozenset(key[:n] for key in self.spelled for n in range(1, len(key)))
        starts = {c for key in self.spelled for c in (key[0], key[0].upper() if nocase else key[0])}
        self.first = re.compile("[" + "".join(map(re.escape, sorted(starts))) + "]" if starts else nothing).search

    def _key(self, text: str) -> str:
        return text.lower() if self._fold else text

    def search(self, text: str, pos: int, final: bool) -> tuple[int, int, str]:
        """The next marker from `pos`: its start, end and spelling.

        Returns:
            `(len(text), len(text), "")` if there is none; `(start, start, "")` if the text from `start` on may
            become one and has to wait.
        """
        match = (self._final if final else self._open).search(text, pos)
        if match is None:
            return len(text), len(text), ""
        found = self._key(match[0])
        if not final and match.end() == len(text) and found in self._prefixes:
            return match.start(), match.start(), ""
        return match.start(), match.end(), self.spelled[found]

    def match(self, text: str, pos: int, final: bool) -> tuple[str, bool]:
        """The marker that stands at `pos`, and whether more text is needed to tell."""
        match = (self._final if final else self._open).match(text, pos)
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
def literals(markers: frozenset[str], nocase: bool = False) -> Literals:
    """The compiled set, made once; the empty marker, which stands for plain text, is left out."""
    return Literals(markers - {""}, nocase=nocase)
