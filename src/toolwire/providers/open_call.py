"""A call of an answer whose arguments are still being read."""

from __future__ import annotations

from typing import Any

from toolwire.messages import OpaquePart
from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import FastJsonReader, JsonError, decode
from toolwire.text.surrogate_pairs import SurrogatePairs

_SPACE = " \t\r\n"
NO_ARGUMENTS = frozenset(("", "null"))
"""Texts that stand for no arguments at all."""


class ArgumentsScanner(JsonScanner):
    """Scans a call's arguments, and counts the pieces that contain whole values."""

    __slots__ = ("taken", "whole_until")

    def __init__(self) -> None:
        super().__init__(fast=FastJsonReader())
        self.taken = 0  # released pieces that were taken
        self.whole_until = 0  # released pieces up to the end of the last whole value

    def on_top_value(self) -> None:
        """Note the end of a whole value."""
        self.whole_until = self.taken + len(self.ready)

    def take(self) -> list[str]:
        """Return the pieces that were released since the last call."""
        pieces = self.ready.copy()
        self.ready.clear()
        self.taken += len(pieces)
        return pieces


class OpenCall:
    """A call whose arguments are still being streamed."""

    def __init__(self, index: int, name: str, id: str) -> None:
        self.index = index
        self.name = name
        self.id = id
        self.announced = False
        self.free = False  # the arguments are text, not JSON
        self.contradicted = False  # the provider gave other arguments at the end
        self.pieces: list[str] = []  # the arguments as the provider wrote them
        self.object: dict[str, Any] | None = None  # the arguments, if the provider gave an object
        self.blank = True  # only white space so far
        self.scanner: ArgumentsScanner | None = None
        self.tail = ""  # text that the scanner cannot judge yet
        self.trailing: list[str] = []  # text after the object
        self.released: list[str] = []  # the JSON text that was streamed
        self.pairs = SurrogatePairs()  # characters that are split between two pieces
        self.extra: OpaquePart | None = None  # members that only this API has
        self.of_provider = False  # the provider defined its tool

    @property
    def raw(self) -> str:
        """The arguments as the provider wrote them."""
        return "".join(self.pieces)

    @property
    def whole(self) -> bool:
        """True once the arguments are an object that has been closed."""
        return self.object is not None or (self.scanner is not None and self.scanner.done)

    def add(self, text: str) -> str:
        """Add to the arguments; return the JSON text that can be streamed."""
        self.pieces.append(text)
        if self.blank:
            text = text.lstrip(_SPACE)
            if not text:
                return ""
            self.blank = False
            if text.startswith("{") and not self.free:
                self.scanner = ArgumentsScanner()
        scanner = self.scanner
        if scanner is None:
            return ""
        if self.over:
            self.trailing.append(text)
            return ""
        # Most pieces continue a string: `quick` accepts those without a full scan.
        if not self.tail and scanner.quick is not None and scanner.quick(text) is None:
            scanner.out.append(text)
        else:
            self._scan(scanner, text, False)
        return self._take(scanner)

    @property
    def over(self) -> bool:
        """True once further text is not part of the arguments."""
        return self.scanner is not None and (self.scanner.done or bool(self.scanner.error))

    def _scan(self, scanner: ArgumentsScanner, text: str, final: bool) -> None:
        text = self.tail + text
        stop = scanner.scan(text, 0, final)
        rest = text[stop:]
        self.tail = ""
        if self.over:
            self.trailing.append(rest)
        else:
            self.tail = rest

    def close(self) -> str:
        """End the arguments; return the JSON text that can still be streamed."""
        if self.scanner is None:
            return ""
        if self.tail:
            self._scan(self.scanner, "", True)
        return self._take(self.scanner)

    def _take(self, scanner: ArgumentsScanner) -> str:
        pieces = scanner.take()
        self.released += pieces
        return "".join(pieces)

    @property
    def shows_end(self) -> bool:
        """True if the arguments themselves say whether they are whole: JSON text has a last bracket."""
        return not (self.object is not None or self.free or self.raw.strip() in NO_ARGUMENTS)

    @property
    def whole_values(self) -> dict[str, Any]:
        """The whole values of arguments that were truncated or broken."""
        if self.object is not None:
            return self.object
        text = "".join(self.released[: self.scanner.whole_until]) if self.scanner is not None else ""
        if not text:
            return {}
        try:
            value = decode(text + "}")
        except JsonError:
            return {}
        return value if isinstance(value, dict) else {}
