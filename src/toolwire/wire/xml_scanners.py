"""Leaves for markup like XML: tags with attributes, the inside of elements, entities and CDATA."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from toolwire.wire.leaf_scanners import BLANK, CDATA, CDATA_END, CDATA_SPECIAL, NAME_LIMIT, ClosedText, Leaf
from toolwire.wire.lookahead import Lookahead
from toolwire.wire.marker_sets import MarkerSet, marker_set

_ATTRIBUTES = re.compile(r"""([A-Za-z_][-\w.:]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>/=]+))\s*""")
_NAME_GOES_ON = re.compile(r"[-\w.:]*")
HEADER_LIMIT = 400
"""Maximum length of a tag with attributes, in code points."""


_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
_REFERENCE = re.compile(r"&(?:(lt|gt|quot|apos|amp)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_NAMED = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&"}
_REFERENCE_LIMIT = 10


def _referenced(match: re.Match[str]) -> str:
    if match[1]:
        return _NAMED[match[1]]
    code = int(match[2]) if match[2] else int(match[3], 16)
    # XML has no such characters, so the reference is text.
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return match[0]
    return chr(code)


def unescape(text: str) -> tuple[str, bool]:
    """Decode XML's five entities and numeric references once; return the text, and whether an ampersand was bare."""
    most = len(text) // _SPARSE + 1
    parts = text.split("&", most)
    if len(parts) == 1:
        return text, False
    if len(parts) <= most:
        return _unescape_parts(parts)
    count = text.count("&")
    # Numeric references need a function for each match; without one, five passes of `replace` are faster.
    if "&#" in text:
        decoded = sum(1 for _ in _REFERENCE.finditer(text))
        return _REFERENCE.sub(_referenced, text), decoded < count
    decoded = 0
    for entity, character in _ENTITIES:
        size = len(text)
        text = text.replace(entity, character)
        decoded += (size - len(text)) // (len(entity) - 1)
    return text, decoded < count


_SPARSE = 64
"""Characters per ampersand, from which looking at each ampersand is faster than passes over the text."""


def _unescape_parts(parts: list[str]) -> tuple[str, bool]:
    """Decode text that was split at its ampersands."""
    decoded = parts[:1]
    bare = False
    for part in parts[1:]:
        # Bounded, or each ampersand of a text without a semicolon would search all of the rest.
        end = part.find(";", 0, _REFERENCE_LIMIT)
        character = _NAMED.get(part[:end]) if end > 0 else None
        if character is None:
            reference = "&" + part[: end + 1]
            character = _REFERENCE.sub(_referenced, reference)
            bare = bare or not _REFERENCE.fullmatch(reference)
        decoded.append(character)
        decoded.append(part[end + 1 :])
    return "".join(decoded), bare


class Attributes(Leaf):
    """The attributes of an opening tag up to `close`, as a dict, and whether the tag closes itself."""

    __slots__ = ("_close", "_nocase", "_pieces", "_quote", "_size")

    def __init__(self, close: str = ">", *, nocase: bool = False) -> None:
        super().__init__()
        self._close = close
        self._nocase = nocase
        self._pieces: list[str] = []
        self._size = 0
        self._quote = ""

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Find the closing bracket outside quotes, then read the attributes."""
        # A quoted value may contain the closing bracket, so a search for the bracket alone would not do.
        wait = False
        start, end = pos, min(len(text), pos + HEADER_LIMIT + 1 - self._size)
        while pos < end:
            c = text[pos]
            if self._quote:
                if c == self._quote:
                    self._quote = ""
            elif c == self._close[0] and text.startswith(self._close, pos):
                self._pieces.append(text[start:pos])
                self._read("".join(self._pieces))
                return pos + len(self._close)
            # A `<` outside quotes begins another tag, so this one was never closed.
            elif (wait := (not final and self._close.startswith(text[pos : pos + len(self._close)]))) or c == "<":
                break
            elif c in "\"'":
                self._quote = c
            pos += 1
        self._pieces.append(text[start:pos])
        self._size += pos - start
        if self._size > HEADER_LIMIT:
            self.error = f"a tag of more than {HEADER_LIMIT} characters"
        elif pos < end and not wait:
            self.error = "a tag is not closed"
        return pos

    def _read(self, text: str) -> None:
        inner = text.strip()
        closed = inner.endswith("/")
        attributes = self._attributes(inner[:-1].rstrip() if closed else inner)
        if attributes is None:
            self.error = "the attributes of a tag cannot be read"
            return
        self.value = (attributes, closed)
        self.done = True

    def _attributes(self, text: str) -> Any:
        return read_attributes(text, self._nocase)


class TagText(Attributes):
    """As `Attributes`, with the text of the attributes in place of the dict."""

    __slots__ = ()

    def _attributes(self, text: str) -> Any:
        return text


def read_attributes(text: str, nocase: bool) -> dict[str, str] | None:
    """Return the attributes of a tag, or None if the text is not attributes, or gives one twice."""
    attributes: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _ATTRIBUTES.match(text, at)
        name = "" if match is None else ascii_lower(match[1]) if nocase else match[1]
        # Of two values of one attribute it is not certain which one is meant.
        if match is None or name in attributes:
            return None
        attributes[name] = unescape(next(group for group in match.groups()[1:] if group is not None))[0]
        at = match.end()
    return attributes


ELEMENT_NAME = re.compile(r"[A-Za-z_][-\w.:]*\Z")
"""Pattern of an element's name."""


