"""A lenient view on JSON text that is still being written."""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json

_OPENING = re.compile(r"\s*(?:```\w*[ \t]*\n)?\s*")
"""White space and the opening line of a code fence before a value."""
_STEP = 32
"""Divisor of the length: the text is read again when it has grown by this part, so the work stays linear."""


class PartialJson:
    """Follows the text of one object or array, and reads it as if it ended where it does so far.

    Attributes:
        value: the value so far; None if nothing can be read yet. Its last text may be cut, and a number, a word or a
            key that may continue is left out.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self._text = ""
        self._new: list[str] = []
        self._grown = 0
        self._hopeless = False  # the text is not an object or an array

    def feed(self, piece: str) -> bool:
        """Add a piece of text; return whether the value has changed."""
        if self._hopeless:
            return False
        self._new.append(piece)
        self._grown += len(piece)
        if self._grown * _STEP < len(self._text):
            return False
        self._text = "".join((self._text, *self._new))
        self._new, self._grown = [], 0
        opening = _OPENING.match(self._text)
        assert opening is not None  # it matches empty text
        text = self._text[opening.end() :]
        if not text or text[0] not in "{[":
            # Backquotes may become a fence.
            self._hopeless = bool(text) and not "```".startswith(text[:3])
            return False
        try:
            value = from_json(text, allow_partial="trailing-strings")
        except ValueError:  # not JSON, or there is text after it
            return False
        if value == self.value:
            return False
        self.value = value
        return True
