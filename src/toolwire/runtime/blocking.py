"""Use asynchronous code from plain code: one event loop in a thread of its own serves the whole process.

The loop stays for later calls, so that connections are reused. Plain code may run in any other thread. That includes a
notebook, whose own loop is running already.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import aclosing
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

T = TypeVar("T")


class _Loop:
    """The event loop of the process, started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._portal: BlockingPortal | None = None

    def portal(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None:
                # anyio's `start_blocking_portal` is a generator that waits for its thread when it is collected. A
                # forked process has no such thread, so it would wait for ever; a plain thread can be forgotten.
                started: Future[BlockingPortal] = Future()
                self._thread = threading.Thread(target=_serve, args=(started,), name="toolwire-blocking", daemon=True)
                self._thread.start()
                self._portal = started.result()
                atexit.register(self.stop)
            return self._portal

    def is_current(self) -> bool:
        """Return true in the loop's own thread."""
        return self._thread is threading.current_thread()

    def check_thread(self) -> None:
        """Check that this thread may wait for the loop.

        Raises:
            RuntimeError: it is the loop's own thread.
        """
        if self.is_current():
            raise RuntimeError("this would wait for its own event loop thread; await the asynchronous method instead")

    def stop(self) -> None:
        """Stop the loop; a later use starts it anew."""
        with self._lock:
            portal, self._portal = self._portal, None
            thread, self._thread = self._thread, None
        if portal is not None and thread is not None:
            portal.call(portal.stop, True)
            thread.join()

    def forget(self) -> None:
        """Forget the loop in a forked process, which does not have its thread."""
        self.__init__()  # type: ignore[misc]


def _serve(started: Future[BlockingPortal]) -> None:
    """Run an event loop until its portal is stopped."""

    async def main() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    try:
        anyio.run(main)
    finally:
        if not started.done():  # the thread that waits for the portal would wait for ever
            started.set_exception(RuntimeError("the event loop of the synchronous methods did not start"))


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
            if _LOOP.is_current():
                return  # an iterator that is collected in the loop's own thread; waiting would stop the loop
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


def iterate_blocking(start: Callable[[], AsyncGenerator[T]]) -> Generator[T]:
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
