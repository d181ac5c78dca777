"""Text outside blocks that shows calls and makes none: code fences, block quotes, results, values of damaged calls.

If the markup of a call is damaged, its text is content, and a call that one of its values quotes would run. So the
values still count as values where their own markup shows them: a CDATA section, a parameter between its tags, a
string of a JSON object or of a call in Python. The same is true of a tool's result that a model makes up.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping

from toolwire.wire.marker_sets import MarkerSet
from toolwire.wire.text_buffer import TextBuffer

BLOCK_QUOTE = ">"
"""The sign before each line of a block quote of Markdown."""
MAX_INDENT = 12
"""Maximum number of blanks before that sign, and before a code fence, which an item of a list indents."""
LINE_BEGINS = re.compile(rf"\n([ \t]{{0,{MAX_INDENT}}}(?:(?:[-+*]|\d{{1,9}}[.)])[ \t]{{1,{MAX_INDENT}}}){{0,3}})\Z")
"""The end of a line, and blanks and markers of items of lists behind it, in the text before that sign or fence."""
MAY_BEGIN_LINE = frozenset(" \t-+*.)0123456789")
"""Characters of such blanks and markers."""
LONGEST_BEGINNING = 80
"""Number of characters that decide whether a line begins; the longest beginning is shorter."""
_CLOSER_INDENT = 3
"""Number of columns by which the closing run of a fence may be indented further than the opening one."""
BRACKETS = frozenset("{(")
"""Openers of an object of JSON, and of the arguments of a call in Python."""
_BLANK = re.compile(r"\s*")
_RUN = {"`": re.compile("`*"), "~": re.compile("~*")}
_INDENT = re.compile(r"[ \t]*")
_MAY_CLOSE = {character: re.compile(rf"\n[ \t]*(?=[{character}]|\Z)") for character in _RUN}
"""The end of a line and the indentation behind it, before a run that may close a fence or at the end of the text."""
_INFO_STOP = {"`": re.compile(r"[`\n]"), "~": re.compile(r"\n")}
_BEGINNING = "".join(MAY_BEGIN_LINE)
_BEFORE_SHOWN = frozenset(" \t`\"'(*")
"""Characters before a tag that prose mentions."""
_BEFORE_LINE = frozenset("\n>|]:▷")
"""The end of a line, and the last characters of markers."""
_BEHIND_TAG = frozenset("\n\r<{[")
"""Characters behind a tag that is more than mentioned."""


class Quotation(ABC):
    """Text that is content whatever it contains.

    Attributes:
        over: the text behind `read` is not part of it.
        waiting: the markers of which the text that was not read may be a part; None if all was read.
    """

    __slots__ = ("_hidden", "over", "waiting")

    def __init__(self) -> None:
        self.over = False
        self.waiting: MarkerSet | None = None
        self._hidden = TextBuffer()

    @abstractmethod
    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from a position; return the position after what was read."""

    def unclosed(self) -> str:
        """Return the text that was read up to the end of the message, which should have gone on; "" if it is whole."""
        return "" if self.over else self._hidden.take()


# Places in a code fence: the opening run, its info string, the body, a line start of the body, behind a run that may
# close it, in code that turned out to be written on one line.
_OPENING, _INFO, _BODY, _LINE, _TAIL, _INLINE = range(6)


class CodeFence(Quotation):
    """Three or more backticks or tildes at a line start, up to a line of at least as many.

    Args:
        character: the backtick or tilde.
        indent: the blanks before it in its line, and the marker of an item whose text begins with the fence.
    """

    __slots__ = ("_character", "_count", "_indent", "_most", "_place", "_run")

    def __init__(self, character: str, indent: str = "") -> None:
        super().__init__()
        self._place = _OPENING
        self._character = character
        self._count = self._run = self._indent = 0
        self._most = _width(indent) + _CLOSER_INDENT

    def read(self, text: str, pos: int, final: bool) -> int:
        """See the base class."""
        stop, end = pos, len(text)
        while stop < end and not self.over:
            stop = self._step(text, stop, end)
        self._hidden.add(text[pos:stop])
        return stop

    def _step(self, text: str, pos: int, end: int) -> int:
        """Take one step; return the position after it."""
        c = self._character
        if self._place == _LINE and not self._run:
            indent = _INDENT.match(text, pos)
            behind = indent.end() if indent else pos
            self._indent += _width(text[pos:behind])
            if behind == end:
                return end
            if self._indent > self._most:
                self._place = _BODY
                return behind
            pos = behind
        if self._place in (_OPENING, _LINE):
            match = _RUN[c].match(text, pos)
            stop = match.end() if match else pos
            self._run += stop - pos
            if stop < end:  # else the run may continue in the next piece
                if self._place == _OPENING:
                    self._place, self._count = _INFO, self._run
                else:
                    self._place = _TAIL if self._run >= self._count else _BODY
            return stop
        if self._place == _BODY:
            return self._body(text, pos, end)
        if self._place == _INFO:  # the rest of the opening line
            stop_match = _INFO_STOP[c].search(text, pos)
            if stop_match is None:
                return end
            if stop_match[0] == "\n":
                self._begin_line()
                return stop_match.end()
            self._place = _INLINE  # code written on one line
            return stop_match.start()
        if self._place == _INLINE:  # the backticks that end it
            match = _RUN[c].match(text, pos)
            stop = match.end() if match else pos
            self.over = stop < end
            return stop
        newline = text.find("\n", pos)  # _TAIL: the rest of a line that may close the fence
        stop = end if newline < 0 else newline + 1
        if text[pos:stop].strip():
            self._place = _BODY
            return pos
        self.over = newline >= 0
        return stop

    def _body(self, text: str, pos: int, end: int) -> int:
        """Read the body up to the next line that may close the fence."""
        match = _MAY_CLOSE[self._character].search(text, pos)
        if match is None:
            return end
        self._begin_line()
        return match.start() + 1

    def _begin_line(self) -> None:
        self._place, self._run, self._indent = _LINE, 0, 0

    def unclosed(self) -> str:
        """See the base class; the closing run may end the text, without the newline that would have ended the fence."""
        closed = self._place in (_TAIL, _LINE) and self._run >= self._count
        return "" if closed or self._place == _INLINE else super().unclosed()


