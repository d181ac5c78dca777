"""Leaf scanners: the only code that touches characters.

A leaf reads from a position and returns where it stopped: `scan(text, pos, final) -> pos`. It sets `done` and a
`value`, or it sets `error`, or it stops because more text is needed. The text that it leaves unread is the only text
that is held back, and it is bounded. A leaf never slices the rest of the text and never scans a character twice. It may
offer `quick`, a search that finds nothing in a piece of text which `pass_on` can take as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Protocol

from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import FastJsonReader
from toolwire.wire.marker_sets import MarkerSet
from toolwire.wire.text_buffer import TextBuffer

escape: Callable[[str], str] = encode_basestring

BLANK = re.compile(r"\s*")
_NAME = re.compile(r"""[^\s<>{}()\[\]"'=,;|｜\x00-\x1f\x7f]*""")
_PHRASE = re.compile(r"[^<>{\x00-\x1f\x7f]*")

CDATA = "<![CDATA["
CDATA_CLOSE = "]]>"
CDATA_END = MarkerSet(frozenset({CDATA_CLOSE}))
CDATA_SPECIAL = re.compile(r"\]").search
"""Opener and closer of a section of literal text, and a search for the first character of the closer."""

NAME_LIMIT = 256
"""Maximum length of a name, in code points."""
SPACE_LIMIT = 4000
"""Maximum white space between a value's closing marker and what follows it, in characters."""


def begins_name(character: str) -> bool:
    """Return whether a name can begin with this character."""
    match = _NAME.match(character)
    return bool(match and match[0])


class Prefixes(Protocol):
    """A set of texts that can be asked for prefixes."""

    def is_prefix(self, text: str) -> bool:
        """Return whether `text` is a proper prefix of one of the texts."""


class Leaf:
    """Base class of leaves.

    Attributes:
        done, value: the leaf has finished, and its result.
        error: the reason why it cannot finish.
        quick: search for something that matters; a piece without it can go to `pass_on`.
        waiting: set of markers, one of which the unread text may become; as long as it still may, the driver need not
            scan.
    """

    __slots__ = ("done", "error", "quick", "value", "waiting")

    def __init__(self) -> None:
        self.waiting: Prefixes | None = None
        self.done = False
        self.error = ""
        self.value: Any = None
        self.quick: Callable[[str], Any] | None = None

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Scan from `pos`; return the position where scanning stopped."""
        raise NotImplementedError

    def plain_length(self, text: str) -> int:
        """Return how much of a piece in which `quick` found something `pass_on` can take; the rest needs more text."""
        return 0

    def pass_on(self, text: str) -> None:
        """Take a whole piece in which `quick` found nothing, or the plain beginning of another one."""
        raise NotImplementedError


class NextMarker(Leaf):
    """The one of some markers that comes next, after white space; "" if none does.

    Attributes:
        cut: the text ended before that could be decided.
    """

    __slots__ = ("_consume", "_markers", "_skip_space", "cut")

    def __init__(self, markers: MarkerSet, *, consume: bool = True, skip_space: bool = True) -> None:
        super().__init__()
        self._markers = markers
        self._consume = consume
        self._skip_space = skip_space
        self.cut = False
        self.value = ""

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Skip white space, then match."""
        if self._skip_space and (match := BLANK.match(text, pos)):
            pos = match.end()
        if pos == len(text):
            self.done = self.cut = final
            return pos
        marker, wait = self._markers.match(text, pos, final)
        # The caller compares the next piece with `waiting` first, so that small pieces are not scanned again and again.
        if wait:  # it may become a marker, or a longer one
            self.waiting = self._markers
            return pos
        if final and not marker:
            # Half a marker at the end of the text: it is cut, and not something else.
            self.cut = self._markers.is_prefix(text[pos : pos + self._markers.longest])
        self.value = marker
        self.done = True
        return pos + len(marker) if self._consume else pos


class WhiteSpace(Leaf):
    """White space, which a value keeps; "" if there is none."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to any other character."""
        match = BLANK.match(text, pos)
        stop = match.end() if match else pos
        self._pieces.append(text[pos:stop])
        if stop < len(text) or final:
            self.value = "".join(self._pieces)
            self.done = True
        return stop


