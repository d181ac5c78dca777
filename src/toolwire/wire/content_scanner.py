"""The leaf for all text outside blocks: content, reasoning, code fences, end-of-sequence tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from toolwire.events import ContentDelta, Event, ReasoningDelta
from toolwire.wire.content_markers import ContentMarkers
from toolwire.wire.leaf_scanners import CDATA, Leaf
from toolwire.wire.lookahead import Lookahead
from toolwire.wire.text_buffer import TextBuffer

_BLANK = re.compile(r"\s*")
_RUN = {"`": re.compile("`*"), "~": re.compile("~*")}
_CDATA_CLOSE = "]]>"
_INFO_STOP = {"`": re.compile(r"[`\n]"), "~": re.compile(r"\n")}

# Places around a code fence: outside, in the opening run, in its info string, in the body, at a line start of the body,
# behind a run that may close it, in code that turned out to be written on one line. Or inside a CDATA section.
_OUT, _OPENING, _INFO, _BODY, _LINE, _TAIL, _INLINE, _CDATA = range(8)


class ContentScanner(Leaf):
    """Content and reasoning up to the next block's opener, which stays unread and is the value.

    Three or more backticks or tildes at a line start open a code fence, unless another backtick follows backticks on
    the same line. A line of at least as many closes it. An end-of-sequence token is markup only if nothing but white
    space and other such tokens follows.

    In formats with CDATA sections, such a section outside a call is quoted text: it was the value of a call whose own
    markup is damaged, or is shown, and a call inside it is none.

    Args:
        content: the markers that matter outside blocks.
        emit: takes events.
        reasoning: the prompt had opened the reasoning.
        blank: no content but white space came before.
        fences: respect code fences, where the format does.
        lookahead: by opener, what has to follow it for a block to begin.

    Attributes:
        hidden_text: the text inside the fence or CDATA section that is open; None outside.
        blank: no content but white space was read.
        answering: a marker was read that opens the answer.
    """

    __slots__ = (
        "_closing_fence", "_content", "_count", "_fence", "_fence_char", "_fences", "_last", "_lookahead",
        "_marker_set", "_quotes", "_run", "_span", "_stopped", "_trail", "_wrap", "answering", "at_reasoning_start",
        "blank", "emit", "hidden_text", "reasoning",
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
        self.answering = False
        self.reasoning = reasoning
        self.at_reasoning_start = reasoning  # nothing but white space was read since the reasoning began
        self._span = ""
        self._stopped = False
        self._last = "\n"
        self._trail: list[tuple[str, bool]] = []
        self._fence = _OUT
        self._fence_char = ""
        self._closing_fence = ""
        self._count = self._run = 0
        self.hidden_text: TextBuffer | None = None
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
        plain = (
            self._fence == _OUT
            and not self._trail
            and not self.at_reasoning_start
            and (self.reasoning or not self.blank)
        )
        self.quick = self._marker_set.find_start if plain else None

    @property
    def at_line_start(self) -> bool:
        """True if a line begins here."""
        return self._last == "\n"

    def pass_on(self, text: str) -> None:
        """Take a piece in which no marker begins."""
        self._last = text[-1]
        self.emit(self._wrap(text))

    def resume(self) -> None:
        """Continue after a block, which is not a line start."""
        self.done = False
        self.value = None
        self._last = ""
        self._choose()

    def use_markers(self, content: ContentMarkers) -> None:
        """Search for these markers from here on."""
        self._content = content
        self._quotes = content.quotes if self._fences else frozenset[str]()
        self._choose()

    def leave_reasoning(self) -> None:
        """End the reasoning at a block's opener."""
        self.reasoning = self.at_reasoning_start = False
        self._last = "\n"  # content begins here, on a line of its own
        self._wrap = ContentDelta
        self._choose()

    def add_content(self, text: str, *, fence: str = "") -> None:
        """Add text that a block did not use; the next `fence` closes one that the block opened, and opens none."""
        self._closing_fence = fence
        if text:
            self._text(text)

    def add_rejected_block(self, text: str) -> None:
        """Add text that turned out not to be a block, and in which only code fences matter."""
        pos, end = 0, len(text)
        may_open = self._last == "\n" and text[:3] in self._quotes and not self.reasoning
        run = _RUN[text[0]].match(text) if may_open and text[0] in _RUN else None
        if run is not None and run.end() >= 3:
            self._fence, self._fence_char, self._run, self.hidden_text = _OPENING, text[0], 0, TextBuffer()
            while pos < end and self._fence != _OUT:
                stop = self._in_fence(text, pos, end)
                if self.hidden_text is not None:
                    self.hidden_text.add(text[pos:stop])
                pos = stop
        self._text(text)

    def _text(self, text: str) -> None:
        self._last = text[-1]
        if (self.blank or self.at_reasoning_start) and not text.isspace():
            self.at_reasoning_start = False
            self.blank = self.blank and self.reasoning
            self._choose()
        self.emit(self._wrap(text))

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read up to an opener."""
        end = len(text)
        while pos < end:
            if self._fence != _OUT:
                stop = self._in_fence(text, pos, end)
                if stop > pos:
                    if self.hidden_text is not None:
                        self.hidden_text.add(text[pos:stop])
                    self._text(text[pos:stop])
                    pos = stop
                if self._fence == _OUT:
                    self._choose()
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
        if marker in self._quotes and not self.reasoning:
            if self._opens_fence(marker):
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

    def _opens_fence(self, marker: str) -> bool:
        """Enter the code fence or CDATA section that this marker opens, if it opens one."""
        if marker == self._closing_fence:
            # Read as an opener, it would hide all calls up to the next fence.
            self._closing_fence = ""
            return False
        if self._last != "\n" and marker != CDATA:
            return False
        self._fence, self._fence_char, self._run = _CDATA if marker == CDATA else _OPENING, marker[0], 0
        self.quick = None
        self.hidden_text = TextBuffer()
        return True

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
        self._text(trail)
        self._choose()
        return pos, False

    def _in_fence(self, text: str, pos: int, end: int) -> int:
        """Take one step through a code fence; return the position after it."""
        c = self._fence_char
        if self._fence == _CDATA:
            return self._in_cdata(text, pos, end)
        if self._fence in (_OPENING, _LINE):
            match = _RUN[c].match(text, pos)
            stop = match.end() if match else pos
            self._run += stop - pos
            if stop < end:  # else the run may continue in the next piece
                if self._fence == _OPENING:
                    self._fence, self._count = _INFO, self._run
                else:
                    self._fence = _TAIL if self._run >= self._count else _BODY
            return stop
        if self._fence == _BODY:
            return self._body(text, pos, end)
        if self._fence == _INFO:  # the rest of the opening line
            stop_match = _INFO_STOP[c].search(text, pos)
            if stop_match is None:
                return end
            if stop_match[0] == "\n":
                self._fence, self._run = _LINE, 0
                return stop_match.end()
            self._fence, self.hidden_text = _INLINE, None  # code written on one line
            return stop_match.start()
        if self._fence == _INLINE:  # the backticks that end it
            match = _RUN[c].match(text, pos)
            stop = match.end() if match else pos
            if stop < end:
                self._fence = _OUT
            return stop
        newline = text.find("\n", pos)  # _TAIL: the rest of a line that may close the fence
        stop = end if newline < 0 else newline + 1
        if text[pos:stop].strip():
            self._fence = _BODY
            return pos
        if newline >= 0:
            self._fence, self.hidden_text = _OUT, None
        return stop

    def _in_cdata(self, text: str, pos: int, end: int) -> int:
        """Read a CDATA section up to its end, whose brackets may have come in the piece before."""
        # Only what joins the pieces is copied: a piece may contain a section in every few of its characters.
        joined = "]" * self._run + text[pos : pos + 2]
        if (at := joined.find(_CDATA_CLOSE)) >= 0:
            stop = pos - self._run + at + len(_CDATA_CLOSE)
        elif (at := text.find(_CDATA_CLOSE, pos)) >= 0:
            stop = at + len(_CDATA_CLOSE)
        else:
            last = ("]" * self._run + text[max(pos, end - 2) : end])[-2:]
            self._run = len(last) - len(last.rstrip("]"))
            return end
        self._fence, self.hidden_text = _OUT, None
        return stop

    def _body(self, text: str, pos: int, end: int) -> int:
        """Read the body of a fence up to the next line that may close it."""
        at = text.find("\n" + self._fence_char, pos)
        if at >= 0 or text[end - 1] == "\n":
            self._fence, self._run = _LINE, 0
        return at + 1 if at >= 0 else end

    def finish(self) -> str:
        """Read the end of the text; return the text inside a fence or CDATA section that was never closed, or ""."""
        for piece, is_token in self._trail:
            if not is_token:
                self.emit(self._wrap(piece))
        self._trail.clear()
        # The closing run may end the text, without the newline that would have ended the fence.
        closed = self._fence in (_TAIL, _LINE) and self._run >= self._count
        return self.hidden_text.take() if self.hidden_text is not None and not closed else ""
