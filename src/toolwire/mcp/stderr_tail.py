"""The end of a server's standard error: shown with an error of the server, and never by itself."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from toolwire.mcp.definitions import clean

KEPT = 4_000
"""Bytes that are stored, counted from the end."""
DRAIN_SECONDS = 1.0
"""Maximum seconds to wait for the rest of an ended process's output; a child that it left may hold it open."""


class StderrTail:
    """The end of a process's output. All of it goes to the logger `toolwire.mcp.NAME`, at level DEBUG."""

    def __init__(self, name: str) -> None:
        self._log = logging.getLogger(f"toolwire.mcp.{name}")
        self._tail = b""
        self._reader: threading.Thread | None = None

    def forget(self) -> None:
        """Clear it for a new process."""
        self._tail = b""

    def last(self, limit: int) -> str:
        """Return its end as one cleaned line; "" if the process wrote nothing."""
        text = clean(self._tail.decode("utf-8", "replace").strip(), KEPT)
        text = " ".join(text.split())
        return text if len(text) <= limit else f"...{text[-limit:]}"

    @contextmanager
    def capture(self) -> Iterator[TextIO]:
        """Yield a file for a process to write to; it is read until no process can write to it any more."""
        reading, writing = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(reading,), name=self._log.name, daemon=True)
        self._reader.start()
        with os.fdopen(writing, "w") as file:
            yield file

    async def drain(self) -> None:
        """Wait until all output of an ended process was read, at most `DRAIN_SECONDS`.

        A process can end before the thread that reads its last words has run.
        """
        if self._reader is not None:
            await asyncio.to_thread(self._reader.join, DRAIN_SECONDS)

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            while piece := file.read(4_096):
                self._tail = (self._tail + piece)[-KEPT:]
                self._log.debug("%s", clean(piece.decode("utf-8", "replace"), KEPT))
