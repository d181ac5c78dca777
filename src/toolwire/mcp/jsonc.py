"""Read JSON with comments and trailing commas, as editors use it for settings; report the line of each key."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 50
"""Maximum nesting depth of a value, in levels."""

_IGNORED = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?s:.*?)\*/)*")
_TOKEN = re.compile(
    r"""(?P<mark>[{}\[\],:])
    | (?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")
    | (?P<other>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)""",
    re.VERBOSE,
)

Lines = dict[tuple[str, ...], int]


class JsoncError(ValueError):
    """A text is not valid JSON with comments.

    Attributes:
        line: line of the error, counted from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read(text: str) -> tuple[Any, Lines]:
    """Return the value of a text, and the line of each key, counted from 1.

    Raises:
        JsoncError: it is not JSON, a key appears twice in one object, or it is nested deeper than `MAX_DEPTH`.
    """
    reader = _Reader(text.removeprefix("\ufeff"))
    value = reader.value(())
    if reader.mark() is not None:
        raise reader.error("text follows after the value")
    return value, reader.lines


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted = (0, 1)  # an offset, and the line there: no newline is counted twice
        self.lines: Lines = {}
        self._next()

    def _next(self) -> None:
        ignored = _IGNORED.match(self._text, self._at)
        self._start = ignored.end() if ignored else self._at
        self._token = _TOKEN.match(self._text, self._start)
        self._at = self._token.end() if self._token else self._start

    def line(self) -> int:
        """Return the line of the next token."""
        at, line = self._counted
        self._counted = self._start, line + self._text.count("\n", at, self._start)
        return self._counted[1]

    def error(self, message: str) -> JsoncError:
        """Return an error at the next token."""
        return JsoncError(message, self.line())

    def mark(self) -> str | None:
        """Return the text of the next token; None at the end."""
        if self._token is not None:
            return self._token.group()
        return None if self._start == len(self._text) else self._text[self._start]

    def value(self, path: tuple[str, ...]) -> Any:
        """Read the value that begins with the next token."""
        token = self._token
        if token is None or len(path) > MAX_DEPTH:
            raise self.error("a value is missing" if token is None else f"nested deeper than {MAX_DEPTH} levels")
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
        members: dict[str, Any] = {}
        self._next()
        while self.mark() != "}":
            if self._token is None or not self._token["text"]:
                raise self.error("a key in double quotes is missing")
            key, line = str(self._loaded(self._token["text"])), self.line()
            if key in members:
                raise self.error(f"the key {key!r} appears a second time")
            self.lines[(*path, key)] = line
            self._next()
            self._expect(":")
            members[key] = self.value((*path, key))
            if self.mark() != "}":
                self._expect(",")
        self._next()
        return members

    def _array(self, path: tuple[str, ...]) -> list[Any]:
        elements: list[Any] = []
        self._next()
        while self.mark() != "]":
            self.lines[(*path, str(len(elements)))] = self.line()
            elements.append(self.value((*path, str(len(elements)))))
            if self.mark() != "]":
                self._expect(",")
        self._next()
        return elements

    def _expect(self, mark: str) -> None:
        if self.mark() != mark:
            raise self.error(f"{mark} is missing")
        self._next()
