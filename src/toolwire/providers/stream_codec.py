"""Streamed answers of any API: bytes become events, and events are put in the order in which APIs can write them."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypedDict

from toolwire.errors import DefinitionError
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Event
from toolwire.messages import FinishReason, Part, Problem, Usage
from toolwire.providers.answer_shapes import AnswerShape
from toolwire.providers.context_overflow import recognisable
from toolwire.providers.error_bodies import may_be_error
from toolwire.providers.failure_kinds import TOO_LONG, kind_of_problem
from toolwire.providers.finish_reasons import has_failure_word
from toolwire.providers.framing import Frame, Framing
from toolwire.providers.request import Notes
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.text.json_text import json_excerpt

UNREADABLE = (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError)
"""Errors that reading JSON of an unexpected shape raises."""
_MAX_TIME = 253_402_300_799
"""The end of the year 9999, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Head:
    """The members that identify an answer: the model, the answer's id, and its creation in seconds since 1970."""

    model: str
    id: str
    created: int


WAITING: Final[Event] = ContentDelta("")
"""Stands for an event that has not arrived yet; recognised by identity. Writers answer it with no bytes at once, so
that an asynchronous caller gets control back instead of being asked for the next event."""


_BROKEN_OFF = "the answer ended before it was whole"


@dataclass(slots=True)
class StreamEnd:
    """The totals of a stream that is being written, complete once its last event has been consumed.

    Attributes:
        problem: the message of the first problem; "" for none.
        members: members of the answer that only this API has, by the paths of their objects.
        has_calls: whether a call has begun.
        is_finished: whether the finish reason is known.
    """

    reason: FinishReason = FinishReason.STOP
    usage: Usage | None = None
    problem: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    has_calls: bool = False
    is_finished: bool = False
    _breaks_off: bool = False

    def add_problem(self, problem: Problem, notes: Notes) -> None:
        """Note a problem of the answer.

        Raises:
            ProviderFailed: an error took the place of the rest.
        """
        if problem.kind == "provider_error":
            raise ProviderFailed(problem)
        notes.dropped(problem.kind, problem.message)
        self.problem = self.problem or problem.message
        self._breaks_off |= problem.kind == "truncated" and problem.index is None

    def finish(self, reason: FinishReason | None, api: str, shape: AnswerShape) -> None:
        """Set the finish reason; None: the events end without one.

        Raises:
            ProviderFailed: the answer failed, and this API has no word for that. Without an error, a client would take
                an answer that broke off for a whole one.
        """
        self.is_finished = True
        self._breaks_off |= reason is None
        self.reason = FinishReason.ERROR if reason is None else reason
        has_word = has_failure_word(api) or shape.has_finish(self.members)
        if self.reason is FinishReason.ERROR and not has_word and (self._breaks_off or not self.has_calls):
            raise ProviderFailed(Problem("provider_error", 0, "", self.problem or _BROKEN_OFF))


