"""Records runs in one SQLite file of the user's, in a thread of its own: whatever becomes of the file, runs go on.

What is told is put into a queue and nothing more. The thread takes what has come together in a moment, makes rows of it
(cut, without secrets) and writes them at once. A file that is broken, locked, full or not to be written means that
nothing is recorded. Several processes may write the same file.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolwire.errors import StateError
from toolwire.failures import Caught
from toolwire.state import open_database
from toolwire.telemetry.records import EndRecord, RunRecord, TurnRecord
from toolwire.telemetry.rows import SCHEMA, VERSION, end_row, run_row, secrets_of, turn_rows

FILE: Final = "turns.db"
MOMENT: Final = 0.2
"""Seconds that records wait for others to be written with."""
BATCH: Final = 500
"""Records that are written at once."""
WAITING: Final = 20_000
"""Records that may wait to be written; what is told beyond them is not recorded."""
MOST_BYTES: Final = 64 << 20
MOST_DAYS: Final = 30.0
OUTCOMES: Final = 20_000
"""Outcomes that are kept as evidence, of all models together; they are small, and outlive the turns they are of."""
EVICT_EVERY: Final = 2_000
"""Records after which what is too old or too much is looked for."""
_FULL: Final = 0.8
"""Share of the bytes that stays when there are too many."""
SECRETIVE: Final = 1_000
"""Runs whose secrets are remembered at the same time."""
SECRETS: Final = 200
"""Secrets of one run that are remembered."""
_OF_A_VALUE = (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError, sqlite3.IntegrityError)
"""Errors about what was to be written, and not about the file."""
ENOUGH: Final = 5.0
"""Seconds that the end of a process waits for what is still to be written."""

_log = logging.getLogger("toolwire.telemetry")


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """What somebody knows of a format: whether a model did well with it.

    Attributes:
        model: the model's name.
        format: the format's, or `NATIVE`.
        good: it did.
        at: seconds since 1970.
    """

    model: str
    format: str
    good: bool
    at: float


_Record = RunRecord | TurnRecord | EndRecord | OutcomeRecord | threading.Event | None
"""An event is set when all that was told before it is written; None ends the thread."""


class Recorder:
    """An `Observer` that keeps what it is told.

    Args:
        path: the file.
        content: keep what was said, asked and given back; else only figures and names.
        most_bytes: of the file; the oldest turns go first.
        most_days: that a turn is kept.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        content: bool = True,
        most_bytes: int = MOST_BYTES,
        most_days: float = MOST_DAYS,
    ) -> None:
        self.path = Path(path)
        self.lost = 0
        self._content = content
        self._most_bytes = most_bytes
        self._most_days = most_days
        self._lock = threading.Lock()
        self._known: dict[str, set[str]] = {}  # of the thread that writes
        self._begin_anew()
        _recorders.add(self)

    def _begin_anew(self) -> None:
        self._queue: queue.SimpleQueue[_Record] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    # -- being told ----------------------------------------------------------------------------------------------

    def begin(self, run: RunRecord, /) -> None:
        """See `Observer`."""
        self._put(run)

    def turn(self, turn: TurnRecord, /) -> None:
        """See `Observer`."""
        self._put(turn)

    def end(self, end: EndRecord, /) -> None:
        """See `Observer`."""
        self._put(end)

    def outcome(self, model: str, format: str, *, good: bool) -> None:
        """Evidence that did not come from a turn, say from a task that was judged as a whole."""
        self._put(OutcomeRecord(model, format, good, time.time()))

    def _put(self, record: _Record) -> None:
        if self._queue.qsize() >= WAITING:
            self.lost += 1
            return
        self._queue.put(record)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=_write, args=(self, self._queue, self._hurry), name="toolwire-telemetry", daemon=True
                    )
                    self._thread.start()

    def flush(self, timeout: float = ENOUGH) -> bool:
        """Wait until all that was told so far is written, or has failed to be; whether that was so in time."""
        if self._thread is None:
            return True
        written = threading.Event()
        self._queue.put(written)
        self._hurry.set()
        return written.wait(timeout)

    def close(self, timeout: float = ENOUGH) -> None:
        """Write what was told, and let go of the file until something is told again."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._queue.put(None)
                self._hurry.set()
                self._queue, self._hurry = queue.SimpleQueue(), threading.Event()
        if thread is not None:
            thread.join(timeout)

    # -- writing -------------------------------------------------------------------------------------------------

    def _written(self, connection: sqlite3.Connection, batch: Iterable[_Record]) -> None:
        with _transaction(connection):
            for record in batch:
                with Caught() as caught:
                    self._write(connection, record)
                if isinstance(caught.error, sqlite3.Error) and not isinstance(caught.error, _OF_A_VALUE):
                    raise caught.error
                if caught.error is not None:  # a value that is not what its type says
                    self.lost += 1
                    _log.warning("a record cannot be kept: %s", caught.message)

    def _write(self, connection: sqlite3.Connection, record: _Record) -> None:
        if isinstance(record, RunRecord):
            _insert(connection, "runs", run_row(record, content=self._content))
        elif isinstance(record, EndRecord):
            row = end_row(record, content=self._content, known=self._known.pop(record.run, ()))
            names = ", ".join(f"{name} = :{name}" for name in row)
            connection.execute(f"UPDATE runs SET {names} WHERE id = :id", {**row, "id": record.run})
        elif isinstance(record, TurnRecord):
            rows = turn_rows(record, content=self._content, known=self._secrets(record))
            if record.again and (earlier := _earlier(connection, record)) is not None:
                turn, made = earlier
                for row in rows.calls:
                    _insert(connection, "calls", {**row, "turn": turn, "position": made + row["position"]})
                return
            turn = _insert(connection, "turns", rows.turn)
            for row in rows.calls:
                _insert(connection, "calls", {**row, "turn": turn})
            if record.good is not None:
                outcome = OutcomeRecord(record.model, record.format, record.good, record.begun)
                self._write(connection, outcome)
        elif isinstance(record, OutcomeRecord):
            row = {"model": record.model, "format": record.format, "good": record.good, "at": record.at}
            _insert(connection, "outcomes", row)

    def _secrets(self, turn: TurnRecord) -> set[str]:
        """Those of the run so far: what was a secret in one call is one in all that follows."""
        found = secrets_of(turn)
        if not found and turn.run not in self._known:
            return found
        if len(self._known) >= SECRETIVE and turn.run not in self._known:
            self._known.pop(next(iter(self._known)))
        known = self._known.setdefault(turn.run, set())
        known |= found if len(known) < SECRETS else set()
        return known | found

    def evict(self, connection: sqlite3.Connection) -> None:
        """Take away what is too old or too much."""
        with _transaction(connection):
            self._evict_older(connection, time.time() - self._most_days * 86_400)
            used = _bytes(connection)
            if used > self._most_bytes:
                share = 1 - self._most_bytes * _FULL / used
                most = connection.execute("SELECT COUNT(*) FROM turns").fetchone()[0]
                at = connection.execute(
                    "SELECT begun FROM turns ORDER BY begun LIMIT 1 OFFSET ?", (min(most - 1, int(most * share)),)
                ).fetchone()
                if at is not None:
                    self._evict_older(connection, at[0])
            connection.execute(
                "DELETE FROM outcomes WHERE id <= (SELECT MAX(id) FROM outcomes) - ?",
                (OUTCOMES,),
            )
        connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _evict_older(self, connection: sqlite3.Connection, begun: float) -> None:
        connection.execute("DELETE FROM calls WHERE turn IN (SELECT id FROM turns WHERE begun < ?)", (begun,))
        connection.execute("DELETE FROM turns WHERE begun < ?", (begun,))
        connection.execute(
            "DELETE FROM runs WHERE begun < ? AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.run = runs.id)", (begun,)
        )


def _write(recorder: Recorder, waiting: queue.SimpleQueue[_Record], hurry: threading.Event) -> None:
    """The thread: write what comes, until None does."""
    connection: sqlite3.Connection | None = None
    evicted = EVICT_EVERY  # look once at the beginning
    complained = False
    ended = False
    while not ended:
        batch, flushed, ended = _batch(waiting, hurry)
        try:
            if batch:
                if connection is None:
                    connection = open_database(recorder.path, SCHEMA, VERSION)
                recorder._written(connection, batch)
                evicted += len(batch)
                if evicted >= EVICT_EVERY:
                    evicted = 0
                    recorder.evict(connection)
        except (sqlite3.Error, StateError) as error:
            recorder.lost += len(batch)
            if not complained:
                complained = True
                _log.warning("nothing is recorded: %s", error)
            if connection is not None:
                connection.close()
                connection = None
        for event in flushed:
            event.set()
    if connection is not None:
        connection.close()


def _batch(
    waiting: queue.SimpleQueue[_Record], hurry: threading.Event
) -> tuple[list[_Record], list[threading.Event], bool]:
    """What has come, with what comes in the next moment: the records, who waits for them, and whether that is all."""
    batch: list[_Record] = []
    record = waiting.get()
    hurry.wait(MOMENT)  # not woken for each record: that would cost the tellers more than the telling
    while True:
        if record is None:
            return batch, [], True
        if isinstance(record, threading.Event):
            hurry.clear()
            return batch, [record], False
        batch.append(record)
        if len(batch) >= BATCH:
            return batch, [], False
        try:
            record = waiting.get_nowait()
        except queue.Empty:
            return batch, [], False


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    done = False
    try:
        yield
        done = True
    finally:  # nothing half-done stays
        connection.execute("COMMIT" if done else "ROLLBACK")


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    return connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", row).lastrowid or 0


def _earlier(connection: sqlite3.Connection, turn: TurnRecord) -> tuple[int, int] | None:
    """The row of an answer that an earlier life told, and how many calls it has; None if it did not come to that."""
    found = connection.execute(
        "SELECT id, (SELECT COUNT(*) FROM calls WHERE turn = turns.id) FROM turns "
        "WHERE run = ? AND round = ? AND error = '' ORDER BY id DESC LIMIT 1",
        (turn.run, turn.round),
    ).fetchone()
    return found if found is None else (found[0], found[1])


def _bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _leave() -> None:
    for recorder in list(_recorders):
        recorder.close()


def _forked() -> None:
    """In a child: the thread is the parent's, and so is what waits for it."""
    for recorder in list(_recorders):
        recorder._lock = threading.Lock()
        recorder._begin_anew()


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
