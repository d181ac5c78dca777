"""A scanner of Python literals as models write them in calls; it emits JSON text and never evaluates anything."""

from __future__ import annotations

import json
import re
from typing import Any

from toolwire.text.json_scanner import COLON, FIRST_KEY, KEY, NEXT, VALUE, JsonScanner
from toolwire.text.limits import MAX_DEPTH

_SIMPLE = {"n": "\\n", "t": "\\t", "r": "\\r", "b": "\\b", "f": "\\f", "\\": "\\\\", "'": "'", '"': '\\"',
           "a": "\\u0007", "v": "\\u000b"}  # fmt: skip
_PLAIN = {
    '"': re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\bfnrt]){0,256}+'),
    "'": re.compile(r"""(?:[^'"\\\x00-\x1f]++|\\["\\bfnrt]){0,256}+"""),
}
_HEX_LENGTH = {"x": 2, "u": 4, "U": 8}
_OCTAL = re.compile(r"[0-7]{1,3}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_INTEGER = re.compile(r"([-+]?)([0-9](?:_?[0-9])*)\Z")
_BASED = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]{1,64})|[oO]([0-7]{1,64})|[bB]([01]{1,64}))\Z")
_FLOAT = re.compile(r"([-+]?)([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?\Z")


class _Tuple(set[str]):
    """An open parenthesis on the stack; it is empty until its first comma, without which it is not a tuple."""


class PythonScanner(JsonScanner):
    """A scanner of one Python literal: a string with one or three quotes, number, constant, list, tuple or dict."""

    __slots__ = ("opened", "triple")

    number_starts = "+."
    plain_strings = False
    inner_quotes = braces_may_double = False

    def __init__(self) -> None:
        super().__init__(repair=True)
        self.opened = self.triple = False

    @property
    def quick(self) -> Any:
        """As in JSON, but None right after an opening quote, when the number of quotes is not yet known."""
        return None if self.opened else super().quick

    def _repair(self, name: str, otherwise: str) -> bool:
        return True  # Python's own spellings are not repairs

    def _open_string(self, quote: str, *, key: bool) -> None:
        super()._open_string(quote, key=key)
        self.opened, self.triple = True, False

    def _string(self, text: str, pos: int, end: int, final: bool) -> int:
        quote = self.quote
        # A second quote right after the first ends an empty string, or begins three quotes: the third one decides.
        if self.opened:
            if text[pos] == quote and pos + 1 >= end and not final:
                return ~pos
            self.opened = False
            if text.startswith(quote + quote, pos):
                self.triple = True
                return pos + 2
        if self.triple and text[pos] == quote and not text.startswith(quote * 3, pos):
            if end - pos < 3 and not final and text[pos:end] == quote * (end - pos):
                return ~pos
            self._emit_string('\\"' if quote == '"' else quote)
            self.key_escaped = True
            return pos + 1
        if self.triple and text[pos] == quote:
            self.out.append('"')
            self._string_end()
            return pos + 3
        match = _PLAIN[quote].match(text, pos)
        if match is not None and match.end() > pos:
            self._emit_string(match[0])
            return match.end()
        return super()._string(text, pos, end, final)

    def _escape(self, text: str, pos: int, end: int, final: bool) -> int:
        if pos + 1 >= end:
            return -1
        c = text[pos + 1]
        self.key_escaped = True
        if c in _SIMPLE:
            self._emit_string(_SIMPLE[c])
            return pos + 2
        if c == "\n":  # a line continuation
            return pos + 2
        if c in _HEX_LENGTH or c in "01234567":
            return self._code(text, pos, end, final)
        self._emit_string("\\\\")  # Python keeps the backslash of an unknown escape
        return pos + 1

    def _code(self, text: str, pos: int, end: int, final: bool) -> int:
        length = _HEX_LENGTH.get(text[pos + 1])
        start = pos + 2 if length else pos + 1
        match = (_HEX if length else _OCTAL).match(text, start)
        stop = min(match.end() if match else start, start + (length or 3))
        if stop == end and stop < start + (length or 3) and not final:
            return -1
        if match is None or (length and stop - start < length):
            self._emit_string("\\\\")
            return pos + 1
        code = int(text[start:stop], 16 if length else 8)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self.error = "an escape that is not a character"
            return pos
        self._emit_string(json.dumps(chr(code), ensure_ascii=False)[1:-1])
        return stop

    def _value_start(self, c: str, pos: int) -> int:
        if c == "(" and len(self.stack) < MAX_DEPTH:
            self._emit("[")
            self.stack.append(_Tuple())
            self.state = VALUE
            return pos + 1
        if c == ")" and self.stack and isinstance(self.stack[-1], _Tuple):
            self.pending.clear()
            self._emit("]")
            self.stack.pop()
            self._value_end()
            return pos + 1
        return super()._value_start(c, pos)

    def _after_value(self, c: str, pos: int) -> int:
        top = self.stack[-1]
        if not isinstance(top, _Tuple):
            return super()._after_value(c, pos)
        if c == ",":
            top.add(c)
            self.pending.append(",")
            self.state = VALUE
            return pos + 1
        if c == ")" and top:
            return self._value_start(c, pos)
        self.error = "a comma or the closing bracket is missing after a value"
        return pos

    def word(self, text: str) -> str:
        """Return the JSON text of True, False and None, and of the JSON words that models mix in."""
        return self.words.get(text, "") or super().word(text)

    def number(self, text: str) -> str:
        """Return the JSON text of an integer (07 is 7, 1_000 is 1000, bases) or a float (`.5`, `1.`)."""
        if match := _INTEGER.match(text):
            # Python refuses 07, but models mean 7. The sign of -0 is dropped, as integers have none.
            digits = match[2].replace("_", "").lstrip("0") or "0"
            return super().number(("-" if match[1] == "-" and digits != "0" else "") + digits)
        if match := _BASED.match(text):
            base = 16 if match[2] else 8 if match[3] else 2
            return match[1].replace("+", "") + str(int(match[2] or match[3] or match[4], base))
        match = _FLOAT.match(text)
        if match is None or not (match[2] or match[3]):
            return ""
        integral = match[2].lstrip("0") or "0"
        return super().number(f"{match[1].replace('+', '')}{integral}.{match[3] or '0'}{match[4] or ''}")


class KeywordScanner(PythonScanner):
    """A scanner of the keyword arguments of a call, `(a=1, b="x")`, as one JSON object."""

    __slots__ = ()

    def after_key(self) -> str:
        """Return the equals sign between a parameter and its argument."""
        return "=" if len(self.stack) == 1 else ":"

    def _structure(self, text: str, pos: int, final: bool) -> int:
        c = text[pos]
        if len(self.stack) != 1 or self.state == VALUE or c.isspace():
            return super()._structure(text, pos, final)
        if c == ")" and self.state in (FIRST_KEY, KEY, NEXT):
            self.pending.clear()
            return self._close("}", pos)
        if self.state in (FIRST_KEY, KEY):
            self._start_bare_key()
            return pos
        if c == "," or self.state == COLON:
            return super()._structure(text, pos, final)
        self.error = "a comma or the closing bracket is missing after an argument"
        return pos

    def _value_start(self, c: str, pos: int) -> int:
        if self.stack:
            return super()._value_start(c, pos)
        if c != "(":
            self.error = "( is missing"
            return pos
        self._emit("{")
        self.stack.append(set())
        self.state = FIRST_KEY
        return pos + 1
