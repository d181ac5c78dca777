"""Character references of HTML in text that anybody may have written."""

from __future__ import annotations

import html
import re

_LEADING_ZEROS = re.compile(r"&#0++(?=[0-9])")
_BEYOND_UNICODE = re.compile(r"&#[0-9]{8,};?")


def resolve_entities(text: str) -> str:
    """Return a text with the character references of HTML replaced by the characters; it never raises.

    A number that is too large for a character becomes U+FFFD, as in browsers.
    """
    # Python refuses to convert thousands of digits, which would make a page able to stop a reader.
    if "&#" in text:
        text = _BEYOND_UNICODE.sub("\ufffd", _LEADING_ZEROS.sub("&#", text))
    return html.unescape(text)
