"""What somebody has agreed to: how a server is started, and what each of its tools was described as.

It is kept in a small SQLite file of the user's, for as long as nothing changes: a server that is started in another
way, or a tool that is described in other words, has not been agreed to.
"""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from toolwire.errors import ConfigurationError, StateError
from toolwire.mcp.servers import Launch, McpServer
from toolwire.runtime.sqlite import open_database
from toolwire.runtime.state_dir import state_folder


@dataclass(frozen=True, slots=True)
class AgreedServer:
    """How a server was started when somebody agreed.

    Attributes:
        hash: see `Launch.hash`.
        shown: what they saw.
        listed: whether its tools have been seen since.
    """

    hash: str
    shown: str
    listed: bool


_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS servers (
    source TEXT, name TEXT, hash TEXT NOT NULL, shown TEXT NOT NULL, listed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (source, name)
)""",
    """CREATE TABLE IF NOT EXISTS tools (
    source TEXT, server TEXT, name TEXT, definition TEXT NOT NULL, PRIMARY KEY (source, server, name)
)""",
    """CREATE TABLE IF NOT EXISTS logins (
    source TEXT, server TEXT, url TEXT, kind TEXT, value TEXT NOT NULL, PRIMARY KEY (source, server, url, kind)
)""",
)
WAIT = 10.0
"""Seconds to wait for another process that writes."""


class Store:
    """Tables in a file or, without one, for as long as the process lives. Two processes may use the same file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Open a file, or make it; nobody else on this machine may read it.

        Raises:
            ConfigurationError: it cannot be made, or is no such file.
        """
        self._path = None if path is None else Path(path)
        self._memory: sqlite3.Connection | None = None
        if path is None:
            self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._memory.close)
            for statement in _SCHEMA:
                self._memory.execute(statement)
        with self._open():
            pass

    @classmethod
    def of_user(cls) -> Self:
        """The file in the user's own state directory, or in the one that TOOLWIRE_STATE names.

        Raises:
            ConfigurationError: see above.
        """
        return cls(state_folder() / "mcp.sqlite3")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A transaction."""
        store = self._memory
        try:
            if store is None:
                assert self._path is not None
                store = open_database(self._path, _SCHEMA, 1, wait=WAIT)
            store.execute("BEGIN")
            with store:
                yield store
        except (StateError, sqlite3.DatabaseError) as error:
            what = str(error) if isinstance(error, StateError) else f"{self._path}: {error}"
            raise ConfigurationError(
                f"{what}; what it keeps cannot be read or added to, and without the file everything is asked again"
            ) from error
        finally:
            if store is not None and store is not self._memory:
                store.close()


class Approvals(Store):
    """What was agreed to."""

    def server(self, server: McpServer) -> AgreedServer | None:
        """How this server was started when somebody agreed; None if nobody did."""
        rows = self._rows("SELECT hash, shown, listed FROM servers WHERE source = ? AND name = ?", server)
        return AgreedServer(rows[0][0], rows[0][1], bool(rows[0][2])) if rows else None

    def agree(self, server: McpServer, launch: Launch) -> None:
        """Somebody agreed that the server is started like this."""
        with self._open() as store:
            store.execute(
                "INSERT INTO servers (source, name, hash, shown) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (source, name) DO UPDATE SET hash = excluded.hash, shown = excluded.shown",
                (server.source, server.name, launch.hash, launch.shown),
            )

    def tools(self, server: McpServer) -> dict[str, dict[str, Any]]:
        """The descriptions of the server's tools that were agreed to, by name."""
        rows = self._rows("SELECT name, definition FROM tools WHERE source = ? AND server = ? ORDER BY rowid", server)
        return {name: json.loads(text) for name, text in rows}

    def pin(self, server: McpServer, tools: dict[str, dict[str, Any]]) -> None:
        """These descriptions are agreed to, and the server's tools have been seen."""
        with self._open() as store:
            store.executemany(
                "INSERT INTO tools (source, server, name, definition) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (source, server, name) DO UPDATE SET definition = excluded.definition",
                [(server.source, server.name, name, json.dumps(given)) for name, given in tools.items()],
            )
            store.execute("UPDATE servers SET listed = 1 WHERE source = ? AND name = ?", (server.source, server.name))

    def forget(self, server: McpServer) -> None:
        """Nothing about this server is agreed to any more."""
        with self._open() as store:
            store.execute("DELETE FROM servers WHERE source = ? AND name = ?", (server.source, server.name))
            store.execute("DELETE FROM tools WHERE source = ? AND server = ?", (server.source, server.name))

    def _rows(self, query: str, server: McpServer) -> list[tuple[Any, ...]]:
        with self._open() as store:
            return store.execute(query, (server.source, server.name)).fetchall()
