"""Requests to provider APIs over HTTP, and their responses as bytes; `toolwire.testing` has transports for tests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Self

import httpx

from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.errors import ProviderError


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
