"""Characters that pass for ASCII: letters of other scripts, variants of Latin letters, and signs of commands and paths.

The classes follow Unicode's confusables (UTS 39). They are derived from names and compatibility forms, so a new version
of Unicode needs no new table; only signs, whose names say nothing about their looks, are listed.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

SIGNS: dict[str, str] = {
    "-": "\u2010\u2011\u2012\u2212\u2043\u02d7\ufe63\uff0d\u2796\u06d4\u2cba",
    "/": "\u2044\u2215\u2571\u29f8\u27cb\uff0f\u1735\u2cc6\u3033",
    "\\": "\u2216\u29f5\u29f9\ufe68\uff3c\u27cd",
    ".": "\u2024\ufe52\uff0e\u0701\u0702\ua4f8\u0660",
    ":": "\u2236\ua789\u02d0\u05c3\u0589\ufe55\uff1a\u0703\u0704\ua4fd",
    ";": "\u037e\ufe54\uff1b",
    ",": "\u201a\ufe50\uff0c\ua4f9",
    "|": "\u2223\u01c0\uff5c\uffe8\u23fd\u2758",
    "!": "\u01c3\ufe57\uff01\u2d51",
    "*": "\u2217\u204e\u066d\ufe61\uff0a\U0001031f",
    "~": "\u223c\u02dc\u1fc0\uff5e",
    "&": "\ufe60\uff06\ua778",
    "$": "\ufe69\uff04",
    "=": "\ua4ff\u30a0\ufe66\uff1d\u1400",
    "<": "\u02c2\u1438\u16b2\ufe64\uff1c\u276e",
    ">": "\u02c3\u1433\ufe65\uff1e\u276f\u16ff",
    "'": "\u2032\u02b9\u02bb\u02bc\u02bd\u02c8\u02ca\uff07\ua78c\u201b\u055a\u05f3",
    '"': "\u2033\u02ba\u02dd\u02ee\uff02\u201f\u05f4",
    "`": "\u02cb\u1fef\uff40\u2035",
    "_": "\u07fa\ufe4d\ufe4e\ufe4f\uff3f",
    "#": "\u22d5\ufe5f\uff03",
    "%": "\u066a\ufe6a\uff05",
    "@": "\ufe6b\uff20",
    "+": "\u16ed\u2795\ufe62\uff0b\U0001029b",
    "(": "\u2768\u2772\u3014\ufd3e\uff08",
    ")": "\u2769\u2773\u3015\ufd3f\uff09",
    "{": "\u2774\uff5b",
    "}": "\u2775\uff5d",
    "^": "\u02c4\uff3e",
    "?": "\ufe56\uff1f\u0294\ua6eb",
}
"""Signs that pass for an ASCII one. Dashes, quotes and dots of ordinary typesetting are not among them."""

DASHES = "\u2013\u2014\u2015"
"""Dashes of ordinary text, which pass for the beginning of an option only before a word."""

_SIGNS = frozenset("".join(SIGNS.values()))
_LATIN_PARTS = ("SMALL CAPITAL", "DOTLESS", "SCRIPT G", "LETTER ALPHA", "LETTER IOTA", "CLICK", "LONG S", "BROKEN L")
_MIXED_FREELY = (
    *("LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "HALFWIDTH"),
    *("THAI", "LAO", "KHMER", "MYANMAR"),
)
"""First words of the names of letters that ordinary text has directly beside Latin ones."""
_LATIN_1 = "\xff"


@lru_cache(maxsize=4096)
def always_poses(c: str) -> bool:
    """Return whether a character passes for an ASCII one in any text."""
    if c <= _LATIN_1:
        return False
    if c in _SIGNS:
        return True
    if not c.isalnum():
        return False
    name = unicodedata.name(c, "")
    if name.startswith("LATIN") and any(part in name for part in _LATIN_PARTS) and "WITH" not in name:
        return True
    # Superscripts and fractions have such forms too, and pass for nothing.
    plain = unicodedata.normalize("NFKC", c)
    return plain.isascii() and plain.isalnum() and unicodedata.category(c) != "No" and not name.startswith("ROMAN")


@lru_cache(maxsize=4096)
def poses_among_latin(c: str) -> bool:
    """Return whether a character passes for a Latin letter if it is beside others: a letter of another script."""
    if c.isascii() or always_poses(c):
        return not c.isascii()
    if not c.isalpha() and unicodedata.category(c) != "Nl":
        return False
    return unicodedata.name(c, "").partition(" ")[0] not in _MIXED_FREELY
