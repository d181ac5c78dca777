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


class WatchedFile:
    """A file, and whether it has changed since it was last looked at.

    It is made before the file is read: what changes while the gateway starts counts as a change.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version = _version(path)

    def has_changed(self) -> bool:
        """Return whether the file is another one than at the last look, and look at it."""
        previous, self._version = self._version, _version(self.path)
        return self._version != previous


async def reload_models(
    file: WatchedFile,
    models: ModelTable,
    load: Callable[[], Awaitable[ModelTable]],
    report: Callable[[str], None],
    *,
    seconds: float = LOOK_SECONDS,
) -> None:
    """Replace the models whenever a file changes, until cancelled; a file that is not valid changes nothing.

    Requests that are running keep their backends.

    Args:
        file: the file.
        models: the models that are offered.
        load: reads the file and returns its models.
        report: called with what happened, in words.
        seconds: the time between two looks at the file.
    """
    while True:
        await asyncio.sleep(seconds)
        if not file.has_changed():
            continue
        try:
            models.replace(await load())
        except ToolwireError as error:
            models.rejected = "the configuration file has changed and is not valid: the one before is used"
            report(f"{models.rejected}: {error}")
        else:
            report(f"{file.path} has changed: its models are used from now on")


def _version(path: Path) -> tuple[int, int, int] | None:
    """Return what differs between two versions of a file; None if there is no file."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
