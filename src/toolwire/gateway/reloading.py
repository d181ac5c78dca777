"""A changed configuration file of a running gateway: its models are used from the next request on, if it is valid."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from toolwire.errors import ToolwireError
from toolwire.gateway.model_table import ModelTable

LOOK_SECONDS = 1.0
"""Seconds between two looks at the file."""

_Stamp = tuple[int, int, int] | None


async def reload_models(
    path: Path,
    models: ModelTable,
    load: Callable[[], Awaitable[ModelTable]],
    report: Callable[[str], None],
    *,
    seconds: float = LOOK_SECONDS,
) -> None:
    """Replace the models whenever a file changes, until cancelled; a file that is not valid changes nothing.

    Requests that are running keep their backends.

    Args:
        path: the file.
        models: the models that are offered.
        load: reads the file and returns its models.
        report: called with what happened, in words.
        seconds: the time between two looks at the file.
    """
    previous = _stamp(path)
    while True:
        await asyncio.sleep(seconds)
        stamp = _stamp(path)
        if stamp == previous:
            continue
        previous = stamp
        try:
            models.replace(await load())
        except ToolwireError as error:
            models.rejected = "the configuration file has changed and is not valid: the one before is used"
            report(f"{models.rejected}: {error}")
        else:
            report(f"{path} has changed: its models are used from now on")


def _stamp(path: Path) -> _Stamp:
    """Return what differs between two versions of a file; None if there is no file."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
