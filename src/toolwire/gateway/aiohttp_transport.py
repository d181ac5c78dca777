"""Requests to backends with aiohttp: its cost per piece of a stream is the smallest that was measured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Self

import aiohttp

from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.client.response_body import ENCODINGS, unpacked_pieces
from toolwire.client.transport import ConnectionUse
from toolwire.errors import ProviderError

CONNECT_SECONDS = 15.0


class AiohttpTransport:
    """Sends requests with aiohttp, each once: repeating them is the gateway's own decision.

    Args:
        timeout: seconds without any byte after which a request has failed.
    """

    def __init__(self, *, timeout: float = 600.0) -> None:
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=timeout)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Return the transport."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Send a request.

        Raises:
            ProviderError: the server cannot be reached, or stops in the middle.
        """
        if self._session is None or self._session.closed:
            # Bodies are unpacked here, in pieces of bounded size, and nobody's cookies are kept for anybody else.
            self._session = aiohttp.ClientSession(
                timeout=self._timeout,
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("user-agent",),
                trace_configs=[_tracing()],
            )
        try:
            async with await self._sent(self._session, request) as response:
                names = {name.lower(): value for name, value in response.headers.items()}
                pieces = unpacked_pieces(_body(response), names.get("content-encoding", ""), response.status)
                yield HttpAnswer(response.status, names, pieces)
        except aiohttp.InvalidURL as error:
            raise ProviderError(f"no request can be made to {request.url!r:.300}") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(f"the server cannot be reached: {_why(error)}") from error

    async def _sent(self, session: aiohttp.ClientSession, request: HttpRequest) -> aiohttp.ClientResponse:
        """Return the answer; a request that met a connection which the server had closed is sent again."""
        headers = {"accept-encoding": ENCODINGS, **request.headers}
        while True:
            use = ConnectionUse()
            use.sent()
            try:
                return await session.request(
                    request.method,
                    request.url,
                    data=request.body or None,
                    headers=headers,
                    allow_redirects=False,
                    trace_request_ctx=use,
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not use.was_stale:
                    raise


async def _note_opened(session: aiohttp.ClientSession, context: SimpleNamespace, event: object) -> None:
    use = context.trace_request_ctx
    use.opened()


def _tracing() -> aiohttp.TraceConfig:
    """Return what notes with each request whether a connection was opened for it."""
    config = aiohttp.TraceConfig()
    config.on_connection_create_start.append(_note_opened)
    return config


async def _body(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for piece in response.content.iter_any():
            yield piece
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(f"the answer was cut off: {_why(error)}", status=response.status) from error


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