def _width(indent: str) -> int:
    """Return the columns that an indentation takes up: a tab counts as four, as in Markdown."""
    return len(indent) + 3 * indent.count("\t")


class QuotedLine(Quotation):
    """One line of a block quote, with its end."""

    __slots__ = ()

    def read(self, text: str, pos: int, final: bool) -> int:
        """See the base class."""
        newline = text.find("\n", pos)
        self.over = newline >= 0
        return newline + 1 if self.over else len(text)


class Enclosed(Quotation):
    """Text up to a closing marker: a CDATA section, the value of a parameter, the result of a tool.

    Args:
        opener: the marker that opens it, which may also be the one that closes it.
        closers: the markers that close it.
        outside: those of them that are not part of it.
    """

    __slots__ = ("_closers", "_opener", "_outside")

    def __init__(self, opener: str, closers: MarkerSet, outside: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._opener = opener
        self._closers = closers
        self._outside = outside

    def read(self, text: str, pos: int, final: bool) -> int:
        """See the base class."""
        begin = pos
        if self._opener:  # it was found whole
            begin += len(self._opener)
            self._opener = ""
        start, stop, marker = self._closers.search(text, begin, final)
        self.over = bool(marker)
        self.waiting = self._closers if start < len(text) and not marker else None
        stop = stop if marker and marker not in self._outside else start
        self._hidden.add(text[pos:stop])
        return stop


# Places in brackets: the bracket, what is behind it, outside strings, in a string, behind a backslash in it, behind a
# quote.
_BRACKET, _FIRST, _OUTSIDE, _STRING, _ESCAPE, _BEHIND = range(6)
_WORD = re.compile(r"\w[\w.+-]*|[,:=.+-]")
_KEYWORD = re.compile(r"\w*")
_MAX_KEYWORD = 64
"""Maximum length of the first keyword in parentheses, in characters; prose may be one word of a megabyte."""
_IN_STRING = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_BEFORE_STRING = frozenset("{[(,:=")
_BEHIND_STRING = frozenset("}]),:")
_DEPTH = {"{": 1, "[": 1, "(": 1, "}": -1, "]": -1, ")": -1}


class Bracketed(Quotation):
    """An object of JSON, or the arguments of a call in Python, in which only strings hide calls.

    It is over where its brackets are closed, at a line that begins with a word, or at the first character outside its
    strings that is neither of a word nor of JSON. A quote ends a string only before what may follow a string.

    Args:
        opener: the bracket.
        markers: the markers that matter outside strings; one that begins with a bracket ends the object.
    """

    __slots__ = ("_breaks_line", "_depth", "_keyword", "_last", "_markers", "_opener", "_place", "_quote")

    def __init__(self, opener: str, markers: MarkerSet) -> None:
        super().__init__()
        self._opener = opener
        self._markers = markers
        self._place = _BRACKET
        self._depth = 1
        self._last = opener  # the last character outside strings that is not white space
        self._keyword = ""  # the first word in parentheses
        self._quote = ""
        self._breaks_line = False  # the white space that was read last has a line break

    def read(self, text: str, pos: int, final: bool) -> int:
        """See the base class."""
        self.waiting = None
        while pos < len(text) and not self.over and self.waiting is None:
            if self._place >= _STRING:
                stop = self._inside(text, pos)
                self._hidden.add(text[pos:stop])
                pos = stop
            elif self._place == _BRACKET:
                self._place, pos = _FIRST, pos + 1
            elif self._place == _FIRST:
                pos = self._first(text, pos)
            else:
                pos = self._outside(text, pos, final)
        return pos

    def _space(self, text: str, pos: int) -> int:
        """Read white space; return the position behind it."""
        match = _BLANK.match(text, pos)
        stop = match.end() if match else pos
        self._breaks_line = self._breaks_line or "\n" in text[pos:stop]
        return stop

    def _first(self, text: str, pos: int) -> int:
        """Read up to the quote of the first key, or to the sign behind the first keyword: else it is no call."""
        stop = pos if self._keyword else self._space(text, pos)
        if self._opener == "(":
            match = _KEYWORD.match(text, stop)
            word = match[0] if match else ""
            self._keyword += word
            stop += len(word)
        if stop == len(text) and len(self._keyword) <= _MAX_KEYWORD:
            return stop
        self._place = _OUTSIDE
        if self._opener == "(":
            self.over = not 0 < len(self._keyword) <= _MAX_KEYWORD or text[stop] != "="
        else:
            self.over = text[stop] not in "\"'"
        self._breaks_line = False
        return stop

    def _outside(self, text: str, pos: int, final: bool) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        c = text[pos]
        begins_line, self._breaks_line = self._breaks_line, False
        if c in _DEPTH:
            marker, wait = self._markers.match(text, pos, final) if c in "[(" else ("", False)
            if wait:
                self._breaks_line = begins_line
                self.waiting = self._markers
                return pos
            if marker and marker not in _DEPTH:
                self.over = True
                return pos
            self._depth += _DEPTH[c]
            self._last = c
            self.over = self._depth == 0
            return pos + 1
        if c in "\"'" and self._last in _BEFORE_STRING:
            self._place, self._quote = _STRING, c
            self._hidden = TextBuffer()
            return pos + 1
        word = _WORD.match(text, pos)
        if word is None or (begins_line and c.isalpha()):
            self.over = True
            return pos
        self._last = word[0][-1]
        return word.end()

    def _inside(self, text: str, pos: int) -> int:
        """Read on in a string, in which a quote may be written as if nothing were around it."""
        if self._place == _BEHIND:
            return self._behind_quote(text, pos)
        if self._place == _ESCAPE:
            self._place = _STRING
            return pos + 1
        match = _IN_STRING[self._quote].match(text, pos)
        stop = match.end() if match else pos
        if stop == len(text):
            return stop
        self._place = _ESCAPE if text[stop] == "\\" else _BEHIND
        self._breaks_line = False
        return stop + 1

    def _behind_quote(self, text: str, pos: int) -> int:
        stop = self._space(text, pos)
        if stop == len(text):
            return stop
        if text[stop] in _BEHIND_STRING:
            self._place, self._last, self._breaks_line = _OUTSIDE, self._quote, False
        elif self._breaks_line:
            self.over = True
        else:
            self._place = _STRING  # the quote is part of the string
        return stop

    def unclosed(self) -> str:
        """See the base class; outside strings nothing is hidden."""
        return super().unclosed() if self._place in (_STRING, _ESCAPE) else ""


def quotation(marker: str, closers: Mapping[str, MarkerSet], markers: MarkerSet, indent: str) -> Quotation:
    """Return a reader of the quotation that a marker opens.

    Args:
        marker: the marker.
        closers: by opener, the markers that close what it opens.
        markers: the markers that matter outside quotations.
        indent: the text before the marker in its line: blanks, and markers of items of lists.
    """
    if marker in BRACKETS:
        return Bracketed(marker, markers)
    if marker == BLOCK_QUOTE:
        return QuotedLine()
    return Enclosed(marker, closers[marker]) if marker in closers else CodeFence(marker[0], indent)


class BeginsLine:
    """A sign does not count in the middle of a line; the scanner knows the rest.

    A line of the content also begins behind a marker, such as the end of the reasoning.
    """

    def opens(self, text: str, start: int, stop: int, *, final: bool, blank: bool, before: str) -> bool | None:
        """Look at the characters before the sign."""
        line = text[max(0, start - LONGEST_BEGINNING) : start].rstrip(_BEGINNING)
        return not line or line[-1] in _BEFORE_LINE

    def is_prefix(self, text: str) -> bool:
        """Return False: the next piece decides."""
        return False


BEGINS_LINE = BeginsLine()


class MoreThanMentioned:
    """A tag counts unless prose mentions it: with a blank or quote before it, and words behind it."""

    def opens(self, text: str, start: int, stop: int, *, final: bool, blank: bool, before: str) -> bool | None:
        """Look at the characters before and behind the tag."""
        if before not in _BEFORE_SHOWN:
            return True
        if stop == len(text):
            return False if final else None
        return text[stop] in _BEHIND_TAG

    def is_prefix(self, text: str) -> bool:
        """Return False: the next piece decides."""
        return False


MORE_THAN_MENTIONED = MoreThanMentioned()
