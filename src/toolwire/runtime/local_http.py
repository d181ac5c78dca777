"""HTTP servers on this machine: their sockets, and the requests that must not come from elsewhere.

A page in a browser can send requests to this machine too, under a host name that resolves to it. So each request must
name the server as its host, and must not come from another origin.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Protocol

from toolwire.errors import ConfigurationError

_MAX_PORT = 65_535


def is_loopback(host: str) -> bool:
    """Return whether an address or a name is this machine's own, and reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """Return a socket that listens on an address.

    Args:
        host: the address.
        port: the port; 0 for any that is free.
        reuse_port: whether other sockets may listen there too, so that the system spreads connections over them.

    Raises:
        ConfigurationError: it cannot listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not 0 <= port <= _MAX_PORT:  # `create_server` would leave its socket open
        raise ConfigurationError(f"cannot listen on {host} port {port}: ports are numbers from 0 to {_MAX_PORT}")
    try:
        listener = socket.create_server((host, port), family=family, reuse_port=reuse_port)
        # Connections inherit this. Without it, the second small write waits for the peer's delayed acknowledgement,
        # about 40 ms; asyncio sets it only on sockets that name their protocol, which these do not.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, ValueError) as error:  # a ValueError where the system cannot share ports
        reason = error.strerror if isinstance(error, OSError) else str(error)
        advice = "; choose another port, or 0 for any that is free" if _is_taken(error) else ""
        raise ConfigurationError(f"cannot listen on {host} port {port}: {reason}{advice}") from error


def _is_taken(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE


def allow_open_files(number: int) -> None:
    """Let this process open a number of files and connections, as far as the system permits it.

    Many systems begin with 1,024, and let each process raise that itself.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(ValueError, OSError):  # some systems have a lower maximum than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def url_of(host: str, port: int) -> str:
    """Return the URL of a server that listens on an address."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class SocketServer(Protocol):
    """A server such as uvicorn's, which serves the connections of open sockets until it should end."""

    should_exit: bool

    async def serve(self, sockets: list[socket.socket] | None = None) -> None: ...  # noqa: D102


async def run_server(server: SocketServer, listener: socket.socket) -> None:
    """Run a server; on cancellation, return only after it has closed its connections."""
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await asyncio.wait({serving})
        raise


def own_hosts(host: str, port: int) -> frozenset[str]:
    """Return the names that requests may give as the host of a server that listens there."""
    names = _own_names(host)
    return frozenset({f"{name}:{port}" for name in names} | (names if port == 80 else set()))


def own_hosts_without_port(host: str) -> frozenset[str]:
    """Return the names without a port that requests may give as the host of a server that listens there.

    Proxies and simple clients leave the port out. DNS cannot lead these names to another machine, and a browser leaves
    the port out for port 80 alone. As origins they are those of pages at port 80, and not of this server's.
    """
    return frozenset(_own_names(host)) if is_loopback(host) else frozenset()


def _own_names(host: str) -> set[str]:
    names = {f"[{host}]" if ":" in host else host}
    return names | {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else names


def is_foreign(origin: str, fetch_site: str, origins: Collection[str]) -> bool:
    """Return whether a page of another origin sent a request.

    Args:
        origin: the header `Origin`; "" if it is missing.
        fetch_site: the header `Sec-Fetch-Site`; "" if it is missing.
        origins: the origins whose pages may send requests.
    """
    if origin:
        return origin.lower() not in origins
    return fetch_site not in ("", "same-origin", "none")


def header_value(headers: Iterable[tuple[bytes, bytes]], name: str) -> str:
    """Return the value of an ASGI header; "" if it is missing, "," if it appears more than once."""
    values = [value.decode("latin-1") for key, value in headers if key.decode("latin-1").lower() == name]
    return values[0] if len(values) == 1 else "," if values else ""
