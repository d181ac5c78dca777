"""One request of the gateway as the inspector keeps it: the objects of the request by reference, with times.

The gateway records while it answers, so recording appends to lists and computes nothing. `exchange_view` makes of it
what the page shows, without secrets, when a user looks.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol
from weakref import proxy

from toolwire.events import Event
from toolwire.messages import Usage
from toolwire.providers.request import Note

if TYPE_CHECKING:
    from toolwire.inspector.exchange_summary import AnswerFigures

MAX_EXCHANGE = 16 << 20
"""Bytes of one answer that are kept; the rest of it is only counted."""
OBJECT_COST = 3
"""Size of a parsed JSON value in memory, as a multiple of its text."""
MAX_HEADER = 500
"""Maximum length of a header that is kept, in characters."""
SHOWN_HEADERS = frozenset(
    (
        *(
            "accept",
            "content-encoding",
            "content-length",
            "content-type",
            "host",
            "origin",
            "retry-after",
            "user-agent",
        ),
        *("anthropic-beta", "anthropic-version", "openai-beta", "traceparent", "x-app"),
        *(
            "session-id",
            "session_id",
            "x-claude-code-session-id",
            "x-client-request-id",
            "x-request-id",
            "x-session-id",
        ),
    )
)
"""Headers whose values are kept; of all others, which may be keys, only the names are."""

State = Literal["running", "done", "failed", "left"]


class PricesOfModel(Protocol):
    """Prices of one model's tokens; see `toolwire.agent.Prices`."""

    def cost_of(self, usage: Usage) -> float:
        """Return the cost of one answer's tokens."""
        ...


class AnswerStep(NamedTuple):
    """A piece of an answer as it arrived.

    Attributes:
        at: the time, in seconds of `time.perf_counter`.
        raw: the backend's bytes, or the text of a model that writes text alone.
        events: the events that were read from it; None if the piece was passed on unread.
    """

    at: float
    raw: bytes | str
    events: Sequence[Event] | None


