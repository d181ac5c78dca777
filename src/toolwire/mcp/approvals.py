"""Approvals of MCP servers: how each server is started, and the description of each of its tools.

They are stored in a small SQLite file of the user's. An approval covers exactly the text that was shown: a server that
is started in another way, or a tool with another description, has to be approved again.
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
class ApprovedServer:
    """A server as it was approved.

    Attributes:
        hash: see `Launch.hash`.
        shown: the text that was approved.
        listed: whether its tools have been read since.
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
"""Seconds to wait for another process that writes to the file."""


class Store:
    """Tables in a file or, without one, in memory. Several processes may use the same file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Open a file, or create it; other users of this machine cannot read it.

        Raises:
            ConfigurationError: it cannot be created, or is not such a file.
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
        """Open the file in the user's state directory, or in the one that TOOLWIRE_STATE names.

        Raises:
            ConfigurationError: it cannot be created, or is not such a file.
        """
        return cls(state_folder() / "mcp.sqlite3")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction."""
        store = self._memory
        try:
            if store is None:
                assert self._path is not None
                store = open_database(self._path, _SCHEMA, 1, wait=WAIT)
            store.execute("BEGIN")
            with store:
                yield store
        except (StateError, sqlite3.DatabaseError) as error:
            reason = str(error) if isinstance(error, StateError) else f"{self._path}: {error}"
            raise ConfigurationError(
                f"{reason}; it cannot be read or written. Without the file, every approval is asked for again"
            ) from error
        finally:
            if store is not None and store is not self._memory:
                store.close()


class Approvals(Store):
    """Approved servers and tool descriptions."""

    def server(self, server: McpServer) -> ApprovedServer | None:
        """Return the approval of this server; None if it was never approved."""
        rows = self._rows("SELECT hash, shown, listed FROM servers WHERE source = ? AND name = ?", server)
        return ApprovedServer(rows[0][0], rows[0][1], bool(rows[0][2])) if rows else None

    def approve(self, server: McpServer, launch: Launch) -> None:
        """Store the approval of how the server is started."""
        with self._open() as store:
            store.execute(
                "INSERT INTO servers (source, name, hash, shown) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (source, name) DO UPDATE SET hash = excluded.hash, shown = excluded.shown",
                (server.source, server.name, launch.hash, launch.shown),
            )

    def tools(self, server: McpServer) -> dict[str, dict[str, Any]]:
        """Return the approved descriptions of the server's tools, by name."""
        rows = self._rows("SELECT name, definition FROM tools WHERE source = ? AND server = ? ORDER BY rowid", server)
        return {name: json.loads(text) for name, text in rows}

    def pin(self, server: McpServer, tools: dict[str, dict[str, Any]]) -> None:
        """Store approved descriptions, and that the server's tools have been read."""
        with self._open() as store:
            store.executemany(
                "INSERT INTO tools (source, server, name, definition) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (source, server, name) DO UPDATE SET definition = excluded.definition",
                [(server.source, server.name, name, json.dumps(definition)) for name, definition in tools.items()],
            )
            store.execute("UPDATE servers SET listed = 1 WHERE source = ? AND name = ?", (server.source, server.name))

    def forget(self, server: McpServer) -> None:
        """Delete all approvals of this server."""
        with self._open() as store:
            store.execute("DELETE FROM servers WHERE source = ? AND name = ?", (server.source, server.name))
            store.execute("DELETE FROM tools WHERE source = ? AND server = ?", (server.source, server.name))

    def _rows(self, query: str, server: McpServer) -> list[tuple[Any, ...]]:
        with self._open() as store:
            return store.execute(query, (server.source, server.name)).fetchall()
