"""The leaf for all text outside blocks: content, reasoning, code fences, end-of-sequence tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from toolwire.events import ContentDelta, Event, ReasoningDelta
from toolwire.wire.content_markers import FENCES, ContentMarkers
from toolwire.wire.leaf_scanners import Leaf
from toolwire.wire.lookahead import Lookahead
from toolwire.wire.node_markers import ANY_TAG
from toolwire.wire.quotations import (
    BLOCK_QUOTE,
    BRACKETS,
    LINE_BEGINS,
    LONGEST_BEGINNING,
    MAY_BEGIN_LINE,
    Quotation,
    quotation,
)
from toolwire.wire.result_tags import QUOTING_MARKERS, ResultTags, quoted_result

_BLANK = re.compile(r"\s*")


class ContentScanner(Leaf):
    """Content and reasoning up to the next block's opener, which stays unread and is the value.

    Three or more backticks or tildes at the start of a line, or of an item of a list, open a code fence, unless another
    backtick follows backticks on the same line. A line of at least as many closes it. An end-of-sequence token is
    markup only if nothing but white space and other such tokens follows. A call in a code fence or in any other
    `Quotation` is only shown.

    Args:
        content: the markers that matter outside blocks.
        emit: takes events.
        reasoning: the prompt had opened the reasoning.
        blank: no content but white space came before.
        fences: respect code fences and other quotations, where the format does.
        lookahead: by opener, what has to follow it for a block to begin.

    Attributes:
        blank: no content but white space was read.
        answering: a marker was read that opens the answer.
        stops_behind_reasoning: reading stops where the reasoning is closed; then there is no value.
    """

    __slots__ = (
        "_before", "_before_block", "_closing_fence", "_content", "_fences",  "_lookahead", "_marker_set", "_quotation",
        "_quotes", "_span", "_stopped", "_trail", "_wrap", "answering", "at_reasoning_start", "blank", "emit",
        "reasoning", "stops_behind_reasoning",
    )  # fmt: skip

    def __init__(
        self,
        content: ContentMarkers,
        emit: Callable[[Event], None],
        *,
        reasoning: bool,
        blank: bool = True,
        fences: bool = True,
        lookahead: Mapping[str, Lookahead],
    ) -> None:
        super().__init__()
        self._content = content
        self._lookahead = lookahead
        self._fences = fences
        self._quotes = content.quotes if fences else frozenset[str]()
        self.emit = emit
        self.blank = blank
        self.answering = self.stops_behind_reasoning = False
        self.reasoning = reasoning
        self.at_reasoning_start = reasoning  # nothing but white space was read since the reasoning began
        self._span = ""
        self._stopped = False
        self._before = "\n"  # the last piece, with those before it if all may be the beginning of a line
        self._before_block = ""  # the same before the block that was read last
        self._trail: list[tuple[str, bool]] = []
        self._quotation: Quotation | None = None
        self._closing_fence = ""
        self._wrap: Callable[[str], Event] = ReasoningDelta if reasoning else ContentDelta
        self._choose()

    def _choose(self) -> None:
        """Choose the markers that matter from here on."""
        content = self._content
        if self._stopped:
            self._marker_set = content.after_stop
        elif self.reasoning:
            self._marker_set = content.reasoning[self._span]
        else:
            self._marker_set = content.prose_start if self.blank else content.prose
        plain = self._quotation is None and not self.at_reasoning_start and (self.reasoning or not self.blank)
        self.quick = self._marker_set.find_any if plain else None

    @property
    def reasoning_opener(self) -> str:
        """The marker that opened the reasoning; "" if the prompt did."""
        return self._span

    @property
    def at_line_start(self) -> bool:
        """True if a line begins here."""
        return self._last == "\n"

    @property
    def _last(self) -> str:
        """The last character before this place; "" right behind a block."""
        return self._before[-1:]

    def _end_with(self, text: str) -> None:
        """Take the text that was read last, for what comes behind it."""
        # Any other piece says enough, and this is done for each piece.
        if text[-1:] in MAY_BEGIN_LINE:
            self._before = (self._before + text[-LONGEST_BEGINNING:])[-LONGEST_BEGINNING:]
        else:
            self._before = text

    def pass_on(self, text: str) -> None:
        """Take a piece in which no marker begins."""
        self.emit(self.plain_event(text))

    def plain_event(self, text: str) -> Event:
        """Take such a piece; return its event and do not emit it."""
        self._end_with(text)
        return self._wrap(text)

    def resume(self) -> None:
        """Continue after a block, which is not a line start."""
        self.done = False
        self.value = None
        self._before_block, self._before = self._before, ""
        self._choose()

    def use_markers(self, content: ContentMarkers, lookahead: Mapping[str, Lookahead]) -> None:
        """Search for these markers from here on."""
        self._content = content
        self._lookahead = lookahead
        self._quotes = content.quotes if self._fences else frozenset[str]()
        self._choose()

    def leave_reasoning(self) -> None:
        """End the reasoning at a block's opener."""
        self.reasoning = self.at_reasoning_start = False
        self._before = "\n"  # content begins here, on a line of its own
        self._wrap = ContentDelta
        self._choose()

    def add_content(self, text: str, *, fence: str = "") -> None:
        """Add text that a block did not use; the next `fence` closes one that the block opened, and opens none."""
        self._closing_fence = fence
        if text:
            self._reread(text)
            self._text(text)

    def add_rejected_block(self, text: str) -> None:
        """Add text that turned out not to be a block, and in which only a quotation at its beginning matters."""
        self._closing_fence = ""
        if not self.reasoning:
            marker = text[:1] if text[:1] in BRACKETS else text[:3]
            if marker in self._quotes and self._quote(marker, self._before_block):
                self._read_quotation(text, 0, False)
        self._reread(text)
        self._text(text)

    def _reread(self, text: str) -> None:
        """Read the text of a block as a tool's result, if its tag may be around one and no call was read in it."""
        quotes = self._content.reasoning_quotes if self.reasoning else self._content.quotes
        if ANY_TAG in self._quotes & quotes and self._quote_result(text):
            self._read_quotation(text, 0, True)

    def _text(self, text: str) -> None:
        self._end_with(text)
        if (self.blank or self.at_reasoning_start) and not text.isspace():
            self.at_reasoning_start = False
            self.blank = self.blank and self.reasoning
            self._choose()
        self.emit(self._wrap(text))

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to an opener."""
        end = len(text)
        while pos < end:
            if self._quotation is not None:
                stop = self._read_quotation(text, pos, final)
                if stop > pos:
                    self._text(text[pos:stop])
                    pos = stop
                if self.waiting is not None:
                    return pos
                continue
            if self._trail:
                pos, wait = self._trailing(text, pos, final)
                if wait:
                    return pos
                continue
            start, stop, marker = self._marker_set.search(text, pos, final)
            if self.blank and not self.reasoning:
                begin = self._begins(text, pos, start)
                if begin < start:
                    # Some markers count at the start of the message only, and that is over: search again without them.
                    start, stop, marker = self._marker_set.search(text, begin + 1, final)
            opens: bool | None = True
            if marker in self._lookahead:
                start, stop, marker, opens = self._look_ahead(text, pos, start, stop, marker, final)
            if start > pos:
                self._text(text[pos:start])
                pos = start
            if not marker or opens is None:
                self.waiting = self._lookahead[marker] if marker else self._marker_set
                return pos
            if opens:
                pos = self._marker(text, start, stop, marker)
            else:
                self._text(text[pos:stop])
                pos = stop
            if self.done:
                return pos
        return pos

    def _look_ahead(
        self, text: str, pos: int, start: int, stop: int, marker: str, final: bool
    ) -> tuple[int, int, str, bool | None]:
        """Return the next marker that counts, from this one on, and whether it does; None if that is not certain yet.

        At the start of the message, a marker that does not count is returned too, because it is the first content.
        """
        while (lookahead := self._lookahead.get(marker)) is not None:
            before = text[start - 1] if start > pos else self._last
            opens = lookahead.opens(text, start, stop, final=final, blank=self.blank, before=before)
            if opens is not False or self.blank:
                return start, stop, marker, opens
            # It is content like the text around it, and no reason for an event of its own.
            start, stop, marker = self._marker_set.search(text, stop, final)
        return start, stop, marker, True

    def _begins(self, text: str, pos: int, stop: int) -> int:
        """Return where content that is not white space begins, or `stop`."""
        match = _BLANK.match(text, pos, stop)
        begin = match.end() if match else pos
        if begin < stop:
            self.blank = False
            self._choose()
        return begin

    def _marker(self, text: str, start: int, stop: int, marker: str) -> int:
        content = self._content
        frame = content.frames.get(marker)
        # The order of these cases decides what a marker means that has several roles, such as a closer of reasoning
        # that is also a marker around content.
        if self.reasoning and marker in content.closes:
            self._content = frame or content
            self.leave_reasoning()
            self.done = self.stops_behind_reasoning
            return stop
        if frame is not None and self.blank and not self.reasoning and marker not in content.openers | content.closes:
            self._content = content = frame
            self._choose()
        if marker in content.drops and marker not in content.openers and not self.reasoning:
            if marker in content.answers:
                self.answering, self.blank = True, False  # the content begins here
                self._choose()
            return stop
        if marker in content.stops:
            self._stopped = True
            self._choose()
            self._text(text[start:stop])
            return stop
        # A fence inside a line is inline code; three backticks in reasoning hide nothing.
        quotes = content.reasoning_quotes if self.reasoning else content.quotes
        if marker in quotes and not self._is_block(text, start, marker):
            if marker in self._quotes and self._opens_quotation(text, start, stop, marker):
                return start
        elif marker in content.ends:
            self._trail.append((text[start:stop], True))
            self.quick = None
            return stop
        elif self.reasoning:
            if marker in content.spans and self.at_reasoning_start:
                self.at_reasoning_start = False
                self._choose()
                return stop
            if marker in content.openers:
                self.value, self.done = marker, True
                return start
        elif marker in content.openers:
            self.value, self.done = marker, True
            return start
        elif marker in content.spans:
            self.reasoning = self.at_reasoning_start = True
            self._span = marker
            self._content = frame or content
            self._wrap = ReasoningDelta
            self._choose()
            return stop
        elif marker in content.stray_closers and self.blank:
            return stop  # it closes empty reasoning that the prompt opened
        self._text(text[start:stop])
        return stop

    def _is_block(self, text: str, start: int, marker: str) -> bool:
        """Return whether a marker of quotations opens a block here."""
        if marker not in self._content.openers:
            return False
        if marker == ANY_TAG:  # in an answer, such a call would be part of the answer
            tags = self._lookahead[ANY_TAG]
            assert isinstance(tags, ResultTags)
            return not self.answering and tags.opens_block(text, start, self._last)
        return self.blank and marker in BRACKETS

    def _opens_quotation(self, text: str, start: int, stop: int, marker: str) -> bool:
        """Enter the quotation that the marker at this place opens, if it opens one."""
        if marker in QUOTING_MARKERS:
            return self._quote_result(text, start)
        if marker in BRACKETS and text[stop : stop + 1] in BRACKETS:
            return False  # pragma: no mutate - only to be faster: such a quotation is over at once
        if marker == self._closing_fence:
            # Read as an opener, it would hide all calls up to the next fence.
            self._closing_fence = ""
            return False
        return self._quote(marker, self._before)

    def _quote(self, marker: str, before: str) -> bool:
        """Enter the quotation that a marker opens behind some text; return False if it has to begin a line there."""
        begins = LINE_BEGINS.search(before[-LONGEST_BEGINNING:])
        if begins is None and (marker in FENCES or marker == BLOCK_QUOTE):
            return False
        indent = begins[1] if begins is not None else ""
        self._quotation = quotation(marker, self._content.closers, self._content.prose, indent)
        self.quick = None
        return True

    def _quote_result(self, text: str, start: int = 0) -> bool:
        """Enter the quotation that a result's tag or a turn's header opens here; return whether one does.

        In reasoning, it ends with the reasoning.
        """
        outside = self._content.closes if self.reasoning else frozenset[str]()
        quoted = quoted_result(text, start, outside)
        if quoted is not None:
            self._quotation = quoted
            self.quick = None
        return quoted is not None

    def _read_quotation(self, text: str, pos: int, final: bool) -> int:
        """Read on in the quotation; return the position after what was read."""
        quoted = self._quotation
        assert quoted is not None
        stop = quoted.read(text, pos, final)
        self.waiting = quoted.waiting
        if quoted.over:
            self._quotation = None
            self._choose()
        return stop

    def _trailing(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        """Read on after an end-of-sequence token: markup if nothing but white space and others like it follow."""
        match = _BLANK.match(text, pos)
        stop = match.end() if match else pos
        if stop > pos:
            self._trail.append((text[pos:stop], False))
            return stop, False
        marker, wait = self._marker_set.match(text, pos, final)
        if wait:
            return pos, True
        if marker in self._content.ends:
            self._trail.append((text[pos : pos + len(marker)], True))
            return pos + len(marker), False
        trail = "".join(piece for piece, _ in self._trail)
        self._trail.clear()
        # Text behind a token that ends the turn before a tool's result is this result.
        token = trail[max(0, trail.rfind("<")) :]
        if self._lookahead[ANY_TAG].opens(token + text[pos], 0, 1, final=True, blank=self.blank, before=self._last):
            self._reread(token)
        self._text(trail)
        self._choose()
        return pos, False

    def finish(self) -> str:
        """Read the end of the text; return the text inside a quotation that was never closed, or ""."""
        for piece, is_token in self._trail:
            if not is_token:
                self.emit(self._wrap(piece))
        self._trail.clear()
        return self._quotation.unclosed() if self._quotation is not None else ""
