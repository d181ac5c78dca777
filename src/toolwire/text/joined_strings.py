"""Two strings with an operator between them, which are an expression and not one string with quotes in it."""

from __future__ import annotations

import re

_JOINS = re.compile(r"(?:[+*%&.]|\|\|)\s{0,9}[\"']")
_MAY_JOIN = re.compile(r"[+*%&.|]\|?\s{0,9}\Z")
JOINED = "an expression is in the place of a string"
"""The error about such strings."""


def joins_strings(text: str, pos: int, final: bool) -> bool | None:
    """Return whether an operator and another string are at this place behind a string; None: more text is needed."""
    return None if not final and _MAY_JOIN.match(text, pos) else _JOINS.match(text, pos) is not None
