"""An event loop with a simulated clock: where nothing else is left to do, its time jumps to the next timer.

What waits for seconds in such a loop waits for no time at all, and always for exactly as long. Threads live in real
time: a test that waits for one must have no timer that the clock could jump to.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

ROUNDING = 1e-9
"""Seconds beyond a timer, so that rounding does not leave the clock just before it."""


class _SimulatedSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Never waits for a timer; `now` is the simulated time in seconds."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        events = super().select(0)
        if not events:
            self.now += timeout + ROUNDING
        return events


class SimulatedTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock begins at zero and moves only when all tasks wait."""

    def __init__(self) -> None:
        self._clock = _SimulatedSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def block(self, seconds: float) -> None:
        """Let time pass as if code did not return to the loop."""
        self._clock.now += seconds


def run_simulated(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedTimeLoop) as runner:
        return runner.run(main)
