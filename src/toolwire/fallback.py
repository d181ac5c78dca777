"""When a model drops its format's markers: the whole message may still be a call, bare or in one code fence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolwire.events import CallEnd, CallStart, ContentDelta, Event
from toolwire.wire.control import Options
from toolwire.wire.parser import Machine
from toolwire.wire.syntax import WireFormat

_FENCED = re.compile(r"\s*(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<inside>.*?)\n?(?P=fence)\s*\Z", re.DOTALL)
_MAY_BE_A_CALL = "{[`~<"


class Fallback:
    """Holds back content that may turn out to be a call, and decides when the message is over.

    Content is held only while the message begins like one; the first call that is found releases it.

    Args:
        formats: formats without markers, in the order in which they are tried.
        named: the format that the message was expected in, or None; tried inside a fence.
        options: how to read.
    """

    def __init__(self, formats: Sequence[WireFormat], named: WireFormat | None, options: Options) -> None:
        self._formats = formats
        self._named = named
        self._options = replace(options, reasoning_started=False)
        self._held: list[str] = []
        self._holding = True
        self._certain = False  # the first character may begin a call

    def filter(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events that can be passed on now."""
        if not self._holding or not events:
            return events
        out: list[Event] = []
        for event in events:
            if isinstance(event, ContentDelta) and self._holding:
                self._held.append(event.text)
                text = "" if self._certain else event.text.lstrip()
                if text:
                    self._certain = text[0] in _MAY_BE_A_CALL
                    if not self._certain:
                        self._release(out)
            else:
                if isinstance(event, CallStart):
                    self._release(out)
                out.append(event)
        return out

    def _release(self, out: list[Event]) -> None:
        self._holding = False
        if self._held:
            out.append(ContentDelta("".join(self._held)))
            self._held.clear()

    def finish(self) -> tuple[Sequence[Event], int]:
        """The message is over: its calls, or the content that was held; and how many calls."""
        out: list[Event] = []
        text = "".join(self._held)
        if self._holding and self._options.tools and text.strip():
            for wire, candidate in self._candidates(text):
                events = self._calls(wire, candidate)
                if events:
                    return events, sum(isinstance(event, CallEnd) for event in events)
        self._release(out)
        return out, 0

    def _candidates(self, text: str) -> Iterable[tuple[WireFormat, str]]:
        fenced = _FENCED.match(text)
        inside = fenced["inside"] if fenced else text
        if fenced and self._named is not None:
            yield self._named, inside
        for wire in self._formats:
            yield wire, inside

    def _calls(self, wire: WireFormat, text: str) -> list[Event]:
        """The events of calls to known tools that are all of the text, or nothing."""
        machine = Machine(wire, self._options)
        made: list[Event] = []
        for event in [*machine.feed(text), *machine.finish()]:
            match event:
                case CallEnd(index, call, True) if call.name in self._options.tools:
                    call = replace(call, repairs=(*call.repairs, "fallback"), confidence=min(call.confidence, 0.8))
                    made.append(CallEnd(index, call, True))
                case ContentDelta(content) if not content.strip():
                    continue
                case CallEnd() | ContentDelta():
                    return []
                case _:
                    made.append(event)
        return made if machine.complete_calls else []
