"""Evidence for the coach that does not come from recorded runs, such as an evaluation."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing

from toolwire.errors import StateError
from toolwire.runtime.sqlite import open_database, transaction
from toolwire.telemetry.coach import Tally
from toolwire.telemetry.row_codec import SCHEMA, VERSION


def import_evidence(path: str | os.PathLike[str], source: str, evidence: Mapping[str, Iterable[Tally]]) -> None:
    """Add outcomes to the file of the recorded runs, in place of those imported from the same source before.

    What the source said about other models or formats stays.

    Args:
        path: the file; it is created if it does not exist.
        source: a name for where the outcomes come from; not "", which stands for recorded runs.
        evidence: the outcomes of each model by format.

    Raises:
        ValueError: the source is "".
        StateError: the file cannot be written.
    """
    if not source:
        raise ValueError("evidence that is imported needs the name of its source")
    now = time.time()
    with closing(open_database(path, SCHEMA, VERSION)) as connection:
        try:
            with transaction(connection):
                # All or nothing, so that a coach never compares formats of two reports.
                for model, tallies in evidence.items():
                    for tally in tallies:
                        _replace(connection, source, model, tally, now)
        except sqlite3.Error as error:
            raise StateError(f"{os.fspath(path)}: {error}") from error


def _replace(connection: sqlite3.Connection, source: str, model: str, tally: Tally, now: float) -> None:
    connection.execute(
        "DELETE FROM outcomes WHERE source = ? AND model = ? AND format = ?", (source, model, tally.format)
    )
    connection.executemany(
        "INSERT INTO outcomes (model, format, good, at, source) VALUES (?, ?, ?, ?, ?)",
        ((model, tally.format, number < tally.good, now, source) for number in range(tally.tried)),
    )