class Word(Leaf):
    """A name: text up to white space or a character that no name has. A phrase may contain blanks too."""

    __slots__ = ("_match", "_pieces", "_size", "_started", "cut")

    def __init__(self, *, phrase: bool = False) -> None:
        super().__init__()
        self._match = (_PHRASE if phrase else _NAME).match
        self._pieces: list[str] = []
        self._size = 0
        self._started = False
        self.cut = False

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Skip white space before, then read."""
        if not self._started:
            match = BLANK.match(text, pos)
            pos = match.end() if match else pos
            if pos < len(text):
                self._started = True
        # The end is limited, because a text may be one word of a megabyte that arrives in pieces.
        match = self._match(text, pos, pos + NAME_LIMIT + 1 - self._size)
        stop = match.end() if match else pos
        if stop > pos:
            self._pieces.append(text[pos:stop])
            self._size += stop - pos
        if self._size > NAME_LIMIT:
            self.error = f"a name of more than {NAME_LIMIT} characters"
        elif stop < len(text) or final:  # else the name may continue in the next piece
            self.value = "".join(self._pieces).rstrip()
            self.cut = stop == len(text)
            self.done = True
        return stop


class WordUpToMarker(Leaf):
    """A name of any characters, up to a marker on the same line."""

    __slots__ = ("_pieces", "_size", "_stops", "cut")

    def __init__(self, stops: MarkerSet) -> None:
        super().__init__()
        self._stops = stops
        self._pieces: list[str] = []
        self._size = 0
        self.cut = False

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to a marker."""
        line = text.find("\n", pos, pos + NAME_LIMIT + 1)
        end = min(len(text) if line < 0 else line, pos + NAME_LIMIT + 1 - self._size)
        # Nothing behind the longest possible name is searched: the marker may be a megabyte away.
        window = text[pos : pos + NAME_LIMIT + self._stops.longest + 1]
        start, _, marker = self._stops.search(window, 0, final and pos + len(window) == len(text))
        start += pos
        stop = min(start, end)
        self._pieces.append(text[pos:stop])
        self._size += stop - pos
        if marker and start <= end:
            self.value = "".join(self._pieces).strip()
            self.done = True
        elif self._size > NAME_LIMIT:
            self.error = f"a name of more than {NAME_LIMIT} characters"
        elif 0 <= line == stop:
            # Without this bound, a missing marker would make a name of the next lines.
            self.error = "a name ends at its line"
        elif final:
            self.done = self.cut = True
        return stop


class JsonValue(Leaf):
    """One JSON value, as its repaired JSON text.

    Attributes:
        scanner: the scanner of the value.
        text: the JSON text so far.
    """

    __slots__ = ("scanner", "text")

    def __init__(self, scanner: JsonScanner) -> None:
        super().__init__()
        self.scanner = scanner
        self.text = TextBuffer()

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read more of the value."""
        scanner = self.scanner
        pos = scanner.scan(text, pos, final)
        if scanner.ready:
            self.let_through("".join(scanner.ready))
            scanner.ready.clear()
        self.error = scanner.error
        if scanner.done and not scanner.error:
            self.finish()
            self.done = not self.error
            self.quick = None
        else:
            self.quick = scanner.quick
        return pos

    def plain_length(self, text: str) -> int:
        """See `JsonScanner.plain_length`."""
        return self.scanner.plain_length(text)

    def pass_on(self, text: str) -> None:
        """Take a piece of a string."""
        # A scanner that holds a value back has redirected its output.
        if self.scanner.out is self.scanner.ready:
            self.let_through(text)
        else:
            self.scanner.out.append(text)

    def let_through(self, text: str) -> None:
        """Take valid JSON text from the scanner."""
        self.text.add(text)

    def finish(self) -> None:
        """Set the value, which is complete."""
        self.value = self.text.take()


class WholeObject(Leaf):
    """A JSON object that is there to its end, valid, and accepted; else the value is None, and nothing is read."""

    __slots__ = ("_accepts", "_fast")

    def __init__(self, fast: FastJsonReader, accepts: Callable[[dict[str, Any]], bool]) -> None:
        super().__init__()
        self._fast = fast
        self._accepts = accepts

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read all of the object."""
        self.done = True
        entry = self._fast.read(text, pos) if pos < len(text) else None
        # Nothing is consumed then, so that the slower way reads the same text from its start.
        if entry is None or not isinstance(entry[0], dict) or not self._accepts(entry[0]):
            return pos
        self.value, stop = entry
        return stop


