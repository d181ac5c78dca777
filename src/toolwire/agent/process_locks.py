"""Which processes that run agents are alive: each holds a lock for as long as it lives, whatever ends it.

Beside an SQLite file the locks are files; in PostgreSQL they are advisory locks, which the server lets go of when the
connection of a process breaks. No clock and no heartbeat tells who is dead.
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

WAIT: Final = 30.0
"""Seconds to wait for another process that takes over what a dead one left."""
LOOK: Final = 0.01
"""Seconds to look whether a file is locked, since another one may look in that moment, too."""
BEGIN: Final = 1000
"""Milliseconds to wait for those who look whether this process lives while it says so."""
ONLY: Final = "only"


class LiveProcesses(Protocol):
    """The processes that share a database."""

    def begin(self, name: str) -> None:
        """This process lives under this name from now on.

        Raises:
            JournalError: it cannot be said.
        """
        ...

    def end(self) -> None:
        """This process has let go of all that it ran."""
        ...

    def keep(self) -> None:
        """Say again that this process lives, if the connection that says so has broken.

        Raises:
            JournalError: it cannot be said.
        """
        ...

    def living(self, names: Iterable[str]) -> set[str]:
        """Which processes of these names live; others may ask at the same time.

        Raises:
            JournalError: nobody can tell.
        """
        ...

    def only(self) -> AbstractContextManager[None]:
        """A context in which no other process takes over what a dead one left.

        Raises:
            JournalError: another one does not come to an end.
        """
        ...


class FileLiveProcesses:
    """Processes on one machine.

    Args:
        folder: for the locks; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: FileLock | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"{folder}: {error.strerror or error}") from error

    def begin(self, name: str) -> None:
        """See `LiveProcesses`."""
        with self.only():
            lock = self._lock(name)
            try:
                lock.acquire(timeout=0)
            except (OSError, Timeout) as error:
                raise JournalError(f"{lock.lock_file}: it cannot be locked") from error
            self._own = lock

    def end(self) -> None:
        """See `LiveProcesses`."""
        if self._own is not None:
            with suppress(OSError):
                os.unlink(self._own.lock_file)
            self._own.release(force=True)
            self._own = None

    def keep(self) -> None:
        """See `LiveProcesses`; a file stays locked."""

    def living(self, names: Iterable[str]) -> set[str]:
        """See `LiveProcesses`; what a dead process left is put away."""
        return {name for name in names if self._alive(name)}

    def _alive(self, name: str) -> bool:
        path = self._path(name)
        if not path.exists():
            return False
        lock = self._lock(name)
        try:
            lock.acquire(timeout=LOOK, poll_interval=LOOK / 2)
        except (OSError, Timeout):
            return True
        with suppress(OSError):
            path.unlink()
        lock.release(force=True)
        return False

    @contextmanager
    def only(self) -> Iterator[None]:
        """See `LiveProcesses`."""
        lock = self._lock(ONLY)
        try:
            lock.acquire(timeout=WAIT)
        except (OSError, Timeout) as error:
            raise JournalError(f"{lock.lock_file}: another process holds it") from error
        try:
            yield
        finally:
            lock.release(force=True)

    def _path(self, name: str) -> Path:
        return self._folder / (name if name == ONLY else f"{_digest(name).hex()[:32]}.lock")

    def _lock(self, name: str) -> FileLock:
        return FileLock(self._path(name), thread_local=False, mode=0o600)


class PostgresLiveProcesses:
    """Processes that share a PostgreSQL database, on any machines.

    Args:
        conninfo: how libpq connects.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._name = ""
        self._own: psycopg.Connection | None = None
        self._using = RLock()

    def begin(self, name: str) -> None:
        """See `LiveProcesses`."""
        with self._using:
            connection = self._connected()
            try:
                connection.execute(f"SET lock_timeout = {BEGIN}")
                connection.execute("SELECT pg_advisory_lock(%s)", (_key(name),))
            except psycopg.Error as error:
                connection.close()
                raise JournalError(f"this process cannot say that it lives, as {name}: {error}") from error
            self._name, self._own = name, connection

    def end(self) -> None:
        """See `LiveProcesses`."""
        with self._using:
            if self._own is not None:
                self._own.close()
                self._own = None

    def keep(self) -> None:
        """See `LiveProcesses`."""
        with self._using:
            if self._own is None:
                return
            try:
                self._own.execute("SELECT 1")
            except psycopg.Error:
                self._own.close()
                self.begin(self._name)

    def living(self, names: Iterable[str]) -> set[str]:
        """See `LiveProcesses`."""
        candidates = list(names)
        if not candidates:
            return set()
        with self._connected() as connection:
            try:
                return {name for name in candidates if not _free(connection, name)}
            except psycopg.Error as error:
                raise JournalError(f"nobody can tell which processes live: {error}") from error

    @contextmanager
    def only(self) -> Iterator[None]:
        """See `LiveProcesses`."""
        with self._connected() as connection:
            try:
                connection.execute(f"SET lock_timeout = {int(WAIT * 1000)}")
                connection.execute("SELECT pg_advisory_lock(%s)", (_key(ONLY),))
            except psycopg.Error as error:
                raise JournalError(f"another process holds the lock of the runs: {error}") from error
            yield

    def _connected(self) -> psycopg.Connection:
        try:
            return psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise JournalError(f"the database of the runs cannot be reached: {error}") from error


def _free(connection: psycopg.Connection, name: str) -> bool:
    """Whether nobody has the lock of this name; the lock is shared, so that many may look at once."""
    row = connection.execute("SELECT pg_try_advisory_lock_shared(%s)", (_key(name),)).fetchone()
    free = bool(row and row[0])
    if free:
        connection.execute("SELECT pg_advisory_unlock_shared(%s)", (_key(name),))
    return free


def _digest(name: str) -> bytes:
    return hashlib.sha256(f"toolwire:{name}".encode()).digest()


def _key(name: str) -> int:
    return int.from_bytes(_digest(name)[:8], "big", signed=True)
