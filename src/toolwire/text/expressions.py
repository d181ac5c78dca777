"""An incremental scanner of the expressions in which models write calls: Python, JSON, or a mixture of both.

`ExpressionScanner` reads one expression, such as `f(a=1, b=[x])` or `[{"name": "f"}]`, into a tree. Nothing is
evaluated: what is neither a literal nor a call, such as `x + 1`, stays the text that was written. As in `JsonScanner`,
there is no recursion and no second look at a character, so that any chunking of a text gives the same tree.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from toolwire.text.contained_strings import JsonStringInContainer, PythonStringInContainer
from toolwire.text.expression_tree import OpenBracket, Source, TextSpan, resolve
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import JsonError, decode, encodable
from toolwire.text.python_scanner import READ_PREFIXES, PythonScanner

_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[\w$.+\-\\]*")
_NAME = re.compile(r"[^\W\d][\w$.\-\\]*\Z")
_STRING_PREFIX = re.compile(r"[rRbBfFuU]{1,2}\Z")
_NO_VALUE = (
    ",:=)]}<>|;`\N{HORIZONTAL ELLIPSIS}\N{FULLWIDTH COMMA}"
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{DOUBLE LOW-9 QUOTATION MARK}"
    "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{SINGLE LOW-9 QUOTATION MARK}"
    "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}"
)
"""Signs with which no value begins, and quotes that no language has: as text, a value in them would keep them."""
_POSING = "".join(chr(ord(sign) + 0xFEE0) for sign in "\"'(),:;=[]{}")
"""Wide forms of the signs that matter: it is not certain whether they are meant as these."""
_BEHIND_STRING = "+%*.["
"""Signs with which an expression continues behind a string, beside words such as `in`."""
_QUOTED = {quote: re.compile(rf"(?:[^{quote}\\]|\\.)*", re.DOTALL) for quote in "'\""}
# In an expression that stays text only brackets, quotes and the delimiters after it matter, and an equals sign: it
# begins another argument, unless it is part of a comparison.
_SPECIAL = re.compile(rf"""[=!<>]=?|[][(){{}}'",:;{_POSING}]""")
_CLOSER = {"(": ")", "[": "]", "{": "}"}
MAX_NESTING = 64
"""Maximum levels of brackets; far below the limit on JSON values, because trees are walked recursively."""
MAX_NAME = 256
"""Maximum length of a called name, in characters."""

Callee = Literal["tool", "wrapper", "unknown"]


def _python_string(frame: OpenBracket | None) -> PythonScanner:
    """Return a scanner of a string of Python inside this bracket."""
    if frame is None or (frame.opener == "{" and frame.key is None):  # a key has no quotes inside
        return PythonScanner()
    return PythonStringInContainer("," + _CLOSER[frame.opener[-1]])


# What the machine expects next: a value, what follows a value, the rest of a string, word or comment, or the rest of
# an expression that stays text.
_VALUE, _AFTER, _STRING, _WORD_GOES_ON, _COMMENT, _TEXT, _TEXT_STRING = range(7)


class ExpressionScanner:
    """A scanner of one expression that arrives in pieces.

    Attributes:
        done: the expression is complete; `scan` returned the position after it.
        error: why it is not one, or ""; `scan` returned the offending character's position.
        value: JSON values, `Source` and `CallExpression`, nested; a tuple or a set is a list.
        repairs: names of the repairs made to strings of JSON.
        in_call: a call to a known tool has begun.
        refused: the error is a name, key or text that a subclass does not admit.
    """

    def __init__(self) -> None:
        self.done = False
        self.error = ""
        self.value: Any = None
        self.repairs: list[str] = []
        self.in_call = self.refused = False
        self._state = _VALUE
        self._frames: list[OpenBracket] = []
        self._string: JsonScanner | None = None
        self._json: list[str] = []
        self._word: list[str] = []
        self._last: Any = None  # the value that was read last
        self._last_is_string = False
        self._string_end = -1  # position behind the string that was read last
        self._start = 0  # position of that value, or of the one being read
        self._nesting: list[str] = []  # closers of the brackets that are open in an expression that stays text
        self._quote = ""
        self._behind_quote = False  # nothing but white space is behind a string in such an expression
        self._behind_comment = _VALUE
        self._read: list[str] = []
        self._before = 0  # number of characters read by earlier calls of `scan`

    # -- to be overridden by callers ---------------------------------------------------------------------------------

    def on_call(self, name: str) -> Callee:
        """Return what a called name stands for, outside the arguments of a known tool; "unknown" ends the reading."""
        return "tool"

    def on_key(self, key: str) -> bool:
        """Return whether an outermost object may have this key."""
        return True

    def on_text(self, text: str) -> bool:
        """Return whether a list, or a list of lists, may have this string."""
        return True

    # -- for callers -------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """True inside brackets."""
        return bool(self._frames)

    @property
    def text(self) -> str:
        """The text read so far."""
        return "".join(self._read)

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Scan from `pos`; return the position after the expression, at an error, or where more text is needed."""
        begin = pos
        offset = self._before - pos
        end = len(text)
        while pos < end and not self.done and not self.error:
            stop = self._step(text, pos, final, offset)
            if stop < 0:  # more text is needed
                pos = ~stop
                break
            pos = stop
        if pos > begin:
            self._read.append(text[begin:pos])
            self._before += pos - begin
        if final and pos == end and not self._frames and self._state == _WORD_GOES_ON and not self.error:
            self._word_end("")
        if self.done and not encodable(self.text):
            self.done = False
            self.error = "half of a surrogate pair is alone"
        elif self.done:
            self.value = resolve(self.value, self.text)
        return pos

    # -- the machine -------------------------------------------------------------------------------------------------

    def _step(self, text: str, pos: int, final: bool, offset: int) -> int:
        state = self._state
        if state == _STRING:
            return self._in_string(text, pos, final, offset)
        if state == _WORD_GOES_ON:
            return self._in_word(text, pos)
        if state == _COMMENT:
            newline = text.find("\n", pos)
            if newline >= 0:
                self._state = self._behind_comment
            return newline + 1 if newline >= 0 else len(text)
        if state == _TEXT:
            return self._in_text(text, pos, final, offset)
        if state == _TEXT_STRING:
            return self._in_text_string(text, pos, final)
        space = _SPACE.match(text, pos)
        if space:
            return space.end()
        if text[pos] == "#" and self._frames:
            self._behind_comment, self._state = state, _COMMENT
            return pos + 1
        return self._after(text, pos, final, offset) if state == _AFTER else self._begin(text, pos, final, offset)

    def _begin(self, text: str, pos: int, final: bool, offset: int) -> int:
        """Begin a value, or close the bracket in which no value follows."""
        c = text[pos]
        frame = self._frames[-1] if self._frames else None
        if frame is not None and c == _CLOSER[frame.opener[-1]] and frame.key is None and not frame.unpacks:
            return self._close(frame, pos, offset)
        self._start = pos + offset
        if c in "\"'":
            # A string in JSON may have JSON's escapes; in a call it is Python's.
            in_json = c == '"' and frame is not None and frame.opener in "[{"
            self._string = JsonStringInContainer() if in_json else _python_string(frame)
            self._state = _STRING
            return pos
        if c in _CLOSER:
            return self._open(c, pos, in_tool=frame is not None and frame.in_tool)
        if c == "*" and frame is not None and frame.opener == "f(" and not frame.unpacks:
            if pos + 1 == len(text) and not final:
                return ~pos
            if text.startswith("**", pos):
                frame.unpacks = True
                return pos + 2
        elif c.isalnum() or c in "_$.+-\\":
            self._state = _WORD_GOES_ON
            return pos
        elif frame is not None and (frame.key is not None or frame.in_tool) and c not in _NO_VALUE:
            self._state = _TEXT
            return pos
        self.error = "a value is missing"
        return pos

    def _open(self, opener: str, pos: int, *, in_tool: bool, name: str = "") -> int:
        if len(self._frames) >= MAX_NESTING:
            self.error = f"more than {MAX_NESTING} levels of nesting"
            return pos
        self._frames.append(OpenBracket(opener, self._start, in_tool=in_tool, name=name))
        self._state = _VALUE
        return pos + 1

    def _in_string(self, text: str, pos: int, final: bool, offset: int) -> int:
        scanner = self._string
        assert scanner is not None
        stop = scanner.scan(text, pos, final)
        self._json.extend(scanner.ready)
        scanner.ready.clear()
        if scanner.error:
            self.error = scanner.error
        elif scanner.done:
            for repair in scanner.repairs:
                self._repair(repair)
            try:
                value: str = decode("".join(self._json))
            except JsonError as error:
                self.error = str(error)
                return stop
            self._json.clear()
            self._string = None
            if self._in_lists() and not self.on_text(value):
                self.error, self.refused = "a string is no call", True
                return stop
            self._value(value)
            self._last_is_string = True
            self._string_end = stop + offset
        elif stop < len(text):
            return ~stop
        return stop

    def _in_lists(self) -> bool:
        return all(frame.opener == "[" for frame in self._frames)

    def _repair(self, name: str) -> None:
        if name not in self.repairs:
            self.repairs.append(name)

    def _in_word(self, text: str, pos: int) -> int:
        match = _WORD.match(text, pos)
        stop = match.end() if match else pos
        self._word.append(text[pos:stop])
        if stop == len(text):
            return stop
        return self._word_end(text[stop], stop)

    def _word_end(self, after: str, pos: int = 0) -> int:
        """End a name or a number, which the character `after` follows."""
        word = "".join(self._word)
        self._word.clear()
        if after == "(" and not word[0].isdigit():
            return self._call(word.replace("\\_", "_"), pos)
        if after and after in "\"'" and _STRING_PREFIX.match(word):
            if word.lower() not in READ_PREFIXES:
                self.error = "a string with a prefix that is not r"
                return pos
            self._string = _python_string(self._frames[-1] if self._frames else None)
            self._string.scan(word, 0, False)
            self._state = _STRING
            return pos
        if not word.strip("."):
            self.error = "a value is left out"
            return pos
        # A word and a number share their first characters with expressions such as `-x` and `2024-05-01`.
        scanner = PythonScanner()
        written = scanner.word(word) or (scanner.number(word) if word[0] in "+-.0123456789" else "")
        if scanner.error:
            self.error = scanner.error
            return pos
        if written:
            self._value(decode(written))
        else:
            self._value(Source(word, is_name=bool(_NAME.match(word))))
        return pos

    def _call(self, name: str, pos: int) -> int:
        """Open the arguments of a call."""
        in_tool = bool(self._frames) and self._frames[-1].in_tool
        if not in_tool:
            callee = self.on_call(name) if len(name) <= MAX_NAME else "unknown"
            if callee == "unknown":
                self.error, self.refused = f"{name[:60]!r} is not a known tool", True
                return pos
            in_tool = callee == "tool"
            self.in_call = self.in_call or in_tool
        return self._open("f(", pos, in_tool=in_tool, name=name)

    def _value(self, value: Any) -> None:
        """Take a value that was read."""
        self._last = value
        self._last_is_string = False
        self._state = _AFTER
        if not self._frames:
            self.value = value
            self.done = True

    def _after(self, text: str, pos: int, final: bool, offset: int) -> int:
        c = text[pos]
        frame = self._frames[-1]
        if c == ",":
            self._keep(frame)
            frame.commas = True
            self._state = _VALUE
            return pos + 1
        if c == _CLOSER[frame.opener[-1]]:
            self._keep(frame)
            return pos if self.error else self._close(frame, pos, offset)
        if c in "\"'" and self._last_is_string:
            self.error = "a comma is missing between two strings"
            return pos
        if self._last_is_string and (c.isalnum() or c == "_") and pos + offset == self._string_end:
            # Where the string ends is a guess, and as text it would keep its quotes.
            self.error = "a quote inside a string is not escaped"
            return pos
        if frame.key is None and not frame.unpacks:
            if c == ":" and frame.opener == "{":
                return self._key(frame, pos)
            if c in "=:" and frame.opener == "f(" and isinstance(self._last, Source) and self._last.is_name:
                if pos + 1 == len(text) and not final:
                    return ~pos
                if not text.startswith(("==", "=>"), pos):
                    return self._key(frame, pos)
            if c == "(" and self._last_is_string and frame.opener in ("[", "f("):
                return self._call(self._last, pos)
        # Only inside a call or an object can text be a value; elsewhere it is prose in brackets.
        if (frame.in_tool or frame.key is not None) and c not in ")]};":
            if c == "/" and pos + 1 == len(text) and not final:
                return ~pos
            if text.startswith(("//", "/*"), pos) and frame.opener in "[{":
                self.error = "a comment is in JSON"
                return pos
            # A comma is missing: as text, the value would contain the values behind it.
            if self._last_is_string and c not in _BEHIND_STRING and (frame.opener in "[{" or not c.isalpha()):
                self.error = "a comma or the closing bracket is missing after a string"
                return pos
            self._state = _TEXT
            self._behind_quote = False
            return pos
        self.error = "a comma or the closing bracket is missing after a value"
        return pos

    def _key(self, frame: OpenBracket, pos: int) -> int:
        key = self._last
        if isinstance(key, Source) and key.is_name:
            key = key.text.replace("\\_", "_")
            if frame.opener == "{":
                self._repair("bare_key")
        if not isinstance(key, str):
            self.error = "a key is not a string"
        elif key in frame.members:
            self.error = f"the key {key[:60]!r} is given twice"
        elif frame.opener == "{" and self._is_outermost_object() and not self.on_key(key):
            # Where a key contains a quote, its end was not found.
            self.error, self.refused = f"{key[:60]!r} is no key of a call", '"' not in key
        else:
            frame.key = key
            self._state = _VALUE
            return pos + 1
        return pos

    def _is_outermost_object(self) -> bool:
        return sum(frame.opener in ("{", "f(") for frame in self._frames) == 1

    def _keep(self, frame: OpenBracket) -> None:
        """Add the value that was read last to its container."""
        value = self._last
        if frame.unpacks:
            frame.unpacks = False
            frame.unpacked.append(value)
        elif frame.key is not None:
            frame.members[frame.key] = value
            frame.key = None
        elif frame.members and frame.opener == "{":
            self.error = "a value without a key is in an object"
        elif frame.members:
            self.error = "an argument without a name follows one with a name"
        else:
            frame.items.append(value)

    def _close(self, frame: OpenBracket, pos: int, offset: int) -> int:
        self._frames.pop()
        self._start = frame.start
        if frame.opener == "f(":
            is_argument = bool(self._frames) and self._frames[-1].in_tool  # so that only its text is needed
            self._value(TextSpan(frame.start, pos + 1 + offset, None if is_argument else frame))
        elif frame.opener == "{" and not frame.items:
            self._value(frame.members)
        elif frame.opener == "{" and frame.members:
            self.error = "a value without a key is in an object"
        elif frame.opener == "(" and len(frame.items) == 1 and not frame.commas:
            self._value(frame.items[0])
        else:
            self._value(frame.items)
        return pos + 1

    # -- expressions that stay text ----------------------------------------------------------------------------------

    def _in_text(self, text: str, pos: int, final: bool, offset: int) -> int:
        match = _SPECIAL.search(text, pos)
        at = match.start() if match else len(text)
        behind_quote = self._behind_quote and (pos == at or text[pos:at].isspace())
        self._behind_quote = behind_quote and match is None
        if match is None:
            return at
        c = match[0]
        if c in "=!<>" and match.end() == len(text) and not final:  # it may be the first half of a comparison
            return ~at
        if c in _POSING:
            self.error = "a sign is written in its wide form"
            return at
        if c == "=" and not self._nesting and self._frames[-1].opener == "f(":
            self.error = "a comma is missing before an argument"
            return at
        if c[0] in "=!<>":
            return match.end()
        if c in _CLOSER:
            if len(self._nesting) >= MAX_NESTING:
                self.error = f"more than {MAX_NESTING} levels of nesting"
                return at
            self._nesting.append(_CLOSER[c])
        elif c in "\"'":
            self._quote = c
            self._state = _TEXT_STRING
        elif self._nesting:
            if c == self._nesting[-1]:
                self._nesting.pop()
            elif c in ")]}":
                self.error = "brackets do not match"
                return at
        elif c == ";" or (c == ":" and behind_quote):
            self.error = "a comma is missing before a value"
            return at
        elif c != ":" or (self._frames[-1].opener == "{" and self._frames[-1].key is None):
            self._value(TextSpan(self._start, at + offset))
            return at
        return at + 1

    def _in_text_string(self, text: str, pos: int, final: bool) -> int:
        match = _QUOTED[self._quote].match(text, pos)
        stop = match.end() if match else pos
        if stop == len(text):
            return stop
        if text[stop] == "\\":  # at the end of the piece, where what it escapes has not come yet
            return stop + 1 if final else ~stop
        self._state = _TEXT
        self._behind_quote = True
        return stop + 1
