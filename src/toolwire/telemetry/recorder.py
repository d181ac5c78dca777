"""Record runs in a SQLite file, in a thread of its own: a failing file never disturbs a run.

Records go into a queue. The thread collects them for a moment, turns them into rows (truncated, without secrets) and
writes these in one transaction. If the file is broken, locked, full or not writable, nothing is recorded. If the queue
is full, a run waits for a bounded time. Records that are dropped are counted, and the counts are written as soon as the
file can be written. Several processes may write the same file.
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
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from toolwire._surface import check_type
from toolwire.errors import StateError, capture_errors
from toolwire.runtime.sqlite import open_database, transaction
from toolwire.telemetry.record_size import weight
from toolwire.telemetry.records import EndRecord, RunRecord, TurnRecord
from toolwire.telemetry.request_rows import message_secrets
from toolwire.telemetry.row_codec import SCHEMA, VERSION, end_row, run_row, secrets_of, turn_rows
from toolwire.telemetry.run_rows import SECRETS, OpenRuns, RunRow, scrub

FILE: Final = "turns.db"
MOMENT: Final = 0.2
"""Seconds for which records are collected before they are written together."""
BATCH: Final = 500
"""Maximum number of records in one transaction."""
BATCH_BYTES: Final = 4 << 20
"""Approximate maximum size of one transaction, in bytes."""
WAITING: Final = 20_000
"""Maximum number of records in the queue."""
WAITING_BYTES: Final = 32 << 20
"""Approximate maximum size of the queue, in bytes."""
PATIENCE: Final = 1.0
"""Seconds that a run waits for room in a full queue. After one wait in vain no run waits until half of it is free."""
COUNTED_RUNS: Final = 10_000
"""Maximum number of runs whose dropped records are counted separately until the counts are written."""
MOST_BYTES: Final = 64 << 20
"""Default of the maximum size of the file, in bytes."""
CLOCK_CHANGE: Final = 86_400.0
"""Seconds by which the time of day may change beside the clock that never jumps, before ages are not believed."""
MOST_DAYS: Final = 30.0
"""Default of the maximum age of a recorded turn, in days."""
OUTCOMES: Final = 20_000
"""Maximum number of stored outcomes, of all models together; they are small and outlive their turns."""
EVICT_EVERY: Final = 2_000
"""Number of records between two evictions."""
_EVICT_SHARE: Final = 16
"""Fraction of the file's maximum size that may be written between two evictions."""
_FULL: Final = 0.8
"""Share of the maximum size that remains after an eviction."""
_OF_A_VALUE = (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError, sqlite3.IntegrityError)
"""Errors caused by a value, not by the file."""
ENOUGH: Final = 5.0
"""Seconds for which a process waits at its end for the queue to be written."""

_log = logging.getLogger("toolwire.telemetry")


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """Evidence about a format: whether a model used it well.

    Attributes:
        model: the model's name.
        format: the format's name, or `NATIVE`.
        good: whether the outcome was good.
        at: time in seconds since 1970.
    """

    model: str
    format: str
    good: bool
    at: float


_NO_RUN: Final = ("", 0)
_ADD_LOSS: Final = (
    "INSERT INTO losses (run, records, at) VALUES (:run, :records, :at) "
    "ON CONFLICT (run) DO UPDATE SET records = records + excluded.records, at = excluded.at"
)
_Record = RunRecord | TurnRecord | EndRecord | OutcomeRecord
_Message = tuple[_Record, int] | threading.Event | None
"""A record and its approximate size in bytes; an event to set when everything before it is written; or None, which
ends the thread."""


