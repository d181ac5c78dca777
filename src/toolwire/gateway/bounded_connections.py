"""Connections of the gateway: bounded in number, in the heads of requests, and in the time without progress."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
READ_SECONDS = 300.0
"""Seconds for which a client may leave unread what fills the buffers of its connection. It keeps a backend busy."""


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


@dataclass(slots=True)
class _Head:
    """The head of a request that arrives.

    Attributes:
        size: the number of its bytes so far.
        beginning: the first of them.
        last: the last of them, which may be a part of its end.
    """

    size: int = 0
    beginning: bytes = b""
    last: bytes = b""

    def add(self, data: bytes) -> bool:
        """Add the next bytes, perhaps with those behind the head; return whether the head is too large."""
        if len(self.beginning) < MAX_PATH:
            self.beginning += data[:MAX_PATH]
        before, self.size = self.size, self.size + len(data)
        if self.size <= MAX_HEAD:
            self.last = (self.last + data)[-3:]
            return False
        end = (self.last + data).find(b"\r\n\r\n")
        return end < 0 or before + end - len(self.last) > MAX_HEAD


class _Deadline:
    """A time by which something must have happened.

    Args:
        act: called if it has not.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """True while it is waited for."""
        return self._timer is not None

    def set(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Wait for it, unless it is waited for already."""
        if self._timer is None:
            self._timer = loop.call_later(seconds, self._act)

    def cancel(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def bounded_protocol() -> type[asyncio.Protocol]:
    """Return the protocol of uvicorn for connections, which ends those that are too many, too large or too slow."""
    base: Any = AutoHTTPProtocol

    class BoundedConnection(base):  # type: ignore[misc]  # the parser that is installed decides about the base
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.began = self.loop.time()
            self._head = _Head()
            self._head_deadline = _Deadline(transport.close)
            self._read_deadline = _Deadline(transport.abort)
            self._await_head()
            _close_one_too_many(self.connections, self)

        def data_received(self, data: bytes) -> None:
            cycle = self.cycle
            if cycle is None or (cycle.response_complete and not cycle.more_body):
                self._await_head()
            if self._head_deadline.is_set and self._head.add(data):
                if not self.transport.is_closing():
                    self.transport.write(_too_large(self._head.beginning))
                    self.transport.close()
                return
            super().data_received(data)
            if self.cycle is not cycle:
                self._head_deadline.cancel()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._read_deadline.set(self.loop, READ_SECONDS)

        def resume_writing(self) -> None:
            self._read_deadline.cancel()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_deadline.cancel()
            self._read_deadline.cancel()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            if not self._head_deadline.is_set:
                self._head = _Head()
                self._head_deadline.set(self.loop, HEAD_SECONDS)

    return BoundedConnection
