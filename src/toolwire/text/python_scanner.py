"""A scanner of Python literals as models write them in calls; it emits JSON text and never evaluates anything."""

from __future__ import annotations

import json
import re

from toolwire.text.joined_strings import joins_strings
from toolwire.text.json_scanner import COLON, FIRST_KEY, KEY, NEXT, VALUE, WORD, JsonScanner, OpenTuple

_SIMPLE = {"n": "\\n", "t": "\\t", "r": "\\r", "b": "\\b", "f": "\\f", "\\": "\\\\", "'": "'", '"': '\\"',
           "a": "\\u0007", "v": "\\u000b"}  # fmt: skip
_PLAIN = {
    '"': re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\bfnrt]){0,256}+'),
    "'": re.compile(r"""(?:[^'"\\\x00-\x1f]++|\\["\\bfnrt]){0,256}+"""),
}
_RAW_RUN = {quote: re.compile(rf"[^{quote}\"\\\x00-\x1f]++") for quote in "'\""}
_WORD = re.compile(r"\w*")
# Another argument, in front of which the comma is missing; its name has at most 64 characters.
_ARGUMENT = re.compile(r"\w{1,64}[ \t]{0,4}=(?!=)")
_MAY_BE_ARGUMENT = re.compile(r"\w{0,64}[ \t]{0,4}=?\Z")
_OPERATORS = frozenset(("and", "else", "for", "if", "in", "is", "not", "or"))
"""Words that may follow a string in an expression."""
_NEVER_BEHIND_STRING = frozenset(":?/-&|^@~$`")
"""Characters that continue no expression behind a string: the operators among them take no text."""
_LONGEST_NAME = 64
_PREFIXES = frozenset(("b", "br", "f", "fr", "r", "rb", "rf", "u"))
_QUOTES = frozenset(("'", '"'))
READ_PREFIXES = frozenset(("r", "u"))
"""Prefixes with which a string is a text and nothing has to be computed, as with `f`."""
_HEX_LENGTH = {"x": 2, "u": 4, "U": 8}
_OCTAL = re.compile(r"[0-7]{1,3}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_INTEGER = re.compile(r"([-+]?)([0-9](?:_?[0-9])*)\Z")
_BASED = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]{1,64})|[oO]([0-7]{1,64})|[bB]([01]{1,64}))\Z")
_FLOAT = re.compile(r"([-+]?)([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?\Z")


class _OpenSet(set[str]):
    """The open brace of a set on the stack."""


