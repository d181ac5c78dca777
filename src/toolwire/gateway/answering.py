"""Answers on their way to a client: whole or as a stream, with keep-alive bytes, until the client leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

from toolwire.errors import ProviderError
from toolwire.events import Event, ProblemFound, collect
from toolwire.gateway.answer_faults import FaultWatch
from toolwire.gateway.client_apis import ClientApi
from toolwire.gateway.failures import GatewayFailure, failure_in_answer, release_frames
from toolwire.gateway.passed_streams import PassedStreamReader
from toolwire.gateway.questions import Answer, EventAnswer, PassedAnswer, Question, Upstream
from toolwire.gateway.request_body import beside_loop
from toolwire.inspector.recorded_exchange import Exchange
from toolwire.messages import Problem
from toolwire.providers.chat_deltas import closed_calls
from toolwire.providers.failure_kinds import INTERNAL, UNAVAILABLE, UNREACHABLE
from toolwire.providers.stream_codec import Head

Send = Callable[[Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]

SILENCE = 10.0
"""Seconds without a byte after which a stream gets a keep-alive."""
LOOK_SECONDS = 0.1
"""Seconds after which the gateway begins to look whether the client of a request has left."""
_STREAM_HEADERS = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
MAX_NOTES = 2_000
"""Maximum length of the header with the notes, in characters."""


class Reply:
    """The response to one request: its head is sent with the first bytes, or with the first keep-alive.

    Args:
        send: sends messages of ASGI.
        client_api: the API of the client.
        id: the id of the request, which the client gets as a header.
        headers: further headers of the response.
    """

    def __init__(
        self, send: Send, client_api: ClientApi, id: str = "", headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        self._send = send
        self.client_api = client_api
        self.id = id
        self._headers = [(b"x-request-id", id.encode()), *headers]
        self._tail = b""  # the last bytes of the stream
        self._sending = False
        self._last_sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sign: asyncio.Task[None] | None = None
        self.begun = False
        self.ended = False
        self.status = 0
        """The HTTP status that was sent, or that of the failure that ended a stream; 0 if nothing was sent."""
        self.sent_status = 0
        """The HTTP status that was sent; 0 if nothing was sent."""
        self.tap: Callable[[bytes], Awaitable[None]] | None = None
        """Called with the bytes of a good answer before they are sent."""
        self.exchange: Exchange | None = None
        """Records the answer for the inspector; None if it is off."""
        self.keeps_alive = True
        """True if a stream gets keep-alive bytes."""
        self.stopping = False
        """True if the server ends this answer, so that the cancellation of its task means only that."""

    @property
    def end_of_event(self) -> bytes:
        """The bytes that end an event of which only a part was sent; b"" between two events."""
        line_ends = (b"\n\n", b"\r\n\r\n") if self.client_api.keep_alive else (b"\n",)
        return b"" if not self._tail or self._tail.endswith(line_ends) else line_ends[0]

    async def whole(self, status: int, body: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        """Send the whole response."""
        head = [(b"content-type", _header_value(media_type)), (b"content-length", b"%d" % len(body))]
        head += [(name.encode("latin-1"), _header_value(value)) for name, value in (headers or {}).items()]
        if self.tap is not None and status == 200:
            await self.tap(body)
        self.begun = self.ended = True
        if self.exchange is not None:
            self.exchange.replied(body, status)
        self.status = self.sent_status = status
        await self._send({"type": "http.response.start", "status": status, "headers": [*head, *self._headers]})
        await self._send({"type": "http.response.body", "body": body})

    async def piece(self, data: bytes, media_type: str = "") -> None:
        """Send bytes of a stream; whole events, unless the stream is passed on as it is."""
        self._sending = True
        try:
            await self._settle()
            if self.tap is not None:
                await self.tap(data)
            if not self.begun:
                await self._begin(media_type)
            if self.exchange is not None:
                self.exchange.replied(data)
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
        finally:
            self._sending = False
        self._tail = (self._tail + data)[-4:]  # a server may send the end of an event in pieces
        self._last_sent = asyncio.get_running_loop().time()

    async def end(self) -> None:
        """End a stream."""
        self.ended = True
        await self._settle()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, media_type: str = "") -> None:
        self.begun = True
        if self.exchange is not None:
            self.exchange.status = 200
        self.status = self.sent_status = 200
        kind = _header_value(media_type or self.client_api.stream_type)
        headers = [(b"content-type", kind), *_STREAM_HEADERS, *self._headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _settle(self) -> None:
        """Wait for a keep-alive that is being sent."""
        if self._sign is not None:
            sign, self._sign = self._sign, None
            await sign

    @contextmanager
    def keeping_alive(self) -> Iterator[None]:
        """Send keep-alive bytes while nothing else is sent."""
        if not (self.keeps_alive and self.client_api.keep_alive):
            yield
            return
        loop = asyncio.get_running_loop()
        self._last_sent = loop.time()
        self._timer = loop.call_later(SILENCE, self._look)
        try:
            yield
        finally:
            self._timer.cancel()
            if self._sign is not None:
                self._sign.cancel()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        quiet = loop.time() - self._last_sent
        is_sending = self._sending or (self._sign is not None and not self._sign.done())
        if quiet >= SILENCE - 0.01 and not self.end_of_event and not is_sending and not self.ended:
            self._last_sent = loop.time()
            self._sign = loop.create_task(self._send_sign())
            quiet = 0.0
        self._timer = loop.call_later(max(SILENCE - quiet, 0.05), self._look)

    async def _send_sign(self) -> None:
        if not self.begun:
            await self._begin()
        await self._send({"type": "http.response.body", "body": self.client_api.keep_alive, "more_body": True})


def _header_value(text: str) -> bytes:
    """Return the value of a header; what a backend or a model wrote may contain characters that no header may."""
    return "".join(char if " " <= char <= "~" else " " if char.isspace() else "?" for char in text).encode()


async def answer_stream(question: Question, upstreams: Iterator[Upstream], reply: Reply) -> None:
    """Stream the answer of the first backend that answers.

    Raises:
        GatewayFailure: none answers, and no byte has been sent. A failure after that ends the stream with an error.
    """
    try:
        with reply.keeping_alive():
            async with _first_answer(question, upstreams, reply) as answer:
                if isinstance(answer, PassedAnswer):
                    await _pass_on(question, answer, reply)
                else:
                    async for piece in _encoded(question, answer):
                        await reply.piece(piece)
            await reply.end()
    except (GatewayFailure, ProviderError, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError):
            if not take_back_cancellation(reply):
                raise
            failure = server_ends()
        else:
            failure = error if isinstance(error, GatewayFailure) else GatewayFailure(UNREACHABLE, str(error))
        if not reply.begun:
            raise failure from error
        await _fail(question, reply, failure)
        release_frames(failure)
        release_frames(error)


async def _pass_on(question: Question, answer: PassedAnswer, reply: Reply) -> None:
    """Send the bytes of a stream as they arrive, and look at them for figures and for the faults that end it."""
    reader, watch = PassedStreamReader(question.client_api), FaultWatch(shows_truncated_calls=True)

    def look_at(events: Sequence[Event]) -> Problem | None:
        question.observe(events)
        return watch.fault_in(events)

    try:
        async for piece in answer.body:
            await reply.piece(piece, answer.media_type)
            look_at(reader.feed(piece))
    finally:  # a client that leaves has got this much
        look_at(reader.flush())
    if (fault := look_at(reader.finish())) is not None:
        raise ProviderError(fault.message)


def server_ends() -> GatewayFailure:
    """Return the failure of an answer that the end of the server interrupts."""
    return GatewayFailure(UNAVAILABLE, "the gateway is shutting down: send the request again")


def take_back_cancellation(reply: Reply) -> bool:
    """Return whether the current task was cancelled only to end this answer; it is then no longer cancelled."""
    if not reply.stopping:
        return False
    reply.stopping = False
    task = asyncio.current_task()
    return task is not None and task.uncancel() == 0


async def _fail(question: Question, reply: Reply, failure: GatewayFailure) -> None:
    """End a stream that has begun with the API's own error; where its bytes are passed on, with its connection."""
    if question.exchange is not None:
        question.exchange.failure = str(failure)
    reply.status = failure.status
    if not reply.ended:
        message = question.client_api.message(failure)
        head = Head(question.model, question.id, question.created)
        await reply.piece(reply.end_of_event + question.client_api.api.write_error(message, failure.kind, head))
        await reply.end()


