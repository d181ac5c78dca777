"""Connections of the gateway, bounded in number, and the heads of their requests, bounded in size and in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from toolwire.gateway.failures import HEAD_TOO_LARGE, GatewayFailure
from toolwire.gateway.routes import api_at

MAX_HEAD = 64 << 10
"""Maximum size of a request's line and headers, in bytes."""
MAX_PATH = 1_000
"""Number of bytes of a head in which its path is looked for, to report that the head is too large."""
MAX_CONNECTIONS = 4_000
"""Maximum number of connections; a further one closes the oldest that waits for a request, or else itself."""
HEAD_SECONDS = 20.0
"""Seconds in which the head of a request must arrive, from its first byte or from the beginning of the connection."""


def _too_large(beginning: bytes) -> bytes:
    """Return the answer to a head that is too large, in the form of the API at its path."""
    line = beginning.partition(b"\r\n")[0].split(b" ")
    path = line[1].partition(b"?")[0].decode("latin-1") if len(line) > 1 else ""
    failure = GatewayFailure(HEAD_TOO_LARGE, f"the line and the headers have more than {MAX_HEAD >> 10} KiB")
    body = json.dumps(api_at(path).failure(failure)).encode()
    head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def _close_one_too_many(connections: Iterable[Any], newest: Any) -> None:
    """Close the oldest connection that waits for a request, if there are too many; the newest if none waits."""
    # Connections that were closed just now are still in the set.
    live = [connection for connection in connections if not connection.transport.is_closing()]
    if len(live) > MAX_CONNECTIONS:
        waiting = [
            connection
            for connection in live
            if connection is not newest and (connection.cycle is None or connection.cycle.response_complete)
        ]
        min(waiting, key=lambda connection: connection.began, default=newest).transport.abort()


def bounded_protocol() -> type[asyncio.Protocol]:
    """Return the protocol of uvicorn for connections, which ends those that are too many, too large or too slow."""
    base: Any = AutoHTTPProtocol

    class BoundedConnection(base):  # type: ignore[misc]  # the parser that is installed decides about the base
        _timer: asyncio.TimerHandle | None = None
        _head_size = 0
        _beginning = b""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.began = self.loop.time()
            self._await_head()
            _close_one_too_many(self.connections, self)

        def data_received(self, data: bytes) -> None:
            cycle = self.cycle
            if cycle is None or (cycle.response_complete and not cycle.more_body):
                self._await_head()
            super().data_received(data)
            if self.cycle is not cycle:
                self._forget_head()
            elif self._timer is not None:
                self._head_size += len(data)
                if len(self._beginning) < MAX_PATH:
                    self._beginning += data[:MAX_PATH]
                if self._head_size > MAX_HEAD and not self.transport.is_closing():
                    self.transport.write(_too_large(self._beginning))
                    self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_head()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            if self._timer is None:
                self._head_size, self._beginning = 0, b""
                self._timer = self.loop.call_later(HEAD_SECONDS, self._end)

        def _forget_head(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _end(self) -> None:
            self._timer = None
            self.transport.close()

    return BoundedConnection
