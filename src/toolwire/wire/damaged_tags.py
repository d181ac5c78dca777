"""Tags in the value of a parameter that are not written right, so that the end of the value is not certain.

`</ parameter>` and `</parametr>` close nothing, and `< parameter=b>` begins nothing. So they would be parts of the
value, which is not what the model meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice

_ANGLE = "[<\N{FULLWIDTH LESS-THAN SIGN}]"
_LAST_CLOSER = re.compile(_ANGLE + r"\s{0,9}[/\\]{1,9}\s{0,9}([^\s<>/\\]{1,99})[^<>]{0,99}>?\Z")
"""A closing tag at the end of a text, in any spelling."""
_BEGINNING = re.compile(_ANGLE)
_TAIL = 400
"""Number of characters in which a tag is looked for."""
_CLOSERS = 100
"""Number of closing markers in a value behind which a header is looked for."""
_SIMILAR = 0.8
"""Least similarity of two words of which one may be the other with a typing error."""


def damaged_closer(text: str, close: str) -> str:
    """Return the tag with which a value ends although its closing marker is missing, or "".

    It is a closing tag that nothing in the value opens, or it resembles the closing marker.
    """
    text = text.rstrip()
    tail = text[-_TAIL:]
    tag = _LAST_CLOSER.search(tail)
    if tag is not None and not re.search(rf"<\s{{0,9}}{re.escape(tag[1])}", text, re.IGNORECASE):
        return tag[0]
    ends = (tail[match.start() :] for match in _BEGINNING.finditer(tail, max(0, len(tail) - _longest(close))))
    are_tags = (end for end in ends if ">" not in end or end.endswith(">"))
    return next((end for end in are_tags if _are_similar(_letters(end), _letters(close))), "")


def damaged_header(text: str, close: str, openers: Iterable[str]) -> str:
    """Return the tag behind a closing marker in a value that resembles the opener of another parameter, or ""."""
    for closer in islice(re.finditer(re.escape(close), text), _CLOSERS):
        behind = text[closer.end() : closer.end() + _TAIL].lstrip()
        # A closing marker that is repeated is a part of the value.
        is_tag = bool(behind) and not behind[0].isalnum() and not behind.startswith("</")
        if is_tag and any(_begins_like(behind, opener) for opener in openers):
            return behind.partition("\n")[0]
    return ""


def _longest(marker: str) -> int:
    """Return the maximum length of a marker that is not written right."""
    return 2 * len(marker) + 20


def _letters(text: str) -> str:
    """Return the letters and digits of a marker, by which it is recognized in any spelling."""
    return "".join(filter(str.isalnum, text)).lower()


def _are_similar(written: str, expected: str) -> bool:
    """Return whether a word may be the expected one with a typing error."""
    return SequenceMatcher(None, expected, written, autojunk=False).ratio() >= _SIMILAR


def _begins_like(text: str, marker: str) -> bool:
    """Return whether a text begins with a marker that may be this one, not written right."""
    letters = _letters(marker)
    return bool(letters) and _are_similar(_letters(text[: _longest(marker)])[: len(letters)], letters)
