"""Escaped code points in strings of JSON, which may be halves of surrogate pairs."""

from __future__ import annotations

import re

_LOW_HALF = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def end_of_code_point(text: str, pos: int, final: bool) -> int:
    r"""Return the end of the code point escaped at `pos`; -1 if more text is needed, `pos` for a lone half.

    Args:
        text: the text, which has `\u` and four hexadecimal digits there.
        pos: the position of the backslash.
        final: the text ends with this piece.
    """
    unit = int(text[pos + 2 : pos + 6], 16)
    if not 0xD800 <= unit <= 0xDFFF:
        return pos + 6
    # A high surrogate is valid only with the low one that follows it. A lone half has no UTF-8 form, so arguments
    # with one could be neither stored nor sent.
    rest = text[pos + 6 : pos + 12]
    if unit < 0xDC00:
        if len(rest) < 6 and not final and "\\u"[: len(rest)] == rest[:2]:
            return -1
        if _LOW_HALF.fullmatch(rest):
            return pos + 12
    return pos