def escape_text(text: str) -> str:
    """Escape text for an element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quote_attribute(text: str) -> str:
    """Escape text for an attribute, in double quotes."""
    return '"' + escape_text(text).replace('"', "&quot;") + '"'


_ASCII_LOWER = {upper: upper + 32 for upper in range(65, 91)}


def ascii_lower(text: str) -> str:
    """Lower ASCII letters alone, so that the length never changes."""
    return text.lower() if text.isascii() else text.translate(_ASCII_LOWER)


class PartialTag:
    """The tags that a partial tag may become, in place of a set of markers."""

    __slots__ = ("_nocase", "_tags")

    def __init__(self, *tags: str, nocase: bool) -> None:
        self._tags = tags
        self._nocase = nocase

    def is_prefix(self, text: str) -> bool:
        """Return whether `text` is a proper prefix of one of the tags."""
        prefix = ascii_lower(text) if self._nocase else text
        return any(len(prefix) < len(tag) and tag.startswith(prefix) for tag in self._tags)


class XmlText(ClosedText):
    """The inside of an element up to its closing tag, with CDATA and nested elements of the same name.

    The closing tag counts if, after white space, one of `closers`, another element or the end of the text comes next.
    It closes a nested element if one is open; `closers` may not come next then.

    Args:
        name: the element's name.
        closers: markers that may close the parent.
        outer: by closing marker of what the element is in, markers that show that this one does close it. The element
            itself is then not closed, which is an error.
        decode: decode the text, for a string value; else pass it on as it is.
        put: takes the text, piece by piece.
    """

    __slots__ = (
        "_amp", "_cdata", "_closers", "_decode", "_depth", "_less", "_name", "_nocase", "_outer", "_outer_set", "_put",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        closers: MarkerSet,
        *,
        outer: Mapping[str, MarkerSet],
        nocase: bool,
        decode: bool,
        put: Callable[[str], None],
    ) -> None:
        super().__init__(_TEXT_SPECIAL if decode else _MARKUP_SPECIAL)
        self._name = ascii_lower(name) if nocase else name
        self._nocase = nocase
        self._closers = closers
        self._outer = outer
        self._outer_set = marker_set(frozenset(outer), nocase)
        self._decode = decode
        self._put = put
        self._depth = 0
        self._cdata = False
        self._amp = self._less = False

    @property
    def bare(self) -> list[str]:
        """The repairs made, in a fixed order."""
        return ["bare_ampersand"] * self._amp + ["bare_markup"] * self._less

    def _next(self, text: str, pos: int, final: bool) -> tuple[int, int, str]:
        """Return start, end and kind of the next CDATA or tag of this name; see `MarkerSet.search`."""
        name, size = self._name, len(self._name)
        while (start := text.find("<", pos)) >= 0:
            match = _MARKUP.search(text, start)
            if match is None:
                break
            start = match.start()
            # Enough text for the closing tag, which is the longest that is compared.
            room = text[start : start + size + 3]
            prefix = ascii_lower(room) if self._nocase else room
            partial = f"<{name}".startswith(prefix) or f"</{name}>".startswith(prefix)
            if partial and not final and start + len(room) == len(text):
                self.waiting = PartialTag(f"</{name}>", f"<{name}>", nocase=self._nocase)
                return start, start, ""
            if not final and len(text) - start < len(CDATA) and CDATA.startswith(text[start:]):
                return start, start, ""
            if text.startswith(CDATA, start):
                return start, start + 9, CDATA
            if prefix == f"</{name}>":
                return start, start + size + 3, "</"
            if prefix.startswith("<" + name) and prefix[size + 1 : size + 2] in _TAG_GOES_ON:
                return start, start + size + 1, "<"
            # Last: the element's own tags win over those of what it is in.
            marker, wait = self._outer_set.match(text, start, final)
            if wait:
                self.waiting = self._outer_set
                return start, start, ""
            if marker:
                return start, start + len(marker), marker
            pos = start + 1
        return len(text), len(text), ""

    def pass_on(self, text: str) -> None:
        """Take a piece without special characters."""
        self._put(text)

    def _text(self, text: str) -> None:
        if self._decode:
            self._less = self._less or "<" in text
            text, bare = unescape(text)
            self._amp = self._amp or bare
        self._put(text)

    def _give_back(self, text: str) -> None:
        if self.closer == "</":
            # A closing tag that does not count closes a nested element of the same name.
            # It may have had no opener: a value may mention a closing tag alone.
            self._depth = max(0, self._depth - 1)
        self._text(text)

    def _may_end(self) -> bool:
        return self.closer == "</"

    def _finish(self) -> None:
        # With an element of its name open inside, the closing tag is that one's.
        if self.closer != "</" or self._depth:
            self.done = False
            self.error = f"the element <{self._name[:60]}> is not closed"

    def _read(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        if self._cdata:
            return self._inside_cdata(text, pos, final)
        start, stop, tag = self._next(text, pos, final)
        if start > pos:
            upto = start
            if self._decode and not final and start == len(text):
                amp = text.rfind("&", max(pos, start - _REFERENCE_LIMIT), start)
                if amp >= 0 and ";" not in text[amp:start]:
                    upto = amp  # the reference may continue in the next piece
            if upto > pos:
                self._text(text[pos:upto])
            if upto < start:
                return upto, True
        if not tag:
            return start, start < len(text)
        self._markup(tag, text[start:stop])
        return stop, False

    def _markup(self, kind: str, text: str) -> None:
        """Take markup of a kind that `_next` returned."""
        if kind == "</" or kind in self._outer:
            self._closing(kind, text)
        elif kind == CDATA:
            self._cdata = True
            self.quick = CDATA_SPECIAL
            if not self._decode:  # the raw text is read again as elements, which need the wrapper
                self._put(text)
        else:
            self._depth += 1
            self._text(text)

    def _inside_cdata(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        start, stop, marker = CDATA_END.search(text, pos, final)
        if start > pos:
            self._put(text[pos:start])
        if not marker:
            return start, start < len(text)
        self._cdata = False
        self.quick = self._special
        if not self._decode:
            self._put(marker)
        return stop, False

    def _follows(self, text: str, pos: int, final: bool) -> tuple[bool, bool]:
        # Text after a closing tag means that the tag was part of the value.
        if text[pos] != "<":
            return False, False
        if self.closer != "</":
            marker, wait = self._outer[self.closer].match(text, pos, final)
            return bool(marker), wait
        if pos + 1 == len(text) and not final:
            return False, True
        closer, wait = self._closers.match(text, pos, final)
        # Half of a closing marker at the end: the model was cut off while it closed the parent.
        cut = final and self._closers.is_prefix(text[pos : pos + self._closers.longest])
        # The next parameter, or a comment before it. With a nested element open, it may be inside that one instead.
        opens = pos + 1 < len(text) and (text[pos + 1].isalpha() or text[pos + 1] in "_!")
        return not wait and (bool(closer) or cut or (opens and not self._depth)), wait


_MARKUP = re.compile(r"<(?=[A-Za-z_/!]|\Z)")
_TAG_GOES_ON = frozenset((">", " ", "\n", "\t", "\r"))
_TEXT_SPECIAL = re.compile(r"[<&]").search
_MARKUP_SPECIAL = re.compile(r"<").search


class ElementStart(Leaf):
    """The next element's opening tag, or one of `closers`, which stays unread; comments before it are skipped.

    The value is `(name, attributes, closed)`, or None at a closer. The tag of another call is an error.
    """

    __slots__ = ("_attributes", "_calls", "_closers", "_comment", "_name", "_nocase", "_raw", "cut")

    def __init__(
        self, closers: MarkerSet, *, nocase: bool = False, calls: Lookahead | None = None, raw: bool = False
    ) -> None:
        super().__init__()
        self._raw = raw  # the text of the attributes is the value, in place of a dict
        self._closers = closers
        self._calls = calls
        self._nocase = nocase
        self._comment = False
        self._name = ""
        self._attributes: Attributes | None = None
        self.cut = False

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Skip white space and comments, then read the tag."""
        while True:
            if self._attributes is not None:
                return self._finish_tag(text, pos, final)
            if self._name:
                pos = self._tag_name(text, pos, final)
                if self.done or self.error or pos == len(text):
                    return pos
                continue
            if self._comment:
                pos = self._in_comment(text, pos, final)
                if self._comment:
                    return pos
            match = BLANK.match(text, pos)
            pos = match.end() if match else pos
            if pos == len(text):
                self.done = self.cut = final
                return pos
            if text[pos] != "<":
                # Skipping the text could skip a value whose tag is misspelled, and a call would run without it.
                self.error = "there is text where an element should begin"
                return pos
            found_closer, wait = self._closers.match(text, pos, final)
            if wait:
                self.waiting = self._closers
                return pos
            if found_closer:
                self.done = True
                return pos
            if len(text) - pos < 4 and "<!--".startswith(text[pos : pos + 4]):
                self.done = self.cut = final
                return pos
            if text.startswith("<!--", pos):
                self._comment = True
                pos += 4
                continue
            # Before the name is read: if this call is not closed, the next one would become a parameter of it.
            if self._is_call(text, pos, final):
                return pos
            if not (text[pos + 1].isascii() and (text[pos + 1].isalpha() or text[pos + 1] == "_")):
                self.error = "an element should begin here"
                return pos
            self._name = text[pos + 1]
            pos += 2

    def _is_call(self, text: str, pos: int, final: bool) -> bool:
        """Return whether the tag of another call begins here, or may begin."""
        if self._calls is None:
            return False
        opens = self._calls.opens(text, pos, pos + 1, final=final, blank=False, before="")
        if opens is None:
            self.waiting = self._calls
        elif opens:
            self.error = "another call begins before the closing tag"
        return opens is not False

    def _tag_name(self, text: str, pos: int, final: bool) -> int:
        """Read more of the element's name."""
        match = _NAME_GOES_ON.match(text, pos)
        stop = min(match.end() if match else pos, pos + NAME_LIMIT + 1 - len(self._name))
        self._name += text[pos:stop]
        if len(self._name) > NAME_LIMIT:
            self.error = f"a name of more than {NAME_LIMIT} characters"
        elif stop < len(text):
            self._attributes = TagText() if self._raw else Attributes(nocase=self._nocase)
        else:
            self.done = self.cut = final
        return stop

    def _in_comment(self, text: str, pos: int, final: bool) -> int:
        end = text.find("-->", pos)
        self._comment = end < 0
        if end >= 0:
            return end + 3
        # Up to two dashes may begin the comment's end, and have to wait.
        dashes = 0 if final else 2 if text.endswith("--") else 1 if text.endswith("-") else 0
        return max(pos, len(text) - dashes)

    def _finish_tag(self, text: str, pos: int, final: bool) -> int:
        assert self._attributes is not None
        pos = self._attributes.scan(text, pos, final)
        self.error = self._attributes.error
        if self._attributes.done:
            attributes, closed = self._attributes.value
            self.value = (self._name, attributes, closed)
            self.done = True
        return pos
