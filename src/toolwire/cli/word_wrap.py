"""Prose broken into lines between words while it comes; what was given out is never taken back."""

from __future__ import annotations

import re

from rich.cells import cell_len

FENCE = "```"
_PIECE = re.compile(r"\n|[^\S\n]+|\S+")


class Wrapped:
    """Wraps text that comes in pieces; at most the word that has begun is held back.

    Lines inside a code fence, and those that begin with four spaces or a tab, stay as they are: somebody may copy them.

    Args:
        width: cells of a line.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._line = ""  # what the source's line holds so far
        self._column = 0
        self._word = ""
        self._space = ""
        self._fenced = False

    def feed(self, text: str) -> str:
        """What can be shown now."""
        made: list[str] = []
        for piece in _PIECE.findall(text):
            if not piece.isspace():
                self._word += piece
                continue
            made.append(self._placed())
            if piece == "\n":
                if self._line.lstrip().startswith(FENCE):
                    self._fenced = not self._fenced
                self._line, self._column, self._space = "", 0, ""
                made.append("\n")
            else:
                self._space += piece
        return "".join(made)

    def finish(self) -> str:
        """The rest."""
        return self._placed()

    def _placed(self) -> str:
        """The word that was held back, and the space before it, or a line end in place of it."""
        word, space = self._word, self._space
        if not word:
            return ""
        self._word = self._space = ""
        self._line += space + word
        size = cell_len(space) + cell_len(word)
        free = not self._fenced and not self._line.startswith(("    ", "\t", FENCE))
        if free and self._column and self._column + size > self._width:
            self._column = cell_len(word)
            return "\n" + word
        self._column += size
        return space + word
