"""Requests over HTTP, and stand-ins for tests: what is sent and what comes back, as bytes.

`HttpTransport` talks to a server. `ScriptedTransport` answers what a test says, in any API's words; `ReplayTransport`
answers what was recorded, and `RecordingTransport` records it.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from os import PathLike
from pathlib import Path
from time import time
from typing import Any, Protocol, Self

import httpx

from toolwire.errors import ProviderError
from toolwire.events import replay
from toolwire.messages import ParsedResponse
from toolwire.providers.base import ProviderApi


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; its secret headers are not shown."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class HttpAnswer:
    """An answer whose body is still coming."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]

    @property
    def good(self) -> bool:
        """Whether the server did what it was asked; a redirection is none of that."""
        return 200 <= self.status < 300

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.body])


class Transport(Protocol):
    """Carries requests. One with `offline = True` asks nobody, so it needs no key."""

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send a request; the answer's body can be read until the context ends, which also cancels it."""
        ...


@dataclass(frozen=True, slots=True)
class Retry:
    """When to try again.

    Attributes:
        attempts: how often a request is sent at most.
        wait: seconds before the second attempt; doubled each time, with some chance in it.
        longest: seconds that one wait may take; a server that asks for more gets no further request.
        statuses: answers after which it is tried again.
    """

    attempts: int = 4
    wait: float = 0.5
    longest: float = 60.0
    statuses: frozenset[int] = frozenset((408, 429, 500, 502, 503, 504, 529))

    def pause(self, attempt: int, asked: float | None) -> float | None:
        """Seconds to wait after this attempt (the first is 1); None: not again."""
        if attempt >= self.attempts or (asked is not None and asked > self.longest):
            return None
        if asked is not None:
            return asked
        return float(min(self.longest, self.wait * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0))


def retry_after(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """Seconds that an answer's `Retry-After` asks for, in either of its forms."""
    value = next((text for key, text in headers.items() if key.lower() == "retry-after"), "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now())
    except (ValueError, TypeError):
        return None


class HttpTransport:
    """Sends requests with httpx.

    Args:
        client: a client of your own; else one is made, and closed with the transport.
        timeout: seconds without any byte until a request counts as failed.
        retry: when to try again. A body that has begun to come is never asked for twice.
    """

    def __init__(
        self, client: httpx.AsyncClient | None = None, *, timeout: float = 120.0, retry: Retry | None = None
    ) -> None:
        self._own = client is None
        self._client = client or httpx.AsyncClient(timeout=httpx.Timeout(timeout, connect=15.0))
        self._retry = retry or Retry()
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections of a client that was made here."""
        if self._own:
            await self._client.aclose()

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Send a request, again where that may help.

        Raises:
            ProviderError: the server cannot be reached, or stops in the middle.
        """
        try:
            made = self._client.build_request("POST", request.url, content=request.body, headers=dict(request.headers))
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise ProviderError(f"no request can be made to {request.url!r}: {type(error).__name__}") from error
        response = await self._sent(made)
        try:
            yield HttpAnswer(response.status_code, dict(response.headers), _body(response))
        finally:
            await response.aclose()

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:  # nothing was sent yet
                pause = self._retry.pause(attempt, None)
                if pause is None:
                    raise ProviderError(f"{request.url.host} cannot be reached: {_why(error)}") from error
            except httpx.RequestError as error:
                raise ProviderError(f"{request.url.host} did not answer: {_why(error)}") from error
            else:
                if response.status_code not in self._retry.statuses:
                    return response
                pause = self._retry.pause(attempt, retry_after(response.headers, time))
                if pause is None:
                    return response
                await response.aclose()
            await self._sleep(pause)


async def _body(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_bytes():
            yield piece
    except httpx.RequestError as error:
        raise ProviderError(f"the answer was cut off: {_why(error)}", status=response.status_code) from error


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


Scripted = ParsedResponse | bytes | tuple[int, bytes] | Exception


class ScriptedTransport:
    """Answers the requests of a test, one after another, in an API's words.

    Args:
        api: the API that answers.
        answers: a response to be encoded, bytes of a body, a status with such bytes, or an exception to be raised.
        piece: bytes that come at a time.

    Attributes:
        requests: the bodies that were sent, decoded.
    """

    offline = True

    def __init__(self, api: ProviderApi, answers: Iterable[Scripted], *, piece: int = 97) -> None:
        self._api = api
        self._answers = list(answers)
        self._piece = piece
        self.requests: list[Any] = []

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """The next answer.

        Raises:
            ProviderError: there is none left.
        """
        self.requests.append(json.loads(request.body))
        if not self._answers:
            raise ProviderError("the script has no answer left")
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        if isinstance(body, ParsedResponse):
            body = self._encoded(body, request)
        yield HttpAnswer(status, {}, _pieces(body, self._piece))

    def _encoded(self, response: ParsedResponse, request: HttpRequest) -> bytes:
        if is_stream(request):
            return b"".join(self._api.encode_stream(replay(response)))
        return json.dumps(self._api.encode_response(response)).encode()


def is_stream(request: HttpRequest) -> bool:
    """Whether a request asks for an answer in pieces: by its body, or by its address."""
    body = json.loads(request.body)
    asked = body.get("stream") if isinstance(body, dict) else None
    return bool(asked) or "stream" in request.url.rpartition("/")[2].lower()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, as a line of a recording: no header that holds a secret."""

    url: str
    request: str
    status: int
    answer: str
    """The bytes, each as the character of its number, so that any body is text."""


class RecordingTransport:
    """Passes requests on, and writes what was said into a file of JSON lines."""

    def __init__(self, inner: Transport, path: str | PathLike[str]) -> None:
        self._inner = inner
        self._path = Path(path)

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Send a request; it is recorded when its answer was read to the end."""
        async with self._inner.open(request) as answer:
            yield HttpAnswer(answer.status, answer.headers, self._recorded(request, answer))

    async def _recorded(self, request: HttpRequest, answer: HttpAnswer) -> AsyncIterator[bytes]:
        came: list[bytes] = []
        async for piece in answer.body:
            came.append(piece)
            yield piece
        line = Exchange(
            url=request.url.partition("?")[0],
            request=request.body.decode("utf-8", "replace"),
            status=answer.status,
            answer=b"".join(came).decode("latin-1"),
        )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(line)) + "\n")


class ReplayTransport:
    """Answers what was recorded: each request gets the first answer to the same body that was not given yet.

    Raises:
        ProviderError: (of `open`) no such request was recorded, or each of its answers was given.
    """

    offline = True

    def __init__(self, path: str | PathLike[str], *, piece: int = 97) -> None:
        lines = Path(path).read_text("utf-8").splitlines()
        self._left = [Exchange(**json.loads(line)) for line in lines if line.strip()]
        self._piece = piece

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """The recorded answer."""
        asked = json.loads(request.body)
        for at, one in enumerate(self._left):
            if json.loads(one.request) == asked and one.url == request.url.partition("?")[0]:
                del self._left[at]
                yield HttpAnswer(one.status, {}, _pieces(one.answer.encode("latin-1"), self._piece))
                return
        raise ProviderError(f"no such request to {request.url.partition('?')[0]} was recorded")
