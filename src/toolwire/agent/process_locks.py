"""Locks that show which processes are running: each process has one until it ends, for whatever reason.

Beside an SQLite file the locks are files, which the operating system releases. In PostgreSQL they are advisory locks,
which the server releases when the connection of a process breaks. There are no clocks and no heartbeats: a slow process
is never taken for a dead one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final, Protocol

import psycopg
from filelock import FileLock, Timeout

from toolwire.errors import JournalError

TAKEOVER_SECONDS: Final = 30.0
"""Seconds to wait for another process that takes over the runs of a dead one."""
TRY_SECONDS: Final = 0.01
"""Seconds to try a file lock, since another process may try it at that moment and must not look like its holder."""
OWN_MILLISECONDS: Final = 1000
"""Milliseconds to wait for the own lock, while other processes try it."""
TAKEOVER: Final = "takeover"


class LiveProcesses(Protocol):
    """The running processes that share a database."""

    def begin(self, name: str) -> None:
        """Lock the name of this process.

        Raises:
            JournalError: it cannot be locked.
        """
        ...

    def end(self) -> None:
        """Release the name of this process, which has released all of its runs."""
        ...

    def renew(self) -> None:
        """Lock the name again, if the connection of the lock has broken.

        Raises:
            JournalError: it cannot be locked.
        """
        ...

    def running(self, names: Iterable[str]) -> set[str]:
        """Return the names of those processes that are running; other processes may ask at the same time.

        Raises:
            JournalError: the locks cannot be tried.
        """
        ...

    def takeover(self) -> AbstractContextManager[None]:
        """Return a context in which no other process takes over the runs of a dead one.

        Raises:
            JournalError: another process is in such a context for too long.
        """
        ...


class FileLiveProcesses:
    """Processes on one machine.

    Args:
        folder: the directory for the lock files; created if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own_lock: FileLock | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"{folder}: {error.strerror or error}") from error

    def begin(self, name: str) -> None:
        """See `LiveProcesses`."""
        with self.takeover():
            lock = self._lock(name)
            try:
                lock.acquire(timeout=0)
            except (OSError, Timeout) as error:
                raise JournalError(f"{lock.lock_file}: it cannot be locked") from error
            self._own_lock = lock

    def end(self) -> None:
        """See `LiveProcesses`."""
        if self._own_lock is not None:
            with suppress(OSError):
                os.unlink(self._own_lock.lock_file)
            self._own_lock.release(force=True)
            self._own_lock = None

    def renew(self) -> None:
        """See `LiveProcesses`; a file stays locked until the process ends."""

    def running(self, names: Iterable[str]) -> set[str]:
        """See `LiveProcesses`; the lock files of dead processes are removed."""
        return {name for name in names if self._is_running(name)}

    def _is_running(self, name: str) -> bool:
        path = self._path(name)
        if not path.exists():  # trying a lock would create its file
            return False
        lock = self._lock(name)
        try:
            lock.acquire(timeout=TRY_SECONDS, poll_interval=TRY_SECONDS / 2)
        except (OSError, Timeout):
            return True
        # The process is dead, and no other will ever have its name.
        with suppress(OSError):
            path.unlink()
        lock.release(force=True)
        return False

    @contextmanager
    def takeover(self) -> Iterator[None]:
        """See `LiveProcesses`."""
        lock = self._lock(TAKEOVER)
        try:
            lock.acquire(timeout=TAKEOVER_SECONDS)
        except (OSError, Timeout) as error:
            raise JournalError(f"{lock.lock_file}: another process holds it") from error
        try:
            yield
        finally:
            lock.release(force=True)

    def _path(self, name: str) -> Path:
        return self._folder / (name if name == TAKEOVER else f"{_digest(name).hex()[:32]}.lock")

    def _lock(self, name: str) -> FileLock:
        return FileLock(self._path(name), thread_local=False, mode=0o600)


class PostgresLiveProcesses:
    """Processes that share a PostgreSQL database, on any machines.

    Args:
        conninfo: connection string of libpq.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._name = ""
        self._own_connection: psycopg.Connection | None = None
        self._using = RLock()

    def begin(self, name: str) -> None:
        """See `LiveProcesses`."""
        with self._using:
            connection = self._connected()
            try:
                connection.execute(f"SET lock_timeout = {OWN_MILLISECONDS}")
                connection.execute("SELECT pg_advisory_lock(%s)", (_key(name),))
            except psycopg.Error as error:
                connection.close()
                raise JournalError(f"the lock of this process, {name}, cannot be acquired: {error}") from error
            self._name, self._own_connection = name, connection

    def end(self) -> None:
        """See `LiveProcesses`."""
        with self._using:
            if self._own_connection is not None:
                self._own_connection.close()
                self._own_connection = None

    def renew(self) -> None:
        """See `LiveProcesses`."""
        with self._using:
            if self._own_connection is None:
                return
            try:
                self._own_connection.execute("SELECT 1")
            except psycopg.Error:
                self._own_connection.close()
                self.begin(self._name)

    def running(self, names: Iterable[str]) -> set[str]:
        """See `LiveProcesses`."""
        candidates = list(names)
        if not candidates:
            return set()
        with self._connected() as connection:
            try:
                return {name for name in candidates if not _free(connection, name)}
            except psycopg.Error as error:
                raise JournalError(f"the locks of processes cannot be tried: {error}") from error

    @contextmanager
    def takeover(self) -> Iterator[None]:
        """See `LiveProcesses`."""
        with self._connected() as connection:
            try:
                connection.execute(f"SET lock_timeout = {int(TAKEOVER_SECONDS * 1000)}")
                connection.execute("SELECT pg_advisory_lock(%s)", (_key(TAKEOVER),))
            except psycopg.Error as error:
                raise JournalError(f"another process holds the lock of the runs: {error}") from error
            yield

    def _connected(self) -> psycopg.Connection:
        try:
            return psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise JournalError(f"the database of the runs cannot be reached: {error}") from error


def _free(connection: psycopg.Connection, name: str) -> bool:
    """Return whether no process has the lock of this name."""
    # A shared lock, so that several processes may try at once and none of them looks like the holder.
    row = connection.execute("SELECT pg_try_advisory_lock_shared(%s)", (_key(name),)).fetchone()
    free = bool(row and row[0])
    if free:
        connection.execute("SELECT pg_advisory_unlock_shared(%s)", (_key(name),))
    return free


def _digest(name: str) -> bytes:
    return hashlib.sha256(f"toolwire:{name}".encode()).digest()


def _key(name: str) -> int:
    return int.from_bytes(_digest(name)[:8], "big", signed=True)
