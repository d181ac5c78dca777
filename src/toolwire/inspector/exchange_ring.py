"""The newest exchanges of a gateway, bounded in number and bytes, and the signal that one of them changed."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping

from toolwire.inspector.recorded_exchange import Exchange, State, kept_headers, kept_path

EXCHANGES = 1_000
"""Maximum number of exchanges."""
MEMORY = 64
"""Maximum size of all exchanges together, in MiB."""


class ExchangeRing:
    """The newest exchanges; the oldest are evicted, except running and pinned ones.

    Args:
        exchanges: maximum number of exchanges.
        memory: maximum size of all of them, in MiB.

    Attributes:
        version: the number of the last change.
        evicted: how many exchanges have been evicted.
        number: the number of the newest exchange.
    """

    def __init__(self, exchanges: int = EXCHANGES, memory: int = MEMORY) -> None:
        self.version = 0
        self.evicted = 0
        self.max_exchanges = exchanges
        self.max_bytes = memory << 20
        self._exchanges: OrderedDict[str, Exchange] = OrderedDict()
        self._bytes = 0
        self.number = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        """Return the number of exchanges."""
        return len(self._exchanges)

    def __iter__(self) -> Iterator[Exchange]:
        """Yield the exchanges, the oldest first."""
        yield from list(self._exchanges.values())

    def begin(
        self, id: str, client_api: str, path: str, query: str, headers: Mapping[str, str], *, resent_from: str = ""
    ) -> Exchange:
        """Return a new exchange, which is running."""
        self.number += 1
        exchange = Exchange(
            id,
            self.number,
            client_api,
            kept_path(path, query),
            kept_headers(headers),
            time.time(),
            time.perf_counter(),
            resent_from=resent_from,
        )
        self._exchanges[id] = exchange
        self.touch(exchange)
        return exchange

    def end(self, exchange: Exchange, state: State) -> None:
        """End an exchange; then the oldest ones are evicted."""
        exchange.ended = time.perf_counter()
        exchange.state = state
        self._bytes += exchange.size
        self.touch(exchange)
        self._evict()

    @property
    def oldest(self) -> int:
        """The number of the oldest exchange that is neither pinned nor running; 0 if there is none."""
        return next((each.number for each in self if each.state != "running" and not each.pinned), 0)

    def find(self, id: str) -> Exchange | None:
        """Return an exchange; None if it is not kept any more."""
        return self._exchanges.get(id)

    def running(self) -> list[Exchange]:
        """Return the exchanges that have not ended."""
        return [exchange for exchange in self._exchanges.values() if exchange.state == "running"]

    def clear(self) -> None:
        """Remove all exchanges that are neither running nor pinned."""
        for exchange in self:
            if exchange.state != "running" and not exchange.pinned:
                self._remove(exchange)
        self.wake()

    def touch(self, exchange: Exchange) -> None:
        """Count a change of an exchange, and wake those that wait for one."""
        self.version += 1
        exchange.version = self.version
        self.wake()

    async def changed(self, seconds: float) -> None:
        """Wait for the next change, or for a time in seconds."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await asyncio.wait({waiting}, timeout=seconds)
        finally:
            self._waiting.discard(waiting)
            waiting.cancel()

    def wake(self) -> None:
        """Wake those that wait for a change."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def _evict(self) -> None:
        while len(self._exchanges) > self.max_exchanges or self._bytes > self.max_bytes:
            oldest = next(
                (each for each in self._exchanges.values() if each.state != "running" and not each.pinned), None
            )
            if oldest is None:
                return
            self._remove(oldest)
            self.evicted += 1

    def _remove(self, exchange: Exchange) -> None:
        del self._exchanges[exchange.id]
        self._bytes -= exchange.size
