"""Strings of JSON that arrive in pieces, with what models get wrong in them: escapes, quotes and control characters."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod

from toolwire.text.joined_strings import JOINED, joins_strings
from toolwire.text.json_escapes import end_of_code_point

# Text inside a string that is valid as it is: no quote, no control character, only escapes that JSON has. The
# possessive groups are bounded, so that one match never runs over a whole text which is then scanned again.
_PLAIN = {
    '"': re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]){0,256}+'),
    "'": re.compile(r"""(?:[^'"\\\x00-\x1f]++|\\["\\/bfnrt]){0,256}+"""),
}
_AFTER_STRING = frozenset(",}]:")
_FAR = 64
"""Maximum white space behind a quote, in characters, that is searched for the character after it."""
_ESCAPES = frozenset('"\\/bfnrt')
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")


class JsonStrings(ABC):
    """The part of a scanner that reads strings, and keys in quotes.

    Attributes:
        error: why the text is not JSON, or "".
        limited: whether the error is about a limit, not about the syntax.
        out: the list that emitted text goes to.
        repairs: the names of the repairs made.
        repairing: whether repairs are made; without them, each is an error.
        quote: the quote of the string that is open, or was last.
        opened: the opening quote was the last character.
        triple: the string is between three quotes.
        in_key: the string is a key.
        key: the pieces of the key.
        key_escaped: the key has escapes.
        has_inner_quote: the string has a quote that is not escaped.
        stack: an item for each open bracket.
    """

    __slots__ = (
        "error", "has_inner_quote", "in_key", "key", "key_escaped", "limited", "opened", "out", "quote", "repairing",
        "repairs", "stack", "triple",
    )  # fmt: skip

    plain = _PLAIN
    inner_quotes = '"'  # the quotes that a model may have forgotten to escape
    blanks = re.compile(r"[ \t\n\r]*")
    in_container = False  # the caller has read an opening bracket before the value

    def __init__(self, *, repair: bool) -> None:
        self.error = ""
        self.limited = False
        self.out: list[str] = []
        self.repairs: list[str] = []
        self.repairing = repair
        self.quote = '"'
        self.opened = self.triple = self.in_key = self.key_escaped = self.has_inner_quote = False
        self.key: list[str] = []
        self.stack: list[set[str] | None] = []  # a set of keys for an object, None for an array

    @abstractmethod
    def _string_end(self) -> None:
        """Take the string or the key that has ended."""

    def plain_length(self, text: str) -> int:
        """Return how much of a piece of a string can be appended to `out` as it is, if the rest needs more text.

        Only a backslash at the end does; the length is 0 where anything else has to be read first.
        """
        match = self.plain[self.quote].match(text)
        stop = match.end() if match else 0
        return stop if stop == len(text) or text[stop:] == "\\" else 0

    def _repair(self, name: str, otherwise: str) -> bool:
        if not self.repairing:
            self.error = otherwise
            return False
        if name not in self.repairs:
            self.repairs.append(name)
        return True

    def _emit_string(self, text: str) -> None:
        self.out.append(text)
        if self.in_key:
            self.key.append(text)
            self.key_escaped = self.key_escaped or "\\" in text

    def _string(self, text: str, pos: int, end: int, final: bool) -> int:
        """Scan one step inside a string; return the position, or its complement if more text is needed."""
        if (self.opened or self.triple) and (stop := self._quotes(text, pos, end, final)) is not None:
            return stop
        match = self.plain[self.quote].match(text, pos)
        stop = match.end() if match else pos
        if stop > pos:
            self._emit_string(text[pos:stop])
            if stop == end or text[stop] != self.quote or self.triple:
                return stop
        c = text[stop]
        if c == self.quote:
            closes = self._closes(text, stop, final)
            if closes is None or self.error:
                return stop if self.error else ~stop
            if closes:
                self.out.append('"')
                self._string_end()
            else:
                self._emit_string('\\"' if c == '"' else c)
                self.key_escaped = True
            return stop + 1
        if c == "\\":
            after = self._escape(text, stop, end, final)
            return ~stop if after < 0 else after
        if c == '"':  # inside single quotes
            self._emit_string('\\"')
            self.key_escaped = True
            return stop + 1
        if self._repair("raw_control", "a control character in a string is not escaped"):
            self._emit_string(json.dumps(c)[1:-1])
            self.key_escaped = True
            return stop + 1
        return stop

    def _quotes(self, text: str, pos: int, end: int, final: bool) -> int | None:
        """Scan quotes that may be three: behind an opening one, or in such a string; None for any other text.

        A second quote right behind the first ends an empty string, or begins three quotes: the third one decides.
        """
        quote = self.quote
        if self.opened:
            if text[pos] == quote and pos + 1 >= end and not final:
                return ~pos
            self.opened = False
            if text.startswith(quote + quote, pos) and not self.in_key:
                self.triple = self._repair("triple_quotes", "three quotes are not JSON")
                return pos + 2 if self.triple else pos
        if not self.triple or text[pos] != quote:
            return None
        if text.startswith(quote * 3, pos):
            self.out.append('"')
            self._string_end()
            return pos + 3
        if end - pos < 3 and not final and text[pos:end] == quote * (end - pos):
            return ~pos
        self._emit_string('\\"' if quote == '"' else quote)
        self.key_escaped = True
        return pos + 1

    def _closes(self, text: str, pos: int, final: bool) -> bool | None:
        """Return whether the quote at `pos` ends a string, and is not one that the model forgot to escape.

        None: more text is needed.
        """
        inside = self.stack or self.in_container
        if self.in_key or not (self.repairing and inside and self.quote in self.inner_quotes):
            return True
        match = self.blanks.match(text, pos + 1)
        after = match.end() if match else pos + 1
        if after - pos > _FAR:  # looking further for each quote would take quadratic time
            return True
        if after == len(text):
            return True if final else None
        return self._ends_string(text, after, final)

    def _ends_string(self, text: str, after: int, final: bool) -> bool | None:
        """Return whether a quote ends a string, by the character `after` it and white space; None as in `_closes`."""
        # A quote that ends a string is followed by a comma, a colon or a bracket. Any other one was not escaped, except
        # the first one if it is before an operator: there the string has ended.
        if text[after] in _AFTER_STRING:
            return True
        joins = False if self.has_inner_quote else joins_strings(text, after, final)
        if joins is not False:
            self.error = JOINED if joins else ""
            return joins
        self.has_inner_quote = True
        return not self._repair("inner_quote", "")

    def _escape(self, text: str, pos: int, end: int, final: bool) -> int:
        """Scan one escape; return -1 if more text is needed."""
        if pos + 1 >= end:
            return -1
        c = text[pos + 1]
        self.key_escaped = True
        if c in _ESCAPES:
            self._emit_string(text[pos : pos + 2])
            return pos + 2
        if c == "'" and self.quote == "'":
            self._emit_string("'")
            return pos + 2
        if c == "u":
            if end < pos + 6 and not final and all(d in "0123456789abcdefABCDEF" for d in text[pos + 2 : end]):
                return -1
            if _HEX4.match(text, pos + 2):
                return self._unicode(text, pos, final)
        if self._repair("invalid_escape", f"\\{c} is not a JSON escape"):
            self._emit_string("\\\\")
            return pos + 1
        return pos

    def _unicode(self, text: str, pos: int, final: bool) -> int:
        stop = end_of_code_point(text, pos, final)
        if stop > pos:
            self._emit_string(text[pos:stop])
        elif stop == pos:
            self.limited = True
            self.error = "half of a surrogate pair is alone"
        return stop
