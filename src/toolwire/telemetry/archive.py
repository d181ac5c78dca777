"""Read recorded runs: their turns, figures per model and format, and the evidence for the coach."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from toolwire._surface import check_type
from toolwire.errors import StateError
from toolwire.runtime.sqlite import open_database
from toolwire.telemetry.coach import Tally
from toolwire.telemetry.request_rows import message_numbers
from toolwire.telemetry.row_codec import SCHEMA, VERSION
from toolwire.telemetry.run_rows import name_of, number, of_one_name

LAST: Final = "last"
"""Id that means the newest run."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figures:
    """All answers of one model in one format.

    Attributes:
        model: the model's name.
        format: the format that it was asked to write.
        answers: number of complete answers.
        clean: answers without a problem.
        repairs: how many calls each repair was made in.
        problems: number of problems of each kind.
        mismatches: number of answers with calls in another format, by that format.
        tried: answers that could be judged, see `TurnRecord.good`.
        good: number of those that were good.
        calls: number of calls.
        worked: number of calls whose tool ran without an error.
        refused: number of calls that the policy or the user did not allow.
        median, p95: seconds of the whole answer.
        time_to_first_event: seconds; the median. None if none was recorded.
    """

    model: str
    format: str
    answers: int
    clean: int
    repairs: Mapping[str, int]
    problems: Mapping[str, int]
    mismatches: Mapping[str, int]
    tried: int
    good: int
    calls: int
    worked: int
    refused: int
    median: float
    p95: float
    time_to_first_event: float | None

    @property
    def parse_rate(self) -> float:
        """Share of the answers that have no problem."""
        return self.clean / self.answers if self.answers else 0.0

    @property
    def tool_success(self) -> float | None:
        """Share of the allowed calls that worked; None if there are none."""
        executed = self.calls - self.refused
        return self.worked / executed if executed else None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded run: rows whose keys are the columns of `row_codec.SCHEMA`.

    Attributes:
        run: its own row.
        turns: rows of its turns in order, each with its `calls`, `events`, `repairs` and `problems` as values.
        children: ids of runs that were tool calls of this one.
        messages: rows of the messages and tool definitions that its requests contain, by their numbers. The `request`
            of a turn lists these numbers, the tool definitions first. Messages that were deleted are missing.
        namesakes: if several runs began under its id, all of them, the oldest first.
        lost: number of its records that were dropped; see `Recorder.lost`.
    """

    run: Row
    turns: tuple[Row, ...]
    children: tuple[str, ...]
    namesakes: tuple[str, ...] = ()
    messages: Mapping[int, Row] = field(default_factory=dict)
    lost: int = 0


class Archive:
    """A file that recorders write; several processes may read and write it at once.

    Args:
        path: the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_type("path", path, (str, os.PathLike), "a path")
        self.path = Path(path)

    def runs(self, last: int = 20) -> list[Row]:
        """Return the newest runs, newest first.

        Raises:
            StateError: the file does not exist or cannot be read.
        """
        query = (
            "SELECT runs.*, (SELECT COUNT(*) FROM turns WHERE turns.run = runs.id) AS turns, "
            "COALESCE((SELECT records FROM losses WHERE losses.run = runs.id), 0) AS lost FROM runs "
            "ORDER BY started_at DESC, rowid DESC LIMIT ?"
        )
        return self._read(query, (last,))

    def lost(self) -> int:
        """Return how many records were dropped, of all runs; also of those of which nothing was recorded.

        Raises:
            StateError: the file does not exist or cannot be read.
        """
        return int(self._read("SELECT COALESCE(SUM(records), 0) AS lost FROM losses")[0]["lost"])

    def run(self, id: str = LAST) -> Recorded:
        """Return one run.

        Args:
            id: its id, the beginning of an id that is unique, or "last". If several runs began under one id, this is
                the newest of them; `id#1` is the first, `id#2` the second.

        Raises:
            StateError: there is no such run, several ids begin so, or the file cannot be read.
        """
        nth = 0
        if id == LAST:
            rows = self._read("SELECT * FROM runs WHERE parent = '' ORDER BY started_at DESC, rowid DESC LIMIT 1")
        else:
            query = "SELECT * FROM runs WHERE substr(id, 1, ?) = ? ORDER BY id != ?, parent != '', id LIMIT 5"
            id, nth = (id[:-2], 1) if id.endswith("#1") else (id, 0)
            rows = self._read(query, (len(id), id, id))
        if not rows:
            raise StateError("no run is recorded" if id == LAST else f"no run {id!r} is recorded")
        alike = [row["id"] for row in rows if not row["parent"]] or [row["id"] for row in rows]
        names = {name_of(id_) for id_ in alike}
        if rows[0]["id"] != id != LAST and len(names) > 1:
            raise StateError(f"several runs begin with {id!r}: {', '.join(alike)}")
        with self._open() as connection:
            namesake_ids = [entry[1] for entry in of_one_name(connection, name_of(rows[0]["id"]))]
        if len(namesake_ids) < 2:
            return self._whole(rows[0])
        chosen = rows[0]["id"] if id == LAST or nth or number(id) > 1 else namesake_ids[-1]
        (run,) = self._read("SELECT * FROM runs WHERE id = ?", (chosen,))
        return replace(self._whole(run), namesakes=tuple(namesake_ids))

    def _whole(self, run: Row) -> Recorded:
        key = (run["id"],)
        calls: dict[int, list[Row]] = {}
        query = "SELECT calls.* FROM calls JOIN turns ON calls.turn = turns.id WHERE turns.run = ? ORDER BY position"
        for call in self._read(query, key):
            calls.setdefault(call.pop("turn"), []).append({**call, "repairs": call["repairs"].split()})
        turns = self._read("SELECT * FROM turns WHERE run = ? ORDER BY id", key)
        turn_rows = tuple(_turn(turn, calls.get(turn["id"], [])) for turn in turns)
        children = self._read("SELECT id FROM runs WHERE parent = ? ORDER BY started_at, rowid", key)
        messages = self._read("SELECT id, role, text FROM messages WHERE run = ? ORDER BY id", key)
        by_number = {message["id"]: message for message in messages}
        lost = sum(row["records"] for row in self._read("SELECT records FROM losses WHERE run = ?", key))
        child_ids = tuple(child["id"] for child in children)
        return Recorded(run, turn_rows, child_ids, messages=by_number, lost=lost)

    def figures(self, *, model: str = "", format: str = "", since: float = 0.0) -> list[Figures]:
        """Return figures per model and format, sorted by these names.

        Args:
            model: only this model; "" for all.
            format: only this format; "" for all.
            since: only turns that began at or after this time, in seconds since 1970.

        Raises:
            StateError: the file does not exist or cannot be read.
        """
        where, values = "started_at >= ?", [since, *([model] if model else ()), *([format] if format else ())]
        where += (" AND model = ?" if model else "") + (" AND turns.format = ?" if format else "")
        groups: dict[tuple[str, str], list[Row]] = {}
        query = (
            "SELECT id, model, format, formats, good, repairs, problems, time_to_first_event, seconds, finish, error "
            "FROM turns"
        )
        for turn in self._read(f"{query} WHERE {where}", values):
            groups.setdefault((turn["model"], turn["format"]), []).append(turn)
        call_totals: dict[tuple[str, str], Row] = {}
        query = (
            "SELECT model, turns.format AS format, COUNT(*) AS calls, SUM(ok) AS worked, "
            "SUM(issue IN ('denied', 'confirmation')) AS refused "
            f"FROM calls JOIN turns ON calls.turn = turns.id WHERE {where} GROUP BY model, turns.format"
        )
        for totals in self._read(query, values):
            call_totals[totals["model"], totals["format"]] = totals
        return [_figures(key, groups[key], call_totals.get(key, {})) for key in sorted(groups)]

    def models(self) -> list[str]:
        """Return the names of models with evidence, sorted.

        Raises:
            StateError: the file does not exist or cannot be read.
        """
        return [row["model"] for row in self._read("SELECT DISTINCT model FROM outcomes ORDER BY model")]

    def evidence(self, model: str, formats: Sequence[str] = ()) -> list[Tally]:
        """Return the outcomes of a model by format.

        Args:
            model: the model's name.
            formats: these formats in this order, tried or not; if empty, all that were tried, the most tried first.

        Raises:
            StateError: the file does not exist or cannot be read.
        """
        query = "SELECT format, COUNT(*) AS tried, SUM(good) AS good FROM outcomes WHERE model = ? GROUP BY format"
        tallies = {row["format"]: Tally(**row) for row in self._read(query, (model,))}
        if formats:
            return [tallies.get(name, Tally(name)) for name in formats]
        return sorted(tallies.values(), key=lambda tally: (-tally.tried, tally.format))

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._open() as connection:
            try:
                cursor = connection.execute(query, values)
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor]
            except sqlite3.Error as error:
                raise StateError(f"{self.path}: {error}") from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = open_database(self.path, SCHEMA, VERSION, make=False)
        try:
            yield connection
        finally:
            connection.close()


