"""Calls to known tools amid prose and code: where they are, and whether the text around them makes them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolwire.events import ContentDelta, Event, ReasoningDelta
from toolwire.text.spans import Spans
from toolwire.wire.dialects import CallScanner, ReadCall
from toolwire.wire.prepared_tools import KnownTools
from toolwire.wire.refusals import explanation_near, refusal_in
from toolwire.wire.result_tags import spans_of_results

# A list, an object, or a name before a parenthesis. Nothing else begins a call.
_BEGINS = re.compile(r"[\[{]|(?<![\w.$-])(?:[^\W\d]|[$\\])[\w$.\\-]{0,255}(?=\()")
_OPENS = re.compile(r"[\[{(]")  # pragma: no mutate - only to be faster
_NAME_BEFORE = re.compile(r"(?:^|\n|:[ \t])[ \t>*_`-]*([^\W\d][\w$.\\-]{0,255})[*_`]{0,3}[ \t]*:?\s*(?:`{3,}\w*\s*)?\Z")
_FENCE_BEFORE = re.compile(
    r"(?:\A|\n)[ \t]*(?:[-+*][ \t]+|\d{1,9}[.)][ \t]+)?(?P<fence>`{3,}|~{3,})[\w+-]*[ \t]*\n\s*\Z"
)
_FENCE_BEHIND = re.compile(r"\s*\n[ \t]*(?:`{3,}|~{3,})[ \t]*(?:\n|\Z)")
_NEAR = 400
"""Number of characters on each side of a call that are looked at."""
_IN_RESULT = "a tool's result"
PATIENCE = 4  # pragma: no mutate - any small number keeps the search linear
"""Number of characters that failed attempts may read, per character of the text: the search stays linear."""
PATIENCE_AT_LEAST = 1000  # pragma: no mutate - any number does, for short texts
"""Number of characters that failed attempts may read in any text."""


@dataclass(frozen=True, slots=True)
class EmbeddedCalls:
    """Calls of one expression, or one call of a format, in a text.

    Attributes:
        calls: the calls.
        start, end: their place in the text, with a code fence that contains nothing else.
        doubt: a sign of a refusal anywhere in the text, or of an explanation next to the calls; "" if there is none.
    """

    calls: list[ReadCall]
    start: int
    end: int
    doubt: str

    @property
    def is_meant(self) -> bool:
        """True if nothing shows that the text only mentions the calls."""
        return not self.doubt


@dataclass(frozen=True, slots=True)
class FormatCall:
    """A call in a text that was read by a format.

    Attributes:
        start, end: its place in the text.
        call: the call.
    """

    start: int
    end: int
    call: ReadCall


def find_calls(text: str, tools: KnownTools, of_formats: Sequence[FormatCall] = ()) -> Iterator[EmbeddedCalls]:
    """Yield the calls to known tools in a text, in order.

    Args:
        text: the text.
        tools: the known tools.
        of_formats: the calls in it that formats read. One inside a call of a dialect is its argument.
    """
    # Most prose has no bracket, and is searched faster for one than for a name.
    if not of_formats and not _OPENS.search(text):  # pragma: no mutate - without it, the same calls are found
        return
    doubts = Doubts(text)
    following = iter(of_formats)
    next_read = next(following, None)
    pos, budget = 0, PATIENCE * len(text) + PATIENCE_AT_LEAST
    match = _BEGINS.search(text)
    while True:
        # A search that finds nothing reads all of the rest, so it is not repeated behind each call of a format.
        if match is not None and match.start() < pos:
            match = _BEGINS.search(text, pos) if budget > 0 else None
        if next_read is not None and (match is None or next_read.start <= match.start()):
            if next_read.start >= pos:
                yield doubts.place([next_read.call], next_read.start, next_read.end)
                pos = next_read.end
            next_read = next(following, None)
            continue
        if match is None:
            return
        start, pos = match.start(), match.end()
        scanner = CallScanner(tools)
        end = scanner.scan(text, start, True)  # pragma: no mutate - a call ends with a bracket, wherever the text ends
        # Only before an object: in front of a list or an expression, a name is a word of the sentence.
        name = _name_before(text, start, tools) if isinstance(scanner.value, dict) else None
        begin = name.start(1) if name else start
        calls = scanner.calls(text[begin:end], name[1] if name else "")
        if not calls:
            # The next attempt begins inside this one, so a flood of brackets would take quadratic time.
            budget -= end - start
            continue
        pos = end
        yield doubts.place(calls, begin, end)


class TextAround:
    """The text around the calls of a message, with the reasoning that interrupts it, in the order of the message.

    Args:
        text: all content of the message.
        events: the events with that content and the reasoning.

    Attributes:
        text: that content.
    """

    def __init__(self, text: str, events: Iterable[Event]) -> None:
        self.text = text
        self._pos = 0
        self._reasoning: list[tuple[int, ReasoningDelta]] = []  # each with its position in the content
        size = 0
        for event in events:
            if isinstance(event, ContentDelta):
                size += len(event.text)
            elif isinstance(event, ReasoningDelta):
                self._reasoning.append((size, event))
        self._interruptions = [at for at, _ in self._reasoning]
        self._reasoning.reverse()

    def interrupts(self, start: int, end: int) -> bool:
        """Return whether reasoning is between the first and the last character of this part of the text."""
        following = bisect_right(self._interruptions, start)
        return following < len(self._interruptions) and self._interruptions[following] < end

    def up_to(self, end: int, *, behind: int) -> Iterator[Event]:
        """Yield the text and the reasoning from the last place up to this one, behind which the text goes on."""
        while self._reasoning and self._reasoning[-1][0] <= end:
            at, reasoning = self._reasoning.pop()
            yield from self._content(at)
            yield reasoning
        yield from self._content(end)
        self._pos = behind

    def rest(self) -> Iterator[Event]:
        """Yield the text and the reasoning from the last place on."""
        yield from self.up_to(len(self.text), behind=len(self.text))

    def _content(self, end: int) -> Iterator[Event]:
        if end > self._pos:
            yield ContentDelta(self.text[self._pos : end])
            self._pos = end


class Doubts:
    """The signs in a text that it does not make the calls that it contains."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _refusal(self) -> str:
        # One search for all calls of the text, and none for a text without calls.
        return refusal_in(self._text)

    @cached_property
    def _results(self) -> Spans:
        # What begins with the tag is not inside it: a tool may be named like a result.
        return Spans((start + 1, stop) for start, stop in spans_of_results(self._text))

    def place(self, calls: list[ReadCall], start: int, end: int) -> EmbeddedCalls:
        """Return these calls with a code fence around them and the doubt about them."""
        start, end = _with_fence(self._text, start, end)
        return EmbeddedCalls(calls, start, end, self.about(start, end))

    def about(self, start: int, end: int) -> str:
        """Return a sign of a refusal anywhere in the text, or of an explanation next to this part of it, or "".

        A result of a tool in which this part begins, or a turn that is not the model's, is such a sign too.
        """
        sign = self._refusal or explanation_near(self._text, start, end)
        return sign or (_IN_RESULT if self._results.overlap(start, start + 1) else "")


def _name_before(text: str, start: int, tools: KnownTools) -> re.Match[str] | None:
    """Return the known tool's name that is before an object."""
    match = _NAME_BEFORE.search(text, max(0, start - _NEAR), start)
    return match if match and tools.names.resolve(match[1]) else None


def _with_fence(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of an expression, with the code fence around it if this contains nothing else."""
    before = _FENCE_BEFORE.search(text, max(0, start - _NEAR), start)
    behind = _FENCE_BEHIND.match(text, end)
    return (before.start(1), behind.end()) if before and behind else (start, end)
