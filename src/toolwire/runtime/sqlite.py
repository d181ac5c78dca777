"""SQLite files that only their user may read, and that several processes write at once."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolwire.errors import StateError, ToolError

WAIT = 5.0
"""Seconds to wait for another process that writes."""
_FAILURES = (sqlite3.Error, OSError)
"""Errors of a file that is broken, locked, full or not writable."""

_OWN_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
"""Tables without those of SQLite itself, which cannot be dropped: AUTOINCREMENT creates one."""


def open_database(
    path: str | os.PathLike[str], schema: Sequence[str], version: int, *, wait: float = WAIT, make: bool = True
) -> sqlite3.Connection:
    """Open a file; the connection is in autocommit mode, and not bound to a thread.

    Args:
        path: the file; it and its directory are created if they do not exist.
        schema: statements that create the tables.
        version: of the schema, from 1. With `make`, tables of an older version are dropped and created again.
        wait: seconds to wait for another process that writes.
        make: create what does not exist; otherwise a missing file is an error, and so is a file without these tables
            or with those of an older version.

    Raises:
        StateError: the file cannot be used; the message names it. Its cause is `sqlite3.NotSupportedError` if the file
            belongs to another program or version, and then nothing in it has changed.
    """
    try:
        if not make and not os.path.exists(path):
            raise OSError("there is no such file yet")
        return _connect(Path(path), schema, version, wait=wait, synchronous="NORMAL", make=make)
    except _FAILURES as error:
        raise StateError(f"{os.fspath(path)}: {error}") from error


class Database:
    """A connection that opens when it is first needed; safe to use from several threads, and after a fork.

    It is for data that may be lost: writes are not forced to the disk, and a broken file is renamed and replaced.

    Args:
        path: the file; it and its directory are created if they do not exist.
        schema: statements that create the tables.
        version: see `open_database`.
        wait: seconds to wait for another process that writes.
    """

    def __init__(self, path: str, schema: Sequence[str], version: int, *, wait: float) -> None:
        self.path = path
        self._schema = schema
        self._version = version
        self._wait = wait
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction; it is rolled back if anything is raised in it.

        Raises:
            ToolError: the file cannot be used; the message names it.
        """
        with self._connected() as connection, transaction(connection):
            yield connection

    def read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        Raises:
            ToolError: the file cannot be used; the message names it.
        """
        with self._connected() as connection:
            return connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Close the file until it is needed again."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._open()
            except _FAILURES as error:
                if is_damage(error):
                    self.close()
                    with suppress(OSError):
                        self._put_aside()
                raise ToolError(f"{self.path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        # A connection must not be used, nor closed, by the child of a fork.
        if self._connection is None or self._owner != os.getpid():
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self._put_aside()
                self._connection = self._connect()
            self._owner = os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        return _connect(Path(self.path), self._schema, self._version, wait=self._wait, synchronous="OFF")

    def _put_aside(self) -> None:
        os.replace(self.path, f"{self.path}.broken")
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self.path + suffix)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Open a transaction for writing; it is rolled back if anything is raised in it.

    Raises:
        sqlite3.Error: the file cannot be written.
    """
    connection.execute("BEGIN IMMEDIATE")
    complete = False
    try:
        yield
        complete = True
    finally:
        connection.execute("COMMIT" if complete else "ROLLBACK")


def storable(text: str) -> str:
    """Return text as a file can contain it: lone surrogates, as in names that are not UTF-8, become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _connect(
    path: Path, schema: Sequence[str], version: int, *, wait: float, synchronous: str, make: bool = True
) -> sqlite3.Connection:
    if make:
        _protect(path)
    connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        _check_owner(connection, schema, version, make=make)
        if not make:  # only now, because the rights of another program's file are not ours to change
            _protect(path)
        _prepare(connection, schema, version, synchronous)
    except _FAILURES:
        connection.close()
        raise
    return connection


def _check_owner(connection: sqlite3.Connection, schema: Sequence[str], version: int, *, make: bool) -> None:
    """Check that a file is ours, before anything in it changes: any program's SQLite file may be named.

    Raises:
        sqlite3.NotSupportedError: it is not.
    """
    current = connection.execute("PRAGMA user_version").fetchone()[0]
    if current > version:
        raise sqlite3.NotSupportedError("it was created by a newer Toolwire, or by another program")
    if not schema or (make and current in (0, version)):  # then no table is dropped
        return
    expected = _table_names(tuple(schema))
    tables = {name for (name,) in connection.execute(_OWN_TABLES)}
    if not (expected <= tables if current == version else tables <= expected):
        raise sqlite3.NotSupportedError("it is a database of another program")
    # Another program may give its tables the same names, so a reader drops and creates none.
    if not make and current < version:
        reason = "it was created by an older Toolwire, or by another program" if tables else "it has no tables"
        raise sqlite3.NotSupportedError(reason)


@lru_cache(maxsize=16)
def _table_names(schema: tuple[str, ...]) -> frozenset[str]:
    # SQLite reads the statements, because a pattern would miss some spellings of names.
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in schema:
            empty.execute(statement)
        return frozenset(name for (name,) in empty.execute(_OWN_TABLES))


def _prepare(connection: sqlite3.Connection, schema: Sequence[str], version: int, synchronous: str) -> None:
    current = connection.execute("PRAGMA user_version").fetchone()[0]
    if current < version:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # has an effect only while the file is empty
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        with suppress(sqlite3.OperationalError):  # another process does it just now
            connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute(f"PRAGMA journal_size_limit={4 << 20}")
    if current == version:
        return
    with transaction(connection):
        # Another process may have done it between the first look and the lock.
        current = connection.execute("PRAGMA user_version").fetchone()[0]
        if 0 < current < version:
            for (name,) in connection.execute(_OWN_TABLES).fetchall():
                connection.execute(f'DROP TABLE "{name}"')
        if current < version:
            for statement in schema:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={version}")


def _protect(path: Path) -> None:
    """Make the file the user's alone, and create it if need be; SQLite gives the files beside it the same rights."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode):
            raise OSError("it is not a regular file") from None
        if info.st_mode & 0o077 and hasattr(os, "getuid") and info.st_uid == os.getuid():
            path.chmod(0o600)


def is_damage(error: BaseException) -> bool:
    """Return whether a file is not a database or is damaged, as opposed to locked, full or in use elsewhere."""
    return type(error) is sqlite3.DatabaseError
