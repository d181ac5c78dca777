"""JSON as people keep it in settings: with comments and commas before a bracket; each key with its line."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 50

_IGNORED = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?s:.*?)\*/)*")
_TOKEN = re.compile(
    r"""(?P<mark>[{}\[\],:])
    | (?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")
    | (?P<other>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)""",
    re.VERBOSE,
)

Lines = dict[tuple[str, ...], int]


class NotJson(ValueError):
    """Text that cannot be read.

    Attributes:
        line: where.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read(text: str) -> tuple[Any, Lines]:
    """The value that a text holds, and the line of each key, counted from 1.

    Raises:
        NotJson: it is no JSON, a key stands twice in one object, or it is nested deeper than `MAX_DEPTH`.
    """
    reader = _Reader(text.removeprefix("\ufeff"))
    value = reader.value(())
    if reader.mark() is not None:
        raise reader.error("something follows the end")
    return value, reader.lines


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted = (0, 1)  # up to where lines were counted, and the line there
        self.lines: Lines = {}
        self._next()

    def _next(self) -> None:
        ignored = _IGNORED.match(self._text, self._at)
        self._start = ignored.end() if ignored else self._at
        self._token = _TOKEN.match(self._text, self._start)
        self._at = self._token.end() if self._token else self._start

    def line(self) -> int:
        """The line of the token that comes next."""
        at, line = self._counted
        self._counted = self._start, line + self._text.count("\n", at, self._start)
        return self._counted[1]

    def error(self, message: str) -> NotJson:
        """An error at the token that comes next."""
        return NotJson(message, self.line())

    def mark(self) -> str | None:
        """The token that comes next; None at the end."""
        if self._token is not None:
            return self._token.group()
        return None if self._start == len(self._text) else self._text[self._start]

    def value(self, path: tuple[str, ...]) -> Any:
        """The value that begins here."""
        token = self._token
        if token is None or len(path) > MAX_DEPTH:
            raise self.error("no value stands here" if token is None else f"nested deeper than {MAX_DEPTH} levels")
        if token["mark"] == "{":
            return self._object(path)
        if token["mark"] == "[":
            return self._array(path)
        if token["mark"]:
            raise self.error(f"no value begins with {token.group()}")
        self._next()
        return self._loaded(token.group())

    def _loaded(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self.error(f"not a value: {text:.40}") from error

    def _object(self, path: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._next()
        while self.mark() != "}":
            if self._token is None or not self._token["text"]:
                raise self.error("a key in double quotes is missing")
            key, line = str(self._loaded(self._token["text"])), self.line()
            if key in found:
                raise self.error(f"the key {key!r} stands here a second time")
            self.lines[(*path, key)] = line
            self._next()
            self._expect(":")
            found[key] = self.value((*path, key))
            if self.mark() != "}":
                self._expect(",")
        self._next()
        return found

    def _array(self, path: tuple[str, ...]) -> list[Any]:
        found: list[Any] = []
        self._next()
        while self.mark() != "]":
            self.lines[(*path, str(len(found)))] = self.line()
            found.append(self.value((*path, str(len(found)))))
            if self.mark() != "]":
                self._expect(",")
        self._next()
        return found

    def _expect(self, mark: str) -> None:
        if self.mark() != mark:
            raise self.error(f"{mark} is missing")
        self._next()
