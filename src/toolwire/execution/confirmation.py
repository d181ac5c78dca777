"""Confirmation hooks: plain functions, several questions at once, or one after the other.

The time to answer counts from when a question is shown; a hook that lets questions wait for others uses `turn`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from toolwire._surface import is_async
from toolwire.errors import ToolError, capture_errors
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.runtime.worker_threads import in_thread

P = ParamSpec("P")
T = TypeVar("T")

Answers = Sequence[ApprovalAnswer | bool]


@dataclass(frozen=True, slots=True)
class _Deadline:
    """The time limit of an answer."""

    scope: asyncio.Timeout
    seconds: float

    def move(self, *, counts: bool) -> None:
        """Restart the time limit now, or suspend it."""
        when = asyncio.get_running_loop().time() + self.seconds if counts else None
        with suppress(RuntimeError):  # it has passed, or nobody waits any more
            self.scope.reschedule(when)


_Waiting = tuple[Approval, asyncio.Future[ApprovalAnswer | bool]]
_DEADLINE: ContextVar[_Deadline | None] = ContextVar("toolwire_deadline", default=None)
"""The time limit of the question that is asked in this context."""


@asynccontextmanager
async def answering(seconds: float) -> AsyncGenerator[None]:
    """Run a block that waits for an answer; raise `TimeoutError` if it takes longer, not counting time in `turn`."""
    async with asyncio.timeout(seconds) as scope:
        token = _DEADLINE.set(_Deadline(scope, seconds))
        try:
            yield
        finally:
            _DEADLINE.reset(token)


@asynccontextmanager
async def turn(lock: AbstractAsyncContextManager[object]) -> AsyncGenerator[None]:
    """Run a block that asks once it has acquired a lock; only then the time to answer begins.

        async def confirm(approval):
            async with turn(lock):
                return await ask(approval)

    Below a `Together` it counts from when the calls were asked about.

    Args:
        lock: one that all who ask there share, such as an `asyncio.Lock`.
    """
    deadline = _DEADLINE.get()
    # A person who answers one question after the other must not lose the last ones to the time of the first.
    if deadline is not None:
        deadline.move(counts=False)
    async with lock:
        if deadline is not None:
            deadline.move(counts=True)
        yield


class _Threaded(Generic[P, T]):
    """A plain function as an async one: it is called in a thread, once at a time in each event loop."""

    def __init__(self, function: Callable[P, Awaitable[T] | T]) -> None:
        self._function = function
        self.name = getattr(function, "name", "user")
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        # Two functions that read from one terminal at the same time would take each other's answers.
        async with turn(lock):
            answer: T = await in_thread(partial(self._function, *args, **kwargs), {})
            return answer


def as_async(function: Callable[P, Awaitable[T] | T]) -> Callable[P, Awaitable[T]]:
    """Return an async function as it is, and a plain one as a hook that calls it in a thread.

    The event loop never waits for a plain function, such as one that calls `input`. Its questions are asked one after
    the other. A thread cannot be stopped: a function that does not answer in time keeps its thread, and its answer no
    longer counts.
    """
    return function if is_async(function) else _Threaded(function)  # type: ignore[return-value]


class Together:
    """A `Confirm` for an executor that asks once for all calls which wait for an answer at the same time.

    Calls of one response are decided about one right after the other, so their questions arrive together. Each gets an
    answer of its own. More calls than the executor runs at a time are several questions. What waits in one event loop
    is asked about in that loop: executors in other threads may share it, and are asked separately.

    Args:
        ask: gets the approvals in the order of their calls; gives as many answers, in that order. A plain function is
            called in a thread.
    """

    def __init__(self, ask: Callable[[Sequence[Approval]], Awaitable[Answers] | Answers]) -> None:
        self._ask = as_async(ask)
        self._waiting: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
        self._guard = Lock()
        self._asking: set[asyncio.Task[None]] = set()

    async def __call__(self, approval: Approval) -> ApprovalAnswer | bool:
        """Wait for the answer to one approval.

        Raises:
            ValueError: `ask` gave another number of answers than it was asked for.
            ToolError: `ask` was cancelled.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[ApprovalAnswer | bool] = loop.create_future()
        with self._guard:  # loops of other threads come and go
            waiting = self._waiting.setdefault(loop, [])
        waiting.append((approval, answer))
        if len(waiting) == 1:
            loop.call_soon(self._begin, loop)  # after the calls that are decided about in this turn of the loop
        return await answer

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            waiting = self._waiting.pop(loop)
        pending = [entry for entry in waiting if not entry[1].done()]
        if pending:
            task = asyncio.ensure_future(self._settle(pending))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _settle(self, asked: list[_Waiting]) -> None:
        answers: Answers = ()
        caught = capture_errors()
        _DEADLINE.set(None)  # in this task alone: it continues when they are over, so they do not wait for its turn
        try:
            with caught:
                answers = await self._ask([approval for approval, _ in asked])
                if len(answers) != len(asked):
                    raise ValueError(f"{len(asked)} questions were asked, and {len(answers)} answers came")
        except asyncio.CancelledError:
            caught.error = ToolError("the question was cancelled before it was answered")
            raise
        finally:
            for at, (_, answer) in enumerate(asked):
                if answer.done():
                    continue  # nobody waits for it any more
                if caught.error is not None:
                    answer.set_exception(caught.error)
                elif at < len(answers):
                    answer.set_result(answers[at])
                else:  # an interrupt
                    answer.cancel()
