"""Unicode normalization of text that anybody may have written."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

_MAX_MARKS = 30
"""Combining marks in a row, from which Unicode's Stream-Safe Text Format separates them (UAX #15)."""
_GRAPHEME_JOINER = "\u034f"


def normalize(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return a text in a normal form, in linear time.

    A longer row of combining marks than any script has is separated by invisible joiners.
    """
    # Marks in a row are sorted by insertion, so a page of nothing but marks would take minutes.
    if not text.isascii():
        marks = "".join(c for c in set(text) if _begins_with_mark(c))
        if marks:
            mark = f"[{re.escape(marks)}]"
            text = re.sub(f"{mark}{{{_MAX_MARKS}}}(?={mark})", rf"\g<0>{_GRAPHEME_JOINER}", text)
    return unicodedata.normalize(form, text)


def _begins_with_mark(c: str) -> bool:
    return not c.isascii() and unicodedata.combining(unicodedata.normalize("NFKD", c)[0]) > 0
