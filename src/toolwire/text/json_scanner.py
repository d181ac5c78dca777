"""An incremental JSON scanner for text that models write: linear time, and repairs that leave one reading.

`JsonScanner` is a push-down machine over the characters of one value. It never recurses, never rescans, and decides
every error at a character, so that any chunking of the same text gives the same outcome. The text that it emits
(`ready`) is always valid JSON; arguments deltas are made of it. A value that is there as a whole is tried once with
the C scanner of the standard library, under the same rules.

The rules are the same on every Python: at most `MAX_DEPTH` levels, integers of at most `limits.MAX_DIGITS` digits, no
infinities or NaN, no lone surrogates, no duplicate keys.
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolwire.text.joined_strings import JOINED, joins_strings
from toolwire.text.json_escapes import end_of_code_point
from toolwire.text.json_text import FastJsonReader
from toolwire.text.limits import MAX_DEPTH, number_over_limit

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER_RUN = re.compile(r"[-+.0-9A-Za-z_]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
# Text inside a string that is valid as it is: no quote, no control character, only escapes that JSON has. The
# possessive groups are bounded, so that one match never runs over a whole text which is then scanned again.
_PLAIN = {
    '"': re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]){0,256}+'),
    "'": re.compile(r"""(?:[^'"\\\x00-\x1f]++|\\["\\/bfnrt]){0,256}+"""),
}
_SPECIAL = {'"': re.compile(r'["\\\x00-\x1f]').search, "'": re.compile(r"""['"\\\x00-\x1f]""").search}
_SHORT = re.compile(r'"[^"\\\x00-\x1f]{0,200}"')
_AFTER_STRING = frozenset(",}]:")
_FAR = 64
"""Maximum white space behind a quote, in characters, that is searched for the character after it."""
_ESCAPES = frozenset('"\\/bfnrt')
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_WORDS = {"true": "true", "false": "false", "null": "null"}
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_LONGEST_WORD = 8

# States: what the machine expects next.
VALUE, FIRST_VALUE, FIRST_KEY, KEY, COLON, NEXT, STRING, NUMBER, WORD, END, BARE_KEY = range(11)
_SCALARS = frozenset((NUMBER, WORD))
_KEYS = frozenset((FIRST_KEY, KEY))
_CLOSING = frozenset((FIRST_KEY, KEY, NEXT))
MAX_KEY = 256
"""Maximum length of a key without quotes, in characters."""


class OpenTuple(set[str]):
    """An open parenthesis on the stack; it is empty until its first comma, without which it is not a tuple."""


class JsonScanner:
    """A scanner of one JSON value that arrives in pieces.

    Attributes:
        done: the value is complete; `scan` returned the position after it.
        error: why it is not JSON, or ""; `scan` returned the offending character's position.
        limited: whether the error is about a limit, not about the syntax.
        out: the list that emitted text goes to; `ready`, unless the caller collects a value elsewhere.
        ready: pieces of valid JSON text emitted since the caller last took them.
        repairs: the names of the repairs made.
        value: the value itself, if the C scanner read it at once; see `whole`.
        whole: whether `value` is set.
    """

    __slots__ = (
        "done", "doubled", "error", "fast", "fresh", "has_inner_quote", "in_key", "key", "key_escaped", "limited",
        "out", "pending", "quote", "ready", "repairing", "repairs", "run", "stack", "state", "value", "whole",
    )  # fmt: skip

    words = _PYTHON_WORDS
    plain_strings = True  # a string ends at its first quote
    comma, colon = ",", ":"  # as they are emitted; with a space behind them, white space of the text is not
    bare_key = re.compile(r"""[^\s<>{}()\[\]"'=,:;|\x00-\x1f\x7f]*""")

    def __init__(self, *, repair: bool = True, fast: FastJsonReader | None = None) -> None:
        self.repairing = repair
        self.fast = fast
        self.fresh = True
        self.done = self.whole = self.limited = self.doubled = False
        self.error = ""
        self.repairs: list[str] = []
        self.ready: list[str] = []
        self.out = self.ready
        self.value: Any = None
        self.state = VALUE
        self.stack: list[set[str] | None] = []  # a set of keys for an object, None for an array
        self.pending: list[str] = []  # a comma and the white space after it, until it is known not to trail
        self.in_key = self.key_escaped = self.has_inner_quote = False  # the latter in the current string
        self.key: list[str] = []
        self.run: list[str] = []  # the characters of a number or word
        self.quote = '"'

    # -- for callers -------------------------------------------------------------------------------------------------

    @property
    def quick(self) -> Any:
        """A search that finds nothing in a piece which is wholly inside the current string; None elsewhere.

        Such a piece may be appended to `out` as it is, which is what makes long strings cheap.
        """
        return _SPECIAL[self.quote] if self.state == STRING and not self.in_key else None

    def is_plain(self, text: str) -> bool:
        """Return whether a piece can be appended to `out` although `quick` finds something: it has whole escapes."""
        return _PLAIN[self.quote].fullmatch(text) is not None

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Scan from `pos`; return the position after the value, at an error, or where more text is needed."""
        if self.fresh and pos < len(text):
            self.fresh = False
            # Most values are short strings. One match is much cheaper than running the machine for them.
            if self.plain_strings and (short := _SHORT.match(text, pos)) is not None:
                self.ready.append(short[0])
                self.done = True
                return short.end()
            if self.fast is not None and (entry := self.fast.read(text, pos)) is not None:
                self.value, end = entry
                self.whole = self.done = True
                self.ready.append(text[pos:end])
                return end
        end = len(text)
        while pos < end and not self.done and not self.error:
            state = self.state
            if state == STRING:
                stop = self._string(text, pos, end, final)
            elif state in _SCALARS:
                stop = self._scalar(text, pos)
            elif state == BARE_KEY:
                stop = self._bare_key(text, pos)
            else:
                stop = self._structure(text, pos, final)
            if stop < 0:  # more text is needed
                return ~stop
            pos = stop
        return pos

    def finish(self) -> None:
        """End the text: a number or word at its very end is complete."""
        if self.state in _SCALARS and not self.stack:
            self._scalar_end()

    # -- the machine -------------------------------------------------------------------------------------------------

    def _repair(self, name: str, otherwise: str) -> bool:
        if not self.repairing:
            self.error = otherwise
            return False
        if name not in self.repairs:
            self.repairs.append(name)
        return True

    def _emit(self, text: str) -> None:
        if self.pending:
            self.out.extend(self.pending)
            self.pending.clear()
        self.out.append(text)

    def _structure(self, text: str, pos: int, final: bool) -> int:
        """Scan one step outside strings and scalars; return the position, or its complement if more text is needed."""
        c = text[pos]
        if c in " \t\n\r":
            match = _SPACE.match(text, pos)
            stop = match.end() if match else pos + 1
            if self.comma == ",":
                (self.pending or self.out).append(text[pos:stop])
            return stop
        state = self.state
        # A model that copies a template such as "{{"name": ...}}" doubles every brace, so the first object decides.
        if c == "{" and state == FIRST_KEY and self._doubles():
            return pos + 1
        if c == "}" and self.doubled and state in _CLOSING:
            if pos + 1 == len(text) and not final:
                return ~pos
            if not text.startswith("}}", pos):
                self.error = "doubled braces are closed by a single one"
                return pos
            pos += 1
        if state == NEXT:
            return self._after_value(c, pos)
        if state == COLON:
            if c != (expected := self.after_key()):
                self.error = f"{'a colon' if expected == ':' else expected} is missing after a key"
                return pos
            self._emit(self.colon)
            self.state = VALUE
            self.on_colon()
            return pos + 1
        if state in _KEYS:
            if c == '"' or (c == "'" and self._repair("single_quotes", "strings need double quotes")):
                self._open_string(c, key=True)
                return pos + 1
            return self._early_close("}", c, pos, "a key in double quotes is missing")
        if c == "]" and self.stack and self.stack[-1] is None and (state == FIRST_VALUE or self.pending):
            return self._early_close("]", c, pos, "a value is missing")
        return self._value_start(c, pos)

    def _doubles(self) -> bool:
        """Return whether all braces are doubled, as a model may copy them from a template."""
        if not self.doubled and len(self.stack) == 1 and self.braces_may_double:
            self.doubled = self._repair("doubled_braces", "a key in double quotes is missing")
        return self.doubled

    braces_may_double = True

    def _value_start(self, c: str, pos: int) -> int:
        if c == '"' or (c == "'" and self._repair("single_quotes", "strings need double quotes")):
            self._open_string(c, key=False)
        elif c == "{" or c == "[":
            return self._open(c, set() if c == "{" else None, FIRST_KEY if c == "{" else FIRST_VALUE, pos)
        elif c == "(" and (self.stack or self.number_starts) and self._repair("python_literal", "a tuple is not JSON"):
            return self._open("[", OpenTuple(), VALUE, pos)
        elif c == ")" and self.stack and isinstance(self.stack[-1], OpenTuple):
            self.pending.clear()
            return self._close("]", pos)
        elif c in "-0123456789" or c in self.number_starts:
            self.state = NUMBER
            self.run = [c]
        elif c.isalpha() and c.isascii():
            self.state = WORD
            self.run = [c]
        else:
            self.error = "a value is missing" if not self.error else self.error
            return pos
        return pos + 1

    def _open(self, bracket: str, level: set[str] | None, state: int, pos: int) -> int:
        if len(self.stack) >= MAX_DEPTH:
            self.limited = True
            self.error = f"more than {MAX_DEPTH} levels of nesting"
            return pos
        self._emit(bracket)
        self.stack.append(level)
        self.state = state
        return pos + 1

    number_starts = ""

    def _after_value(self, c: str, pos: int) -> int:
        top = self.stack[-1]
        if isinstance(top, OpenTuple):
            return self._after_tuple_value(top, c, pos)
        if c == ",":
            self.pending.append(self.comma)
            self.state = VALUE if top is None else KEY
            return pos + 1
        if c == ("]" if top is None else "}"):
            return self._close(c, pos)
        self.error = "a comma or the closing bracket is missing after a value"
        return pos

    def _after_tuple_value(self, top: OpenTuple, c: str, pos: int) -> int:
        if c == ",":
            top.add(c)
            self.pending.append(self.comma)
            self.state = VALUE
            return pos + 1
        if c == ")" and top:
            self.pending.clear()
            return self._close("]", pos)
        self.error = "a comma or the closing bracket is missing after a value"
        return pos

    def _early_close(self, expected: str, c: str, pos: int, otherwise: str) -> int:
        """Scan a closing bracket in place of a key or value: an empty container or a trailing comma."""
        if c != expected:
            self.error = self.error or otherwise
            return pos
        # The comma is still pending: emitted text cannot be taken back, so it waits until a value follows.
        if self.pending:
            if not self._repair("trailing_comma", "a comma before the closing bracket"):
                return pos
            self.out.extend(self.pending[1:])
            self.pending.clear()
        return self._close(c, pos)

    def _close(self, c: str, pos: int) -> int:
        self._emit(c)
        self.stack.pop()
        self._value_end()
        return pos + 1

    def _value_end(self) -> None:
        if self.stack:
            self.state = NEXT
            if len(self.stack) == 1:
                self.on_top_value()
        else:
            self.state = END
            self.done = True

    def _open_string(self, quote: str, *, key: bool) -> None:
        self._emit('"')
        self.quote = quote
        self.state = STRING
        self.in_key, self.has_inner_quote = key, False
        if key:
            self.key, self.key_escaped = [], False

    def _emit_string(self, text: str) -> None:
        self.out.append(text)
        if self.in_key:
            self.key.append(text)
            self.key_escaped = self.key_escaped or "\\" in text

    def _string(self, text: str, pos: int, end: int, final: bool) -> int:
        """Scan one step inside a string; return the position, or its complement if more text is needed."""
        match = _PLAIN[self.quote].match(text, pos)
        stop = match.end() if match else pos
        if stop > pos:
            self._emit_string(text[pos:stop])
            if stop == end or text[stop] != self.quote:
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

    inner_quotes = '"'  # the quotes that a model may have forgotten to escape
    blanks = _SPACE
    in_container = False  # the caller has read an opening bracket before the value

    def _string_end(self) -> None:
        if not self.in_key:
            self._value_end()
            return
        # Escapes are decoded, so that "a" and "\u0061" count as the same key.
        text = "".join(self.key)
        self.in_key = False
        self._key_end(json.loads(f'"{text}"') if self.key_escaped else text)

    def _start_bare_key(self) -> None:
        self.run, self.state = [], BARE_KEY

    def _bare_key(self, text: str, pos: int) -> int:
        """Scan a key without quotes, for dialects that have them."""
        match = self.bare_key.match(text, pos, pos + MAX_KEY + 1 - sum(map(len, self.run)))
        stop = match.end() if match else pos
        self.run.append(text[pos:stop])
        if sum(map(len, self.run)) > MAX_KEY:
            self.error = f"a key of more than {MAX_KEY} characters"
        elif stop < len(text):
            key = "".join(self.run).rstrip()
            self.run = []
            if key:
                self._emit(json.dumps(key, ensure_ascii=False))
                self._key_end(key)
            else:
                self.error = "a key is missing"
        return stop

    def _key_end(self, key: str) -> None:
        keys = self.stack[-1]
        # Other readers may take the other value: a policy would then decide about arguments that are not run.
        if keys is not None and key in keys:
            self.error = f"the key {key[:60]!r} is given twice"
            return
        if keys is not None:
            keys.add(key)
        self.state = COLON
        if len(self.stack) == 1:
            self.on_top_key(key)

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

    def _scalar(self, text: str, pos: int) -> int:
        match = _NUMBER_RUN.match(text, pos)
        stop = match.end() if match else pos
        if self.state == WORD:
            stop = min(stop, pos + _LONGEST_WORD + 1 - sum(map(len, self.run)))
        if stop > pos:
            self.run.append(text[pos:stop])
        if self.state == WORD and sum(map(len, self.run)) > _LONGEST_WORD:
            self.error = f"{''.join(self.run)!r} is not a JSON value"
        elif stop < len(text):
            self._scalar_end()
        return stop

    def _scalar_end(self) -> None:
        text = "".join(self.run)
        self.run = []
        written = self.word(text) if self.state == WORD else self.number(text)
        if written:
            self._emit(written)
            self._value_end()
        elif not self.error:
            self.error = f"{text[:40]!r} is not a JSON value"

    # -- to be overridden by dialects and callers --------------------------------------------------------------------

    def after_key(self) -> str:
        """Return the character between a key and its value."""
        return ":"

    def word(self, text: str) -> str:
        """Return the JSON text of a bare word, or "" if it is not a value."""
        written = _WORDS.get(text, "")
        if not written and text in self.words and self._repair("python_literal", f"{text} is not JSON"):
            written = self.words[text]
        return written

    def number(self, text: str) -> str:
        """Return the JSON text of a number, or "" if it is not a number or out of range."""
        match = _NUMBER.match(text)
        if match is None:
            return ""
        self.error = number_over_limit(text, integer=match[1] is None and match[2] is None)
        self.limited = bool(self.error)
        return "" if self.error else text

    def on_top_key(self, key: str) -> None:
        """Handle a key of the outermost object."""

    def on_colon(self) -> None:
        """Handle the beginning of a value in an object."""

    def on_top_value(self) -> None:
        """Handle the end of a value directly inside the outermost container."""
