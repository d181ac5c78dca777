"""Rows of runs: which row a record belongs to, and the redaction of secrets that become known later.

A run that begins under an id that is recorded already is either the same run, resumed, or a later run of that name.
A later one gets its own row, `nightly#2`. A run that was stopped or never ended counts as resumed if it begins again
with the same task.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from toolwire.telemetry.records import EndRecord, RunRecord, TurnRecord
from toolwire.telemetry.request_rows import StoredMessages
from toolwire.telemetry.row_codec import MAX_TEXT, kept
from toolwire.text.redaction import REDACTED, environment_secrets
from toolwire.text.secret_spellings import secret_spellings

STOPPED: Final = "stopped"
"""Reason of the end of an abandoned run."""
MAX_OPEN_RUNS: Final = 5_000
"""Maximum number of open runs in memory."""
SECRETS: Final = 200
"""Maximum number of secrets of one run in memory."""
_TEXTS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("runs", "id", ("task", "detail")),
    ("turns", "run", ("raw", "events", "failed", "correction", "error")),
    ("messages", "run", ("text",)),
)
_OF_CALLS: Final = ("arguments", "reason", "error", "result")


def secrets_of_process() -> set[str]:
    """Return the values of this process's environment that look like secrets."""
    # Most keys of a program get into its records because a tool lists its environment.
    return set(environment_secrets(os.environ))


@dataclass(slots=True)
class RunRow:
    """The row of an open run.

    Attributes:
        row: the id of its row.
        root: the row of the outermost run around it.
        known: secrets of all runs inside the outermost one.
        earlier: the row of an ended run with the same id; "" if there is none.
        messages: the messages of its requests that are stored.
    """

    row: str
    root: str
    known: set[str] = field(default_factory=secrets_of_process)
    earlier: str = ""
    messages: StoredMessages = field(default_factory=StoredMessages)

    def merge_into_earlier(self, connection: sqlite3.Connection) -> None:
        """Merge this run into the earlier one, which it turned out to resume."""
        connection.execute("DELETE FROM runs WHERE id = ?", (self.row,))
        self.row = self.root = self.earlier
        self.earlier = ""


class OpenRuns:
    """The runs that have begun and not ended."""

    def __init__(self) -> None:
        self._open_runs: dict[tuple[str, int], RunRow] = {}

    def begin(self, connection: sqlite3.Connection, run: RunRecord, *, content: bool) -> RunRow:
        """Add a run that begins or is resumed."""
        parent = self._open_runs.get((run.parent, run.instance)) if run.parent else None
        if parent is not None:
            row = parent.row + run.id.removeprefix(run.parent)
            run_row = RunRow(row, parent.root, parent.known)
        else:
            row, earlier = self._row(connection, run, content=content)
            run_row = RunRow(row, row, earlier=earlier)
        self._remember((run.id, run.instance), run_row)
        return run_row

    def of(self, record: TurnRecord | EndRecord) -> RunRow:
        """Return the run of a record; a run without a beginning gets a row by its id."""
        key = record.run, record.instance
        return self._open_runs.get(key) or self._remember(key, RunRow(record.run, record.run))

    def row_of(self, run: str, instance: int) -> str:
        """Return the id of the row of a run; its own id if it is not open."""
        open_run = self._open_runs.get((run, instance))
        return run if open_run is None else open_run.row

    def end(self, end: EndRecord) -> RunRow:
        """Remove a run that has ended, and return it."""
        run_row = self.of(end)
        del self._open_runs[end.run, end.instance]
        return run_row

    def forget_messages(self) -> None:
        """Store messages anew from now on, since stored ones may be gone."""
        for run_row in self._open_runs.values():
            run_row.messages.clear()

    def parent(self, run: RunRecord) -> str:
        """Return the row of the parent run."""
        parent_row = self._open_runs.get((run.parent, run.instance))
        return run.parent if parent_row is None else parent_row.row

    def _remember(self, key: tuple[str, int], run_row: RunRow) -> RunRow:
        self._open_runs[key] = run_row
        if len(self._open_runs) > MAX_OPEN_RUNS:
            del self._open_runs[next(iter(self._open_runs))]
        return run_row

    def _row(self, connection: sqlite3.Connection, run: RunRecord, *, content: bool) -> tuple[str, str]:
        if connection.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone() is None:
            return run.id, ""
        rows = of_one_name(connection, run.id)
        count, id, agent, task, reason = rows[-1]
        going = any(open_run.row == id for open_run in self._open_runs.values())
        same_run = agent == run.agent and _alike(task, kept(run.task, MAX_TEXT) if content else "")
        if same_run and not going and reason in (None, STOPPED):
            return id, ""
        return f"{run.id}#{count + 1}", "" if going or not same_run else id


def of_one_name(connection: sqlite3.Connection, id: str) -> list[tuple[int, str, str, str, str | None]]:
    """Return all runs of a name in order: number, row id, agent, task and the reason of the end."""
    rows = connection.execute(
        "SELECT id, agent, task, reason FROM runs WHERE id = :id OR substr(id, 1, length(:id) + 1) = :id || '#'",
        {"id": id},
    ).fetchall()
    numbered = [(number(row[0]) if row[0] != id else 1, *row) for row in rows]
    return sorted(
        (entry for entry in numbered if entry[0] and "/" not in entry[1][len(id) :]), key=lambda entry: entry[0]
    )


def number(id: str) -> int:
    """Return the number of a row among runs of its name."""
    _, mark, behind = id.rpartition("#")
    return int(behind) if mark and behind.isdecimal() and len(behind) < 10 else 1


def name_of(id: str) -> str:
    """Return the id under which a run began."""
    return id.rpartition("#")[0] if number(id) > 1 else id


def scrub(connection: sqlite3.Connection, root: str, found: Iterable[str]) -> None:
    """Redact secrets in everything that is stored of a run and of nested runs."""
    inside = "({column} = :root OR {column} > :root || '/' AND {column} < :root || '0')"  # '0' comes after '/'
    turns = f"SELECT id FROM turns WHERE {inside.format(column='run')}"
    wheres: list[tuple[str, tuple[str, ...], str]] = [
        (table, columns, inside.format(column=column)) for table, column, columns in _TEXTS
    ]
    wheres.append(("calls", _OF_CALLS, f"turn IN ({turns})"))
    for secret in secret_spellings(found):
        values = {"root": root, "secret": secret, "gone": REDACTED}
        for table, columns, where in wheres:
            changes = ", ".join(f"{name} = replace({name}, :secret, :gone)" for name in columns)
            holds = " OR ".join(f"instr({name}, :secret)" for name in columns)
            connection.execute(f"UPDATE {table} SET {changes} WHERE {where} AND ({holds})", values)


def _alike(stored: str, task: str) -> bool:
    """Return whether a task equals a stored one in which secrets may be redacted."""
    if stored == task or not stored or not task:
        return True
    pieces = [re.escape(piece) for piece in stored.split(REDACTED)]
    return len(pieces) > 1 and re.fullmatch(".*?".join(pieces), task, re.DOTALL) is not None
