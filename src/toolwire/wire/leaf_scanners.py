"""Leaf scanners: the only code that touches characters.

A leaf reads on from a position and returns where it stopped: `scan(text, pos, final) -> pos`. It sets `done` (with a
`value`) or `error`, or it stops short because more text is needed; what it leaves unread is the only text that is
held back, and it is bounded. It never slices the rest of the text and never rescans. A leaf may offer `quick`: a search
that finds nothing in a piece of text which `take` can pass on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Protocol

from toolwire.text.json_scanner import JsonScanner
from toolwire.wire.marker_sets import MarkerSet

escape: Callable[[str], str] = encode_basestring

BLANK = re.compile(r"\s*")
_NAME = re.compile(r"""[^\s<>{}()\[\]"'=,;|｜\x00-\x1f\x7f]*""")
_PHRASE = re.compile(r"[^<>\x00-\x1f\x7f]*")

CDATA = "<![CDATA["
CDATA_END = MarkerSet(frozenset({"]]>"}))
CDATA_SPECIAL = re.compile(r"\]").search
"""What opens a section of literal text, what ends it, and a search for how the end begins."""

NAME_LIMIT = 256
"""Code points that a name may have."""
SPACE_LIMIT = 4000
"""White space that may stand between a value's closing marker and what follows it."""
_JOIN_AT = 1024


class TextBuffer:
    """Text collected in pieces, joined into blocks so that small pieces do not cost fifty bytes each."""

    __slots__ = ("_blocks", "recent")

    def __init__(self, first: str = "") -> None:
        self._blocks: list[str] = []
        self.recent: list[str] = [first] if first else []

    def add(self, text: str) -> None:
        """Append a piece."""
        recent = self.recent
        recent.append(text)
        if len(recent) >= _JOIN_AT:
            self._blocks.append("".join(recent))
            recent.clear()

    def take(self) -> str:
        """The whole text; the pieces are given up."""
        self._blocks.extend(self.recent)
        self.recent.clear()
        text = self._blocks[0] if len(self._blocks) == 1 else "".join(self._blocks)
        self._blocks.clear()
        return text

    def __bool__(self) -> bool:
        """Whether there is any piece."""
        return bool(self.recent or self._blocks)


class Prefixes(Protocol):
    """Tells whether a piece of text is the beginning of something that may go on."""

    def begins(self, text: str) -> bool:
        """Whether it is."""


