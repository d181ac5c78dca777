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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from toolwire.errors import StateError
from toolwire.runtime.foreign_code import capture_errors
from toolwire.runtime.sqlite import open_database
from toolwire.telemetry.record_size import weight
from toolwire.telemetry.records import EndRecord, RunRecord, TurnRecord
from toolwire.telemetry.row_codec import SCHEMA, VERSION, end_row, run_row, secrets_of, turn_rows
from toolwire.telemetry.run_rows import SECRETS, Life, Lives, scrub

FILE: Final = "turns.db"
MOMENT: Final = 0.2
"""Seconds that records wait for others to be written with."""
BATCH: Final = 500
"""Records that are written at once."""
BATCH_BYTES: Final = 4 << 20
"""About how much is written at once."""
WAITING: Final = 20_000
"""Records that may wait to be written; what is told beyond them is not recorded."""
WAITING_BYTES: Final = 32 << 20
"""About how much memory they may take."""
MOST_BYTES: Final = 64 << 20
MOST_DAYS: Final = 30.0
OUTCOMES: Final = 20_000
"""Outcomes that are kept as evidence, of all models together; they are small, and outlive the turns they are of."""
EVICT_EVERY: Final = 2_000
"""Records after which what is too old or too much is looked for."""
_EVICT_SHARE: Final = 16
"""What part of the bytes that the file may hold is written at most before that."""
_FULL: Final = 0.8
"""Share of the bytes that stays when there are too many."""
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


_Record = RunRecord | TurnRecord | EndRecord | OutcomeRecord
_Told = tuple[_Record, int] | threading.Event | None
"""A record and about how many bytes it takes. An event is set when all that was told before it is written; None ends
the thread."""


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
        self.most_bytes = most_bytes
        self._most_days = most_days
        self._lock = threading.RLock()  # what the collector lets go of while it is held may tell too
        self._lives = Lives()  # of the thread that writes
        self._begin_anew()
        _recorders.add(self)

    def _begin_anew(self) -> None:
        self._queue: queue.SimpleQueue[_Told] = queue.SimpleQueue()
        self._waiting = 0  # bytes
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
        size = weight(record)
        with self._lock:
            if self._queue.qsize() >= WAITING or (self._waiting and self._waiting + size > WAITING_BYTES):
                self.lost += 1
                return
            self._waiting += size
            self._queue.put((record, size))
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

    def _taken(self, size: int) -> None:
        """So many bytes wait no more."""
        with self._lock:
            self._waiting -= size

    def _written(self, connection: sqlite3.Connection, batch: Iterable[_Record]) -> None:
        with _transaction(connection):
            for record in batch:
                with capture_errors() as caught:
                    self._write(connection, record)
                if isinstance(caught.error, sqlite3.Error) and not isinstance(caught.error, _OF_A_VALUE):
                    raise caught.error
                if caught.error is not None:  # a value that is not what its type says
                    self.lost += 1
                    _log.warning("a record cannot be kept: %s", caught.message)

    def _write(self, connection: sqlite3.Connection, record: _Record) -> None:
        if isinstance(record, RunRecord):
            life = self._lives.begin(connection, record, content=self._content)
            run = replace(record, id=life.row, parent=self._lives.parent(record))
            _insert(connection, "runs", run_row(run, content=self._content, known=life.known))
        elif isinstance(record, EndRecord):
            life = self._lives.end(record)
            if life.earlier and record.rounds and not _told(connection, life.row):
                life.resumed(connection)  # it had ended, and was only told again
            row = end_row(record, content=self._content, known=life.known)
            names = ", ".join(f"{name} = :{name}" for name in row)
            connection.execute(f"UPDATE runs SET {names} WHERE id = :id", {**row, "id": life.row})
        elif isinstance(record, TurnRecord):
            life = self._lives.of(record)
            if record.again and life.earlier:
                life.resumed(connection)
            if record.run != life.row:
                record = replace(record, run=life.row)
            if self._content:
                self._learn(connection, life, secrets_of(record))
            rows = turn_rows(record, content=self._content, known=life.known)
            if record.again and (earlier := _earlier(connection, record)) is not None:
                turn, call_rows = earlier
                for row in rows.calls:
                    _insert(connection, "calls", {**row, "turn": turn, "position": call_rows + row["position"]})
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

    def _learn(self, connection: sqlite3.Connection, life: Life, found: set[str]) -> None:
        """What is a secret in one call is one in all that follows, and was one before."""
        new = sorted(found - life.known)[: SECRETS - len(life.known)] if found else []
        if new:
            life.known.update(new)
            scrub(connection, life.root, new)

    def evict(self, connection: sqlite3.Connection) -> None:
        """Take away what is too old or too much."""
        with _transaction(connection):
            self._evict_older(connection, time.time() - self._most_days * 86_400)
            while (size := _bytes(connection)) > self.most_bytes:
                share = 1 - self.most_bytes * _FULL / size
                table, most = "turns", _count(connection, "turns")
                if not most:  # runs that no answer came to
                    table, most = "runs", _count(connection, "runs")
                at = connection.execute(
                    f"SELECT begun FROM {table} ORDER BY begun LIMIT 1 OFFSET ?", (max(1, int(most * share)),)
                ).fetchone()
                self._evict_older(connection, float("inf") if at is None else at[0])
                if _count(connection, table) == most:  # all are of one moment
                    self._evict_older(connection, float("inf"))
                if at is None:
                    break
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