@dataclass(slots=True)
class BackendAttempt:
    """One backend that was asked.

    Attributes:
        exchange: the exchange that it belongs to, by a weak reference.
        backend: the backend's name.
        api: the name of its API; "" for a model that reads text alone.
        model: the model's name at the backend.
        format: the wire format in which calls in the text of the answer are read; "" if none are.
        body: the request's body, or the messages of a model that reads text alone.
        asked_at: the time of the request, in seconds of `time.perf_counter`, as are the following times.
        answered_at: the time of the answer's head; 0 as long as there is none.
        status: the HTTP status of the answer; 0 for none.
        passed: whether the answer is passed on as it is.
        streamed: whether the answer is a stream.
        steps: the answer.
        failure: why the backend did not answer; "" if it did.
    """

    exchange: Exchange = field(repr=False)
    backend: str
    api: str
    model: str
    format: str
    body: Any
    streamed: bool
    asked_at: float
    answered_at: float = 0.0
    status: int = 0
    passed: bool = False
    steps: list[AnswerStep] = field(default_factory=list, repr=False)
    failure: str = ""

    def answered(self, status: int, *, passed: bool) -> None:
        """Record the head of the answer."""
        self.answered_at = time.perf_counter()
        self.status = status
        self.passed = self.exchange.passed = passed

    def passed_on(self, body: bytes) -> None:
        """Record a whole answer that is passed on as it is."""
        self.passed = self.exchange.passed = True
        self.arrived(body, None)

    def arrived(self, raw: bytes | str, events: Sequence[Event] | None) -> None:
        """Record a piece of the answer, and what was read from it."""
        exchange = self.exchange
        exchange.size += len(raw)
        if exchange.size - exchange.asked_size > MAX_EXCHANGE:
            exchange.truncated = True
            raw = b"" if isinstance(raw, bytes) else ""
        self.steps.append(AnswerStep(time.perf_counter(), raw, events))

    def wrote(self, pieces: list[str], events: Sequence[Event]) -> None:
        """Record events of a model that writes text alone, and take the pieces of text that led to them.

        The events of one piece of text belong to one step.
        """
        if pieces or not self.steps:
            self.arrived("".join(pieces), list(events))
            pieces.clear()
        else:
            last = self.steps[-1]
            self.steps[-1] = last._replace(events=[*(last.events or ()), *events])

    async def passing(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces of a body, and record each."""
        async for piece in body:
            self.arrived(piece, None)
            yield piece


@dataclass(slots=True, weakref_slot=True)
class Exchange:
    """One request of a client and its answer.

    Attributes:
        id: the gateway's id of the request.
        number: its number, counted from 1.
        client_api: the name of the API that the client speaks.
        path: the path and query of the address; the query without its values.
        headers: the headers without secrets.
        body: the body; None until it has arrived.
        started_at: the time, in seconds since 1970.
        started: the same time, in seconds of `time.perf_counter`, as are the following times.
        ended: the time of the end; 0 as long as there is none.
        model: the model's name as the client wrote it.
        stream: whether the client asked for a stream.
        notes: what could not be translated.
        attempts: the backends that were asked, in order.
        passed: whether the answer is passed on as it is.
        sent: the bytes that were sent to the client, each piece with its time; none if they are those of the backend.
        status: the HTTP status that the client got; 0 for none.
        failure: why there is no answer, or why it broke off; "" otherwise.
        state: whether it runs, or how it ended.
        prices: finds the prices of the model that answered; None as long as none did.
        resent_from: the id of the exchange that this one repeats; "" for a client's own.
        owner: the name under which what belongs to the client is stored; "" for everybody.
        pinned: whether it is kept while others are evicted.
        size: about how many bytes it takes.
        asked_size: the part of the size that the request takes.
        truncated: whether a part of the answer was not kept.
        version: the number of its last change, counted over all exchanges.
        figures: the figures of the answer, once it has ended and they were counted.
    """

    id: str
    number: int
    client_api: str
    path: str
    headers: Mapping[str, str]
    started_at: float
    started: float
    body: Any = None
    ended: float = 0.0
    model: str = ""
    stream: bool = False
    notes: Sequence[Note] = ()
    attempts: list[BackendAttempt] = field(default_factory=list)
    passed: bool = False
    sent: list[tuple[float, bytes]] = field(default_factory=list, repr=False)
    status: int = 0
    failure: str = ""
    state: State = "running"
    prices: Callable[[], PricesOfModel | None] | None = None
    resent_from: str = ""
    owner: str = field(default="", repr=False)
    pinned: bool = False
    size: int = 0
    asked_size: int = 0
    truncated: bool = False
    version: int = 0
    figures: AnswerFigures | None = None

    def asked(self, body: Any, size: int) -> None:
        """Record the body of the request; `size`: the length of its text, in bytes."""
        self.body = body
        self.asked_size = size * OBJECT_COST
        self.size += self.asked_size

    def forget_content(self) -> None:
        """Forget what the client and the backends wrote; names and figures stay."""
        self.body = None
        self.sent = []
        self.notes = ()
        for attempt in self.attempts:
            attempt.body = None
            attempt.steps = []
        self.failure = self.failure and "(content is not kept)"
        self.size = 0

    def attempt(self, backend: str, api: str, model: str, format: str, body: Any) -> BackendAttempt:
        """Record that a backend is asked; see `BackendAttempt` for the arguments."""
        # Without a cycle, an exchange with a large body leaves the memory at the moment in which it is evicted.
        attempt = BackendAttempt(proxy(self), backend, api, model, format, body, self.stream, time.perf_counter())
        self.attempts.append(attempt)
        return attempt

    def replied(self, data: bytes, status: int = 0) -> None:
        """Record bytes that are sent to the client."""
        if status:
            self.status = status
        if not self.passed and not self.truncated:
            self.sent.append((time.perf_counter(), data))
            self.size += len(data)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request as they are kept: names, and values that are not secrets."""
    return {name: value[:MAX_HEADER] if name in SHOWN_HEADERS else "" for name, value in headers.items()}


def kept_path(path: str, query: str) -> str:
    """Return an address without the values of its query, one of which may be a key."""
    names = [part.partition("=")[0] for part in query.split("&") if part]
    return path + ("?" + "&".join(names) if names else "")
