"""Whole results behind handles, for whoever was shown a part; they outlive the process that kept them.

The oldest go first once there are too many bytes of them, and each goes when it is too old.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolwire.envelope.grammar import count_lines
from toolwire.envelope.settings import Settings
from toolwire.errors import ToolError
from toolwire.runtime.sqlite import Database, storable

HANDLE: Final = re.compile(r"res_[0-9a-f]{12}")
MAX_KEPT: Final = 16 << 20
"""Characters of one result that are kept."""
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
class Kept:
    """A result that is kept, without its text.

    Attributes:
        handle: `res_` and 12 hex digits.
        created: seconds since 1970.
        size: bytes of the text as UTF-8.
        lines: of the text.
        cmd: what gave it.
        agent: whom it was for.
        session: in which session.
        content_type: what it is; "" for plain text.
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
        max_bytes: of all texts together.
        max_age: seconds that one is kept.
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
        """The store that the settings name."""
        path = settings.state_file("handles.db")
        return cls(path, max_bytes=settings.keep_bytes, max_age=settings.keep_days * 86_400)

    def put(self, text: str, *, cmd: str, agent: str = "", session: str = "", content_type: str = "") -> str:
        """Keep a text, at most `MAX_KEPT` characters of it, and return its handle.

        Raises:
            ToolError: it cannot be kept.
        """
        data = text[:MAX_KEPT].encode("utf-8", "surrogatepass")
        if len(data) > self._max_bytes:
            raise ToolError(f"{len(data)} bytes are more than may be kept: {self._max_bytes}")
        said = map(storable, (cmd, agent, session, content_type))
        now = self._clock()
        handle = f"res_{os.urandom(6).hex()}"
        with self._database.writing() as connection:
            connection.execute("DELETE FROM results WHERE created < ?", (now - self._max_age,))
            (kept,) = connection.execute("SELECT coalesce(sum(size), 0) FROM results").fetchone()
            excess = kept + len(data) - self._max_bytes
            gone: list[tuple[str]] = []
            for oldest, size in connection.execute("SELECT id, size FROM results ORDER BY created, rowid"):
                if excess <= 0:
                    break
                gone.append((oldest,))
                excess -= size
            connection.executemany("DELETE FROM results WHERE id = ?", gone)
            connection.execute(
                f"INSERT INTO results ({_META}, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (handle, now, len(data), count_lines(text[:MAX_KEPT]), *said, data),
            )
        return handle

    def get(self, handle: str, *, agent: str | None = None, session: str | None = None) -> tuple[Kept, str]:
        """What is kept under a handle, and its text.

        Args:
            handle: the handle.
            agent: only what was kept for it, or for nobody in particular; None for anybody's.
            session: only what was kept in it, or in none; None for any.

        Raises:
            ToolError: nothing is, or not any more.
        """
        if not HANDLE.fullmatch(handle):
            raise ToolError(f"{handle[:80]!r} is no handle: res_ and 12 hex digits, as in a header")
        rows = self._database.read(
            f"SELECT {_META}, data FROM results WHERE id = ? AND created >= ?", (handle, self._clock() - self._max_age)
        )
        if not rows or not all(
            asked is None or there in ("", storable(asked))
            for asked, there in zip((agent, session), rows[0][5:7], strict=True)  # as in _META
        ):
            raise ToolError(
                f"nothing is kept under {handle}: results go after {self._max_age / 86_400:g} days, and the oldest "
                f"when there are more than {self._max_bytes >> 20} MB of them; run the command again"
            )
        *meta, data = rows[0]
        return Kept(*meta), data.decode("utf-8", "surrogatepass")

    def list(self) -> list[Kept]:
        """What is kept, the newest first.

        Raises:
            ToolError: the file cannot be read.
        """
        oldest = self._clock() - self._max_age
        rows = self._database.read(
            f"SELECT {_META} FROM results WHERE created >= ? ORDER BY created DESC, rowid DESC", (oldest,)
        )
        return [Kept(*row) for row in rows]

    def close(self) -> None:
        """Let go of the file, until it is needed again."""
        self._database.close()
