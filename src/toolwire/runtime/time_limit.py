"""A time limit with an error of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def time_limit(seconds: float | None, error: Callable[[], Exception]) -> AsyncGenerator[None]:
    """Stop the block after a time, with an error; a `TimeoutError` of the block itself passes as it is.

    Args:
        seconds: the time; None for no limit.
        error: returns the error to raise when the time is over.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise error() from None