class Leaf:
    """What all leaves share.

    Attributes:
        done, value: the leaf has read what it was for.
        error: why it cannot.
        quick: finds a character that matters in a piece of text; nothing found: `take` passes the piece on.
        waiting: the unread text is the beginning of one of these markers; while more of it only goes on like one,
            there is nothing to scan.
    """

    __slots__ = ("done", "error", "quick", "value", "waiting")

    def __init__(self) -> None:
        self.waiting: Prefixes | None = None
        self.done = False
        self.error = ""
        self.value: Any = None
        self.quick: Callable[[str], Any] | None = None

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`; the position where reading stopped."""
        raise NotImplementedError

    def take(self, text: str) -> None:
        """Pass on a whole piece in which `quick` found nothing."""
        raise NotImplementedError


class NextMarker(Leaf):
    """Which of some markers comes next, white space before it skipped; "" if none.

    Attributes:
        cut: the text ended before that could be told.
    """

    __slots__ = ("_blank", "_consume", "_literals", "cut")

    def __init__(self, literals: MarkerSet, *, consume: bool = True, blank: bool = True) -> None:
        super().__init__()
        self._literals = literals
        self._consume = consume
        self._blank = blank
        self.cut = False
        self.value = ""

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Skip white space, then match."""
        if self._blank and (match := BLANK.match(text, pos)):
            pos = match.end()
        if pos == len(text):
            self.done = self.cut = final
            return pos
        found, wait = self._literals.match(text, pos, final)
        if wait:
            self.waiting = self._literals
            return pos
        if final and not found:
            self.cut = self._literals.begins(text[pos : pos + self._literals.longest])
        self.value = found
        self.done = True
        return pos + len(found) if self._consume else pos


class Word(Leaf):
    """A name: everything up to white space or a character that no name has; or a phrase, which may hold blanks."""

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
        match = self._match(text, pos, pos + NAME_LIMIT + 1 - self._size)  # no further: the rest may be one long word
        stop = match.end() if match else pos
        if stop > pos:
            self._pieces.append(text[pos:stop])
            self._size += stop - pos
        if self._size > NAME_LIMIT:
            self.error = f"a name of more than {NAME_LIMIT} characters"
        elif stop < len(text) or final:
            self.value = "".join(self._pieces).rstrip()
            self.cut = stop == len(text)
            self.done = True
        return stop


class WordUpToMarker(Leaf):
    """A name that may hold anything on its line but the markers that end it."""

    __slots__ = ("_pieces", "_size", "_stops", "cut")

    def __init__(self, stops: MarkerSet) -> None:
        super().__init__()
        self._stops = stops
        self._pieces: list[str] = []
        self._size = 0
        self.cut = False

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to a marker; nothing behind the longest name is looked at."""
        line = text.find("\n", pos, pos + NAME_LIMIT + 1)
        end = min(len(text) if line < 0 else line, pos + NAME_LIMIT + 1 - self._size)
        window = text[pos : pos + NAME_LIMIT + self._stops.longest + 1]
        start, _, found = self._stops.search(window, 0, final and pos + len(window) == len(text))
        start += pos
        stop = min(start, end)
        self._pieces.append(text[pos:stop])
        self._size += stop - pos
        if found and start <= end:
            self.value = "".join(self._pieces).strip()
            self.done = True
        elif self._size > NAME_LIMIT:
            self.error = f"a name of more than {NAME_LIMIT} characters"
        elif 0 <= line == stop:
            self.error = "a name ends at its line"
        elif final:
            self.done = self.cut = True
        return stop


class JsonValue(Leaf):
    """One JSON value. The value is the decoded value; `text` is its JSON text, repaired.

    Attributes:
        scanner: the machine that reads it.
    """

    __slots__ = ("scanner", "text")

    def __init__(self, scanner: JsonScanner) -> None:
        super().__init__()
        self.scanner = scanner
        self.text = TextBuffer()

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read on."""
        scanner = self.scanner
        pos = scanner.scan(text, pos, final)
        if scanner.ready:
            self.let("".join(scanner.ready))
            scanner.ready.clear()
        self.error = scanner.error
        if scanner.done and not scanner.error:
            self.finish()
            self.done = not self.error
            self.quick = None
        else:
            self.quick = scanner.quick
        return pos

    def take(self, text: str) -> None:
        """A piece inside a string."""
        if self.scanner.out is self.scanner.ready:
            self.let(text)
        else:
            self.scanner.out.append(text)

    def let(self, text: str) -> None:
        """More valid JSON text was let through."""
        self.text.add(text)

    def finish(self) -> None:
        """The value is complete."""
        self.value = self.text.take()


class JsonPrefix(Leaf):
    """Reads a JSON value if it is one; the value is the raw text read, up to where it stopped being JSON."""

    __slots__ = ("_pieces", "_scanner")

    def __init__(self, scanner: JsonScanner) -> None:
        super().__init__()
        self._scanner = scanner
        self._pieces = TextBuffer()

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read on; an error only ends it."""
        stop = self._scanner.scan(text, pos, final)
        if stop > pos:
            self._pieces.add(text[pos:stop])
        self._scanner.ready.clear()
        self.quick = self._scanner.quick
        if self._scanner.done or self._scanner.error:
            self.quick = None
            self.value = self._pieces.take()
            self.done = True
        return stop

    def take(self, text: str) -> None:
        """A piece inside a string."""
        self._pieces.add(text)


class ClosedText(Leaf):
    """Text up to a closing marker, which counts only if, after white space, something that may follow it comes next.

    So the text may hold its own closing marker. A closing marker that does not count is given back as text.
    """

    __slots__ = ("_after", "_pending", "_space", "_special")

    def __init__(self, special: Callable[[str], Any]) -> None:
        super().__init__()
        self._special = self.quick = special
        self._after = False  # a closing marker was read; it waits for what follows
        self._pending: list[str] = []
        self._space = 0

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read on."""
        end = len(text)
        while pos < end:
            pos, wait = self._look(text, pos, final) if self._after else self._read(text, pos, final)
            if self.done or wait:
                return pos
        if final and self._after:
            self.done = True
        return pos

    def _read(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        """Read text up to a closing marker; where it stopped, and whether more text is needed."""
        raise NotImplementedError

    def _follows(self, text: str, pos: int, final: bool) -> tuple[bool, bool]:
        """Whether what stands at `pos` may follow the closing marker, and whether more text is needed to tell."""
        raise NotImplementedError

    def _text(self, text: str) -> None:
        """More of the text, which may not be empty."""
        raise NotImplementedError

    def _give_back(self, text: str) -> None:
        """A closing marker that did not count, and the white space after it, are text."""
        self._text(text)

    def _closing(self, marker: str) -> None:
        """A closing marker was read."""
        self._after = True
        self._space = 0
        self.quick = None
        self._pending.append(marker)

    def _look(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        match = BLANK.match(text, pos)
        stop = match.end() if match else pos
        if stop > pos:
            self._space += stop - pos
            self._pending.append(text[pos:stop])
            pos = stop
        if self._space <= SPACE_LIMIT:
            if pos == len(text):
                return pos, True
            self.done, wait = self._follows(text, pos, final)
            if self.done or wait:
                return pos, wait
        self._after = False
        self.quick = self._special
        pending = "".join(self._pending)
        self._pending.clear()
        self._give_back(pending)
        return pos, False


@dataclass(frozen=True, slots=True, eq=False)
class ValueEnd:
    """Rules for the end of a parameter's raw value.

    Attributes:
        close: the closing marker.
        stops: the closing marker, the openers that can stand in for it where it may be missing, and the opener of
            CDATA sections where the format has them.
        follow: markers that may come after the closing marker.
        newline: one newline at each end belongs to the format.
        line_start: an opener stands in at a line start only.
        special: search for a character that may begin a stop.
    """

    close: str
    stops: MarkerSet
    follow: MarkerSet
    newline: bool
    line_start: bool
    special: Callable[[str], Any]


class RawText(ClosedText):
    """A value as raw text up to its closing marker; a missing one may be supplied by the next parameter's opener.

    Args:
        rules: where the value ends.
        put: takes the value's text, piece by piece.
        before: text of the value that was read already.

    Attributes:
        missing: an opener stood in for the closing marker.
    """

    __slots__ = ("_in_cdata", "_newline_held", "_previous", "_put", "_rules", "_started", "missing")

    def __init__(self, rules: ValueEnd, put: Callable[[str], None], before: str = "") -> None:
        super().__init__(rules.special)
        self._rules = rules
        self._put = put
        self._in_cdata = False
        self._started = not rules.newline  # the newline at the beginning was dealt with
        self._newline_held = False  # it is the format's if the value ends here, and the value's if it does not
        self._previous = "\n"
        self.missing = False
        if before:
            self._text(before)

    def take(self, text: str) -> None:
        """A piece with nothing special in it."""
        self._started = True
        self._previous = text[-1]
        if self._newline_held:
            self._newline_held = False
            self._put("\n")
        self._put(text)

    def _text(self, text: str) -> None:
        self._previous = text[-1]
        if self._rules.newline:
            if not self._started:
                self._started = True
                text = text.removeprefix("\n")
            if text and self._newline_held:
                self._newline_held = False
                text = "\n" + text
            if text.endswith("\n"):
                self._newline_held = True
                text = text[:-1]
        if text:
            self._put(text)

    def _read(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        rules = self._rules
        stops = CDATA_END if self._in_cdata else rules.stops
        start, stop, found = stops.search(text, pos, final)
        if start > pos:
            self._text(text[pos:start])
        if found == rules.close:
            self._closing(text[start:stop])
            return stop, False
        if found and (self._in_cdata or found == CDATA):
            self._in_cdata = not self._in_cdata
            self.quick = CDATA_SPECIAL if self._in_cdata else self._special
            return stop, False
        if found:
            if not rules.line_start or self._previous == "\n":
                self.missing = self.done = True
                return start, False
            self._text(text[start])
            return start + 1, False
        if start < len(text):
            self.waiting = stops
        return start, start < len(text)

    def _follows(self, text: str, pos: int, final: bool) -> tuple[bool, bool]:
        follow = self._rules.follow
        found, wait = follow.match(text, pos, final)
        if wait:
            self.waiting = follow
        return bool(found) or (final and follow.begins(text[pos : pos + follow.longest])), wait


class TextUpToMarker(Leaf):
    """Text up to one of some markers, which is left unread."""

    __slots__ = ("_literals", "_put")

    def __init__(self, literals: MarkerSet, put: Callable[[str], None]) -> None:
        super().__init__()
        self._literals = literals
        self._put = put
        self.quick = literals.first

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read on."""
        start, _, found = self._literals.search(text, pos, final)
        if start > pos:
            self._put(text[pos:start])
        if found:
            self.done = True
        elif start < len(text):
            self.waiting = self._literals
        return start

    def take(self, text: str) -> None:
        """A piece in which no marker begins."""
        self._put(text)


class RemainingText(Leaf):
    """Everything up to the end of the text."""

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read it all."""
        self.done = final
        return len(text)
