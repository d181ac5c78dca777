"""Databases of conversations: an SQLite file or PostgreSQL, behind one small interface.

Each use has a connection of its own, so a database may be used from threads, event loops and forks alike.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, LiteralString, Protocol

from toolwire._surface import needs_extra
from toolwire.errors import ConversationError, StateError
from toolwire.runtime.sqlite import open_database, transaction
from toolwire.runtime.state_dir import state_folder

# The columns contain JSON with versions of their own, so this table never changes: `open_database` would drop it.
TABLE: Final = """
CREATE TABLE IF NOT EXISTS toolwire_conversations (
    name TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    length BIGINT NOT NULL,
    messages TEXT NOT NULL,
    session TEXT NOT NULL,
    pending TEXT NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
)"""
_FILE: Final = "conversations.sqlite3"


class Rows(Protocol):
    """An open transaction, which ends with the block that opened it."""

    def execute(self, statement: LiteralString, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, with `?` for each value, and return its rows.

        Raises:
            ConversationError: the database cannot be used.
        """
        ...


class SqliteConversations:
    """Conversations in an SQLite file, which only its user may read.

    Args:
        path: the file; it is created when it is first used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open a transaction; it is rolled back if anything is raised in it.

        Raises:
            ConversationError: the database cannot be used.
        """
        try:
            with closing(open_database(self._path, (TABLE,), 1)) as connection:
                connection.execute("PRAGMA synchronous=FULL")  # a message that was saved survives a power failure
                with transaction(connection):
                    yield _SqliteRows(connection)
        except (sqlite3.Error, StateError) as error:
            raise ConversationError(f"the conversations in {self._path} cannot be used: {error}") from error


class _SqliteRows:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: LiteralString, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()


class PostgresConversations:
    """Conversations in a PostgreSQL database; needs the extra `durable`.

    Args:
        url: the database, as libpq reads it.

    Raises:
        MissingExtra: psycopg is not installed.
    """

    def __init__(self, url: str) -> None:
        with needs_extra("storing conversations in PostgreSQL", "durable"):
            import psycopg
        self._psycopg = psycopg
        self._url = url
        self._prepared = False

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open a transaction; it is rolled back if anything is raised in it.

        Raises:
            ConversationError: the database cannot be used.
        """
        try:
            with self._psycopg.connect(self._url) as connection:
                rows = _PostgresRows(connection)
                if not self._prepared:
                    # Two processes that create the table at once would fail, although it need not exist yet.
                    rows.execute("SELECT pg_advisory_xact_lock(hashtext('toolwire_conversations'))")
                    rows.execute(TABLE)
                yield rows
            self._prepared = True
        except self._psycopg.Error as error:
            raise ConversationError(f"the database of the conversations cannot be used: {error}") from error


class _PostgresRows:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: LiteralString, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []


def database_of(url: str) -> SqliteConversations | PostgresConversations:
    """Return the database of a URL, of the path of an SQLite file, or of "" for the user's own file.

    Raises:
        ConversationError: the URL is that of another kind of database.
        MissingExtra: see `PostgresConversations`.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return SqliteConversations(Path(url).expanduser() if url else state_folder() / _FILE)
    # `sqlite+aiosqlite` or `postgresql+psycopg` name a driver of SQLAlchemy's, which is not used here.
    match scheme.partition("+")[0]:
        case "sqlite" if rest.startswith("/") and len(rest) > 1:
            return SqliteConversations(Path(rest[1:]))
        case "postgresql" | "postgres":
            return PostgresConversations(f"postgresql://{rest}")
    raise ConversationError(
        f"conversations are stored in sqlite:///path or postgresql://server/database, not in {scheme}://"
    )
