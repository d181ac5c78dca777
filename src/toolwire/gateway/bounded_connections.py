"""Connections of the gateway whose request heads are bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

MAX_HEAD = 64 << 10
"""Maximum size of a request's line and headers, in bytes."""
HEAD_SECONDS = 20.0
"""Seconds in which the head of a request must arrive, from its first byte or from the beginning of the connection."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def bounded_protocol() -> type[asyncio.Protocol]:
    """Return the protocol of uvicorn for connections, which ends those whose head is too large or too slow."""
    base: Any = AutoHTTPProtocol

    class BoundedConnection(base):  # type: ignore[misc]  # the parser that is installed decides about the base
        _timer: asyncio.TimerHandle | None = None
        _head_size = 0
        _requests = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            cycle = self.cycle
            if cycle is None or (cycle.response_complete and not cycle.more_body):
                self._await_head()
            super().data_received(data)
            if self.cycle is not cycle:
                self._forget_head()
            elif self._timer is not None:
                self._head_size += len(data)
                if self._head_size > MAX_HEAD and not self.transport.is_closing():
                    self.transport.write(_TOO_LARGE)
                    self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_head()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            if self._timer is None:
                self._head_size = 0
                self._timer = self.loop.call_later(HEAD_SECONDS, self._end)

        def _forget_head(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _end(self) -> None:
            self._timer = None
            self.transport.close()

    return BoundedConnection
