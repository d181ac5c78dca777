"""The leaf that reads everything outside blocks: content, reasoning, code fences, end-of-sequence tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from toolwire.events import ContentDelta, Event, ReasoningDelta
from toolwire.wire.compiled_format import FENCES, ContentMarkers
from toolwire.wire.leaf_scanners import Leaf, TextBuffer

_BLANK = re.compile(r"\s*")
_RUN = {"`": re.compile("`*"), "~": re.compile("~*")}
_INFO_STOP = {"`": re.compile(r"[`\n]"), "~": re.compile(r"\n")}

# Where in the text around code fences the scanner is.
_OUT, _OPENING, _INFO, _BODY, _LINE, _TAIL, _INLINE = range(7)


class ContentScanner(Leaf):
    """Content and reasoning up to the next block's opener, which is left unread and is the value.

    Fences: three or more backticks or tildes at a line start open one (no backtick may follow on a backtick fence's
    line); a line of at least as many closes it. An end-of-sequence token counts as markup only if white space and
    other such tokens are all that follows.

    Args:
        plan: the markers that matter.
        emit: takes events.
        reasoning: the prompt had opened the reasoning.
        blank: no content but white space came before.
        fences: respect code fences, where the plan does.
        lookahead: characters one of which has to follow an opener, where it has no marker of its own.

    Attributes:
        hidden: the text inside the fence that is open, with the position where it began.
        blank: no content but white space was seen.
    """

    __slots__ = (
        "_count", "_fence", "_fence_char", "_fences", "_last", "_literals", "_lookahead", "_plan", "_run", "_span",
        "_stopped", "_trail", "_wrap", "blank", "emit", "entered", "hidden", "reasoning",
    )  # fmt: skip

    def __init__(
        self,
        plan: ContentMarkers,
        emit: Callable[[Event], None],
        *,
        reasoning: bool,
        blank: bool = True,
        fences: bool = True,
        lookahead: Mapping[str, frozenset[str]],
    ) -> None:
        super().__init__()
        self._plan = plan
        self._lookahead = lookahead
        self._fences = fences and plan.fences
        self.emit = emit
        self.blank = blank
        self.reasoning = reasoning
        self.entered = reasoning  # reasoning began, and nothing but white space came since
        self._span = ""
        self._stopped = False
        self._last = "\n"
        self._trail: list[tuple[str, bool]] = []
        self._fence = _OUT
        self._fence_char = ""
        self._count = self._run = 0
        self.hidden: TextBuffer | None = None
        self._wrap: Callable[[str], Event] = ReasoningDelta if reasoning else ContentDelta
        self._choose()

    def _choose(self) -> None:
        """The markers that matter from here on."""
        plan = self._plan
        if self._stopped:
            self._literals = plan.after_stop
        elif self.reasoning:
            self._literals = plan.reasoning[self._span]
        else:
            self._literals = plan.prose_start if self.blank else plan.prose
        plain = self._fence == _OUT and not self._trail and not self.entered and (self.reasoning or not self.blank)
        self.quick = self._literals.first if plain else None

    def take(self, text: str) -> None:
        """A piece in which no marker begins."""
        self._last = text[-1]
        self.emit(self._wrap(text))

    def resume(self) -> None:
        """A block has ended; read on, not at a line start."""
        self.done = False
        self.value = None
        self._last = ""
        self._choose()

    def leave_reasoning(self) -> None:
        """A block's opener ended the reasoning."""
        self.reasoning = self.entered = False
        self._last = "\n"  # content begins here, on a line of its own
        self._wrap = ContentDelta
        self._choose()

    def released(self, text: str) -> None:
        """Text that a block gave back: it is content, and reading goes on after it."""
        if text:
            self._text(text)

    def absorb(self, text: str) -> None:
        """Text that turned out to hold no block: content in which only code fences matter."""
        pos, end = 0, len(text)
        run = (
            _RUN[text[0]].match(text)
            if self._last == "\n" and text[0] in _RUN and self._fences and not self.reasoning
            else None
        )
        if run is not None and run.end() >= 3:
            self._fence, self._fence_char, self._run, self.hidden = _OPENING, text[0], 0, TextBuffer()
            while pos < end and self._fence != _OUT:
                stop = self._in_fence(text, pos, end)
                if self.hidden is not None:
                    self.hidden.add(text[pos:stop])
                pos = stop
        self._text(text)

    def _text(self, text: str) -> None:
        self._last = text[-1]
        if (self.blank or self.entered) and not text.isspace():
            self.entered = False
            self.blank = self.blank and self.reasoning
            self._choose()
        self.emit(self._wrap(text))

    def scan(self, text: str, pos: int, final: bool) -> int:
        """Read on."""
        end = len(text)
        while pos < end:
            if self._fence != _OUT:
                stop = self._in_fence(text, pos, end)
                if stop > pos:
                    if self.hidden is not None:
                        self.hidden.add(text[pos:stop])
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
            start, stop, found = self._literals.search(text, pos, final)
            if self.blank and not self.reasoning:
                begin = self._begins(text, pos, start)
                if begin < start:  # the start of the message is over: other markers matter
                    start, stop, found = self._literals.search(text, begin + 1, final)
            if start > pos:
                self._text(text[pos:start])
                pos = start
            if not found:
                self.waiting = self._literals
                return pos
            if stop == end and not final and found in self._lookahead and not self.blank:
                return pos
            pos = self._marker(text, start, stop, found)
            if self.done:
                return pos
        return pos

    def _begins(self, text: str, pos: int, stop: int) -> int:
        """Where content begins that is not white space, up to `stop`."""
        match = _BLANK.match(text, pos, stop)
        begin = match.end() if match else pos
        if begin < stop:
            self.blank = False
            self._choose()
        return begin

    def _marker(self, text: str, start: int, stop: int, found: str) -> int:
        plan = self._plan
        frame = plan.frames.get(found)
        if self.reasoning and found in plan.closes:
            self._plan = frame or plan
            self.leave_reasoning()
            return stop
        if frame is not None and self.blank and not self.reasoning and found not in plan.openers | plan.closes:
            self._plan = plan = frame
            self._choose()
        if found in plan.drops and found not in plan.openers and not self.reasoning:
            return stop
        if found in plan.stops:
            self._stopped = True
            self._choose()
            self._text(text[start:stop])
            return stop
        if found in FENCES and self._fences and not self.reasoning:
            if self._last == "\n":
                self._fence, self._fence_char, self._run = _OPENING, found[0], 0
                self.quick = None
                self.hidden = TextBuffer()
                return start
        elif found in plan.ends:
            self._trail.append((text[start:stop], True))
            self.quick = None
            return stop
        elif self.reasoning:
            if found in plan.spans and self.entered:
                self.entered = False
                self._choose()
                return stop
            if found in plan.openers:
                self.value, self.done = found, True
                return start
        elif found in plan.openers:
            after = self._lookahead.get(found)
            if after is None or self.blank or text[stop : stop + 1] in after:
                self.value, self.done = found, True
                return start
        elif found in plan.spans:
            self.reasoning = self.entered = True
            self._span = found
            self._plan = frame or plan
            self._wrap = ReasoningDelta
            self._choose()
            return stop
        elif found in plan.lone and self.blank:
            return stop  # a closer that closes nothing, before any content: the reasoning was empty
        self._text(text[start:stop])
        return stop

    def _trailing(self, text: str, pos: int, final: bool) -> tuple[int, bool]:
        """After an end-of-sequence token: markup if nothing but its like follows."""
        match = _BLANK.match(text, pos)
        stop = match.end() if match else pos
        if stop > pos:
            self._trail.append((text[pos:stop], False))
            return stop, False
        found, wait = self._literals.match(text, pos, final)
        if wait:
            return pos, True
        if found in self._plan.ends:
            self._trail.append((text[pos : pos + len(found)], True))
            return pos + len(found), False
        trail = "".join(piece for piece, _ in self._trail)
        self._trail.clear()
        self._text(trail)
        self._choose()
        return pos, False

    def _in_fence(self, text: str, pos: int, end: int) -> int:
        """One step of the fence's little machine; the position after it."""
        c = self._fence_char
        if self._fence in (_OPENING, _LINE):  # a run of fence characters
            match = _RUN[c].match(text, pos)
            stop = match.end() if match else pos
            self._run += stop - pos
            if stop < end:
                if self._fence == _OPENING:
                    self._fence, self._count = _INFO, self._run
                else:
                    self._fence = _TAIL if self._run >= self._count else _BODY
            return stop
        if self._fence == _BODY:
            return self._body(text, pos, end)
        if self._fence == _INFO:  # the rest of the opening line
            found = _INFO_STOP[c].search(text, pos)
            if found is None:
                return end
            if found[0] == "\n":
                self._fence, self._run = _LINE, 0
                return found.end()
            self._fence, self.hidden = _INLINE, None  # code written on one line
            return found.start()
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
            self._fence, self.hidden = _OUT, None
        return stop

    def _body(self, text: str, pos: int, end: int) -> int:
        """Inside a fence, up to the next line that begins like a closing one."""
        at = text.find("\n" + self._fence_char, pos)
        if at >= 0 or text[end - 1] == "\n":
            self._fence, self._run = _LINE, 0
        return at + 1 if at >= 0 else end

    def finish(self) -> str:
        """The text is over; text inside a fence that was never closed, or ""."""
        for piece, is_token in self._trail:
            if not is_token:
                self.emit(self._wrap(piece))
        self._trail.clear()
        closed = self._fence in (_TAIL, _LINE) and self._run >= self._count
        return self.hidden.take() if self.hidden is not None and not closed else ""
