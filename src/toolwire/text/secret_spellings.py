"""Spellings of secrets that are known: as they occur in text of any kind, escaped, encoded, or in numbers."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

MIN_LENGTH = 4
"""Minimum length of a secret without quotes, or of one to be searched for, in characters; shorter ones are words."""
MIN_ENVIRONMENT = 8
"""Minimum length of a secret in an environment variable, in characters; shorter values are words of other texts too."""
_URL_SAFE = str.maketrans("+/", "-_")
"""The two digits in which the Base64 of URLs differs."""
_LINE_END = r"(?:\s|\\{1,4}[nr]){0,20}"
"""The white space between two lines of digits, also escaped."""
_BYTES = (
    *((begin, number, "") for begin in ("\\x", "%", "\\u00") for number in ("02x", "02X")),
    ("\\", "03o", ""),
    *(("", number, between) for number in ("02x", "02X") for between in (" ", ":")),
    *(("0x", number, ", ") for number in ("02x", "02X")),
    *(("", "d", between) for between in (", ", " ")),
    ("&#", "d", ";"),
    *(("&#x", number, ";") for number in ("02x", "02X")),
)
"""Ways to write bytes: the text before each, the form of its number, and the text between two of them."""


def secret_spellings(known: Iterable[str]) -> list[str]:
    """Return secrets as they occur in text, in JSON and encoded, the longest first, without those too short to find."""
    spellings: set[str] = set()
    for secret in known:
        if len(secret) >= MIN_LENGTH:
            spellings.add(secret)
            if not secret.isalnum():
                spellings.update(_escaped_spellings(secret))
            elif not secret.isascii():
                spellings.add(json.dumps(secret)[1:-1])
            spellings.update(encoded_spellings(secret))
            spellings.update(_byte_spellings(secret))
    return sorted(spellings, key=len, reverse=True)


def _escaped_spellings(secret: str) -> Iterator[str]:
    """Yield a secret with escaped signs, as in JSON, addresses and HTML: encoders differ in which signs they escape."""
    for ascii in (False, True):
        spelling = json.dumps(secret, ensure_ascii=ascii)[1:-1]
        yield spelling
        yield spelling.replace("/", "\\/")  # PHP
        for signs in ("<>&", "<>&'+`"):  # Go, .NET
            for form in ("\\u{:04x}", "\\u{:04X}"):
                yield "".join(form.format(ord(c)) if c in signs else c for c in spelling)
    for safe in ("/", "!'()*", ";,/?:@&=+$!'()*#"):  # Python, and both functions of JavaScript
        percent = quote(secret.encode("utf-8", "surrogatepass"), safe)
        yield percent
        yield re.sub("%..", lambda match: match[0].lower(), percent)
    for quotes in (False, True):
        yield html.escape(secret, quote=quotes)


def encoded_spellings(secret: str) -> Iterator[str]:
    """Yield a secret in hexadecimal digits, percent-encoding, Base64 and Base32, also where it begins inside a text.

    Secrets shorter than `MIN_ENVIRONMENT` have none: a few digits occur in other texts too.
    """
    data = secret.encode("utf-8", "surrogatepass")
    if len(data) < MIN_ENVIRONMENT:
        return
    percent = quote(data, safe="")
    if percent != secret:
        yield percent
        yield re.sub("%..", lambda match: match[0].lower(), percent)
    yield from _digits(data)


def _digits(data: bytes) -> Iterator[str]:
    """Yield bytes in hexadecimal, and in Base64 and Base32 for each number of other bytes in their first group."""
    yield data.hex()
    yield data.hex().upper()
    for group, bits, encode in ((3, 6, base64.b64encode), (5, 5, base64.b32encode)):
        for before in range(group):
            # Digits at both ends that also depend on other bytes are left out.
            digits = encode(bytes(before) + data).decode()[-(-before * 8 // bits) : (before + len(data)) * 8 // bits]
            yield digits
            yield digits.translate(_URL_SAFE) if bits == 6 else digits.lower()


def _byte_spellings(secret: str) -> Iterator[str]:
    """Yield a secret with each of its bytes as an escape or a number, as in source text and in dumps of bytes."""
    data = secret.encode("utf-8", "surrogatepass")
    if len(data) < MIN_ENVIRONMENT:
        return
    for begin, number, between in _BYTES:
        yield between.join(f"{begin}{byte:{number}}" for byte in data)


def redact_wrapped(text: str, known: Iterable[str], instead: str) -> str:
    """Return a text with something else in place of secrets whose Base64 or other digits continue on the next line.

    Args:
        text: the text; ends of lines may be escaped.
        known: the secrets.
        instead: the text in their place.
    """
    if "\n" not in text and "\\n" not in text:
        return text
    # Most texts contain none, which is found out in a copy without white space.
    joined = "".join(text.replace("\\n", " ").replace("\\r", " ").replace("\\", " ").split())
    for secret in known:
        data = secret.encode("utf-8", "surrogatepass")
        for digits in _digits(data) if len(data) >= MIN_ENVIRONMENT else ():
            if digits in joined:
                text = re.sub(_LINE_END.join(map(re.escape, digits)), instead, text)
    return text
