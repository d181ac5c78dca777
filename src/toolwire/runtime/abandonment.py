"""Await asynchronous code of others that may not end: cancelled code has a grace to stop, and is abandoned after it.

Code that catches its own cancellation would otherwise hang the task that waits for it, and the end of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

from toolwire.errors import capture_errors

T = TypeVar("T")

GRACE = 10.0
"""Seconds that cancelled code has to clean up."""

_abandoned: set[asyncio.Task[Any]] = set()
"""Tasks nobody waits for. Event loops have weak references to tasks only, and a task may not vanish while it works."""


class TookTooLong(Exception):
    """The code took longer than it may.

    Attributes:
        stopped: whether it stopped when it was cancelled.
    """

    def __init__(self, *, stopped: bool) -> None:
        super().__init__(stopped)
        self.stopped = stopped


async def abandonable(work: Awaitable[T], name: str, seconds: float | None = None) -> T:
    """Await foreign code in a task of its own, and return its result.

    If this task is cancelled, so is that code. It is abandoned if it has not stopped after `GRACE` seconds, which is
    reported to the exception handler of the event loop.

    Args:
        work: the code.
        name: its name, for the report.
        seconds: seconds after which it is cancelled; None for no limit.

    Raises:
        TookTooLong: it took longer.
        BaseException: from the code.
    """
    loop = asyncio.get_running_loop()
    begun = None if seconds is None else loop.time()
    progress = _Progress()
    task = loop.create_task(_run(work, progress), name=name)
    try:
        # The task takes its first step before this one continues. Work that ends in it costs one turn of the event
        # loop, and neither a future nor a timer.
        await asyncio.sleep(0)
        outcome = progress.outcome
        if outcome is None:
            progress.ended = ended = loop.create_future()
            timer = None if begun is None or seconds is None else loop.call_at(begun + seconds, _settle, ended, None)
            try:
                # Awaiting the task itself would pass a cancellation on to it, and then wait for it without a limit.
                outcome = await ended
            finally:
                if timer is not None:
                    timer.cancel()
    except asyncio.CancelledError:
        await _stop(task, name)
        raise
    if outcome is None:
        if not await _stop(task, name):
            raise TookTooLong(stopped=False)
        outcome = (None, asyncio.CancelledError()) if task.cancelled() else task.result()
        if isinstance(outcome[1], asyncio.CancelledError):
            raise TookTooLong(stopped=True)
    if outcome[1] is not None:
        raise outcome[1]
    return cast("T", outcome[0])


_Outcome = tuple[Any, BaseException | None]
"""The value that the code returned, and the error that it raised."""


class _Progress:
    """The outcome of foreign code, and the future that gets it.

    Attributes:
        outcome: None while the code works.
        ended: gets the outcome; None if the caller does not wait for it yet.
    """

    __slots__ = ("ended", "outcome")

    def __init__(self) -> None:
        self.outcome: _Outcome | None = None
        self.ended: asyncio.Future[_Outcome | None] | None = None


async def _run(work: Awaitable[Any], progress: _Progress) -> _Outcome:
    # SystemExit and KeyboardInterrupt in a task end the whole event loop, so they are raised where the task is awaited.
    value: Any = None
    with capture_errors((BaseException,)) as caught:
        value = await work
    progress.outcome = outcome = value, caught.error
    if progress.ended is not None:
        _settle(progress.ended, outcome)
    return outcome


def _settle(ended: asyncio.Future[_Outcome | None], outcome: _Outcome | None) -> None:
    if not ended.done():
        ended.set_result(outcome)


async def _stop(task: asyncio.Task[Any], name: str) -> bool:
    """Cancel a task; return whether it ended within the grace. A task that did not is abandoned."""
    task.cancel()
    try:
        await asyncio.wait((task,), timeout=GRACE)
    finally:  # also if this task is cancelled again: then nobody wants to wait any longer
        if not task.done():
            _abandon(task, name)
    return task.done()


def _abandon(task: asyncio.Task[Any], name: str) -> None:
    _abandoned.add(task)
    task.add_done_callback(_abandoned.discard)
    # `asyncio.run` waits at its end for all tasks that are registered, without a limit.
    asyncio.tasks._unregister_task(task)
    task.get_loop().call_exception_handler(
        {"message": f"{name} did not stop within {GRACE:g} seconds after it was cancelled, and was abandoned"}
    )