class PythonScanner(JsonScanner):
    """A scanner of one Python literal: a string, number or constant, or a list, tuple, set or dictionary."""

    __slots__ = ("before_brace", "is_raw")

    comma, colon = ", ", ": "
    number_starts = "+."
    plain_strings = False
    braces_may_double = False
    plain = _PLAIN
    inner_quotes = "\"'"
    blanks = re.compile(r"\s*")

    def __init__(self, *, repair: bool = True) -> None:
        super().__init__(repair=repair)
        self.is_raw = False
        # Where the text before a brace went. The brace and what follows it are kept in `out` until its first element
        # shows whether it is that of a dictionary or of a set, which JSON writes as a list.
        self.before_brace: list[str] | None = None

    def plain_length(self, text: str) -> int:
        """As in JSON, with the escapes that mean the same in Python, and 0 where a backslash is text."""
        return 0 if self.is_raw else super().plain_length(text)

    def _repair(self, name: str, otherwise: str) -> bool:
        return True  # Python's own spellings are not repairs

    def _open(self, bracket: str, level: set[str] | None, state: int, pos: int) -> int:
        stop = super()._open(bracket, level, state, pos)
        if bracket == "{" and stop > pos:
            self.before_brace, self.out = self.out, [self.out.pop()]
        return stop

    def _structure(self, text: str, pos: int, final: bool) -> int:
        c = text[pos]
        if self.before_brace is not None and not c.isspace():
            if self.state == FIRST_KEY and (c.isdecimal() or c in "(-+."):
                self._decide_brace(is_set=True)
                self.state = VALUE
            elif self.state == COLON and c in ",}":  # the string was an element
                self._decide_brace(is_set=True)
                self.state = NEXT
            elif self.state == COLON or c == "}":
                self._decide_brace(is_set=False)
        if c == "}" and self.state == VALUE and self.pending and isinstance(self.stack[-1], _OpenSet):
            self.pending.clear()
            return self._close("]", pos)
        return super()._structure(text, pos, final)

    def _decide_brace(self, *, is_set: bool) -> None:
        """Let the text since the open brace through."""
        assert self.before_brace is not None
        text, self.out, self.before_brace = self.out, self.before_brace, None
        if is_set:
            text[0] = "["
            self.stack[-1] = _OpenSet()
        self.out.extend(text)

    def _after_value(self, c: str, pos: int) -> int:
        if not isinstance(self.stack[-1], _OpenSet):
            return super()._after_value(c, pos)
        if c == ",":
            self.pending.append(self.comma)
            self.state = VALUE
            return pos + 1
        if c == "}":
            return self._close("]", pos)
        self.error = "a comma or the closing bracket is missing after a value"
        return pos

    def _open_string(self, quote: str, *, key: bool) -> None:
        super()._open_string(quote, key=key)
        self.is_raw = False

    def _scalar(self, text: str, pos: int) -> int:
        prefix = "".join(self.run).lower() if self.state == WORD and text[pos] in _QUOTES else ""
        if prefix not in READ_PREFIXES:
            return super()._scalar(text, pos)
        self.run = []
        self._open_string(text[pos], key=False)
        self.is_raw = prefix == "r"
        return pos + 1

    def _string(self, text: str, pos: int, end: int, final: bool) -> int:
        if (self.opened or self.triple) and (stop := self._quotes(text, pos, end, final)) is not None:
            return stop
        if self.is_raw:
            match = _RAW_RUN[self.quote].match(text, pos)
            if match is not None:
                self._emit_string(match[0])
                return match.end()
            if text[pos] == "\\":
                after = self._escape(text, pos, end, final)
                return ~pos if after < 0 else after
        return super()._string(text, pos, end, final)

    def _ends_string(self, text: str, after: int, final: bool) -> bool | None:
        """Return whether a quote ends a string, by the text `after` it and white space; None: more text is needed.

        In Python, a quote that ends a string may also come before an operator, another string or, where the comma is
        missing, an argument. There it ends the string, and the expression is an error: its value is not guessed.
        """
        if text[after] in self._after_string():
            return True
        if not final and _MAY_BE_ARGUMENT.match(text, after):
            return None
        word = _WORD.match(text, after, after + _LONGEST_NAME)
        stop = word.end() if word else after
        name = text[after:stop]
        if name in _OPERATORS or (name.lower() in _PREFIXES and text[stop : stop + 1] in _QUOTES):
            return True
        if _ARGUMENT.match(text, after):
            return True
        if not name and text[after] not in _NEVER_BEHIND_STRING:
            return True
        joins = False if self.has_inner_quote else joins_strings(text, after, final)
        if joins is not False:
            return joins
        self.has_inner_quote = True
        if "inner_quote" not in self.repairs:
            self.repairs.append("inner_quote")
        return False

    def _after_string(self) -> str:
        """Return the characters that can follow a string here."""
        top = self.stack[-1]
        return ",]" if top is None else ",)" if isinstance(top, OpenTuple) else ",}"

    def _escape(self, text: str, pos: int, end: int, final: bool) -> int:
        if pos + 1 >= end:
            return -1
        c = text[pos + 1]
        self.key_escaped = True
        if self.is_raw:  # the backslash stays, and a quote behind it does not end the string
            pair = c in "\\'\""
            self._emit_string(json.dumps(text[pos : pos + 2])[1:-1] if pair else "\\\\")
            return pos + 2 if pair else pos + 1
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
    """A scanner of the keyword arguments of a call, `(a=1, b="x")`, as one JSON object.

    A colon in place of the equals sign is repaired.
    """

    __slots__ = ("_has_colon",)

    def __init__(self, *, repair: bool = True) -> None:
        super().__init__(repair=repair)
        self._has_colon = False  # in place of the equals sign that comes next

    def after_key(self) -> str:
        """Return the sign between a parameter and its argument."""
        return "=" if len(self.stack) == 1 and not self._has_colon else ":"

    def _after_string(self) -> str:
        return ",)" if len(self.stack) == 1 else super()._after_string()

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
        if self.state == COLON:
            self._has_colon = c == ":" and self.repairing
            if self._has_colon and "bare_key" not in self.repairs:
                self.repairs.append("bare_key")
            return super()._structure(text, pos, final)
        if c == ",":
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
