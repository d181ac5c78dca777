"""Readers of messages that are one format's calls and nothing else, where this format is not asked for.

Each reads a message whose form alone says that it is calls: calls in a code fence, tags named after tools, headings.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Protocol

from toolwire.events import CallEnd, ContentDelta, Event, ProblemFound
from toolwire.wire.formats.react import FORMAT as REACT
from toolwire.wire.named_elements import recovered

_HEADINGS = ("Thought:", "Action:")
_OBSERVATION = REACT.stop[0]
_FENCE_OPENS = re.compile(r"(`{3,80}|~{3,80})[^\n`~]{0,80}\n")
_MAY_OPEN = re.compile(r"(?:`{1,2}|~{1,2}|(?:`{3,80}|~{3,80})[^\n`~]{0,80})?\Z")


class Reader(Protocol):
    """A reader of one message in one format or any."""

    @property
    def answering(self) -> bool:
        """True if text that its format marks as the answer was read."""

    @property
    def complete_calls(self) -> int:
        """Number of calls read to their end."""

    def feed(self, text: str) -> Sequence[Event]:
        """Read the next piece."""

    def finish(self) -> Sequence[Event]:
        """Read the end of the text."""


class OnlyCalls(ABC):
    """A reader of a message that is a format's calls and nothing else, where the format itself reads none.

    Args:
        new_reader: return a reader of the format; called at the first character that may belong to a call.
        tools: the known tools.

    Attributes:
        initials: the characters with which such a message can begin, behind white space.
        alive: the message may still be that.
    """

    initials: str

    def __init__(self, new_reader: Callable[[], Reader], tools: Container[str]) -> None:
        self.alive = True
        self._new_reader = new_reader
        self._tools = tools
        self._reader: Reader | None = None
        self._before = ""  # text before the calls, while it may go on
        self._behind: list[str] = []
        self._events: list[Event] = []

    @abstractmethod
    def _begin(self, text: str) -> str | None:
        """Return the text from the first call on, or None if it has not come yet; set `alive` if it cannot come.

        The text begins with one of the initials.
        """

    def feed(self, text: str) -> None:
        """Read the next piece."""
        if self._reader is None:
            # White space is dropped, so that each piece is compared with a short beginning alone.
            self._before = (self._before + text).lstrip()
            rest = self._begin(self._before)
            if rest is None:
                return
            text, self._reader = rest, self._new_reader()
        self._take(self._reader.feed(text))

    def _take(self, events: Sequence[Event]) -> None:
        for event in events:
            if not self.alive:  # the rest, which may be a megabyte of problems, changes nothing
                return
            match event:
                case ContentDelta(text):
                    self._behind.append(text)
                    self._take_content(text)
                case CallEnd(_, call, is_complete):
                    self.alive = self.alive and is_complete and call.name in self._tools
                    self._events.append(replace(event, call=recovered(call)))
                case ProblemFound():
                    self.alive = False
                case _:
                    self._events.append(event)

    def _take_content(self, text: str) -> None:
        """Take text behind the calls; only a fence's last line may follow them."""
        self.alive = self.alive and not text.strip(" \t\r\n`~")

    def finish(self) -> list[Event]:
        """Read the end of the message; return the events of its calls, or none if it is not that."""
        if self._reader is None:
            return []
        if self.alive:
            self._take(self._reader.finish())
        return self._events if self.alive and self._reader.complete_calls else []


class FencedBlock(OnlyCalls):
    """A reader of a message that is calls in one code fence."""

    initials = "`~"

    def _begin(self, text: str) -> str | None:
        opens = _FENCE_OPENS.match(text)
        self.alive = opens is not None or bool(_MAY_OPEN.match(text))
        return text[opens.end() :] if opens is not None else None

    def finish(self) -> list[Event]:
        """See the base class; the fence has to be closed."""
        events = super().finish()
        return events if "".join(self._behind).strip() else []


class TaggedCalls(OnlyCalls):
    """A reader of a message that is tags named after known tools, whatever its format.

    Under detection, the format's own reader finds them.
    """

    initials = "<"

    def _begin(self, text: str) -> str | None:
        return text


class Headings(OnlyCalls):
    """A reader of a message in which thoughts, tools and inputs are below headings, as in ReAct.

    A heading alone may be prose, so only a message that begins with one and has nothing but calls behind is read. A
    result that the model made up may follow them, and is content.
    """

    initials = "".join(heading[0] for heading in _HEADINGS)
    _observing = False
    _may_observe = ""  # the text behind the calls, while it may become the heading of a result

    def _begin(self, text: str) -> str | None:
        has_heading = text.startswith(_HEADINGS)
        self.alive = has_heading or any(heading.startswith(text) for heading in _HEADINGS)
        return text if has_heading else None

    def _take_content(self, text: str) -> None:
        if not self._observing:
            # White space is dropped, so that each piece is compared with a short beginning alone.
            self._may_observe = (self._may_observe + text).lstrip()
            self._observing = self._may_observe.startswith(_OBSERVATION)
            self.alive = self._observing or _OBSERVATION.startswith(self._may_observe.rstrip())
            text = "".join(self._behind) if self._observing else ""
        if self._observing:
            self._events.append(ContentDelta(text))
