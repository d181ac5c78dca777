"""A store of the gateway in an SQLite file or in PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from toolwire._surface import needs_extra
from toolwire.errors import ConfigurationError, StateError
from toolwire.gateway.state_store import surplus
from toolwire.runtime.sqlite import open_database

_T = TypeVar("_T")

THREADS = 8
"""Number of threads, and of connections to PostgreSQL."""
_SWEEP_SECONDS = 60.0
"""Seconds between two deletions of what is over."""

_METADATA = sql.MetaData()
_DOCUMENTS = sql.Table(
    "toolwire_gateway_documents",
    _METADATA,
    sql.Column("kind", sql.Text, primary_key=True),
    sql.Column("owner", sql.Text, primary_key=True),
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("data", sql.LargeBinary, nullable=False),
    sql.Column("size", sql.BigInteger, nullable=False),
    sql.Column("created_at", sql.Double, nullable=False),
    sql.Column("ends_at", sql.Double, nullable=True, index=True),
)
_COUNTERS = sql.Table(
    "toolwire_gateway_counters",
    _METADATA,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("value", sql.BigInteger, nullable=False),
    sql.Column("ends_at", sql.Double, nullable=False, index=True),
)


class SqlStore:
    """A `StateStore` in a database.

    Args:
        url: `sqlite:///PATH`, `sqlite://` for one in memory, or `postgresql://SERVER/DATABASE`.

    Raises:
        ConfigurationError: the URL cannot be read.
        MissingExtra: the driver of PostgreSQL is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            self._url = sql.make_url(url.replace("postgres://", "postgresql://", 1))
        except (ArgumentError, ValueError) as error:
            raise ConfigurationError("this is not the URL of a database, such as postgresql://server/name") from error
        if self._is_sqlite and self._url.host:
            raise ConfigurationError("the URL of an SQLite file has three slashes before the path: sqlite:///PATH")
        if self._url.drivername.startswith("postgresql"):
            with needs_extra("A store in PostgreSQL", "postgres"):
                import psycopg  # noqa: F401
            self._url = self._url.set(drivername="postgresql+psycopg")
        self._engine: sql.Engine | None = None
        # SQLite lets one connection write at a time; a single thread waits for nobody of this process.
        threads = 1 if self._is_sqlite else THREADS
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="toolwire-store")
        self._opening = threading.Lock()
        self._swept_at = 0.0

    @property
    def _is_sqlite(self) -> bool:
        return self._url.drivername.startswith("sqlite")

    async def put(self, kind: str, owner: str, name: str, data: bytes, *, seconds: float = 0) -> None:
        """See `StateStore`."""

        def write(connection: sql.Connection) -> None:
            now = time.time()
            values = {"data": data, "size": len(data), "created_at": now, "ends_at": now + seconds if seconds else None}
            self._upsert(connection, _DOCUMENTS, {"kind": kind, "owner": owner, "name": name}, values)
            if not seconds:
                return
            is_owned = (_DOCUMENTS.c.kind == kind) & (_DOCUMENTS.c.owner == owner)
            newest_first = _DOCUMENTS.c.created_at.desc()
            rows = connection.execute(
                sql.select(_DOCUMENTS.c.name, _DOCUMENTS.c.size).where(is_owned).order_by(newest_first)
            )
            if names := list(surplus((row.name, row.size) for row in rows)):
                connection.execute(sql.delete(_DOCUMENTS).where(is_owned, _DOCUMENTS.c.name.in_(names)))

        await self._run(write)

    async def get(self, kind: str, owner: str, name: str) -> bytes | None:
        """See `StateStore`."""
        c = _DOCUMENTS.c
        is_valid = c.ends_at.is_(None) | (c.ends_at > time.time())
        query = sql.select(c.data).where(c.kind == kind, c.owner == owner, c.name == name, is_valid)
        data = await self._run(lambda connection: connection.execute(query).scalar())
        return None if data is None else bytes(data)

    async def delete(self, kind: str, owner: str, name: str) -> bool:
        """See `StateStore`."""
        c = _DOCUMENTS.c
        statement = sql.delete(_DOCUMENTS).where(c.kind == kind, c.owner == owner, c.name == name)
        return await self._run(lambda connection: connection.execute(statement).rowcount) > 0

    async def all(self, kind: str, owner: str) -> list[bytes]:
        """See `StateStore`."""
        c = _DOCUMENTS.c
        query = sql.select(c.data).where(c.kind == kind, c.owner == owner).order_by(c.created_at, c.name)
        return [bytes(row.data) for row in await self._run(lambda connection: connection.execute(query).all())]

    async def add(self, counter: str, amount: int, *, seconds: float) -> int:
        """See `StateStore`."""
        return await self._run(lambda connection: self._add(connection, counter, amount, seconds))

    async def close(self) -> None:
        """See `StateStore`."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        if self._engine is not None:
            self._engine.dispose()

    async def _run(self, work: Callable[[sql.Connection], _T]) -> _T:
        """Run work in a transaction, in a thread.

        Raises:
            StateError: the database cannot be used; the message contains no password.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._in_transaction, work)

    def _add(self, connection: sql.Connection, counter: str, amount: int, seconds: float) -> int:
        now = time.time()
        is_over = _COUNTERS.c.ends_at <= now
        added = _COUNTERS.c.value + amount
        changes = {
            "value": sql.case((is_over, amount), else_=added),
            "ends_at": sql.case((is_over, now + seconds), else_=_COUNTERS.c.ends_at),
        }
        first = {"value": amount, "ends_at": now + seconds}
        value = self._upsert(connection, _COUNTERS, {"name": counter}, first, changes, returning=_COUNTERS.c.value)
        if now - self._swept_at > _SWEEP_SECONDS:
            self._swept_at = now
            for table in (_COUNTERS, _DOCUMENTS):
                connection.execute(sql.delete(table).where(table.c.ends_at <= now))
        return int(value)

    def _upsert(
        self,
        connection: sql.Connection,
        table: sql.Table,
        key: dict[str, Any],
        values: dict[str, Any],
        changes: dict[str, Any] | None = None,
        returning: sql.Column[Any] | None = None,
    ) -> Any:
        if connection.dialect.name == "sqlite":
            from sqlalchemy.dialects.sqlite import insert
        else:
            from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]  # of the same interface
        statement = insert(table).values(**key, **values)
        statement = statement.on_conflict_do_update(index_elements=list(key), set_=changes or values)
        if returning is None:
            connection.execute(statement)
            return None
        return connection.execute(statement.returning(returning)).scalar_one()

    def _in_transaction(self, work: Callable[[sql.Connection], _T]) -> _T:
        try:
            with self._open().begin() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            # The text of the error may contain the statement with its values, and the server's address.
            cause = getattr(error, "orig", None)
            kind = type(cause or error).__name__
            raise StateError(f"the gateway's store cannot be used: {kind}") from error

    def _open(self) -> sql.Engine:
        with self._opening:
            if self._engine is None:
                engine = self._new_engine()
                with engine.begin() as connection:
                    if not self._is_sqlite:
                        # Two processes that create the tables at once would fail.
                        connection.execute(sql.text("SELECT pg_advisory_xact_lock(hashtext('toolwire_gateway'))"))
                    for table in _METADATA.sorted_tables:
                        connection.execute(CreateTable(table, if_not_exists=True))
                        for index in table.indexes:
                            connection.execute(CreateIndex(index, if_not_exists=True))
                self._engine = engine
            return self._engine

    def _new_engine(self) -> sql.Engine:
        if not self._is_sqlite:
            return sql.create_engine(self._url, pool_size=THREADS, max_overflow=0, pool_pre_ping=True)
        if self._url.database:
            # Creates the file for this user alone, in a mode in which readers do not wait for writers.
            open_database(Path(self._url.database), (), 1).close()
        engine = sql.create_engine(
            self._url, poolclass=StaticPool, connect_args={"check_same_thread": False, "timeout": 10}
        )
        sql.event.listen(engine, "connect", _write_without_waiting)
        return engine


def _write_without_waiting(connection: Any, _: Any) -> None:
    """Let SQLite write to the disk at checkpoints: a power failure may lose the last transactions, not the file."""
    connection.execute("PRAGMA synchronous=NORMAL")