class JsonPrefix(Leaf):
    """The raw text of a JSON value, or of as much as is valid JSON."""

    __slots__ = ("_pieces", "_scanner")

    def __init__(self, scanner: JsonScanner) -> None:
        super().__init__()
        self._scanner = scanner
        self._pieces = TextBuffer()

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to the end of the value or to an error."""
        stop = self._scanner.scan(text, pos, final)
        if stop > pos:
            self._pieces.add(text[pos:stop])
        self._scanner.ready.clear()
        self.quick = self._scanner.quick
        # An error only ends the prefix, with which a raw value then begins.
        if self._scanner.done or self._scanner.error:
            self.quick = None
            self.value = self._pieces.take()
            self.done = True
        return stop

    def pass_on(self, text: str) -> None:
        """Take a piece of a string."""
        self._pieces.add(text)


class ClosedText(Leaf):
    """Text up to a closing marker, which counts only if something that may follow it comes next, after white space.

    So the text may contain its own closing marker: one that does not count is text.

    Attributes:
        closer: the closing marker that was read last.
    """

    __slots__ = ("_after", "_pending", "_space", "_special", "closer")

    def __init__(self, special: Callable[[str], Any]) -> None:
        super().__init__()
        self._special = self.quick = special
        self._after = False  # a closing marker was read, and what follows decides whether it counts
        self._pending: list[str] = []
        self._space = 0
        self.closer = ""

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read text and closing markers in turn."""
        end = len(text)
        while pos < end:
            pos, wait = self._look(text, pos, final) if self._after else self._read(text, pos, final)
            # A subclass may set `done` and withdraw it in `_finish`, so `error` is looked at, too.
            if self.done or self.error or wait:
                return pos
        if final and self._after:
            # The text may have been cut right behind its closing marker: nothing that follows could tell.
            if self._may_end():
                self.done = True
                self._finish()
            else:
                self._continue()
        return pos

    def _read(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        """Read text up to a closing marker; return where it stopped, and whether more text is needed."""
        raise NotImplementedError

    def _follows(self, text: str, pos: int, final: bool) -> tuple[bool, bool]:
        """Return whether the text at `pos` may follow the closing marker, and whether more text is needed."""
        raise NotImplementedError

    def _may_end(self) -> bool:
        """Return whether the end of the text may follow the closing marker."""
        return True

    def _finish(self) -> None:
        """End the text at the closing marker, which counts."""

    def _text(self, text: str) -> None:
        """Take more of the text, which must not be empty."""
        raise NotImplementedError

    def _give_back(self, text: str) -> None:
        """Take a closing marker that does not count, and the white space after it, as text."""
        self._text(text)

    def _closing(self, marker: str, written: str) -> None:
        """Wait for what follows a closing marker."""
        self.closer = marker
        self._after = True
        self._space = 0
        self.quick = None
        self._pending.append(written)

    def _look(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        match = BLANK.match(text, pos)
        stop = match.end() if match else pos
        if stop > pos:
            self._space += stop - pos
            self._pending.append(text[pos:stop])
            pos = stop
        # Without a limit, a flood of blanks after a closing marker would be held back without bound.
        if self._space <= SPACE_LIMIT:
            if pos == len(text):
                return pos, True
            self.done, wait = self._follows(text, pos, final)
            if self.done:
                self._finish()
            if self.done or wait:
                return pos, wait
        self._continue()
        return pos, False

    def _continue(self) -> None:
        """Read on after a closing marker that was text."""
        # It is passed on and not scanned again, so that floods of markers stay linear.
        self._after = False
        self.quick = self._special
        pending = "".join(self._pending)
        self._pending.clear()
        self._give_back(pending)
        self.closer = ""


class TextUpToMarker(Leaf):
    """Text up to one of some markers, which stays unread."""

    __slots__ = ("_markers", "_put")

    def __init__(self, markers: MarkerSet, put: Callable[[str], None]) -> None:
        super().__init__()
        self._markers = markers
        self._put = put
        self.quick = markers.find_any

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to a marker."""
        start, _, marker = self._markers.search(text, pos, final)
        if start > pos:
            self._put(text[pos:start])
        if marker:
            self.done = True
        elif start < len(text):
            self.waiting = self._markers
        return start

    def pass_on(self, text: str) -> None:
        """Take a piece in which no marker begins."""
        self._put(text)


class RemainingText(Leaf):
    """All text up to the end."""

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read all of the text."""
        self.done = final
        return len(text)
