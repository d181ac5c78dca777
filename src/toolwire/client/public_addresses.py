"""Addresses that names lead to: requests to a server that nobody vouches for go to the public internet alone.

A request has to go to the very address that was checked. Looking the name up again could give another one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.request import getproxies, proxy_bypass

from toolwire.policy.hosts import Host

LOOKUP_SECONDS = 30.0
"""Maximum time to look up a name, in seconds."""

PORTS = {"https": 443, "http": 80}
"""Ports of URLs that name none, by scheme."""

_ResponseT = TypeVar("_ResponseT")
Lookup = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a name, for a port."""
PRIVATE = Host("private")
"""The hosts of private networks."""
is_private = PRIVATE.maybe
"""Returns whether a URL may lead into a private network; of a name, only whether it usually does."""


class PrivateAddressError(ValueError):
    """A name leads into a private network."""


async def look_up(name: str, port: int) -> list[str]:
    """Return the addresses of a name, as the system resolves it."""
    results = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in results))


async def public_addresses(
    name: str, port: int, look_up: Lookup = look_up, inside: Callable[[str], bool] = is_private
) -> list[str]:
    """Return the addresses of a name, all of which are on the public internet.

    Args:
        name: the host of a URL.
        port: the port.
        look_up: returns the addresses of a name.
        inside: returns whether a URL, whose host is an address, is private.

    Raises:
        OSError: the name cannot be looked up.
        UnicodeError: the name cannot be a host.
        PrivateAddressError: one of its addresses is private.
    """
    async with asyncio.timeout(LOOKUP_SECONDS):
        addresses = await look_up(name, port)
    for address in addresses:
        if inside(f"http://[{address}]/" if ":" in address else f"http://{address}/"):
            raise PrivateAddressError(f"{name:.200} leads to {address}, which is private")
    return addresses


async def send_to_public(
    request: Any,
    send: Callable[[Any], Awaitable[_ResponseT]],
    unconnected: tuple[type[Exception], ...],
    look_up: Lookup = look_up,
    inside: Callable[[str], bool] = is_private,
) -> _ResponseT:
    """Send a request to the first address of its host that can be reached, if all of them are public.

    Args:
        request: a request of `httpx` or `httpx2`.
        send: sends a request.
        unconnected: the errors after which nothing was sent yet, so that the next address is tried.
        look_up: returns the addresses of a name.
        inside: returns whether a URL, whose host is an address, is private.

    Raises:
        OSError: the name cannot be looked up, or has no address.
        UnicodeError: the name cannot be a host.
        PrivateAddressError: one of its addresses is private.
    """
    url = request.url
    missed: Exception = OSError(f"{url.host:.200} has no address")
    for address in await public_addresses(url.host, url.port or PORTS.get(url.scheme, 80), look_up, inside):
        try:
            return await send(_sent_to(request, address))
        except unconnected as error:
            missed = error
    raise missed


def _sent_to(request: Any, address: str) -> Any:
    """Return a request of `httpx` or `httpx2` that goes to one address of its host; TLS still checks the name."""
    return type(request)(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


def proxy_of(scheme: str, host: str, port: int | None) -> str:
    """Return the proxy that this machine's settings name for a URL; "" if there is none.

    Args:
        scheme: the scheme of the URL.
        host: its host.
        port: its port; None if it names none.
    """
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(host if port is None else f"{host}:{port}"):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"
