"""Client for servers over HTTP, with bounds on the size of responses and on the addresses that requests go to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolwire.client.public_addresses import (
    PRIVATE,
    Lookup,
    PrivateAddressError,
    is_private,
    look_up,
    proxy_of,
    send_to_public,
)
from toolwire.mcp.deep_tools import EventLines, WholeBody
from toolwire.mcp.servers import Launch

CONNECT_SECONDS = 30.0
STREAM_SECONDS = 300.0
"""Seconds that a stream may stay silent."""

HttpAuth = httpx2.Auth
"""Authentication of requests, such as `mcp.client.auth.OAuthClientProvider`."""


@dataclass(slots=True)
class Refusal:
    """The reason why one server refused the last request.

    Attributes:
        reason: why, by the status or by a bound; "" if it did not refuse.
    """

    reason: str = ""

    def record(self, reason: str) -> None:
        """Store why the connection cannot be used any more."""
        self.reason = reason


class _TooLarge(httpx2.StreamError):
    """A response is larger than allowed."""


class _BoundedStream(httpx2.AsyncByteStream):
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


class PublicTransport(httpx2.AsyncBaseTransport):
    """HTTP to public internet addresses alone; requests go to the very address that was checked.

    Looking the name up again for the request could give another address. Each name has connections of its own, so that
    no connection is reused whose certificate is another host's.
    """

    def __init__(self, look_up: Lookup = look_up, inside: Callable[[str], bool] = is_private) -> None:
        """Prepare.

        Args:
            look_up: returns the addresses of a name.
            inside: returns whether a URL, whose host is an address, is private.
        """
        self._look_up = look_up
        self._inside = inside
        self._trusted = httpx2.create_ssl_context()
        self._names: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first address that can be reached.

        Raises:
            httpx2.RequestError: there is none, or the name has a private address.
        """
        name = request.url.host
        if name not in self._names:
            self._names[name] = httpx2.AsyncHTTPTransport(verify=self._trusted)
        send, unconnected = self._names[name].handle_async_request, (httpx2.ConnectError, httpx2.ConnectTimeout)
        try:
            return await send_to_public(request, send, unconnected, self._look_up, self._inside)
        except (OSError, UnicodeError) as error:  # a TimeoutError is an OSError
            raise httpx2.ConnectError(f"{name:.200} cannot be looked up: {error}", request=request) from error
        except PrivateAddressError as error:
            raise httpx2.UnsupportedProtocol(
                f"{error}; private = true allows requests to it", request=request
            ) from error

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._names.values():
            await transport.aclose()


class ProxyTransport(httpx2.AsyncBaseTransport):
    """HTTP through the proxy that is set up for a request; without one, through `PublicTransport`."""

    def __init__(self, direct: httpx2.AsyncBaseTransport | None = None) -> None:
        """Prepare.

        Args:
            direct: transport for requests without a proxy.
        """
        self._direct = direct or PublicTransport()
        self._proxies: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the proxy, or to the host itself.

        Raises:
            httpx2.RequestError: there is no response, the proxy cannot be used, or the name has a private address.
        """
        url = request.url
        proxy = proxy_of(url.scheme, url.host, url.port)
        if not proxy:
            return await self._direct.handle_async_request(request)
        if proxy not in self._proxies:
            try:
                self._proxies[proxy] = httpx2.AsyncHTTPTransport(proxy=proxy)
            except (ValueError, httpx2.InvalidURL, ImportError) as error:
                raise httpx2.ProxyError(f"the proxy that is set up cannot be used: {error}", request=request) from error
        return await self._proxies[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._direct.aclose()
        for transport in self._proxies.values():
            await transport.aclose()


@asynccontextmanager
async def open_url(
    launch: Launch, refusal: Refusal, auth: HttpAuth | None, seconds: float, limit: int, *, private: bool = False
) -> AsyncIterator[Any]:
    """Open the streams of a server at a URL; one response, or one event of a stream, has at most `limit` bytes.

    Requests follow redirects within the server's own origin alone. A public server cannot direct requests to addresses
    of this machine or its network, for example as the page to sign in at: neither by a URL that it sends, nor by a name
    with such an address. Where a proxy is set up for a request, the proxy looks the name up.
    """
    inside = private or PRIVATE.surely(launch.url)

    async def check_request(request: httpx2.Request) -> None:
        url = str(request.url)
        if request.url.scheme not in ("http", "https") or (not inside and is_private(url)):
            raise httpx2.UnsupportedProtocol(
                f"the server leads to {url:.200}, where no request may go", request=request
            )

    async def check_response(response: httpx2.Response) -> None:
        refusal.reason = _REFUSALS.get(response.status_code, "")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError(
                "the server compresses its response, which was not requested", request=response.request
            )
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = EventLines(response.stream, limit)
        else:
            response.stream = WholeBody(_BoundedStream(response.stream, limit))

    def client(headers: Any = None, timeout: Any = None, auth: HttpAuth | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=None if inside else ProxyTransport(),
            headers={"accept-encoding": "identity", **(headers or {})},
            timeout=timeout or httpx2.Timeout(CONNECT_SECONDS, read=max(seconds + CONNECT_SECONDS, STREAM_SECONDS)),
            auth=auth,
            event_hooks={"request": [check_request], "response": [check_response]},
        )

    async with AsyncExitStack() as stack:
        if launch.transport == "sse":
            streams = sse_client(launch.url, dict(launch.headers), CONNECT_SECONDS, 86_400.0, client, auth)
        else:
            opened = await stack.enter_async_context(client(dict(launch.headers), auth=auth))
            streams = streamable_http_client(launch.url, http_client=opened, max_sse_event_size=limit)
        yield await stack.enter_async_context(streams)


_REFUSALS = {
    401: "it answers 401: authentication is required; a header or a login is missing",
    403: "it answers 403: access is not allowed",
    429: "it answers 429: too many requests",
}
