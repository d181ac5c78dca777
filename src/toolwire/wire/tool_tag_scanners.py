"""Leaves for elements that are named after tools: the values of their parameters, and plain text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from toolwire.tools import MAX_NAME
from toolwire.wire.leaf_scanners import CDATA, CDATA_END, Leaf
from toolwire.wire.lookahead import KnownTags
from toolwire.wire.marker_sets import MarkerSet, marker_set
from toolwire.wire.xml_scanners import XmlText

_ENDS = (">", " ", "\n", "\t", "\r")
_SIBLING, _CALL, _CALL_END = "sibling", "call", "call end"


@lru_cache(maxsize=1024)
def _tags(tool: str, name: str, siblings: tuple[str, ...]) -> tuple[MarkerSet, dict[str, str]]:
    """Return the markup that matters in the value of a parameter, and the kind of each."""
    kinds = {CDATA: CDATA}
    # A server chooses the names of its parameters, and no model writes a tag of thousands of characters.
    for sibling in (sibling for sibling in siblings if len(sibling) <= MAX_NAME):
        kinds |= {f"<{sibling}{end}": _SIBLING for end in _ENDS} | {f"</{sibling}>": _SIBLING}
    kinds |= {f"<{tool}{end}": _CALL for end in _ENDS} | {f"</{tool}>": _CALL_END}
    kinds |= {f"<{name}{end}": "<" for end in _ENDS} | {f"</{name}>": "</"}
    return marker_set(frozenset(kinds)), kinds


class ToolValue(XmlText):
    """The value of one parameter up to its closing tag, or to that of the call if its own is missing.

    The call's closing tag proves that the value's own is missing if nothing or another call follows, and if no other
    parameter's tag came before. A call inside the value has to be whole: its closing tags close neither the value nor
    the call around it.

    Args:
        tool, name: names of the tool and of the parameter.
        siblings: the parameters of the tool; empty if it declares none.
        known: the tags of all tools.
        decode: decode the text, for a string value; else pass it on as it is.
        put: takes the text, piece by piece.

    Attributes:
        doubtful: the text contains the tag of another parameter, so a missing closing tag may belong anywhere.
    """

    __slots__ = (
        "_begun",
        "_calls",
        "_held_line",
        "_held_space",
        "_kinds",
        "_known",
        "_tags",
        "_untyped",
        "_verbatim",
        "_write",
        "doubtful",
    )

    def __init__(
        self,
        tool: str,
        name: str,
        siblings: tuple[str, ...],
        known: KnownTags,
        *,
        decode: bool,
        put: Callable[[str], None],
    ) -> None:
        super().__init__(
            name,
            marker_set(frozenset({f"</{tool}>"})),
            outer={},
            nocase=False,
            decode=decode,
            put=self._put_trimmed,
        )
        self._tags, self._kinds = _tags(tool, name, siblings)
        self._known = known
        self._write = put
        self._held_space: list[str] = []  # white space at the end of the value so far
        self._held_line: list[str] = []  # the first line, after white space at the beginning
        self._begun = False
        self._verbatim = False  # the value has several lines or CDATA: white space is part of it
        self._untyped = not siblings
        self._calls = 0  # calls inside the value that are not closed
        self.doubtful = False

    @property
    def missing(self) -> bool:
        """True if the call's closing tag was read in place of the value's."""
        return self.closer == _CALL_END

    def end(self) -> None:
        """Pass on what was held back, without the white space that is not part of the value."""
        if self._held_line:
            self._write("".join(self._held_line).lstrip())
        elif self._held_space and not self.missing and (self._verbatim or not self._decode):
            self._write("".join(self._held_space))

    def _put_trimmed(self, text: str) -> None:
        # Only what ends the value shows whether white space at its end belongs to it.
        bare = text.rstrip()
        if bare:
            self._put_line("".join(self._held_space) + bare)
            self._held_space.clear()
        if space := text[len(bare) :]:
            self._held_space.append(space)

    def _put_line(self, text: str) -> None:
        """Take more of the value, which does not end in white space."""
        if not self._verbatim:
            # A line that begins with white space waits, because only a second line makes this a part of the value.
            begins = not self._begun and text[0].isspace()
            self._verbatim = not self._decode or "\n" in (text.lstrip() if begins else text)
            if begins or self._held_line:
                self._held_line.append(text)
                text = ""
        self._begun = True
        if self._verbatim and self._held_line:
            text = "".join(self._held_line) + text
            self._held_line.clear()
        if text:
            self._write(text)

    def _next(self, text: str, pos: int, final: bool) -> tuple[int, int, str]:
        start, stop, marker = self._tags.search(text, pos, final)
        if not marker and start < len(text):
            self.waiting = self._tags
        return start, stop, self._kinds.get(marker, "")

    def _text(self, text: str) -> None:
        # Without a schema, any element may be another parameter.
        if self._untyped and "<" in text:
            self.doubtful = True
        super()._text(text)

    def _markup(self, kind: str, text: str) -> None:
        if kind == _CALL_END and not self._calls:
            self._closing(kind, text)
        elif kind in (_SIBLING, _CALL, _CALL_END):
            self.doubtful = self.doubtful or kind == _SIBLING
            self._calls += {_CALL: 1, _CALL_END: -1}.get(kind, 0)
            self._text(text)
        else:
            if kind == CDATA:
                self._verbatim = True
            super()._markup(kind, text)

    def _give_back(self, text: str) -> None:
        if self.missing:
            self.error = "the closing tag of a parameter is missing"
        else:
            super()._give_back(text)

    def _may_end(self) -> bool:
        return self.missing or not self._calls

    def _finish(self) -> None:
        pass  # an element of its name that is open inside is text: this one is closed

    def _follows(self, text: str, pos: int, final: bool) -> tuple[bool, bool]:
        if self.missing:
            opens = text[pos] == "<" and self._known.opens(text, pos, pos + 1, final=final, blank=False, before="")
            return bool(opens), opens is None
        if self._calls:
            return False, False
        follows, wait = super()._follows(text, pos, final)
        if follows or wait or self._depth:
            return follows, wait
        # A closing tag that is repeated closes nothing.
        closer = f"</{self._name}>"
        again = text.startswith(closer, pos)
        return again, not (again or final) and closer.startswith(text[pos : pos + len(closer)])


class FirstWord(Leaf):
    """The first word of an element's text, up to white space or a tag; longer text is cut at the limit.

    Attributes:
        cut: the text ended in it.
    """

    __slots__ = ("_pieces", "_size", "cut")

    LIMIT = 256

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []
        self._size = 0
        self.cut = False

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to the end of the word."""
        match = _WORD.match(text, pos, pos + self.LIMIT - self._size)
        stop = match.end() if match is not None else pos
        self._pieces.append(text[pos:stop])
        self._size += stop - pos
        if stop < len(text) or final:
            self.value = "".join(self._pieces)
            self.cut = stop == len(text)
            self.done = True
        return stop


