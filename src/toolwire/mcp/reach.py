"""Servers that are reached over HTTP, with bounds on what they answer and where they lead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolwire.mcp.servers import Launch
from toolwire.policy import Host

CONNECT_SECONDS = 30.0
STREAM_SECONDS = 300.0
"""How long a stream may stay silent."""

HttpAuth = httpx2.Auth
"""What signs requests in, such as `mcp.client.auth.OAuthClientProvider`."""

_PRIVATE = Host("private")


@dataclass(slots=True)
class Reach:
    """What came of the requests to one server.

    Attributes:
        refused: how it refused the last one, as far as the status says so; "" if it did not.
    """

    refused: str = ""

    def refuse(self, why: str) -> None:
        """It is of no more use."""
        self.refused = why


class _TooLarge(httpx2.StreamError):
    """An answer that is not read to its end."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: Any, limit: int) -> None:
        self._inner, self._limit = inner, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > self._limit:
                raise _TooLarge(f"the answer has more than {self._limit} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def open_url(
    launch: Launch, reach: Reach, auth: HttpAuth | None, seconds: float, limit: int
) -> AsyncIterator[Any]:
    """The streams of a server at a URL; `limit` is the bytes of one answer, or of one event of a stream.

    Requests follow redirects within the server's own origin alone. A server out in the world cannot make us ask
    addresses of this machine or its network, say as the place to sign in.
    """
    inside = _PRIVATE.surely(launch.url)

    async def ask(request: httpx2.Request) -> None:
        url = str(request.url)
        if request.url.scheme not in ("http", "https") or (not inside and _PRIVATE.maybe(url)):
            raise httpx2.UnsupportedProtocol(f"the server leads to {url:.200}, which is not asked", request=request)

    async def answered(response: httpx2.Response) -> None:
        reach.refused = _REFUSALS.get(response.status_code, "")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError("the server compresses, which it was not asked to", request=response.request)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _Bounded(response.stream, limit)

    def client(headers: Any = None, timeout: Any = None, auth: HttpAuth | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={"accept-encoding": "identity", **(headers or {})},
            timeout=timeout or httpx2.Timeout(CONNECT_SECONDS, read=max(seconds + CONNECT_SECONDS, STREAM_SECONDS)),
            auth=auth,
            event_hooks={"request": [ask], "response": [answered]},
        )

    async with AsyncExitStack() as stack:
        if launch.transport == "sse":
            streams = sse_client(launch.url, dict(launch.headers), CONNECT_SECONDS, 86_400.0, client, auth)
        else:
            opened = await stack.enter_async_context(client(dict(launch.headers), auth=auth))
            streams = streamable_http_client(launch.url, http_client=opened, max_sse_event_size=limit)
        yield await stack.enter_async_context(streams)


_REFUSALS = {
    401: "it answers 401: it wants to know who asks; a header or a login is missing",
    403: "it answers 403: this is not allowed to whoever asks",
    429: "it answers 429: it was asked too often",
}
