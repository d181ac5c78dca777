"""What outlives a process: the directory for it, and SQLite files there that several processes write at once.

The directory is the user's own, or the one that the environment variable TOOLWIRE_STATE names.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from toolwire.errors import StateError

VARIABLE = "TOOLWIRE_STATE"
WAIT = 5.0
"""Seconds to wait for another process that writes."""


def state_folder() -> Path:
    """The directory; it need not be there yet."""
    if named := os.environ.get(VARIABLE, ""):
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_state_dir("toolwire"))


def open_database(
    path: str | os.PathLike[str], schema: Sequence[str], version: int, *, wait: float = WAIT, make: bool = True
) -> sqlite3.Connection:
    """A connection to a file that only its user may read; in autocommit mode, and not bound to a thread.

    Args:
        path: the file; it and its directory are made where they are missing.
        schema: statements that make what is not there yet.
        version: of the schema, from 1; what an older one left is made anew, and lost.
        wait: seconds to wait for another process that writes.
        make: make what is missing; else a file that is not there is an error.

    Raises:
        StateError: the file cannot be used; the message names it.
    """
    path = Path(path)
    try:
        if not make and not path.exists():
            raise StateError(f"{path}: there is no such file yet")
        _protect(path)
        connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StateError(f"{path}: {error}") from error
    try:
        _prepare(connection, path, schema, version)
    except sqlite3.Error as error:
        connection.close()
        raise StateError(f"{path}: {error}") from error
    except StateError:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, schema: Sequence[str], version: int) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > version:
        raise StateError(f"{path}: it was made by a newer Toolwire")
    if found < version:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # counts only while the file is empty
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        with suppress(sqlite3.OperationalError):  # another process does it just now
            connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA journal_size_limit={4 << 20}")
    if found == version:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if 0 < found < version:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f'DROP TABLE "{name}"')
        if found < version:
            for statement in schema:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={version}")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _protect(path: Path) -> None:
    """Make the file, or what is there, the user's alone; SQLite gives the files beside it the same rights."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        there = path.lstat()
        if not stat.S_ISREG(there.st_mode):
            raise OSError("it is no regular file") from None
        if there.st_mode & 0o077 and hasattr(os, "getuid") and there.st_uid == os.getuid():
            path.chmod(0o600)
