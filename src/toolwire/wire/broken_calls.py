"""The rest of a broken call whose arguments are written as JSON or Python, up to where its own text ends."""

from __future__ import annotations

from toolwire.wire.leaf_scanners import Leaf
from toolwire.wire.marker_sets import MarkerSet, marker_set

_OPENING, _CLOSING = frozenset("{[("), frozenset("}])")
_QUOTES = frozenset({'"', "'", '"""', "'''"})
_BEFORE_STRING = frozenset("{[(,:=")
"""Characters before a string; behind any other character a quote is an apostrophe, or closes a damaged string."""


class RestOfBrokenCall(Leaf):
    """Text up to the bracket that closes the outermost one of a call, or to a marker of its format outside strings.

    A call that a string quotes is no call, also where the call around it is broken: the string was its argument.

    Args:
        before: the text of the call up to the error.
        markers: markers that begin a call or end this one; they stay unread.
    """

    __slots__ = ("_depth", "_escaped", "_last", "_markers", "_outside", "_quote")

    def __init__(self, before: str, markers: frozenset[str]) -> None:
        super().__init__()
        self._depth = 0
        self._quote = ""  # of the string that is open
        self._escaped = False  # the next character of the string follows a backslash
        self._last = ""  # the last character outside strings
        self._markers: frozenset[str] = frozenset()  # in the text before the error they meant something else
        self._outside = marker_set(_OPENING | _CLOSING | _QUOTES)
        self._read(before, 0, True)
        self.done = False
        self._markers = markers - _OPENING - _CLOSING - _QUOTES
        self._outside = marker_set(_OPENING | _CLOSING | _QUOTES | self._markers)

    @property
    def is_inside(self) -> bool:
        """True if the error is between brackets, so that a part of the call may follow it."""
        return self._depth > 0

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to the end of the call's text."""
        pos = self._read(text, pos, final)
        self.done = self.done or (final and pos == len(text))
        return pos

    def _read(self, text: str, pos: int, final: bool) -> int:
        while pos < len(text) and not self.done:
            if self._escaped:
                self._escaped = False
                pos += 1
                continue
            markers = self._inside() if self._quote else self._outside
            start, stop, marker = markers.search(text, pos, final)
            if not self._quote:
                self._last = text[pos:start].rstrip()[-1:] or self._last
            if not marker:
                if start < len(text):
                    self.waiting = markers
                return start
            if marker in self._markers and not self._quote:
                self.done = True
                return start
            self._take(marker)
            pos = stop
        return pos

    def _inside(self) -> MarkerSet:
        return marker_set(frozenset({self._quote, "\\"}))

    def _take(self, marker: str) -> None:
        if marker == "\\":
            self._escaped = True
        elif self._quote:
            self._quote, self._last = "", marker[-1]
        elif marker in _QUOTES:
            is_string = self._depth > 0 and self._last in _BEFORE_STRING
            self._quote, self._last = marker if is_string else "", marker[-1]
        else:
            self._depth += 1 if marker in _OPENING else -1
            self._last = marker
            self.done = self._depth == 0 and marker in _CLOSING and bool(self._markers)
