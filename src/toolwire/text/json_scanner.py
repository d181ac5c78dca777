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

from toolwire.text.json_strings import JsonStrings
from toolwire.text.json_text import FastJsonReader
from toolwire.text.limits import MAX_DEPTH, number_over_limit

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER_RUN = re.compile(r"[-+.0-9A-Za-z_]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_SPECIAL = {'"': re.compile(r'["\\\x00-\x1f]').search, "'": re.compile(r"""['"\\\x00-\x1f]""").search}
_SHORT = re.compile(r'"[^"\\\x00-\x1f]{1,200}"')  # an empty string may be the beginning of three quotes
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


class JsonScanner(JsonStrings):
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

    __slots__ = ("done", "doubled", "fast", "fresh", "pending", "ready", "run", "state", "value", "whole")

    words = _PYTHON_WORDS
    plain_strings = True  # a string ends at its first quote
    comma, colon = ",", ":"  # as they are emitted; with a space behind them, white space of the text is not
    bare_key = re.compile(r"""[^\s<>{}()\[\]"'=,:;|\x00-\x1f\x7f]*""")

    def __init__(self, *, repair: bool = True, fast: FastJsonReader | None = None) -> None:
        super().__init__(repair=repair)
        self.fast = fast
        self.fresh = True
        self.done = self.whole = self.doubled = False
        self.ready = self.out
        self.value: Any = None
        self.state = VALUE
        self.pending: list[str] = []  # a comma and the white space after it, until it is known not to trail
        self.run: list[str] = []  # the characters of a number or word

    # -- for callers -------------------------------------------------------------------------------------------------

    @property
    def quick(self) -> Any:
        """A search that finds nothing in a piece which is wholly inside the current string; None elsewhere.

        Such a piece may be appended to `out` as it is, which is what makes long strings cheap. Right behind an opening
        quote, the number of quotes is not known yet.
        """
        return _SPECIAL[self.quote] if self.state == STRING and not (self.in_key or self.opened) else None

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Scan from `pos`; return the position after the value, at an error, or where more text is needed."""
        if self.fresh and pos < len(text):
            self.fresh = False
            # Most values are short strings. One match is much cheaper than running the machine for them.
            if self.plain_strings and (short := _SHORT.match(text, pos)) is not None:
                self.ready.append(short[0])
                self.done = True
                return short.end()
            if self.fast is not None and (entry := self.fast.read(text, pos)) is not None and entry[0] != "":
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
        self.opened, self.triple = True, False
        if key:
            self.key, self.key_escaped = [], False

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
