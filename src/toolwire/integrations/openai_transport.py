"""A transport for the HTTP client inside other programs, so that they ask any model in this process.

The requests reach no network: the gateway answers them, as an application in this process. Every framework that uses
the official OpenAI client, and passes an HTTP client on to it, can use any model this way.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx

from toolwire.gateway.app import Gateway
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.upstream_health import UpstreamHealth
from toolwire.gateway.upstreams import TextUpstream
from toolwire.integrations.model_argument import AnyModel, backend_of
from toolwire.runtime.blocking import iterate_blocking
from toolwire.runtime.time_limit import time_limit

if TYPE_CHECKING:
    import httpx2

    class _Transport(  # type: ignore[misc]
        httpx.BaseTransport, httpx.AsyncBaseTransport, httpx2.BaseTransport, httpx2.AsyncBaseTransport
    ):
        """A transport of either library, with and without async."""

else:

    class _Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
        """A transport with and without async; httpx2 takes it too."""


# The event loop has weak references to tasks: one whose stream a program leaves would be collected before it is closed.
_RUNNING: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class _Head:
    """The status and the headers of a response."""

    status: int
    headers: list[tuple[bytes, bytes]]


class _Answer:
    """The answer to a request: the head of the response, and then its body as it arrives.

    It is not a generator: where a program leaves a stream without closing it, the event loop and the client's own
    generator would close that at the same time.

    Args:
        gateway: the application that answers.
        request: the request.
        body: its body.

    Raises:
        httpx.ReadTimeout: nothing arrived within the request's time limit for reading. The model has been stopped.
    """

    def __init__(self, gateway: Gateway, request: Any, body: bytes) -> None:
        self._gateway = gateway
        self._request = request
        self._unread = [{"type": "http.request", "body": body}]
        # No message is buffered: a model does not write ahead of its reader.
        self._sender, self._receiver = anyio.create_memory_object_stream[Any](0)
        self._running: asyncio.Task[None] | None = None
        self._read_seconds: float | None = request.extensions.get("timeout", {}).get("read")

    def __aiter__(self) -> _Answer:
        return self

    async def __anext__(self) -> _Head | bytes:
        async with time_limit(self._read_seconds, self._silence):
            return await self._next()

    def _silence(self) -> Exception:
        message = f"the model wrote nothing for {self._read_seconds:g} seconds"
        error: Exception = _library(self._request).ReadTimeout(message, request=self._request)
        return error

    async def _next(self) -> _Head | bytes:
        if self._running is None:
            self._running = asyncio.create_task(self._run())
            _RUNNING.add(self._running)
            self._running.add_done_callback(_RUNNING.discard)
        has_ended = True
        try:
            async for message in self._receiver:
                has_ended = False
                if message["type"] == "http.response.start":
                    return _Head(message["status"], message["headers"])
                if message.get("body"):
                    return bytes(message["body"])
                has_ended = True
            raise StopAsyncIteration
        finally:
            if has_ended:
                await self.aclose()

    async def aclose(self) -> None:
        """Stop the model."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        self._sender.close()
        self._receiver.close()

    async def _run(self) -> None:
        async with self._sender:
            await self._gateway(_scope(self._request), self._receive, self._sender.send)

    async def _receive(self) -> Any:
        return self._unread.pop() if self._unread else await asyncio.Event().wait()


class ToolwireTransport(_Transport):
    """A transport for `httpx.Client` and `httpx.AsyncClient`, and for those of `httpx2`, that asks one model.

    It answers requests to `/v1/chat/completions`, whole or streamed, under any host and for any name of a model. Errors
    have OpenAI's form, and a response that is closed early stops the model. The time limit of a request for reading
    counts, as from a server: the client raises `ReadTimeout`, and the model is stopped. Requests of the other APIs
    that the gateway knows are answered at their own paths.

    Args:
        model: the model: a backend; a client, or text such as "ollama:qwen3:8b"; a model in this process, such as
            `toolwire.models.open_model` returns; or a function from messages, as dicts with `role` and `content`, to
            text, which may be async and may yield the text in pieces.
        format: the wire format that the model is asked to write. Leave it out for a backend, and for an API whose own
            fields for tools are used.

    Raises:
        ConfigurationError: `format` is missing or has no effect, or `model` is text that names no model of an API.
        KeyError: there is no such provider, or no such format; the message suggests similar names.
        TypeError: `model` is something else.
    """

    def __init__(self, model: AnyModel, *, format: str = "") -> None:
        backend = backend_of(model, format)
        upstreams = (TextUpstream(backend),)
        # Any name will do, but a client that asks for the list of names should not find an empty one.
        names = ("*",) if backend.model else ("*", "toolwire")
        self._gateway = Gateway(ModelTable([ServedModel(name, upstreams) for name in names]))
        # There is no other model to ask instead of one that fails several times in a row.
        self._gateway.services.health = UpstreamHealth(failures=math.inf)
        self._gateway.services.keeps_alive = False  # time limits of clients count between two pieces of the answer

    def handle_request(self, request: Any) -> Any:
        """Answer a request of `Client`."""
        body = request.read()
        pieces = iterate_blocking(lambda: cast(AsyncGenerator[Any], _Answer(self._gateway, request, body)))
        head = next(pieces)
        assert isinstance(head, _Head)
        return _response(request, head, pieces)

    async def handle_async_request(self, request: Any) -> Any:
        """Answer a request of `AsyncClient`."""
        body = await request.aread()
        pieces = _Answer(self._gateway, request, body)
        head = await anext(pieces)
        assert isinstance(head, _Head)
        return _response(request, head, pieces)


def _scope(request: Any) -> dict[str, Any]:
    """Return a request as ASGI describes it."""
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "root_path": "",
        "query_string": url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (url.host, url.port),
        "client": None,
    }


def _response(request: Any, head: _Head, pieces: Iterator[Any] | AsyncIterator[Any]) -> Any:
    """Return a response of the library that the request belongs to."""
    library = _library(request)
    return library.Response(head.status, headers=head.headers, stream=_stream_class(library)(pieces))


def _library(request: Any) -> Any:
    """Return the library that a request belongs to: `httpx` or `httpx2`."""
    return sys.modules[type(request).__module__.partition(".")[0]]


@cache
def _stream_class(library: ModuleType) -> Any:
    """Return a class of streams of a library, which closes what it reads from."""

    class PieceStream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, pieces: Any) -> None:
            self._pieces = pieces

        def __iter__(self) -> Iterator[bytes]:
            yield from self._pieces

        def close(self) -> None:
            self._pieces.close()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._pieces:
                yield piece

        async def aclose(self) -> None:
            await self._pieces.aclose()

    return PieceStream