async def _encoded(question: Question, answer: EventAnswer) -> AsyncIterator[bytes]:
    """Yield the bytes of an answer in the client's API, in the groups in which its events arrive."""
    api = question.client_api.api
    encoder = api.stream_encoder(
        tools=question.request.tools,
        model=question.model,
        id=question.id,
        created=question.created,
        notes=question.notes,
    )
    watch = FaultWatch(shows_truncated_calls=question.client_api.shows_truncated_calls)
    async for events in answer.events:
        question.observe(events)
        fault = watch.fault_in(events)
        # What arrived before is still written; the end is the error that follows.
        shown = events if fault is None else events[:-1]
        # A stream does not say which call is incomplete, and some clients complete the JSON of arguments.
        if piece := encoder.feed(closed_calls(shown) if question.client_api.shows_truncated_calls else shown):
            yield piece
        if fault is not None and not encoder.ended:
            raise ProviderError(fault.message)
        if encoder.ended:
            return
    if piece := encoder.finish():
        yield piece


async def answer_whole(question: Question, upstreams: Iterator[Upstream], reply: Reply) -> None:
    """Send the whole answer of the first backend that answers.

    Raises:
        GatewayFailure: none answers.
    """
    try:
        async with _first_answer(question, upstreams, reply) as answer:
            assert isinstance(answer, EventAnswer)  # only streams are passed on piece by piece
            events = await _all_events(question, answer)
    except ProviderError as error:
        raise GatewayFailure(UNREACHABLE, str(error)) from error
    for event in events:
        if isinstance(event, ProblemFound) and event.problem.kind == "provider_error":
            raise failure_in_answer(event.problem)
    if answer.body:
        await reply.whole(200, answer.body, answer.media_type, notes_header(question))
        return
    body = await beside_loop(answer.size, _encoded_whole, question, events)
    await reply.whole(200, body, "application/json", notes_header(question))


