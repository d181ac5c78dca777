"""Streamed answers of any API: bytes become events, and events are put in the order in which APIs can write them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from toolwire.events import ArgumentsDelta, CallEnd, CallStart, Event
from toolwire.messages import FinishReason, Usage
from toolwire.providers.framing import Frame, Framing
from toolwire.providers.response_builder import ResponseBuilder

UNREADABLE = (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError)
"""Errors that reading JSON of an unexpected shape raises."""


@dataclass(frozen=True, slots=True)
class Head:
    """The members that identify an answer: the model, the answer's id, and its creation in seconds since 1970."""

    model: str
    id: str
    created: int


@dataclass(slots=True)
class StreamEnd:
    """The totals of a stream that is being written, complete once its last event has been consumed.

    Attributes:
        problem: the message of the first problem; "" for none.
    """

    reason: FinishReason = FinishReason.STOP
    usage: Usage | None = None
    problem: str = ""


class FrameReader(Protocol):
    """A reader of one stream of an API."""

    def read(self, frame: Frame) -> None:
        """Report the content of a frame to a builder."""


class EventWriter(Protocol):
    """A writer of one stream of an API."""

    def write(self, events: Iterable[Event]) -> Iterator[bytes]:
        """Yield the bytes of these events."""
        ...


class StreamDecoder:
    """Decodes one streamed answer: bytes in any split become events."""

    def __init__(self, framing: Framing, read: Callable[[Frame], None], builder: ResponseBuilder) -> None:
        self._framing = framing
        self._read = read
        self._builder = builder

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that the next bytes make certain."""
        for frame in self._framing.feed(data):
            self._frame(frame)
        return self._builder.take()

    def finish(self) -> list[Event]:
        """End the stream and return the remaining events, `Finish` last; a second call returns nothing."""
        for frame in self._framing.finish():
            self._frame(frame)
        if self._builder.reason is None and not self._framing.ended:
            self._builder.break_off()
        self._builder.finish()
        return self._builder.take()

    def _frame(self, frame: Frame) -> None:
        if frame.error or not isinstance(frame.value, dict):
            why = frame.error or "it is not an object"
            self._builder.add_problem("malformed", f"a part of the stream cannot be read: {why}", frame.raw)
            return
        try:
            self._read(frame)
        except UNREADABLE as error:
            why = f"a part of the stream does not belong to this API: {type(error).__name__} {error}"
            self._builder.add_problem("malformed", why, json_excerpt(frame.value))


def json_excerpt(value: Any) -> str:
    """Return a value as JSON text for a message."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return str(type(value))


def open_truncated_calls(events: Iterable[Event]) -> Iterator[Event]:
    """Add a `{` to each call that was truncated before its arguments began.

    Without it, a call with no arguments at all would be read back as a complete call of a tool without parameters.
    """
    with_arguments: set[int] = set()
    for event in events:
        match event:
            case ArgumentsDelta(index):
                with_arguments.add(index)
            case CallEnd(index, _, False) if index not in with_arguments:
                yield ArgumentsDelta(index, "{")
            case _:
                pass
        yield event


class _Slot:
    """The place of a call in the order of events, or of one other event."""

    __slots__ = ("closed", "events")

    def __init__(self, *, closed: bool) -> None:
        self.events: list[Event] = []
        self.closed = closed


def in_order(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events with those of each call together; an event inside a call waits for the call's end."""
    slots: deque[_Slot] = deque()
    calls: dict[int, _Slot] = {}
    for event in events:
        index = event.index if isinstance(event, CallStart | ArgumentsDelta | CallEnd) else None
        slot = calls.get(index) if index is not None else None
        if slot is None:
            slot = _Slot(closed=index is None)
            slots.append(slot)
            if index is not None:
                calls[index] = slot
        slot.events.append(event)
        if isinstance(event, CallEnd):
            slot.closed = True
            del calls[event.index]
        while slots:
            yield from slots[0].events
            slots[0].events.clear()
            if not slots[0].closed:
                break
            slots.popleft()
    for slot in slots:
        yield from slot.events
