"""Time limits for a streamed response: idle and total."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from toolwire.errors import ProviderError


class StreamTimeout:
    """A context around a stream that cancels it when it takes too long; `reset` is called for every event.

    Seconds are counted by the clock of the event loop.

    Args:
        idle: maximum number of seconds between two events; None for no maximum.
        total: maximum number of seconds from beginning to end; None for no maximum.

    Raises:
        ProviderError: (at the end of the context) the stream took too long, and was cancelled.
    """

    def __init__(self, idle: float | None, total: float | None) -> None:
        self._idle = idle
        self._total = total
        self._reason = ""
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        """Start the clock."""
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._began = self._last_event = self._loop.time()
        self._schedule()
        return self

    def reset(self) -> None:
        """Start the idle time anew, since an event has arrived."""
        # Only the time is noted: moving the timer for every event would cost more than checking it when it fires.
        self._last_event = self._loop.time()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise the error if it was this context that cancelled the task."""
        if self._timer is not None:
            self._timer.cancel()
        # A task that was cancelled by others as well stays cancelled: the code that stops a run waits for that.
        if self._reason and kind is asyncio.CancelledError and self._task.uncancel() <= self._cancelling:
            raise ProviderError(self._reason) from error

    def _schedule(self) -> None:
        """Schedule the next check for the moment at which the first limit may be reached."""
        deadlines = [self._last_event + self._idle] if self._idle is not None else []
        deadlines += [self._began + self._total] if self._total is not None else []
        if deadlines:
            self._timer = self._loop.call_at(min(deadlines), self._check)

    def _check(self) -> None:
        now = self._loop.time()
        if self._total is not None and now >= self._began + self._total:
            self._reason = f"the answer took longer than {self._total:g} seconds"
        elif self._idle is not None and now >= self._last_event + self._idle:
            self._reason = f"the model sent nothing for {self._idle:g} seconds"
        if self._reason:
            self._task.cancel()
        else:
            self._schedule()
