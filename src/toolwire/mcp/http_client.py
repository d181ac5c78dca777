"""Servers that are reached over HTTP, with bounds on what they answer and where they lead."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolwire.mcp.servers import Launch
from toolwire.policy.policy import Host

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


Lookup = Callable[[str, int], Awaitable[list[str]]]


async def _look_up(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Outside(httpx2.AsyncBaseTransport):
    """HTTP to addresses of the open internet alone; the address that was looked at is the one that is asked.

    Each name has connections of its own, so that none is used whose certificate is another's.
    """

    def __init__(self, look_up: Lookup = _look_up, inside: Callable[[str], bool] = _PRIVATE.maybe) -> None:
        """Prepare.

        Args:
            look_up: the addresses of a name.
            inside: whether a URL whose host is an address is not asked.
        """
        self._look_up = look_up
        self._inside = inside
        self._trusted = httpx2.create_ssl_context()
        self._names: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask the first address that can be reached.

        Raises:
            httpx2.RequestError: there is none, or the name leads inside.
        """
        name, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                addresses = await self._look_up(name, port)
        except (OSError, UnicodeError) as error:  # a TimeoutError too
            raise httpx2.ConnectError(f"{name:.200} cannot be looked up: {error}", request=request) from error
        for one in addresses:
            if self._inside(f"http://[{one}]/" if ":" in one else f"http://{one}/"):
                why = f"{name:.200} leads to {one}, which is not asked unless private = true says that it may be"
                raise httpx2.UnsupportedProtocol(why, request=request)
        if name not in self._names:
            self._names[name] = httpx2.AsyncHTTPTransport(verify=self._trusted)
        missed: httpx2.RequestError = httpx2.ConnectError(f"{name:.200} has no address", request=request)
        for one in addresses:
            there = httpx2.Request(
                request.method,
                request.url.copy_with(host=one),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": name},
            )
            try:
                return await self._names[name].handle_async_request(there)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:  # nothing was sent yet
                missed = error
        raise missed

    async def aclose(self) -> None:
        """Close all connections."""
        for one in self._names.values():
            await one.aclose()


def _proxy(url: httpx2.URL) -> str:
    """The proxy that a request goes through, as this machine is set up; "" if it goes there itself."""
    known = getproxies()
    there = known.get(url.scheme) or known.get("all") or ""
    if not there or proxy_bypass(url.host if url.port is None else f"{url.host}:{url.port}"):
        return ""
    return there if "://" in there else f"http://{there}"


class Proxied(httpx2.AsyncBaseTransport):
    """HTTP through the proxy that is set up for a request; one for which there is none goes `Outside`."""

    def __init__(self, direct: httpx2.AsyncBaseTransport | None = None) -> None:
        """Prepare.

        Args:
            direct: takes what goes through no proxy.
        """
        self._direct = direct or Outside()
        self._proxies: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask the proxy, or the host itself.

        Raises:
            httpx2.RequestError: nobody answers, the proxy cannot be used, or the name leads inside.
        """
        proxy = _proxy(request.url)
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
        for one in self._proxies.values():
            await one.aclose()


@asynccontextmanager
async def open_url(
    launch: Launch, reach: Reach, auth: HttpAuth | None, seconds: float, limit: int, *, private: bool = False
) -> AsyncIterator[Any]:
    """The streams of a server at a URL; one answer, or one event of a stream, has at most `limit` bytes.

    Requests follow redirects within the server's own origin alone. A server out in the world cannot make us ask
    addresses of this machine or its network, say as the place to sign in: neither by what it writes, nor by a name that
    is looked up to such an address. A request for which a proxy is set up is that one's to look up, and to lead.
    """
    inside = private or _PRIVATE.surely(launch.url)

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
            transport=None if inside else Proxied(),
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
