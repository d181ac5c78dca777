"""Requests to provider APIs over HTTP, and their responses as bytes; `toolwire.testing` has transports for tests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import monotonic, time
from typing import Self
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx

from toolwire._surface import check_number
from toolwire.client.exchange import TIMEOUT, HttpAnswer, HttpRequest
from toolwire.client.response_body import ENCODINGS, unpacked
from toolwire.errors import ProviderError, RealRequestError
from toolwire.text.suggest import suggests_keywords

STALE_SECONDS = 1.0
"""Seconds within which a connection that was closed by the server fails; what fails later, the server has read."""


@suggests_keywords
@dataclass(frozen=True, slots=True)
class Retry:
    """The policy for repeating a request that failed.

    Attributes:
        attempts: maximum number of attempts.
        wait: seconds before the second attempt; doubled with each further one, with some randomness.
        longest: maximum length of one wait, in seconds; if a server asks for more, there is no further attempt.
        statuses: HTTP statuses after which the request is repeated.
    """

    attempts: int = 4
    wait: float = 0.5
    longest: float = 60.0
    statuses: frozenset[int] = frozenset((408, 429, 500, 502, 503, 504, 529))

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            TypeError: a value is of another type.
            ValueError: there is no attempt, or a wait is below zero.
        """
        check_number("attempts", self.attempts, "a number of attempts", least=1, whole=True)
        check_number("wait", self.wait, "a number of seconds")
        check_number("longest", self.longest, "a number of seconds")

    def pause(self, attempt: int, asked: float | None) -> float | None:
        """Return the seconds to wait after this attempt (the first is 1); None to give up."""
        if attempt >= self.attempts or (asked is not None and asked > self.longest):
            return None
        if asked is not None:
            return asked
        return float(min(self.longest, self.wait * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0))


def retry_after(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, in either of its forms; None if there is none."""
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


class RealRequests:
    """The permission to send requests over HTTP from this process.

    Attributes:
        forbidden: number of blocks of `toolwire.testing.forbid_real_requests` that are open.
    """

    # Not a context variable: tools and synchronous runs work in threads, which must not escape the ban.
    forbidden = 0


class HttpTransport:
    """Sends requests with httpx.

    Args:
        client: a client of your own; by default the transport makes one for each event loop, and closes it with itself.
        timeout: seconds without any byte after which a request has failed.
        retry: when to repeat a request. It is never repeated once a part of the answer's body has arrived.
    """

    def __init__(
        self, client: httpx.AsyncClient | None = None, *, timeout: float = TIMEOUT, retry: Retry | None = None
    ) -> None:
        self._client = client
        self._timeout = httpx.Timeout(timeout, connect=15.0)
        # Connections belong to the event loop that opened them, and a program may use several, one after the other.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
        self._retry = retry or Retry()
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __aenter__(self) -> Self:
        """Return the transport."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections of a client that was made here, for this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client_of_loop(self) -> httpx.AsyncClient:
        if self._client is not None:
            return self._client
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = httpx.AsyncClient(timeout=self._timeout)
        return client

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Send a request; repeat it as `retry` allows.

        Raises:
            RealRequestError: requests are forbidden in this test.
            ProviderError: the server cannot be reached, or stops in the middle.
        """
        if RealRequests.forbidden:
            address = urlsplit(request.url)
            raise RealRequestError(
                f"a request to {address.hostname}{address.path} is forbidden in this test: "
                "pass a ScriptedBackend, or a transport that replays a recording"
            )
        client = self._client_of_loop()
        try:
            headers = {"accept-encoding": ENCODINGS, **request.headers}
            built = client.build_request(request.method, request.url, content=request.body, headers=headers)
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise ProviderError(f"no request can be made to {request.url!r}: {type(error).__name__}") from error
        response = await self._sent(client, built)
        try:
            yield HttpAnswer(response.status_code, dict(response.headers), _body(response))
        finally:
            await response.aclose()

    async def _sent(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        attempt = 0
        while True:
            attempt += 1
            use = ConnectionUse()
            request.extensions["trace"] = use.take_event
            try:
                response = await client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:  # nothing was sent yet
                pause = self._retry.pause(attempt, None)
                if pause is None:
                    raise ProviderError(f"{_address(request)} cannot be reached: {_why(error)}") from error
            except httpx.RequestError as error:
                if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError) and use.was_stale:
                    attempt -= 1  # the request was not tried: the next connection may be a new one
                    continue
                raise ProviderError(f"{_address(request)} did not answer: {_why(error)}") from error
            else:
                if response.status_code not in self._retry.statuses:
                    return response
                pause = self._retry.pause(attempt, retry_after(response.headers, time))
                if pause is None:
                    return response
                await response.aclose()
            await self._sleep(pause)


class ConnectionUse:
    """The connection of one request: a new one, or one that was open already.

    Servers close connections that nothing has used for some seconds. If that happens at the moment in which another
    request is sent, nothing is answered. Such a request has not been read, so it can be sent again: a server that has
    begun to work on it would not close the connection at once.
    """

    def __init__(self) -> None:
        self._is_new = False
        self._sent_at: float | None = None

    async def take_event(self, name: str, info: Mapping[str, object]) -> None:
        """Take an event of httpx's connections."""
        if name.startswith("connection.connect"):
            self._is_new = True
        elif name.endswith("send_request_headers.started"):
            self.sent()

    def opened(self) -> None:
        """Note that the connection was opened for this request."""
        self._is_new = True

    def sent(self) -> None:
        """Note that sending begins."""
        self._sent_at = monotonic()

    @property
    def was_stale(self) -> bool:
        """True if an error that comes now means that the server had closed a connection from before."""
        return not self._is_new and self._sent_at is not None and monotonic() - self._sent_at < STALE_SECONDS


async def _body(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in unpacked(response):
            yield piece
    except httpx.RequestError as error:
        raise ProviderError(f"the answer was cut off: {_why(error)}", status=response.status_code) from error


def _address(request: httpx.Request) -> str:
    """Return the host, with its port if that is not the default: several servers may run on one host."""
    return request.url.netloc.decode("ascii", "replace")


def _why(error: httpx.RequestError) -> str:
    # The library's errors of timeouts have no text.
    if isinstance(error, httpx.ReadTimeout) and (seconds := error.request.extensions.get("timeout", {}).get("read")):
        return f"nothing came for {seconds:g} s"
    return str(error) or type(error).__name__
