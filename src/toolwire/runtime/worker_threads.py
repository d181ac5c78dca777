"""Call plain functions in threads, so that the event loop never waits for them.

An idle thread waits a while for more work. A timed-out thread is abandoned: it does not occupy a worker slot, and does
not keep the program from ending. A pool of the standard library has neither property.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from toolwire.errors import TOOL_ERRORS, capture_errors
from toolwire.runtime.abandonment import abandonable

IDLE_SECONDS = 10.0

_Job = Callable[[], Callable[[], object]]
"""Does the work, and returns a function that reports it; when that is called the thread is free for more."""


class _Worker(threading.Thread):
    """A thread that takes one job after another."""

    def __init__(self, idle: list[_Worker], lock: threading.Lock) -> None:
        super().__init__(name="toolwire-tool", daemon=True)
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._idle = idle
        self._lock = lock

    def run(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self in self._idle:
                        self._idle.remove(self)
                        return
                continue  # it was taken just now: the job comes
            tell = job()
            del job  # and the values that it refers to
            with self._lock:
                self._idle.append(self)
            tell()
            del tell


_idle: list[_Worker] = []
_lock = threading.Lock()


def _begin_anew() -> None:
    """Reset the pool in a forked process, which has none of the threads, and perhaps a lock that one of them had."""
    global _lock
    _idle.clear()
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _start(job: _Job) -> None:
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker(_idle, _lock)
        worker.start()
    worker.jobs.put(job)


async def in_thread(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a function in a thread, with the caller's context variables, and return its result.

    If the caller is cancelled, the thread is abandoned. An awaitable that the function returns is awaited here: it
    belongs to the event loop, and not to the thread.

    Raises:
        Exception, SystemExit: from the function.
        RuntimeError: the function raised something that would mean another thing here, such as its own cancellation.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def job() -> Callable[[], None]:
        value: Any = None
        with capture_errors((BaseException,)) as caught:
            value = context.run(function, **arguments)

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, outcome, value, caught.error)

        return tell

    _start(job)
    value, error = await outcome
    if isinstance(error, TOOL_ERRORS):
        raise error
    if error is not None:
        raise RuntimeError(f"it raised {type(error).__name__}") from error
    return await abandonable(value, "what a function returned") if inspect.isawaitable(value) else value


def _settle(done: asyncio.Future[tuple[Any, BaseException | None]], value: Any, error: BaseException | None) -> None:
    if not done.done():
        done.set_result((value, error))
