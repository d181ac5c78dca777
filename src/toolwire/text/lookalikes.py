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

BESIDE_ASCII: dict[str, str] = {
    "'": (
        "\u02be\u02f4\u02f6\u0374\u0384\u055d\u144a\u16cc\u1cd3\u1fbd\u1fbf\u1ffd\u1ffe\u2036\u3003\U00016f51\U00016f52"
    ),
    "(": "\uff3b",
    ")": "\uff3d",
    ",": "\u00b8",
    "-": "\ufe58",
    ".": "\u06f0\ua60e\U0001d16d",
    "/": "\u2041\u2afd\u30ce\u31d3\u4e3f\U0001d23a",
    "2": "\u01a7\u03e8\u14bf\ua644\ua6ef\ua75a",
    "3": "\u01b7\u021c\u0417\u04e0\u2ccc\ua76a\ua7ab\U000118ca\U00016f3b\U0001d206",
    "4": "\u13ce\U000118af",
    "5": "\u01bc\U000118bb",
    "6": "\u0431\u13ee\u2cd2\U000118d5",
    "7": "\U000104d2\U000118c6\U0001d212",
    "8": "\u0222\u0223\u09ea\u0a6a\u0b03\U0001031a",
    "9": "\u09ed\u0a67\u0b68\u0d6d\u2cca\ua76e\U000118ac\U000118cc\U000118d6",
    ":": "\u02f8\u0903\u0a83\u16ec\u1803\u1809\u205a\ufe30",
    "<": "\U0001d236",
    "=": "\u2e40",
    ">": "\U00016f3f\U0001d237",
    "?": "\u0241\u097d\u13ae",
    "A": "\u0391\u0410\u13aa\u15c5\ua4ee\U000102a0\U00016f40",
    "B": "\u0392\u0412\u13f4\u15f7\ua4d0\ua7b4\U00010282\U000102a1\U00010301",
    "C": ("\u03f9\u0421\u13df\u216d\u2ca4\ua4da\U000102a2\U00010302\U00010415\U0001051c\U000118e9\U000118f2\U0001f74c"),
    "D": "\u13a0\u15de\u15ea\u216e\ua4d3",
    "E": "\u0395\u0415\u13ac\u22ff\u2d39\ua4f0\U00010286\U000118a6\U000118ae",
    "F": "\u03dc\u15b4\ua4dd\ua798\U00010287\U000102a5\U00010525\U000118a2\U000118c2\U0001d213",
    "G": "\u050c\u13c0\u13f3\ua4d6",
    "H": "\u0397\u041d\u13bb\u157c\u2c8e\ua4e7\U000102cf",
    "J": "\u037f\u0408\u13ab\u148d\ua4d9\ua7b2",
    "K": "\u039a\u041a\u13e6\u16d5\u2c94\ua4d7\U00010518",
    "L": "\u13de\u14aa\u216c\u2cd0\ua4e1\U0001041b\U00010526\U000118a3\U000118b2\U00016f16\U0001d22a",
    "M": "\u039c\u03fa\u041c\u13b7\u15f0\u16d6\u216f\u2c98\ua4df\U000102b0\U00010311",
    "N": "\u039d\u2c9a\ua4e0\U00010513",
    "O": (
        "\u039f\u041e\u0555\u09e6\u0b20\u0b66\u12d0\u2c9e\u2d54\u3007\ua4f3\U00010292\U000102ab\U00010404"
        "\U000104c2\U00010516\U000114d0\U000118b5\U000118e0"
    ),
    "P": "\u03a1\u0420\u13e2\u146d\u2ca2\ua4d1\U00010295",
    "Q": "\u2d55",
    "R": "\u01a6\u13a1\u13d2\u1587\ua4e3\U000104b4\U00016f35\U0001d216",
    "S": "\u0405\u054f\u13d5\u13da\ua4e2\U00010296\U00010420\U00016f3a",
    "T": ("\u03a4\u0422\u13a2\u22a4\u27d9\u2ca6\ua4d4\U00010297\U000102b1\U00010315\U000118bc\U00016f0a\U0001f768"),
    "U": "\u054d\u1200\u144c\u222a\u22c3\ua4f4\U000104ce\U000118b8\U00016f42",
    "V": "\u0474\u06f7\u13d9\u142f\u2164\u2d38\ua4e6\ua6df\U0001051d\U000118a0\U00016f08\U0001d20d",
    "W": "\u051c\u13b3\u13d4\ua4ea\U000118e6\U000118ef",
    "X": (
        "\u03a7\u0425\u166d\u16b7\u2169\u2573\u2cac\u2d5d\ua4eb\ua7b3\U00010290\U000102b4\U00010317\U00010322"
        "\U00010527\U000118ec"
    ),
    "Y": "\u03a5\u0423\u04ae\u13a9\u13bd\u2ca8\ua4ec\U000102b2\U000118a4\U00016f43",
    "Z": "\u0396\u13c3\ua4dc\U000102f5\U000118a9\U000118e5",
    "\\": "\u31d4\u4e36\U0001d20f\U0001d23b",
    "^": "\u02c6",
    "a": "\u03b1\u0430\u237a",
    "b": "\u0184\u042c\u13cf\u1472\u15af",
    "c": "\u03f2\u0441\u2ca5\uabaf\U0001043d",
    "d": "\u0501\u13e7\u146f\ua4d2",
    "e": "\u0435\u04bd\u212e\uab32",
    "f": "\u0584\u1e9d\ua799\uab35",
    "g": "\u018d\u0581\u1d83",
    "h": "\u04bb\u0570\u13c2",
    "i": "\u02db\u037a\u03b9\u0456\u04cf\u13a5\u2373\ua647\uab75\U000118c3\U0001d6a4",
    "j": "\u03f3\u0458",
    "l": "\u0399\u0406\u04c0\u06f1\u16c1\u2160\u2c92\u2d4f\ua4f2\U0001028a\U00010309\U00010320\U00016f28",
    "n": "\u0578\u057c",
    "o": (
        "\u03bf\u03c3\u043e\u0585\u06f5\u0966\u0a66\u0ae6\u0be6\u0c02\u0c66\u0c82\u0ce6\u0d02\u0d20\u0d66"
        "\u0d82\u0e50\u0ed0\u101d\u1040\u10ff\u1d11\u2c9f\uab3d\U0001042c\U000104ea\U000118c8\U000118d7"
    ),
    "p": "\u03c1\u0440\u2374\u2ca3",
    "q": "\u051b\u0563\u0566",
    "r": "\u0433\u1d26\u2c85\uab47\uab48\uab81",
    "s": "\u01bd\u0455\uabaa\U00010448\U000118c1",
    "u": "\u028b\u03c5\u057d\ua79f\uab4e\uab52\U000104f6\U000118d8",
    "v": "\u03bd\u0475\u2228\u22c1\uaba9\U00011706\U000118c0",
    "w": "\u026f\u0461\u051d\u0561\uab83\U0001170a\U0001170e\U0001170f",
    "x": "\u0445\u1541\u157d\u166e\u292b\u292c\u2a2f",
    "y": "\u0263\u03b3\u0443\u04af\u10e7\u1d8c\u1eff\uab5a\U000118dc",
    "z": "\uab93\U000118c4",
    "{": "\U0001d114",
    "~": "\u2053",
}
"""Letters, digits and signs that pass for an ASCII character only directly beside others: `id=1\u041e`.

In words of their own scripts they are ordinary. Compatibility forms of them need no rows.
"""

