"""Use asynchronous code from plain code: one event loop in a thread of its own serves the whole process.

The loop stays for later calls, so that connections are reused. Plain code may run in any other thread. That includes a
notebook, whose own loop is running already.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, aclosing
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

T = TypeVar("T")


class _Loop:
    """The event loop of the process, started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = 0
        self._running: tuple[AbstractContextManager[BlockingPortal], BlockingPortal] | None = None

    def portal(self) -> BlockingPortal:
        with self._lock:
            if self._running is None:
                opened = start_blocking_portal("asyncio", name="toolwire-blocking")
                self._running = opened, opened.__enter__()
                self._thread = self._running[1].call(threading.get_ident)
                atexit.register(self.stop)
            return self._running[1]

    def check_thread(self) -> None:
        """Check that this thread may wait for the loop.

        Raises:
            RuntimeError: it is the loop's own thread.
        """
        if self._thread == threading.get_ident():
            raise RuntimeError("this would wait for its own event loop thread; await the asynchronous method instead")

    def stop(self) -> None:
        """Stop the loop; a later use starts it anew."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running[0].__exit__(None, None, None)

    def forget(self) -> None:
        """Forget the loop in a forked process, which does not have its thread."""
        self.__init__()  # type: ignore[misc]


_LOOP = _Loop()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOOP.forget)


class _Task:
    """A coroutine that runs in the loop of the process.

    Args:
        work: returns the coroutine.
        ended: called in the thread of the loop when the coroutine has ended.
    """

    def __init__(self, work: Callable[[], Awaitable[Any]], ended: Callable[[], None] = lambda: None) -> None:
        self._work = work
        self._has_started = False
        self._has_ended = threading.Event()
        self._portal = _LOOP.portal()
        self._future = self._portal.start_task_soon(self._run)
        # Also called if the coroutine never starts, so that nobody waits for its values for ever.
        self._future.add_done_callback(lambda _: ended())

    async def _run(self) -> Any:
        self._has_started = True
        try:
            return await self._work()
        finally:
            self._has_ended.set()

    def result(self) -> Any:
        """Wait for the end, and return the result."""
        return self._future.result()

    def stop(self) -> None:
        """Cancel the coroutine if it has not ended, and wait until it has cleaned up."""
        if not self._future.done():
            self._future.cancel()
            self._portal.call(lambda: None)  # by now it has started, or it never will
        if self._has_started:
            # The future counts as cancelled at once; the coroutine may still close connections and stop tools.
            self._has_ended.wait()


def run_blocking(start: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end and return its result; an interrupt cancels it.

    Args:
        start: returns the coroutine.

    Raises:
        RuntimeError: this is the thread of that very loop, which would wait for itself.
    """
    _LOOP.check_thread()
    task = _Task(start)
    try:
        result: T = task.result()
        return result
    finally:
        task.stop()


def iterate_blocking(start: Callable[[], AsyncGenerator[T]]) -> Iterator[T]:
    """Yield the values of an async generator; it is closed when this iterator is.

    Args:
        start: returns the generator.

    Raises:
        RuntimeError: this is the thread of that very loop, which would wait for itself.
    """
    _LOOP.check_thread()
    values: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()

    async def work() -> None:
        # The whole generator runs in one task: what it opens has to be closed in the same one.
        async with aclosing(start()) as generator:
            async for value in generator:
                values.put((value,))

    task = _Task(work, lambda: values.put(None))
    try:
        while (boxed := values.get()) is not None:
            yield boxed[0]
        task.result()
    finally:
        task.stop()
