"""How long is waited for an answer: a model that falls silent, or never comes to an end, does not hold a run."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from toolwire.errors import ProviderError


class StreamTimeout:
    """A context around an answer; `heard` is called with every piece of it.

    Args:
        silence: seconds without a piece; None: as long as it takes.
        whole: seconds from beginning to end; None: as long as it takes.

    Raises:
        ProviderError: (at the end of the context) it took too long, and what was waited for was cancelled.
    """

    def __init__(self, silence: float | None, whole: float | None) -> None:
        self._silence = silence
        self._whole = whole
        self._over = ""
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        """Begin to wait."""
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._before = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._begun = self._last = self._loop.time()
        self._arm()
        return self

    def heard(self) -> None:
        """A piece has come."""
        self._last = self._loop.time()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say what took too long, if it was that."""
        if self._timer is not None:
            self._timer.cancel()
        if self._over and kind is asyncio.CancelledError and self._task.uncancel() <= self._before:
            raise ProviderError(self._over) from error

    def _arm(self) -> None:
        """Look again when the next limit may be reached; what is heard until then costs nothing."""
        ends = [self._last + self._silence] if self._silence is not None else []
        ends += [self._begun + self._whole] if self._whole is not None else []
        if ends:
            self._timer = self._loop.call_at(min(ends), self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if self._whole is not None and now >= self._begun + self._whole:
            self._over = f"the answer took longer than {self._whole:g} seconds"
        elif self._silence is not None and now >= self._last + self._silence:
            self._over = f"the model said nothing for {self._silence:g} seconds"
        if self._over:
            self._task.cancel()
        else:
            self._arm()
