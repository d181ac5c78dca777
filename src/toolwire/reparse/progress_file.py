"""The results of reading logs again, and how far it has come: one SQLite file, one transaction for each batch.

The position and the results of a batch are written together. So after a kill at any moment, a row is either in the
results and behind the position, or neither.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toolwire.errors import ConfigurationError, StateError
from toolwire.reparse.reread_answers import SAMPLES, BatchResult
from toolwire.reparse.row_sources import Batch, digest_of_head
from toolwire.runtime.sqlite import open_database, storable, transaction

_SCHEMA: Final = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE sources (name TEXT PRIMARY KEY, head TEXT, head_bytes INTEGER, position INTEGER, rows INTEGER)",
    "CREATE TABLE counts (model TEXT, class TEXT, rows INTEGER, PRIMARY KEY (model, class))",
    "CREATE TABLE tallies (model TEXT, kind TEXT, name TEXT, count INTEGER, PRIMARY KEY (model, kind, name))",
    "CREATE TABLE different (source TEXT, row INTEGER, model TEXT, class TEXT, before TEXT, now TEXT, "
    "PRIMARY KEY (source, row))",
    "CREATE TABLE samples (model TEXT, class TEXT, source TEXT, row INTEGER, before TEXT, now TEXT, text TEXT, "
    "PRIMARY KEY (source, row))",
    "CREATE TABLE broken (source TEXT, row INTEGER, reason TEXT, PRIMARY KEY (source, row))",
)
_VERSION: Final = 1
_SETTINGS: Final = "options"
_COUNT: Final = (
    "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (model, class) DO UPDATE SET rows = rows + excluded.rows"
)
_TALLY: Final = (
    "INSERT INTO tallies VALUES (?, ?, ?, ?) "
    "ON CONFLICT (model, kind, name) DO UPDATE SET count = count + excluded.count"
)
_SAMPLE: Final = (
    "INSERT INTO samples SELECT ?, ?, ?, ?, ?, ?, ? "
    f"WHERE (SELECT COUNT(*) FROM samples WHERE model = ?1 AND class = ?2) < {SAMPLES}"
)


class ProgressFile:
    """The results so far.

    Args:
        path: the file, which is created if it does not exist.
        options: the options of reading, as JSON values: another command must not add to the same results.

    Raises:
        ConfigurationError: the file has the results of other options.
        StateError: it cannot be used.
    """

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        self.path = path
        self._connection = open_database(path, _SCHEMA, _VERSION)
        text = json.dumps(options, sort_keys=True)
        self._connection.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (_SETTINGS, text))
        (stored,) = self._connection.execute("SELECT value FROM settings WHERE name = ?", (_SETTINGS,)).fetchone()
        if stored != text:
            self._connection.close()
            earlier = json.loads(stored)
            changed = sorted(name for name in {**earlier, **options} if earlier.get(name) != options.get(name))
            raise ConfigurationError(
                f"{path} has results of other options ({', '.join(changed)}): name another --out, or delete the file"
            )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def progress(self, source: Path) -> tuple[int, int]:
        """Return the position in a file behind which no row was read, and the number of rows before it.

        Raises:
            ConfigurationError: it is another file than the one that was read before.
        """
        name = storable(str(source))
        row = self._connection.execute(
            "SELECT head, head_bytes, position, rows FROM sources WHERE name = ?", (name,)
        ).fetchone()
        if row is None:
            head, length = digest_of_head(source)
            self._connection.execute("INSERT INTO sources VALUES (?, ?, ?, 0, 0)", (name, head, length))
            return 0, 0
        if digest_of_head(source, row[1])[0] != row[0] and row[2]:
            raise ConfigurationError(f"{source} is not the file that was read before: name another --out")
        return row[2], row[3]

    def add(self, batch: Batch, result: BatchResult) -> None:
        """Write the results of a batch, together with the position behind it.

        Raises:
            StateError: another process has read the batch, or the file cannot be written.
        """
        try:
            with transaction(self._connection):
                # The condition makes sure that no batch is counted twice, even by two processes.
                moved = self._connection.execute(
                    "UPDATE sources SET position = ?, rows = rows + ? WHERE name = ? AND position = ? AND rows = ?",
                    (batch.end, len(batch.lines), storable(batch.source), batch.start, batch.first - 1),
                )
                if moved.rowcount != 1:
                    raise StateError(f"another process reads {batch.source} into {self.path}")
                self._insert(batch, result)
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: {error}") from error

    def _insert(self, batch: Batch, result: BatchResult) -> None:
        source, first = storable(batch.source), batch.first

        def insert(statement: str, rows: Iterable[Sequence[Any]]) -> None:
            # Names and texts of models may have lone surrogates, which JSON can escape and SQLite cannot store.
            stored = (tuple(storable(value) if isinstance(value, str) else value for value in row) for row in rows)
            self._connection.executemany(statement, stored)

        insert(_COUNT, ((model, kind, count) for (model, kind), count in result.counts.items()))
        for name, tally in (("problem", result.problems), ("repair", result.repairs)):
            insert(_TALLY, ((model, name, kind, count) for (model, kind), count in tally.items()))
        insert(
            "INSERT INTO different VALUES (?, ?, ?, ?, ?, ?)",
            ((source, first + at, *rest) for at, *rest in result.different),
        )
        insert(
            _SAMPLE,
            (
                (model, kind, source, first + at, before, now, text)
                for at, model, kind, before, now, text in result.samples
            ),
        )
        insert("INSERT INTO broken VALUES (?, ?, ?)", ((source, first + at, reason) for at, reason in result.broken))

    def summary(self) -> dict[str, Any]:
        """Return the numbers of rows by model and class, the problems and repairs, and samples of each class."""
        counts: dict[str, dict[str, int]] = {}
        for model, kind, rows in self._connection.execute("SELECT * FROM counts ORDER BY model, class"):
            counts.setdefault(model, {})[kind] = rows
        tallies: dict[str, dict[str, dict[str, int]]] = {"problem": {}, "repair": {}}
        for model, kind, name, count in self._connection.execute("SELECT * FROM tallies ORDER BY count DESC, name"):
            tallies[kind].setdefault(model, {})[name] = count
        names = ("model", "class", "source", "row", "before", "now", "text")
        samples = [
            {**dict(zip(names, row, strict=True)), "before": json.loads(row[4]), "now": json.loads(row[5])}
            for row in self._connection.execute("SELECT * FROM samples ORDER BY model, class, source, row")
        ]
        (rows,) = self._connection.execute("SELECT COALESCE(SUM(rows), 0) FROM counts").fetchone()
        return {
            "rows": rows,
            "counts": counts,
            "problems": tallies["problem"],
            "repairs": tallies["repair"],
            "samples": samples,
        }

    def earlier_sources(self, sources: Iterable[Path]) -> list[str]:
        """Return the files whose rows an earlier command has counted, and which are not among these."""
        named = {storable(str(source)) for source in sources}
        read = self._connection.execute("SELECT name FROM sources WHERE rows > 0 ORDER BY name")
        return [name for (name,) in read if name not in named]

    def different(self) -> Iterator[dict[str, Any]]:
        """Yield the rows with other calls than before."""
        names = ("source", "row", "model", "class", "before", "now")
        for row in self._connection.execute("SELECT * FROM different ORDER BY source, row"):
            entry = dict(zip(names, row, strict=True))
            yield {**entry, "before": json.loads(entry["before"]), "now": json.loads(entry["now"])}

    def broken(self, limit: int) -> list[tuple[str, int, str]]:
        """Return file, row and reason of rows that are not answers.

        Args:
            limit: maximum number of rows; millions can be broken.
        """
        query = "SELECT source, row, reason FROM broken ORDER BY source, row LIMIT ?"
        return self._connection.execute(query, (limit,)).fetchall()
