"""The iterators of events that agents return: they say what to do if they are taken for the answer of a run.

In other frameworks a run is awaited, or has the answer as an attribute. Python's own errors would name a generator, and
not the methods that return an answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any, NoReturn

from toolwire.agent.run_events import AgentEvent

_HINT = "`async for` reads these events; await ask() for the answer, or run_to_end() for the end of the run"
_SYNC_HINT = "`for` reads these events; ask_sync() returns the answer, and run_to_end_sync() the end of the run"


class RunEvents(AsyncGenerator[AgentEvent]):
    """The events of a run.

    Args:
        events: the events; loops use them directly.
    """

    def __init__(self, events: AsyncGenerator[AgentEvent]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncGenerator[AgentEvent]:
        """Return the events themselves, so that a loop costs nothing more."""
        return self._events

    async def asend(self, value: None) -> AgentEvent:
        """Return the next event."""
        return await self._events.asend(value)

    async def athrow(self, *error: Any) -> AgentEvent:
        """Raise an error where the run waits."""
        return await self._events.athrow(*error)

    async def aclose(self) -> None:
        """Stop the run."""
        await self._events.aclose()

    def __await__(self) -> Generator[Any, Any, NoReturn]:
        """Raise TypeError: this is an iterator."""
        raise TypeError(f"a run cannot be awaited: {_HINT}")

    def __iter__(self) -> NoReturn:
        """Raise TypeError: this is an asynchronous iterator."""
        raise TypeError("`async for` reads the events of run(), and `for` those of run_sync()")

    def __repr__(self) -> str:
        """Return how the events are read, for the message of `asyncio.run`."""
        return f"<events of a run: {_HINT}>"


class SyncRunEvents(Iterator[AgentEvent]):
    """The events of a run, without asyncio.

    Args:
        events: a generator of the events; loops use it directly.
    """

    def __init__(self, events: Generator[AgentEvent]) -> None:
        self._events = events

    def __iter__(self) -> Generator[AgentEvent]:
        """Return the events themselves."""
        return self._events

    def __next__(self) -> AgentEvent:
        """Return the next event."""
        return next(self._events)

    def __aiter__(self) -> NoReturn:
        """Raise TypeError: this is a plain iterator."""
        raise TypeError("`for` reads the events of run_sync(), and `async for` those of run()")

    def close(self) -> None:
        """Stop the run."""
        self._events.close()

    def __getattr__(self, name: str) -> NoReturn:
        """Raise AttributeError: the answer is not an attribute of the events."""
        raise AttributeError(f"the events of a run have no attribute {name!r}: {_SYNC_HINT}")