def _encoded_whole(question: Question, events: Sequence[Event]) -> bytes:
    """Return the bytes of a whole answer in the client's API."""
    body = question.client_api.api.encode_response(
        collect(events),
        tools=question.request.tools,
        model=question.model,
        id=question.id,
        created=question.created,
        notes=question.notes,
    )
    # Half a character is an escape in JSON too.
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")


async def _all_events(question: Question, answer: EventAnswer) -> list[Event]:
    arrived: list[Event] = []
    # An answer that is encoded has no place for a part of a call.
    watch = FaultWatch(shows_truncated_calls=bool(answer.body))
    async for events in answer.events:
        question.observe(events)
        if (fault := watch.fault_in(events)) is not None:
            raise ProviderError(fault.message)
        arrived += events
    return arrived


def notes_header(question: Question) -> dict[str, str]:
    """Return the header with what could not be translated; no header if everything could."""
    if not question.notes:
        return {}
    return {"x-toolwire-notes": "; ".join(map(str, question.notes))[:MAX_NOTES]}


@asynccontextmanager
async def _first_answer(question: Question, upstreams: Iterator[Upstream], reply: Reply) -> AsyncIterator[Answer]:
    """Ask one backend after the other until one answers.

    No other one is asked once a byte has been sent to the client, nor after a failure that would be the same elsewhere.
    """
    failure: GatewayFailure | None = None
    for upstream in upstreams:
        async with AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(upstream.open(question))
            except GatewayFailure as error:
                failure = failure or error
                if question.exchange is not None and question.exchange.attempts:
                    question.exchange.attempts[-1].failure = str(error)
                if reply.begun or not error.is_temporary:
                    raise
                release_frames(error)
                continue
            question.answered_by = upstream
            yield answer
            return
    raise failure or GatewayFailure(INTERNAL, f"no backend answers for {question.model!r:.200}")


class ClientLeft(Exception):
    """The client has left, so that nobody reads the answer."""


@asynccontextmanager
async def until_gone(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client leaves; it is looked for once the block has run for a moment.

    Raises:
        ClientLeft: it has left.
    """
    task = asyncio.current_task()
    assert task is not None
    has_left = False

    async def watch() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        task.cancel()

    watchers: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    # Most answers that need no model's thinking are there before; a timer costs them less than a task.
    timer = loop.call_later(LOOK_SECONDS, lambda: watchers.append(loop.create_task(watch())))
    try:
        yield
    except asyncio.CancelledError:
        if has_left and task.uncancel() == 0:
            raise ClientLeft from None
        raise
    finally:
        timer.cancel()
        for watcher in watchers:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
