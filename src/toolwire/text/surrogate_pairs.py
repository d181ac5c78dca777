"""Characters that a program with UTF-16 strings splits between two pieces of a text."""

from __future__ import annotations

from typing import Literal

from toolwire.text.json_text import encodable


class SurrogatePairs:
    """Joins the halves of surrogate pairs in a text that arrives in pieces.

    Args:
        lone: what becomes of halves that are alone: "surrogatepass" to leave them, "replace" for U+FFFD.
    """

    __slots__ = ("_half", "_lone")

    def __init__(self, lone: Literal["surrogatepass", "replace"] = "surrogatepass") -> None:
        self._half = ""  # the first half of a pair, which waits for the other one
        self._lone = lone

    def feed(self, text: str) -> str:
        """Return a piece with whole characters; a first half at its end waits for the next piece."""
        if not self._half and encodable(text):
            return text
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] < "\udc00":
            text, self._half = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", self._lone)

    def finish(self) -> str:
        """Return the half that still waits, or no text."""
        half, self._half = self._half, ""
        return half
