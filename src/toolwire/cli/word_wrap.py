"""Wrap streamed prose between words, without changing text that was already shown."""

from __future__ import annotations

import re

from rich.cells import cell_len

FENCE = "```"
_PIECE = re.compile(r"\n|[^\S\n]+|\S+")


class WordWrapper:
    """A wrapper for text that arrives in pieces; it delays at most one unfinished word.

    Lines in a code fence, and lines that begin with four spaces or a tab, are unchanged, so that they can be copied.

    Args:
        width: maximum width of a line, in terminal cells.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._line = ""  # the current line of the source so far
        self._column = 0
        self._word = ""
        self._space = ""
        self._fenced = False

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        output: list[str] = []
        for piece in _PIECE.findall(text):
            if not piece.isspace():
                self._word += piece
                continue
            output.append(self._take_word())
            if piece == "\n":
                if self._line.lstrip().startswith(FENCE):
                    self._fenced = not self._fenced
                self._line, self._column, self._space = "", 0, ""
                output.append("\n")
            else:
                self._space += piece
        return "".join(output)

    def finish(self) -> str:
        """Return the rest of the text."""
        return self._take_word()

    def _take_word(self) -> str:
        """Return the delayed word after its space, or after a line end if it does not fit."""
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