_WORD = re.compile(r"[^\s<]*")


class ElementText(Leaf):
    """The text of an element up to its closing tag, which is read too; CDATA sections may contain it.

    Args:
        tool: the element's name.
        known: tags that cannot be inside.
        put: takes the text, piece by piece.
    """

    __slots__ = ("_cdata", "_closer", "_known", "_put", "_tags")

    def __init__(self, tool: str, known: KnownTags, put: Callable[[str], None]) -> None:
        super().__init__()
        self._closer = f"</{tool}>"
        self._tags = marker_set(frozenset({self._closer, CDATA}))
        self._known = known
        self._put = put
        self._cdata = False
        self.quick = _LESS

    def pass_on(self, text: str) -> None:
        """Take a piece without tags."""
        self._put(text)

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to the closing tag."""
        while pos < len(text):
            if self._cdata:
                start, stop, marker = CDATA_END.search(text, pos, final)
                self._put(text[pos:stop])
                self._cdata = not marker
                if not marker:
                    return stop
                pos, self.quick = stop, _LESS
                continue
            start = text.find("<", pos)
            if start < 0:
                self._put(text[pos:])
                return len(text)
            if start > pos:
                self._put(text[pos:start])
                pos = start
            marker, wait = self._tags.match(text, pos, final)
            if wait:
                self.waiting = self._tags
                return pos
            if marker == self._closer:
                self.done = True
                return pos + len(marker)
            if marker:
                self._cdata, self.quick = True, None
                self._put(CDATA)
                pos += len(CDATA)
                continue
            opens = self._known.opens(text, pos, pos + 1, final=final, blank=False, before="")
            if opens is None:
                self.waiting = self._known
                return pos
            if opens:
                self.error = "another call begins before the closing tag"
                return pos
            self._put("<")
            pos += 1
        return pos


_LESS = re.compile("<").search