class Recorder:
    """An `Observer` that writes records into a file.

    Args:
        path: the file.
        content: whether to store texts, arguments and results; otherwise only figures and names are stored.
        most_bytes: maximum size of the file; the oldest turns are deleted first.
        most_days: maximum age of a turn, in days.

    Attributes:
        path: the file.
        lost: number of records that were dropped, since the queue was full or the file could not be written.
        most_bytes: the argument.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        content: bool = True,
        most_bytes: int = MOST_BYTES,
        most_days: float = MOST_DAYS,
    ) -> None:
        check_type("path", path, (str, os.PathLike), "a path")
        self.path = Path(path)
        self.lost = 0
        self._content = content
        self.most_bytes = most_bytes
        self._most_days = most_days
        self._clock_difference = time.time() - time.monotonic()
        self._lock = threading.RLock()  # reentrant: the garbage collector may close a run inside
        self._losses: Counter[tuple[str, int]] = Counter()  # by run, as long as they are not written
        self._open_runs = OpenRuns()  # of the thread that writes
        self._begin_anew()
        _recorders.add(self)

    def _begin_anew(self) -> None:
        self._queue: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._waiting = 0  # bytes
        self._room = threading.Condition(self._lock)
        self._jammed = False  # a run has waited for room in vain
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    # -- observing -----------------------------------------------------------------------------------------------

    def begin(self, run: RunRecord, /) -> None:
        """Implement `Observer`."""
        self._put(run)

    def turn(self, turn: TurnRecord, /) -> None:
        """Implement `Observer`."""
        self._put(turn)

    def end(self, end: EndRecord, /) -> None:
        """Implement `Observer`."""
        self._put(end)

    def outcome(self, model: str, format: str, *, good: bool) -> None:
        """Record evidence that does not come from a turn, such as a task that was judged as a whole."""
        self._put(OutcomeRecord(model, format, good, time.time()))

    def _put(self, record: _Record) -> None:
        size = weight(record)
        with self._lock:
            if not self._has_room(size) and not self._jammed:
                self._hurry.set()
                self._jammed = not self._room.wait_for(partial(self._has_room, size), PATIENCE)
            if not self._has_room(size):
                if not self.lost:
                    _log.warning("records of runs are dropped: there are too many at once")
                self._drop((record,))
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

    def _has_room(self, size: int) -> bool:
        return self._queue.qsize() < WAITING and (not self._waiting or self._waiting + size <= WAITING_BYTES)

    def _free(self, size: int) -> None:
        """Give the room of written records back to the runs that wait for it."""
        with self._lock:
            self._waiting -= size
            if self._waiting <= WAITING_BYTES // 2 and self._queue.qsize() <= WAITING // 2:
                self._jammed = False
            self._room.notify_all()

    def _drop(self, records: Iterable[_Record]) -> None:
        """Count records that are not written."""
        with self._lock:
            for record in records:
                self.lost += 1
                run = _run_of(record)
                self._losses[run if run in self._losses or len(self._losses) < COUNTED_RUNS else _NO_RUN] += 1

    def flush(self, timeout: float = ENOUGH) -> bool:
        """Wait until all records so far are written or have failed; return False after a timeout."""
        if self._thread is None:
            return True
        written = threading.Event()
        self._queue.put(written)
        self._hurry.set()
        return written.wait(timeout)

    def close(self, timeout: float = ENOUGH) -> None:
        """Write all records and close the file until there is another record."""
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
        with transaction(connection):
            for record in batch:
                with capture_errors() as caught:
                    self._write(connection, record)
                if isinstance(caught.error, sqlite3.Error) and not isinstance(caught.error, _OF_A_VALUE):
                    raise caught.error
                if caught.error is not None:  # a value that is not what its type says
                    _log.warning("a record cannot be kept: %s", caught.message)
                    self._drop((record,))
            with self._lock:
                losses = Counter(self._losses)
            for (run, instance), records in losses.items():
                row = {"run": self._open_runs.row_of(run, instance), "records": records, "at": time.time()}
                connection.execute(_ADD_LOSS, row)
        with self._lock:
            self._losses -= losses

    def _write(self, connection: sqlite3.Connection, record: _Record) -> None:
        if isinstance(record, RunRecord):
            open_run = self._open_runs.begin(connection, record, content=self._content)
            run = replace(record, id=open_run.row, parent=self._open_runs.parent(record))
            _insert(connection, "runs", run_row(run, content=self._content, known=open_run.known))
        elif isinstance(record, EndRecord):
            open_run = self._open_runs.end(record)
            if open_run.earlier and record.rounds and not _has_turns(connection, open_run.row):
                open_run.merge_into_earlier(connection)  # it had ended already and was only replayed
            row = end_row(record, content=self._content, known=open_run.known)
            names = ", ".join(f"{name} = :{name}" for name in row)
            connection.execute(f"UPDATE runs SET {names} WHERE id = :id", {**row, "id": open_run.row})
        elif isinstance(record, TurnRecord):
            open_run = self._open_runs.of(record)
            if record.replayed and open_run.earlier:
                open_run.merge_into_earlier(connection)
            if record.run != open_run.row:
                record = replace(record, run=open_run.row)
            if self._content:
                self._learn(connection, open_run, secrets_of(record))
            rows = turn_rows(record, content=self._content, known=open_run.known)
            if record.replayed and (earlier := _earlier(connection, record)) is not None:
                turn, call_rows = earlier
                for row in rows.calls:
                    _insert(connection, "calls", {**row, "turn": turn, "position": call_rows + row["position"]})
                return
            request = self._request(connection, record, open_run) if self._content else ""
            turn = _insert(connection, "turns", {**rows.turn, "request": request})
            for row in rows.calls:
                _insert(connection, "calls", {**row, "turn": turn})
            if record.good is not None:
                outcome = OutcomeRecord(record.model, record.format, record.good, record.started_at)
                self._write(connection, outcome)
        elif isinstance(record, OutcomeRecord):
            row = {"model": record.model, "format": record.format, "good": record.good, "at": record.at}
            _insert(connection, "outcomes", row)

    def _request(self, connection: sqlite3.Connection, turn: TurnRecord, open_run: RunRow) -> str:
        """Store the request of a turn, and return the numbers of its messages."""
        if turn.request is None:
            return ""
        self._learn(connection, open_run, message_secrets(open_run.messages.unseen(turn.request)))
        insert = partial(_insert, connection, "messages")
        return " ".join(map(str, open_run.messages.store(turn.request, open_run.row, open_run.known, insert)))

    def _learn(self, connection: sqlite3.Connection, open_run: RunRow, found: set[str]) -> None:
        """Redact a secret that one call revealed in everything recorded before and afterwards."""
        new = sorted(found - open_run.known)[: SECRETS - len(open_run.known)] if found else []
        if new:
            open_run.known.update(new)
            scrub(connection, open_run.root, new)

    def evict(self, connection: sqlite3.Connection) -> None:
        """Delete turns that are too old or exceed the size."""
        with transaction(connection):
            now = time.time()
            # A time of day that was set anew, to a wrong year perhaps, would delete everything. The next process goes
            # by the time that it finds.
            if abs(now - time.monotonic() - self._clock_difference) < CLOCK_CHANGE:
                self._evict_older(connection, now - self._most_days * 86_400)
            while (size := _bytes(connection)) > self.most_bytes:
                share = 1 - self.most_bytes * _FULL / size
                table, most = "turns", _count(connection, "turns")
                if not most:  # runs that no answer came to
                    table, most = "runs", _count(connection, "runs")
                at = connection.execute(
                    f"SELECT started_at FROM {table} ORDER BY started_at LIMIT 1 OFFSET ?", (max(1, int(most * share)),)
                ).fetchone()
                self._evict_older(connection, float("inf") if at is None else at[0])
                if _count(connection, table) == most:  # all are of one moment
                    self._evict_older(connection, float("inf"))
                if at is None:
                    break
            deleted = connection.execute(
                "DELETE FROM messages WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turns.run = messages.run)"
            )
            if deleted.rowcount:
                self._open_runs.forget_messages()
            connection.execute("DELETE FROM outcomes WHERE id <= (SELECT MAX(id) FROM outcomes) - ?", (OUTCOMES,))
        connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _evict_older(self, connection: sqlite3.Connection, started_at: float) -> None:
        connection.execute("DELETE FROM losses WHERE at < ?", (started_at,))
        connection.execute("DELETE FROM calls WHERE turn IN (SELECT id FROM turns WHERE started_at < ?)", (started_at,))
        connection.execute("DELETE FROM turns WHERE started_at < ?", (started_at,))
        connection.execute(
            "DELETE FROM runs WHERE started_at < ? AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.run = runs.id)",
            (started_at,),
        )


def _write(recorder: Recorder, waiting: queue.SimpleQueue[_Message], hurry: threading.Event) -> None:
    """Write messages from the queue until None arrives; runs in the thread."""
    connection: sqlite3.Connection | None = None
    evicted, bytes = EVICT_EVERY, 0  # look once at the beginning
    complained = False
    ended = False
    while not ended:
        batch, size, flushed, ended = _batch(waiting, hurry)
        try:
            if batch or recorder._losses:
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
            if not complained:
                complained = True
                _log.warning("nothing is recorded: %s", error)
            recorder._drop(batch)
            recorder._open_runs.forget_messages()  # those of the failed transaction are not stored
            if connection is not None:
                connection.close()
                connection = None
        recorder._free(size)
        for event in flushed:
            event.set()
    if connection is not None:
        connection.close()


def _batch(
    waiting: queue.SimpleQueue[_Message], hurry: threading.Event
) -> tuple[list[_Record], int, list[threading.Event], bool]:
    """Return records of the next moment, their size in bytes, events to set, and whether the queue has ended."""
    batch: list[_Record] = []
    size = 0
    message = waiting.get()
    hurry.wait(MOMENT)  # waking for each record would cost the runs more than recording it
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
            hurry.clear()  # nobody waits for room any more
            return batch, size, [], False


def _run_of(record: _Record) -> tuple[str, int]:
    """Return the run of a record, as `OpenRuns` knows it."""
    if isinstance(record, OutcomeRecord):
        return _NO_RUN
    return (record.id if isinstance(record, RunRecord) else record.run), record.instance


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    return connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", row).lastrowid or 0


def _has_turns(connection: sqlite3.Connection, run: str) -> bool:
    return connection.execute("SELECT 1 FROM turns WHERE run = ? LIMIT 1", (run,)).fetchone() is not None


def _earlier(connection: sqlite3.Connection, turn: TurnRecord) -> tuple[int, int] | None:
    """Return the row of an answer recorded before a run was resumed, and its number of calls; None if there is none."""
    row = connection.execute(
        "SELECT id, (SELECT COUNT(*) FROM calls WHERE turn = turns.id) FROM turns "
        "WHERE run = ? AND round = ? AND error = '' ORDER BY id DESC LIMIT 1",
        (turn.run, turn.round),
    ).fetchone()
    return row if row is None else (row[0], row[1])


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def _bytes(connection: sqlite3.Connection) -> int:
    """Return the used bytes of the file."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _leave() -> None:
    for recorder in list(_recorders):
        recorder.close()


def _forked() -> None:
    """Start anew in a forked process: the thread and its queue belong to the parent process."""
    for recorder in list(_recorders):
        recorder._lock = threading.RLock()
        recorder._begin_anew()


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
