"""A queue for runs that share a budget: each waits until the budget has room for the answer of its model."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock


@dataclass(slots=True, eq=False)
class _Ticket:
    """The place of a waiting run, which may have an event loop of its own in another thread."""

    loop: asyncio.AbstractEventLoop
    called: asyncio.Event = field(default_factory=asyncio.Event)

    def call(self) -> bool:
        """Let the run look again; return False if its event loop was closed, so that it never will."""
        try:
            self.loop.call_soon_threadsafe(self.called.set)
        except RuntimeError:
            return False
        return True


class AnswerQueue:
    """Admits runs in the order of their arrival, so that a run which needs much room is not passed over forever."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tickets: deque[_Ticket] = deque()

    async def wait(self, admit: Callable[[], bool], seconds: float | None) -> None:
        """Wait until the caller is the first in the queue and is admitted.

        Args:
            admit: admits the caller if there is room, and returns whether there was. What it raises is passed on.
            seconds: how long to wait; None for no limit.

        Raises:
            TimeoutError: the caller was not admitted in this time.
        """
        ticket = _Ticket(asyncio.get_running_loop())
        with self._lock:
            self._tickets.append(ticket)
        try:
            async with asyncio.timeout(seconds):
                while not self._admits(ticket, admit):
                    await ticket.called.wait()
                    ticket.called.clear()
        finally:
            with self._lock, suppress(ValueError):  # it is gone if the loop was closed
                self._tickets.remove(ticket)
            self.call_next()

    def call_next(self) -> None:
        """Let the first in the queue look again whether there is room."""
        with self._lock:
            while self._tickets and not self._tickets[0].call():
                self._tickets.popleft()

    def _admits(self, ticket: _Ticket, admit: Callable[[], bool]) -> bool:
        with self._lock:
            return self._tickets[0] is ticket and admit()
