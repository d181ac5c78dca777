"""What a server writes to its standard error: kept in case something goes wrong, and never shown by itself."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from toolwire.mcp.definitions import cleaned

KEPT = 4_000
"""Bytes of it that are kept: the last ones."""


class Stderr:
    """The end of what a process wrote; also a logger `toolwire.mcp.NAME`, at level DEBUG."""

    def __init__(self, name: str) -> None:
        self._log = logging.getLogger(f"toolwire.mcp.{name}")
        self._tail = b""

    def forget(self) -> None:
        """A new process begins."""
        self._tail = b""

    def last(self, limit: int) -> str:
        """Its last lines in one, made harmless; "" if it wrote nothing."""
        text = cleaned(self._tail.decode("utf-8", "replace").strip(), KEPT)
        text = " ".join(text.split())
        return text if len(text) <= limit else f"...{text[-limit:]}"

    @contextmanager
    def taken(self) -> Iterator[TextIO]:
        """A file for a process to write to; what comes is read until nobody can write any more."""
        reading, writing = os.pipe()
        thread = threading.Thread(target=self._read, args=(reading,), name=self._log.name, daemon=True)
        thread.start()
        with os.fdopen(writing, "w") as file:
            yield file

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            while piece := file.read(4_096):
                self._tail = (self._tail + piece)[-KEPT:]
                self._log.debug("%s", cleaned(piece.decode("utf-8", "replace"), KEPT))
