"""Whole results behind handles, for a reader who was shown a part; they outlive the process that stored them.

Results expire after some days, and the oldest are removed when all together are too large.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolwire.envelope.grammar import EnvelopeHeader, count_lines
from toolwire.envelope.settings import Settings
from toolwire.errors import ToolError
from toolwire.runtime.sqlite import Database, storable

HANDLE: Final = re.compile(r"res_[0-9a-f]{12}")
MAX_KEPT: Final = 16 << 20
"""Maximum length of a stored result, in characters."""
WAIT: Final = 2.0
"""Seconds to wait for another process that writes."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS results (id TEXT PRIMARY KEY, created REAL NOT NULL, size INTEGER NOT NULL, "
    "lines INTEGER NOT NULL, cmd TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, "
    "content_type TEXT NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS by_age ON results (created, size)",
)
_META = "id, created, size, lines, cmd, agent, session, content_type"


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A stored result, without its text.

    Attributes:
        handle: `res_` and 12 hex digits.
        created: seconds since 1970.
        size: size of the text as UTF-8, in bytes.
        lines: number of lines.
        cmd: the command or tool.
        agent: the reader that it was for.
        session: the reader's session.
        content_type: type of the content; "" for plain text.
    """

    handle: str
    created: float
    size: int
    lines: int
    cmd: str
    agent: str
    session: str
    content_type: str


class HandleStore:
    """Results in a file of the user's; safe for several processes at once.

    Args:
        path: the SQLite file.
        max_bytes: maximum size of all texts, in bytes.
        max_age: seconds until a result expires.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = 256 << 20,
        max_age: float = 7 * 86_400.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = Database(os.fspath(path), _SCHEMA, 1, wait=WAIT)
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock

    @classmethod
    def of(cls, settings: Settings) -> HandleStore:
        """Return the store that the settings name."""
        path = settings.state_file("handles.db")
        return cls(path, max_bytes=settings.keep_bytes, max_age=settings.keep_days * 86_400)

    def put(self, text: str, *, cmd: str, agent: str = "", session: str = "", content_type: str = "") -> str:
        """Store the first `MAX_KEPT` characters of a text and return its handle.

        Raises:
            ToolError: it cannot be stored.
        """
        data = text[:MAX_KEPT].encode("utf-8", "surrogatepass")
        if len(data) > self._max_bytes:
            raise ToolError(f"{len(data)} bytes exceed the maximum of {self._max_bytes}")
        labels = map(storable, (cmd, agent, session, content_type))
        now = self._clock()
        handle = f"res_{os.urandom(6).hex()}"
        with self._database.writing() as connection:
            connection.execute("DELETE FROM results WHERE created < ?", (now - self._max_age,))
            (stored_bytes,) = connection.execute("SELECT coalesce(sum(size), 0) FROM results").fetchone()
            excess = stored_bytes + len(data) - self._max_bytes
            expired: list[tuple[str]] = []
            for oldest, size in connection.execute("SELECT id, size FROM results ORDER BY created, rowid"):
                if excess <= 0:
                    break
                expired.append((oldest,))
                excess -= size
            connection.executemany("DELETE FROM results WHERE id = ?", expired)
            connection.execute(
                f"INSERT INTO results ({_META}, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (handle, now, len(data), count_lines(text[:MAX_KEPT]), *labels, data),
            )
        return handle

    def keep(self, text: str, header: EnvelopeHeader, settings: Settings) -> str | None:
        """Store a whole result for the reader in the settings; return its handle, or None if it cannot be stored."""
        kind = header.content_type or ""
        try:
            return self.put(text, cmd=header.cmd, agent=settings.agent, session=settings.session, content_type=kind)
        except ToolError:
            return None

    def get(self, handle: str, *, agent: str | None = None, session: str | None = None) -> tuple[StoredResult, str]:
        """Return a stored result and its text.

        Args:
            handle: the handle.
            agent: accept only results for this agent or for any agent; None accepts all.
            session: accept only results of this session or of no session; None accepts all.

        Raises:
            ToolError: nothing is stored under the handle, or it has expired.
        """
        if not HANDLE.fullmatch(handle):
            raise ToolError(f"{handle[:80]!r} is not a handle: res_ and 12 hex digits, as in a header")
        rows = self._database.read(
            f"SELECT {_META}, data FROM results WHERE id = ? AND created >= ?", (handle, self._clock() - self._max_age)
        )
        if not rows or not all(
            expected is None or stored in ("", storable(expected))
            for expected, stored in zip((agent, session), rows[0][5:7], strict=True)  # as in _META
        ):
            raise ToolError(
                f"nothing is stored under {handle}: results expire after {self._max_age / 86_400:g} days, or when "
                f"there are more than {self._max_bytes >> 20} MB of newer ones; run the command again"
            )
        *meta, data = rows[0]
        return StoredResult(*meta), data.decode("utf-8", "surrogatepass")

    def list(self) -> list[StoredResult]:
        """Return all stored results, the newest first.

        Raises:
            ToolError: the file cannot be read.
        """
        oldest = self._clock() - self._max_age
        rows = self._database.read(
            f"SELECT {_META} FROM results WHERE created >= ? ORDER BY created DESC, rowid DESC", (oldest,)
        )
        return [StoredResult(*row) for row in rows]

    def close(self) -> None:
        """Close the file until it is needed again."""
        self._database.close()
