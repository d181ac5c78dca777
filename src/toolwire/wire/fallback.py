"""Calls that a model wrote without its format's markers: the whole message, bare or in one code fence.

A small model may also drop only the opening marker, and write the closing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolwire.events import CallEnd, CallStart, ContentDelta, Event, ProblemFound, ReasoningDelta
from toolwire.wire.block_reader import ReadOptions
from toolwire.wire.message_reader import MessageReader
from toolwire.wire.syntax import Lit, WireFormat

_FENCED = re.compile(r"\s*(?P<fence>`{3,}+|~{3,}+)[^\n`]*+\n(?P<inside>.*?)\n?(?P=fence)\s*\Z", re.DOTALL)
_MAY_BE_A_CALL = "{[`~<"


class Fallback:
    """A filter that holds back content which may be a call, and decides at the end of the message.

    Content is held only while the message begins like a call. The first call that the parser finds releases it.

    Args:
        formats: formats without markers, in the order in which they are tried.
        named: the expected format, which is tried inside a fence; None if it was not named.
        options: the settings.
    """

    def __init__(self, formats: Sequence[WireFormat], named: WireFormat | None, options: ReadOptions) -> None:
        self._formats = formats
        self._named = named
        ends = [block[-1] for block in named.blocks] if named is not None else []
        self._closers = tuple(closer for end in ends if isinstance(end, Lit) for closer in sorted(end.spellings))
        self._options = replace(options, reasoning_started=False)
        self._held: list[Event] = []  # content, and problems about it
        self._holding = True
        self._certain = False  # the first character may begin a call

    def filter(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events that can be passed on now."""
        if not self._holding or not events:
            return events
        out: list[Event] = []
        for event in events:
            if not self._holding:
                out.append(event)
                continue
            if isinstance(event, ContentDelta):
                self._content(event.text)
            elif isinstance(event, CallStart) or (isinstance(event, ReasoningDelta) and self._certain):
                self._holding = False  # a call was found, or reasoning interrupts the content
            if isinstance(event, ContentDelta | ProblemFound):
                self._held.append(event)
            if not self._holding:
                out.extend(self._take())
            if not isinstance(event, ContentDelta | ProblemFound):
                out.append(event)
        return out

    def _content(self, text: str) -> None:
        """Decide by the first character that is not white space whether the content may be a call."""
        text = "" if self._certain else text.lstrip()
        if text:
            self._certain = self._holding = text[0] in _MAY_BE_A_CALL

    def _take(self) -> list[Event]:
        events, self._held = self._held, []
        return events

    def finish(self) -> tuple[Sequence[Event], int]:
        """Return the calls of the message or the content that was held, and the number of calls."""
        text = "".join(event.text for event in self._held if isinstance(event, ContentDelta))
        if self._holding and self._options.tools and text.strip():
            for wire, candidate in self._candidates(text):
                events = self._calls(wire, candidate)
                if events:
                    return events, sum(isinstance(event, CallEnd) for event in events)
        return self._take(), 0

    def _candidates(self, text: str) -> Iterable[tuple[WireFormat, str]]:
        fenced = _FENCED.match(text)
        inside = fenced["inside"] if fenced else self._unclosed(text)
        if fenced and self._named is not None:
            yield self._named, inside
        for wire in self._formats:
            yield wire, inside

    def _unclosed(self, text: str) -> str:
        """Return the text without a closing marker of the named format at its end."""
        bare = text.rstrip()
        return next((bare[: -len(closer)] for closer in self._closers if bare.endswith(closer)), text)

    def _calls(self, wire: WireFormat, text: str) -> list[Event]:
        """Return the events of calls to known tools if the text contains nothing else, or no events."""
        reader = MessageReader(wire, self._options)
        call_events: list[Event] = []
        for event in [*reader.feed(text), *reader.finish()]:
            match event:
                case CallEnd(index, call, True) if call.name in self._options.tools:
                    call = replace(call, repairs=(*call.repairs, "fallback"), confidence=min(call.confidence, 0.8))
                    call_events.append(CallEnd(index, call, True))
                case ContentDelta(content) if not content.strip():
                    continue
                case CallEnd() | ContentDelta() | ProblemFound():
                    return []
                case _:
                    call_events.append(event)
        return call_events if reader.complete_calls else []