def answer_id(parts: Sequence[Part]) -> str:
    """Return an id of an answer that depends on its content."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


class ProviderFailed(Exception):
    """The provider failed in the middle of an answer."""

    def __init__(self, problem: Problem) -> None:
        self.kind = kind_of_problem(problem)
        super().__init__(recognisable(problem.message) if self.kind is TOO_LONG else problem.message)


_ID_PREFIX: Final = re.compile(r"^(?:chatcmpl-|msg_|resp_)")
"""Prefixes that writers add to the id of an answer themselves."""
_BODIES: Final = ("message", "response", "interaction")
"""Members of a frame that contain what identifies the answer, in some APIs."""
_IDENTIFYING: Final = frozenset((*_BODIES, "id", "responseId", "model", "modelVersion", "created", "created_at"))


class Dumpable(Protocol):
    """An object of a provider's own client, which pydantic can dump."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Return its members."""
        ...


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
    """Decodes one streamed answer: bytes in any split become events, as do the chunks of a provider's own client.

    Attributes:
        model: the model's name, as the stream says it; "" until then.
        id: the answer's id without the prefix of its API; "" until then.
        created: time of the answer in seconds since 1970; 0 until then.
    """

    def __init__(self, framing: Framing, read: Callable[[Frame], None], builder: ResponseBuilder) -> None:
        self._framing = framing
        self._read = read
        self._builder = builder
        self.model = ""
        self.id = ""
        self.created = 0

    @property
    def problem(self) -> Problem | None:
        """The last problem of the answer that belongs to no call; None if there is none."""
        return self._builder.problem

    def feed(self, data: bytes | Mapping[str, Any] | Dumpable) -> list[Event]:
        """Return the events that the next piece of the stream makes certain.

        Args:
            data: bytes in any split; or a chunk as a client of the provider yields it, such as a `ChatCompletionChunk`:
                an object with `model_dump`, or a dict.

        Raises:
            DefinitionError: it is neither.
        """
        if isinstance(data, bytes | bytearray | memoryview):
            for frame in self._framing.feed(bytes(data)):
                self._frame(frame)
        else:
            self._frame(self._framing.wrap(as_dict(data, "a piece of a stream must be bytes,")))
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
        # An API that never names its model, such as Bedrock, has none of these members in any of its frames.
        if (not self.id or not self.model) and not _IDENTIFYING.isdisjoint(frame.value):
            self._identify(frame.value)
        builder, why = self._builder, ""
        pending = builder.pending
        try:
            self._read(frame)
        except UNREADABLE as error:
            why = f"a part of the stream does not belong to this API: {type(error).__name__} {error}"
        if builder.pending == pending and may_be_error(frame.value) and builder.add_error(frame.value):
            return
        if why:
            builder.add_problem("malformed", why, json_excerpt(frame.value))

    def _identify(self, value: dict[str, Any]) -> None:
        """Note what identifies the answer; some APIs have it in an object of the first frame."""
        for body in (value, *(value.get(name) for name in _BODIES)):
            if not isinstance(body, dict):
                continue
            id, model = body.get("id") or body.get("responseId"), body.get("model") or body.get("modelVersion")
            created = body.get("created") or body.get("created_at")
            self.id = self.id or (_ID_PREFIX.sub("", id) if isinstance(id, str) else "")
            self.model = self.model or (model if isinstance(model, str) else "")
            self.created = self.created or _seconds(created)


def _seconds(value: Any) -> int:
    """Return a time in seconds since 1970; 0 for a value that is no time, or is in no year that dates can have."""
    return int(value) if isinstance(value, int | float) and 0 <= value <= _MAX_TIME else 0


def as_dict(value: Any, expected: str = "a response must be") -> dict[str, Any]:
    """Return a dict, or the dict that an object of a provider's own client dumps itself to.

    Args:
        value: the value.
        expected: begins the message of the error.

    Raises:
        DefinitionError: it is neither.
    """
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        dumped = dump(mode="json", by_alias=True, exclude_none=True)
        if isinstance(dumped, Mapping):
            return dict(dumped)
    raise DefinitionError(f"{expected} a dict or an object with model_dump, not {type(value).__name__}")


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


class StreamEncoding(TypedDict, total=False):
    """Keywords of a stream that is encoded; see `ProviderApi.encode_stream`."""

    tools: Any
    model: str
    id: str
    created: int
    notes: Notes | None
    source: StreamDecoder | None


class StreamEncoder:
    """Encodes one streamed answer from events that are pushed: events become the bytes of the API's stream.

    Args:
        write: writes events, and yields b"" where the next event has not arrived yet.
    """

    def __init__(self, write: Callable[[Iterable[Event]], Iterator[bytes]]) -> None:
        self._arrived: deque[Event] = deque()
        self._ended = False
        self._pieces = write(self._pulled())

    @property
    def ended(self) -> bool:
        """True if nothing more can be written: the stream was finished, or an error has ended it."""
        return self._ended

    def feed(self, events: Iterable[Event]) -> bytes:
        """Return the bytes that these events make certain; b"" if they depend on what follows."""
        self._arrived.extend(events)
        return self._written() if self._arrived else b""

    def finish(self) -> bytes:
        """End the stream, and return the remaining bytes."""
        if self._ended:
            return b""
        self._ended = True
        return b"".join(self._pieces)

    def _pulled(self) -> Iterator[Event]:
        while self._arrived or not self._ended:
            yield self._arrived.popleft() if self._arrived else WAITING

    def _written(self) -> bytes:
        pieces: list[bytes] = []
        while not self._ended:
            piece = next(self._pieces, None)
            if piece is None:  # an error has ended the stream
                self._ended = True
            elif piece:
                pieces.append(piece)
            elif not self._arrived:
                break  # everything that has arrived is written
        return b"".join(pieces)


async def written_async(encoder: StreamEncoder, events: AsyncIterable[Event]) -> AsyncGenerator[bytes]:
    """Yield the bytes of events as they arrive: those of one stream."""
    async for event in events:
        if piece := encoder.feed((event,)):
            yield piece
        if encoder.ended:
            return
    if piece := encoder.finish():
        yield piece


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
        if event is WAITING:
            yield event
            continue
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