DASHES = "\u2013\u2014\u2015"
"""Dashes of ordinary text, which pass for the beginning of an option only before a word."""

LATIN_TWINS = (
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0455\u0456\u0458\u0501\u04bb\u04cf\u051b\u051d\u0475"
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u04ae\u051a\u051c"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03f2\u03f3"
    "\u0585\u0578\u057d\u0570\u0575\u0581"
)
"""Letters of Cyrillic, Greek and Armenian that have the shape of a Latin one, so that whole words pass for Latin."""

_TWINS = frozenset(LATIN_TWINS)
_BESIDE_ASCII = frozenset("".join(BESIDE_ASCII.values()))
_OPERATORS = frozenset("-/\\|=*~&$<>+^%#@_{}`")
"""Signs of commands and paths. Those of ordinary sentences stand beside words of every script."""
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
    return _script(c) not in _MIXED_FREELY


def poses_beside(c: str, before: str, behind: str, *, alone: bool) -> bool:
    """Return whether a character passes for an ASCII one between these two; each may be empty.

    It does beside ASCII letters and digits, and beside signs of commands and paths if it is a sign itself, or `alone`:
    the only character of its word that is not ASCII.
    """
    if c.isascii() or not _BESIDE_ASCII.intersection((c, unicodedata.normalize("NFKC", c))):
        return c in DASHES and "-" in (before, behind)
    neighbours = [other for other in (before, behind) if other and other.isascii()]
    return any(other.isalnum() or (other in _OPERATORS and (alone or not c.isalnum())) for other in neighbours)


def twins_in(text: str) -> frozenset[str]:
    """Return the letters of a text that pass for Latin ones in words of their own, such as `scope` in Cyrillic letters.

    Text in another script has letters of other shapes as well; one without any was made to look Latin.
    """
    letters = {c for c in text if not c.isascii() and c.isalpha()}
    if letters.isdisjoint(_TWINS):
        return frozenset()
    ordinary_scripts = {_script(c) for c in letters - _TWINS}
    return frozenset(c for c in letters & _TWINS if _script(c) not in ordinary_scripts)


def _script(c: str) -> str:
    return unicodedata.name(c, "").partition(" ")[0]