def _turn(row: Row, calls: list[Row]) -> Row:
    return {
        **row,
        "formats": row["formats"].split(),
        "repairs": _object(row["repairs"]),
        "problems": _object(row["problems"]),
        "events": json.loads(row["events"] or "[]"),
        "request": message_numbers(row["request"]),
        "calls": calls,
    }


def _object(text: str) -> dict[str, int]:
    return dict(json.loads(text or "{}"))


def _figures(key: tuple[str, str], turns: Sequence[Row], called: Row) -> Figures:
    model, format = key
    repairs, problems, mismatches = Counter[str](), Counter[str](), Counter[str]()
    complete = [turn for turn in turns if not turn["error"] and turn["finish"] != "error"]
    for turn in complete:
        repairs.update(_object(turn["repairs"]))
        problems.update(_object(turn["problems"]))
        mismatches.update(name for name in turn["formats"].split() if name != format)
    judged = [turn["good"] for turn in complete if turn["good"] is not None]
    seconds = sorted(turn["seconds"] for turn in complete)
    first = sorted(turn["time_to_first_event"] for turn in complete if turn["time_to_first_event"] is not None)
    return Figures(
        model=model,
        format=format,
        answers=len(complete),
        clean=sum(not turn["problems"] for turn in complete),
        repairs=dict(repairs.most_common()),
        problems=dict(problems.most_common()),
        mismatches=dict(mismatches.most_common()),
        tried=len(judged),
        good=sum(judged),
        calls=called.get("calls", 0),
        worked=called.get("worked", 0),
        refused=called.get("refused", 0),
        median=_quantile(seconds, 0.5),
        p95=_quantile(seconds, 0.95),
        time_to_first_event=_quantile(first, 0.5) if first else None,
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
