"""Make untrusted text safe to show: nothing in it steers a terminal, hides, or poses as something else.

| function | what becomes of it | where |
|---|---|---|
| `escape_invisible` | invisible characters become escapes | terminals, previews, error messages |
| `terminal_text` | the same, save line ends, tabs and joiners | whole texts on terminals |
| `escape_lookalikes` | so do letters that pass for Latin ones | approvals |
| `escape_as_json` | what is not printable becomes an escape of JSON | one line of JSON |
| `strip_invisible` | invisible characters go | text of servers that a model reads |
| `replace_surrogates` | halves of surrogate pairs become U+FFFD | text that is stored or sent as UTF-8 |
"""

from __future__ import annotations

import json
import re
import unicodedata
from itertools import groupby

from toolwire.text.lookalikes import DASHES, always_poses, poses_among_latin, poses_beside, twins_in

BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
"""Letters and marks by their category that show nothing on a screen."""
MAX_MARKS = 2
"""Maximum combining marks on one letter that are shown."""

_INVISIBLE_CATEGORIES = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))
_OF_LINES = "\n\t\u200c\u200d\ufe0f"
_TOKEN = re.compile(r"\s+|\S+")


def escape_invisible(text: str, keep: str = "") -> str:
    r"""Return text in which each character that a terminal obeys, or that hides or reorders others, is an escape.

    So is each one that shows nothing itself, save the space: `\x1b`, `\u202e`, `\u3164`.

    Args:
        text: the text to show.
        keep: characters that stay as they are, such as line ends and tabs.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if (c.isprintable() and c not in BLANK) or c in keep else _escape(c) for c in text)


def terminal_text(text: str) -> str:
    """Return lines of text for a terminal: line ends, tabs and the joiners of scripts and emoji stay."""
    return escape_invisible(text.replace("\r\n", "\n"), _OF_LINES)


def escape_lookalikes(text: str) -> str:
    """Return text in which invisible characters, and those that pose as Latin letters, are escapes; line ends stay."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    twins = twins_in(text)
    return "".join(_spell(token, twins) for token in _TOKEN.findall(text))


def escape_as_json(text: str) -> str:
    r"""Return text in which every character that is not printable is an escape as JSON writes it: `\u001b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def strip_invisible(text: str) -> str:
    """Return text without its invisible characters, save tabs and line ends."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in re.sub("[\u2028\u2029]", "\n", text) if c in "\t\n" or not is_invisible(c))


def is_invisible(character: str) -> bool:
    """Return whether a character has no shape, steers a terminal or the writing direction, or carries data unseen."""
    return unicodedata.category(character) in _INVISIBLE_CATEGORIES or character in BLANK


def replace_surrogates(text: str) -> str:
    """Return text that UTF-8 can hold: surrogate pairs are joined, and lone halves become U+FFFD."""
    if text.isascii():
        return text
    # Encoding as UTF-16 joins the halves of a pair that arrived in two pieces.
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _spell(token: str, twins: frozenset[str]) -> str:
    """Escape white space, or a run without any; in addresses all of it counts as one word."""
    if token.isascii() or token.isspace():
        return escape_invisible(token, "\n")
    # A Cyrillic word with letters of its own shapes is harmless. A Latin word with one Cyrillic letter is not, and
    # neither is any such letter in an address.
    address = "@" in token or "://" in token
    spelled: list[str] = []
    padded = f"{token} "
    alone = sum(not c.isascii() for c in token) == 1
    posing = {
        at for at, c in enumerate(token) if poses_beside(c, padded[at - 1].strip(), padded[at + 1].strip(), alone=alone)
    }
    if token[0] in DASHES and token[1:2].isascii() and token[1:2].isalnum():
        posing.add(0)
    at = 0
    for letters, run in groupby(token, key=lambda c: address or c.isalpha() or unicodedata.combining(c) > 0):
        part = "".join(run)
        latin = letters and any(c.isascii() and c.isalpha() for c in part)
        marks = 0
        for c in part:
            marks = marks + 1 if unicodedata.combining(c) else 0
            escaped = at in posing or c in twins or marks > MAX_MARKS
            escaped = escaped or (poses_among_latin(c) if latin else always_poses(c))
            spelled.append(_escape(c) if escaped else escape_invisible(c))
            at += 1
    return "".join(spelled)
