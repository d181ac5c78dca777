"""A scanner of arguments whose strings are enclosed in a delimiter, with bare keys and bare words.

    {city:<|"|>Paris<|"|>,days:3,unit:celsius}

A string cannot contain the delimiter, so nothing is escaped. The scanner emits JSON text, as `JsonScanner` does.
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolwire.text.json_scanner import FIRST_KEY, FIRST_VALUE, KEY, STRING, VALUE, WORD, JsonScanner

_WORD = re.compile(r"[^,{}\[\]<\"\n]*")
_EXPECTING = frozenset((FIRST_KEY, FIRST_VALUE, KEY, VALUE))
# Python's words are text here, as any word is that is not JSON; the schema may convert them.
_NO_WORDS: dict[str, str] = {}
MAX_WORD = 400
"""Maximum length of a string without delimiters, in characters."""


class DelimitedScanner(JsonScanner):
    """A scanner of one value with a delimiter on both sides of each string."""

    __slots__ = ("_special", "delimiter")

    plain_strings = braces_may_double = False
    words = _NO_WORDS
    comma, colon = ", ", ": "
    bare_key = re.compile(r"""(?:[^\s<>{}()\[\]"'=,:;|\x00-\x1f\x7f]|[ ])*""")

    def __init__(self, delimiter: str) -> None:
        super().__init__(repair=False)
        self.delimiter = delimiter
        self._special = re.compile(rf'[{re.escape(delimiter[0])}"\\\x00-\x1f]').search

    @property
    def quick(self) -> Any:
        """Inside a string, a search for the start of the delimiter, and for characters that JSON has to escape."""
        if self.state != STRING or self.in_key:
            return None
        return self._special if self.quote == self.delimiter else super().quick

    def plain_length(self, text: str) -> int:
        """As in JSON, but 0 inside the delimiter, where a backslash is text."""
        return 0 if self.quote == self.delimiter else super().plain_length(text)

    def _structure(self, text: str, pos: int, final: bool) -> int:
        if self.state not in _EXPECTING or text[pos].isspace():
            return super()._structure(text, pos, final)
        if text.startswith(self.delimiter, pos):
            self._open_string(self.delimiter, key=self.state in (FIRST_KEY, KEY))
            return pos + len(self.delimiter)
        # Only a part of the delimiter may have arrived yet.
        if not final and self.delimiter.startswith(text[pos : pos + len(self.delimiter)]):
            return ~pos
        if self.state in (FIRST_KEY, KEY) and text[pos] not in '"}':
            self._start_bare_key()
            return pos
        return super()._structure(text, pos, final)

    def _value_start(self, c: str, pos: int) -> int:
        if c in '{["]},:<':
            return super()._value_start(c, pos)
        self.state = WORD
        self.run = []
        return pos

    def _scalar(self, text: str, pos: int) -> int:
        match = _WORD.match(text, pos, pos + MAX_WORD + 1 - sum(map(len, self.run)))
        stop = match.end() if match else pos
        self.run.append(text[pos:stop])
        if sum(map(len, self.run)) > MAX_WORD:
            self.error = f"a word of more than {MAX_WORD} characters"
        elif stop < len(text):
            self._scalar_end()
        return stop

    def word(self, text: str) -> str:
        """Return the JSON text of a number, true, false, null, or else of the word as a string."""
        text = text.rstrip()
        value = super().word(text) or self.number(text)
        return value or ("" if self.error else json.dumps(text, ensure_ascii=False))

    def _string(self, text: str, pos: int, end: int, final: bool) -> int:
        if self.quote != self.delimiter:
            return super()._string(text, pos, end, final)
        at = text.find(self.delimiter, pos)
        if at >= 0:
            self._emit_string(json.dumps(text[pos:at], ensure_ascii=False)[1:-1])
            self.key_escaped = True
            self.out.append('"')
            self._string_end()
            return at + len(self.delimiter)
        stop = end
        if not final:
            # The end of this chunk may be the beginning of the delimiter, so it is not emitted yet.
            sizes = range(min(len(self.delimiter) - 1, end - pos), 0, -1)
            stop -= next((n for n in sizes if text.endswith(self.delimiter[:n])), 0)
        self._emit_string(json.dumps(text[pos:stop], ensure_ascii=False)[1:-1])
        return stop if stop == end else ~stop
