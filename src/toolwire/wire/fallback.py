"""Calls to known tools that a model wrote without the markers of a format, read behind the reader of a format.

`FallbackReader` keeps content back as long as the message may be nothing but such calls, and decides at its end. A call
that the format's own reader finds releases it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    ProblemFound,
    ReasoningDelta,
    call_events,
)
from toolwire.messages import ToolCall, call_id
from toolwire.text.identity_cache import IdentityCache
from toolwire.wire.block_reader import ReadOptions, unread_members
from toolwire.wire.dialects import ReadCall, named_object
from toolwire.wire.embedded import EmbeddedCalls, TextAround
from toolwire.wire.formats.react import FORMAT as REACT
from toolwire.wire.formats.tool_tags import FORMAT as TOOL_TAGS
from toolwire.wire.known_tools import KnownToolsReader, MessageReading
from toolwire.wire.message_reader import MessageReader
from toolwire.wire.named_elements import NamedElements
from toolwire.wire.only_calls import FencedBlock, Headings, OnlyCalls, Reader, TaggedCalls
from toolwire.wire.prepared_tools import KnownTools
from toolwire.wire.unread_calls import UnreadCalls, calls_in_text, text_of

FallbackLevel = Literal["none", "whole_message", "embedded"]
"""Which calls to known tools are read without markers; see `StreamParser`."""
CONFIDENCE = 0.9
"""Confidence of a call in a message that is nothing but calls."""
CONFIDENCE_BEFORE_TEXT = 0.6
"""Confidence of such a call if text follows the calls."""
CONFIDENCE_IN_PROSE = 0.4
"""Confidence of a call amid prose, which is too little for a policy to let it run unasked."""
_MALFORMED = "A tool call could not be read: %s. It did not run. Send it again, well formed."
_CUT = "The text ends inside a tool call, which was therefore not run. Send the call again, whole."

_MAX_SETS_OF_FORMATS = 16
_answers = IdentityCache(_MAX_SETS_OF_FORMATS)
_CLOSED = re.compile(r"(?:</[^<>\s]+>|<[^<>\s]*(?:/|end)[^<>\s]*>|\[/\w+\])\Z")


class FallbackReader:
    """A filter over the events of a format's reader, which adds the calls that this reader did not find.

    Args:
        options: the settings.
        tools: the known tools.
        new_reader: return a reader of the format, for a message that is one code fence around its calls.
        beside: the format's reader. Once it has read text that the format marks as the answer, nothing in the message
            is a call without the markers of a format.
        prose: read calls amid prose too. Then all content is kept back until the end.
    """

    def __init__(
        self,
        options: ReadOptions,
        tools: KnownTools,
        new_reader: Callable[[ReadOptions], Reader],
        *,
        beside: Reader,
        prose: bool = False,
    ) -> None:
        self._options = options
        self._tools = tools
        self._new_reader = new_reader
        self._beside = beside
        self._prose = prose
        self._held: list[Event] = []  # content, and problems about it
        self._holding = True
        self._passes = False  # whatever the format's reader finds is passed on as it is
        self._content: list[str] = []
        self._has_text = self._has_calls = False
        self._more_calls = 0  # calls read in addition to those of the format's reader; negative: some were quoted
        self._quotes_call = False  # the format's reader found a call inside a call without markers
        self._is_quoted = False  # and the last call that it began is such a one
        self._calls_before = 0  # number of calls that were read before the first one of the format's reader
        self._unread = UnreadCalls(options, tools)
        self._blank: list[str] = []  # white space before the first text
        self._known: KnownToolsReader | None = None
        self._elements: NamedElements | None = None
        self._alive: list[KnownToolsReader | NamedElements | OnlyCalls] = []  # readers that may read the message

    # Most messages begin with prose or a marker, and a reader costs as much as a short message.

    def _begin(self, initial: str) -> None:
        """Make the readers of the messages that can begin with this character, which is not white space."""
        formats, tools = self._options.shared, self._options.tools
        answers = _answers.get(lambda: frozenset(marker for wire in formats for marker in wire.answers), (formats,))
        self._known = KnownToolsReader(self._tools, answers)
        self._alive.append(self._known)
        of_formats = (FencedBlock, self._inside_fence), (TaggedCalls, self._tags), (Headings, self._react)
        for kind, new_reader in of_formats:
            if initial in kind.initials:
                self._alive.append(kind(new_reader, tools))
        if initial in self._tools.initials:
            self._elements = NamedElements(self._options)
            self._alive.append(self._elements)

    def _inside_fence(self) -> Reader:
        return self._new_reader(replace(self._options, reasoning_started=False, fences=False))

    def _tags(self) -> Reader:
        return MessageReader(TOOL_TAGS, replace(self._options, reasoning_started=False))

    def _react(self) -> Reader:
        return MessageReader(REACT, replace(self._options, reasoning_started=False))

    def filter(self, events: Sequence[Event], text: str = "") -> Sequence[Event]:
        """Return the events that can be passed on now.

        Args:
            events: the events that the next piece of text made certain.
            text: that piece.
        """
        if text:
            self._unread.fed.append(text)
        if events:
            if not self._passes:
                events = self._filter(events)
            self._unread.events.extend(events)
        return events

    def _filter(self, events: Sequence[Event]) -> Sequence[Event]:
        if self._has_calls:
            return [self._moved(event) for event in events] if self._calls_before else events
        passed: list[Event] = []
        for event in events:
            if isinstance(event, ContentDelta):
                if self._holding or self._prose:
                    self._content.append(event.text)
                if self._holding:
                    self._held.append(event)
                    if not self._may_be_calls(event.text):
                        passed.extend(self._release())
                    continue
            elif self._holding and (isinstance(event, ProblemFound) or self._is_argument(event)):
                self._held.append(event)
                if self._quotes_call and not self._may_be_calls(text_of(event)):
                    self._has_calls = True
                    passed.extend(self._release())
                continue
            elif isinstance(event, CallStart) and not self._has_calls:  # the format's reader found a call
                self._has_calls = True
                passed.extend(self._before_first_call())
            elif isinstance(event, ReasoningDelta) and self._has_text:  # reasoning interrupts the content
                if self._prose and self._holding:
                    self._held.append(event)  # events stay in the order of the message
                    self._interrupt()
                    continue
                passed.extend(self._release())
            passed.append(self._moved(event) if self._calls_before else event)
        return passed

    def _is_argument(self, event: Event) -> bool:
        """Return whether a call of the format's reader is inside a call without markers, as a part of its argument."""
        if isinstance(event, CallStart):
            self._is_quoted = self._known is not None and self._known.is_in_call
            self._quotes_call = self._quotes_call or self._is_quoted
        return self._is_quoted and isinstance(event, CallStart | ArgumentsDelta | CallEnd)

    def _before_first_call(self) -> list[Event]:
        """Return the calls without markers that the message began with, or the content that was kept back.

        Only a closing tag after them shows that they were meant as calls: the prompt had written the opener. Elements
        below a tool's name have closing tags of their own.
        """
        elements, known_tools = (self._elements, self._known) if self._holding else (None, None)
        if elements is not None and (events := elements.finish(call_follows=True)):
            self._release()
            self._precede(sum(isinstance(event, CallEnd) for event in events))
            return events
        is_closed = known_tools is not None and _CLOSED.search("".join(self._content).rstrip()[-80:])
        reading = known_tools.finish() if known_tools is not None and is_closed else None
        if reading is None or reading.cut or reading.behind:
            return self._release()
        self._release()
        self._precede(len(reading.calls))
        return self._whole_message(reading)

    def _precede(self, calls: int) -> None:
        """Count calls that were read before the first one of the format's reader, which changes its indexes."""
        self._passes = False
        self._calls_before += calls
        self._more_calls += calls

    def _moved(self, event: Event) -> Event:
        """Return an event of the format's reader, with the index that its call has in the message."""
        before = self._calls_before
        match event:
            case CallStart(index, name, id):
                return CallStart(index + before, name, self._id(id, index, name))
            case ArgumentsDelta(index, text):
                return ArgumentsDelta(index + before, text)
            case CallEnd(index, call, complete):
                return CallEnd(index + before, replace(call, id=self._id(call.id, index, call.name)), complete)
            case ProblemFound(problem) if problem.index is not None:
                return ProblemFound(replace(problem, index=problem.index + before))
            case _:
                return event

    def _id(self, id: str, index: int, name: str) -> str:
        """Return the id of a call that was the one at `index`, computed anew unless the model wrote it."""
        seed = self._options.seed
        return call_id(seed, index + self._calls_before, name) if id == call_id(seed, index, name) else id

    def _may_be_calls(self, text: str) -> bool:
        """Take more content; return whether it has to be kept back, because it may be calls."""
        if not self._has_text:
            self._blank.append(text)
            behind = text.lstrip()
            if not behind:
                return not self._beside.answering
            self._has_text = True
            self._begin(behind[0])
            text = "".join(self._blank)
        for reader in self._alive:
            reader.feed(text)
        self._alive = [reader for reader in self._alive if reader.alive]
        return (self._prose or bool(self._alive)) and not self._beside.answering

    def _interrupt(self) -> None:
        """Give up the readers of a message of calls alone, which would leave out the reasoning between its calls."""
        self._alive.clear()
        self._elements = None
        if self._known is not None:
            self._known.alive = False

    def _release(self) -> list[Event]:
        if not self._holding:
            return []
        events, self._held = self._held, []
        self._holding = False
        self._passes = not (self._prose or self._quotes_call)
        if self._quotes_call and self._known is not None and self._known.has_calls:
            # Whatever follows, the quoted calls were parts of an argument, and do not run.
            self._calls_before = -sum(isinstance(event, CallStart) for event in events)
            self._more_calls = -sum(isinstance(event, CallEnd) and event.complete for event in events)
            texts = (event.text if isinstance(event, ContentDelta) else text_of(event) for event in events)
            self._content = [text for text in texts if text]
            return [ContentDelta(text) for text in self._content]
        return events

    @property
    def content(self) -> Sequence[Event]:
        """The content that was read as calls, and the problems about it."""
        return self._held

    def finish(self) -> tuple[Sequence[Event], int]:
        """Return the calls of the message or the content that was kept back, and by how many calls there are more."""
        events, more_calls = self._finish()
        self._unread.events.extend(events)
        return [*events, *self._unread.problems(answering=self._beside.answering)], more_calls

    def _finish(self) -> tuple[Sequence[Event], int]:
        if self._has_calls:
            return (), self._more_calls
        if not self._has_text and self._holding:
            return self._release(), 0
        if self._holding and self._known is not None and not self._beside.answering:
            reading = self._known.finish()
            if reading is not None and (reading.calls or self._quotes_call or not reading.cut):
                quoted = sum(isinstance(event, CallEnd) and event.complete for event in self._held)
                return [*self._whole_message(reading), *self._broken()], len(reading.calls) - quoted
            if self._quotes_call:
                return self._release(), self._more_calls
            if reading is not None:
                return [*self._release(), self._unread.problem("truncated", reading.cut, _CUT)], self._more_calls
            if events := self._of_a_format():
                return events, sum(isinstance(event, CallEnd) for event in events)
        if self._prose and not self._beside.answering:
            around = TextAround("".join(self._content), self._held)
            candidates = calls_in_text(around.text, self._options, self._tools)
            places = [place for place in candidates if place.is_meant and not around.interrupts(place.start, place.end)]
            if places:
                return self._amid_prose(around, places), sum(len(place.calls) for place in places)
        events = self._release()
        return [*events, *self._broken(events)], self._more_calls

    def _broken(self, released: Sequence[Event] = ()) -> list[Event]:
        """Return a problem if a call to a known tool began without markers that cannot be read.

        Args:
            released: the last events, which contain the last content.
        """
        reader = self._known
        if reader is None or (self._passes and self._unread.has_calls):
            return []
        broken = reader.broken
        if not broken and reader.unreadable:
            events = [*self._unread.events, *released]
            content = "".join(event.text for event in events if isinstance(event, ContentDelta))
            broken = named_object(content, self._tools)
        return [self._unread.problem("malformed", broken, _MALFORMED % reader.error)] if broken else []

    def _of_a_format(self) -> Sequence[Event]:
        """Return the calls of a message in a form that is not searched for inside other text."""
        readers = (reader for reader in self._alive if not isinstance(reader, KnownToolsReader))
        return next((events for reader in readers if (events := reader.finish())), ())

    def _whole_message(self, reading: MessageReading) -> list[Event]:
        confidence = CONFIDENCE_BEFORE_TEXT if reading.behind else CONFIDENCE
        events: list[Event] = []
        for index, call in enumerate(reading.calls):
            events.extend(self._call(index, call, confidence))
        if rest := reading.behind + reading.cut:
            events.append(ContentDelta(rest))
        if reading.cut:
            events.append(self._unread.problem("truncated", reading.cut, _CUT))
        size = sum(len(event.text) for event in self._held if isinstance(event, ContentDelta))
        return [*events, *self._unread.problems_outside([(0, size - len(reading.behind))], self._held)]

    def _amid_prose(self, around: TextAround, counting: Sequence[EmbeddedCalls]) -> list[Event]:
        """Return the calls that the text makes, the text around them as content, and the problems about that text."""
        events: list[Event] = []
        index = 0
        for place in counting:
            events.extend(around.up_to(place.start, behind=place.end))
            for call in place.calls:
                events.extend(self._call(index, call, CONFIDENCE_IN_PROSE))
                index += 1
        events.extend(around.rest())
        return [*events, *self._unread.problems_outside([(place.start, place.end) for place in counting], self._held)]

    def _call(self, index: int, read: ReadCall, confidence: float) -> Iterator[Event]:
        arguments = self._options.tools[read.name].fit(read.arguments)
        repairs = [*read.repairs, "fallback"]
        if arguments is not read.arguments:
            repairs.append("coerced")
        call = ToolCall(
            read.name,
            arguments,
            call_id(self._options.seed, index, read.name),
            raw=read.text,
            format=read.dialect,
            repairs=tuple(dict.fromkeys(repairs)),
            confidence=confidence,
        )
        yield from call_events(index, call)
        if read.unread:
            yield self._unread.problem("unread_members", read.text, unread_members(read.name, read.unread))