def _write(recorder: Recorder, waiting: queue.SimpleQueue[_Told], hurry: threading.Event) -> None:
    """The thread: write what comes, until None does."""
    connection: sqlite3.Connection | None = None
    evicted, bytes = EVICT_EVERY, 0  # look once at the beginning
    complained = False
    ended = False
    while not ended:
        batch, size, flushed, ended = _batch(waiting, hurry)
        try:
            if batch:
                if connection is None:
                    connection = open_database(recorder.path, SCHEMA, VERSION)
                    connection.execute("PRAGMA secure_delete=ON")  # a secret that is taken out leaves no trace
                recorder._written(connection, batch)
                evicted += len(batch)
                bytes += size
                if evicted >= EVICT_EVERY or bytes * _EVICT_SHARE >= recorder.most_bytes:
                    evicted = bytes = 0
                    recorder.evict(connection)
        except (sqlite3.Error, StateError) as error:
            recorder.lost += len(batch)
            if not complained:
                complained = True
                _log.warning("nothing is recorded: %s", error)
            if connection is not None:
                connection.close()
                connection = None
        if size:
            recorder._taken(size)
        for event in flushed:
            event.set()
    if connection is not None:
        connection.close()


def _batch(
    waiting: queue.SimpleQueue[_Told], hurry: threading.Event
) -> tuple[list[_Record], int, list[threading.Event], bool]:
    """What has come, with what comes in the next moment: records, their size, who waits, and whether that is all."""
    batch: list[_Record] = []
    size = 0
    message = waiting.get()
    hurry.wait(MOMENT)  # not woken for each record: that would cost the tellers more than the telling
    while True:
        if message is None:
            return batch, size, [], True
        if isinstance(message, threading.Event):
            hurry.clear()
            return batch, size, [message], False
        batch.append(message[0])
        size += message[1]
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            return batch, size, [], False
        try:
            message = waiting.get_nowait()
        except queue.Empty:
            return batch, size, [], False


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    committed = False
    try:
        yield
        committed = True
    finally:  # nothing half-done stays
        connection.execute("COMMIT" if committed else "ROLLBACK")


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    return connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", row).lastrowid or 0


def _told(connection: sqlite3.Connection, run: str) -> bool:
    return connection.execute("SELECT 1 FROM turns WHERE run = ? LIMIT 1", (run,)).fetchone() is not None


def _earlier(connection: sqlite3.Connection, turn: TurnRecord) -> tuple[int, int] | None:
    """The row of an answer that an earlier life told, and how many calls it has; None if it did not come to that."""
    row = connection.execute(
        "SELECT id, (SELECT COUNT(*) FROM calls WHERE turn = turns.id) FROM turns "
        "WHERE run = ? AND round = ? AND error = '' ORDER BY id DESC LIMIT 1",
        (turn.run, turn.round),
    ).fetchone()
    return row if row is None else (row[0], row[1])


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


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
        recorder._lock = threading.RLock()
        recorder._begin_anew()


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
