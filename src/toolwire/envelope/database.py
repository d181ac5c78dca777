"""SQLite files that only their user may read, and that several processes write at once.

What is in them can be done without: they are not forced to the disk, and one that is broken is put aside.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from toolwire.errors import ToolError

FAILURES = (sqlite3.Error, OSError)
"""What a file that is broken, locked, full or not to be written raises."""


class Database:
    """A connection that opens when it is first needed; safe to use from several threads, and behind a fork.

    Args:
        path: the file; its directory is made where it is missing.
        schema: statements that make what is not there yet.
        wait: seconds to wait for another process that writes.
    """

    def __init__(self, path: str, schema: Sequence[str], *, wait: float) -> None:
        self.path = path
        self._schema = schema
        self._wait = wait
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction of one's own; undone if anything is raised in it.

        Raises:
            ToolError: the file cannot be used; the message names it.
        """
        with self._used() as connection:
            connection.execute("BEGIN IMMEDIATE")
            done = False
            try:
                yield connection
                done = True
            finally:  # nothing half-done stays
                connection.execute("COMMIT" if done else "ROLLBACK")

    def read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query.

        Raises:
            ToolError: the file cannot be used; the message names it.
        """
        with self._used() as connection:
            return connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Let go of the file, until it is needed again."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def _ready(self) -> sqlite3.Connection:
        if self._connection is None or self._owner != os.getpid():
            try:
                self._connection = self._opened()
            except sqlite3.DatabaseError as error:
                if not _broken(error):
                    raise
                self._put_aside()
                self._connection = self._opened()
            self._owner = os.getpid()
        return self._connection

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._ready()
            except FAILURES as error:
                if _broken(error):
                    self.close()
                    with suppress(OSError):
                        self._put_aside()
                raise ToolError(f"{self.path}: {error}") from error

    def _put_aside(self) -> None:
        os.replace(self.path, f"{self.path}.broken")
        for beside in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self.path + beside)

    def _opened(self) -> sqlite3.Connection:
        self._protect()
        connection = sqlite3.connect(
            self.path, timeout=self._wait, isolation_level=None, check_same_thread=False, cached_statements=16
        )
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                with suppress(sqlite3.OperationalError):  # another process does it just now
                    connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=OFF")
            if connection.execute("PRAGMA user_version").fetchone()[0] != len(self._schema):
                for statement in self._schema:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={len(self._schema)}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _protect(self) -> None:
        """Make the file, or what is there, the user's alone; SQLite gives the files beside it the same rights."""
        os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        try:
            os.close(os.open(self.path, flags, 0o600))
        except FileExistsError:
            there = os.lstat(self.path)
            if not stat.S_ISREG(there.st_mode):
                raise OSError(f"{self.path} is no regular file") from None
            if there.st_mode & 0o077:
                with suppress(PermissionError):  # somebody else's
                    os.chmod(self.path, 0o600)


def storable(text: str) -> str:
    """A text as a file can hold it: what is no character, as in names of files that are not UTF-8, is written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _broken(error: Exception) -> bool:
    """Whether a file is no database, or a broken one; not whether it is locked, full, or of another program."""
    return type(error) is sqlite3.DatabaseError
