"""Text in which markup is disguised, as it may have been meant: escaped, in wide signs, with blanks, in a block quote.

    &lt;tool_call&gt;    &#60;tool_call&#62;    < tool_call >    <Tool_Call>    > <tool_call>

No format reads such markup. The view is only for finding calls that are to be reported, at their place in the text.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right

from toolwire.text.lookalikes import SIGNS
from toolwire.wire.quotations import MAX_INDENT

_MEANT = {ord(posing): sign for sign, all_posing in SIGNS.items() for posing in all_posing} | {
    **{0xFF01 + at: chr(0x21 + at) for at in range(94)},  # the wide forms of ASCII
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2018\u2019"), "'"),
    **dict.fromkeys(map(ord, "\u2039\u3008\u27e8"), "<"),
    **dict.fromkeys(map(ord, "\u203a\u3009\u27e9"), ">"),
}
"""By code point of a sign that passes for one of markup, the sign that is meant."""
del _MEANT[0xFF5C]  # the markers of some formats have the wide bar
# Each alternative begins with one character of its own, so that the search for them is quick.
_DISGUISED = re.compile(
    rf"""
      &(?:amp;){{0,3}}(?:lt|gt|quot|apos|amp|\#[0-9]{{1,4}}|\#[xX][0-9a-fA-F]{{1,4}});
    | \\(?:\\{{0,2}}u00[0-9a-fA-F]{{2}}|[<>_\[\]{{}}()|"'=/`nt])
    | \n[ \t]{{0,{MAX_INDENT}}}>[> \t]{{0,{MAX_INDENT}}}
    | <(?:[ \t]{{1,4}}(?=[\w/|])/?[ \t]{{0,4}}|/[ \t]{{1,4}}(?=\w)|/?(?=[|\w:.-]{{0,60}}(?:[A-Z]|[ \t]{{1,4}}>)))
      [|\w:.-]{{0,60}}(?:[ \t]{{1,4}}(?=>))?
    | \u200b | \u200c | \u200d | \u2060 | \ufeff | \u00ad
    """,
    re.VERBOSE | re.ASCII,
)
_GLOSS = re.compile(r"[\w.-]{1,255}\uff08[^\"'=:\u201c\uff02\uff1d\uff1a]*\uff09")
_ESCAPES = {"n": "\n", "t": "\t"}


def _meant(match: re.Match[str]) -> str:
    """Return what is meant by a disguised piece of text."""
    written = match[0]
    match written[0]:
        case "&":
            for _ in range(written.count("amp;") + 1):
                written = html.unescape(written)
            return written
        case "\\":
            return chr(int(written[-2:], 16)) if "u" in written else _ESCAPES.get(written[1], written[1])
        case "<":
            return re.sub(r"[ \t]", "", written).lower()
        case "\n":
            return "\n"
        case _:
            return ""


class PlainView:
    """A text without disguises, with the places of its parts in the text as it is written.

    Attributes:
        text: the text without disguises, behind a line break that the text does not have.
        differs: something was disguised.
    """

    def __init__(self, written: str) -> None:
        text = "\n" + (written if written.isascii() else written.translate(_MEANT))
        self._views: list[int] = []  # where each piece begins in the view
        self._starts: list[int] = []  # where it begins in the text
        self._ends: list[int] = []  # where it ends there; -1 for a piece that is as long in both
        self._length = 0
        pieces: list[str] = []
        position = 0
        for match in _DISGUISED.finditer(text):
            pieces.append(self._piece(text[position : match.start()], position, 0))
            pieces.append(self._piece(_meant(match), match.start(), match.end()))
            position = match.end()
        pieces.append(self._piece(text[position:], position, 0))
        self.text = "".join(pieces)
        self.differs = self.text[1:] != written

    def _piece(self, piece: str, start: int, end: int) -> str:
        if piece:
            self._views.append(self._length)
            self._starts.append(start - 1)
            self._ends.append(end - 1)
            self._length += len(piece)
        return piece

    def start(self, at: int) -> int:
        """Return where a character of the view begins in the text."""
        piece = bisect_right(self._views, at) - 1
        return max(0, self._starts[piece] + (0 if self._ends[piece] >= 0 else at - self._views[piece]))

    def end(self, at: int) -> int:
        """Return where the character before a place of the view ends in the text."""
        piece = bisect_right(self._views, at - 1) - 1
        return self._ends[piece] if self._ends[piece] >= 0 else self._starts[piece] + at - self._views[piece]


def is_gloss(written: str) -> bool:
    """Return whether a piece of text is a word with another one for it in wide parentheses, and so not a call."""
    return _GLOSS.fullmatch(written) is not None


def may_be_disguised(text: str) -> bool:
    """Return False if certainly nothing in a text is disguised."""
    return not text.isascii() or any(sign in text for sign in "&\\<>")


def plain_view(text: str) -> PlainView | None:
    """Return the view of a text, or None if nothing in it is disguised."""
    if not may_be_disguised(text):  # pragma: no mutate - only to be faster
        return None
    view = PlainView(text)
    return view if view.differs else None
