"""Files of answers as rows with positions, from which reading continues: JSON lines, texts, databases, Parquet."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from toolwire._surface import needs_extra
from toolwire.errors import ConfigurationError, StateError
from toolwire.reparse.engine_logs import logged_answer
from toolwire.runtime.bounded_lines import bounded_lines
from toolwire.runtime.sqlite import is_damage, open_database
from toolwire.telemetry.records import NATIVE
from toolwire.telemetry.request_rows import TOOLS, message_numbers
from toolwire.telemetry.row_codec import SCHEMA, VERSION

MAX_ROW: Final = 16 << 20
"""Maximum length of a row, in bytes; a longer one is not an answer."""
BATCH_ROWS: Final = 256
BATCH_BYTES: Final = 1 << 20
"""Size of the rows of a batch together, in bytes, at which it is complete."""
_HEAD: Final = 4_096
_MAX_REASON: Final = 300
"""Maximum length of the reason why a file cannot be read, in characters."""
_BEHIND_ALL_TURNS: Final = 1 << 62
"""The position in a database of which no more can be read; otherwise it is the number of the last turn."""
_SQLITE: Final = b"SQLite format 3\x00"
_PARQUET: Final = b"PAR1"
_WHOLE_TEXTS: Final = (".txt", ".text", ".out")
"""Endings of files that are one answer each."""
_TOO_LONG: Final = json.dumps({"error": f"the row is longer than {MAX_ROW} bytes"}).encode()
Row = tuple[int, bytes]
"""The position behind a row, and the row as JSON."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one file that follow one another.

    Attributes:
        source: the path of the file.
        start: the position before the first row.
        end: the position behind the last row.
        first: the number of the first row, from 1.
        lines: the rows as JSON.
    """

    source: str
    start: int
    end: int
    first: int
    lines: list[bytes]


def find_sources(paths: Iterable[Path], out: Path | None = None) -> list[Path]:
    """Return the files that the paths name, with all files in directories but hidden ones, in a fixed order.

    Args:
        paths: files and directories.
        out: the directory for the results, which are not answers, though it may be inside one of the directories.

    Raises:
        ConfigurationError: a path does not exist.
    """
    files: list[Path] = []
    results = out.resolve() if out is not None else None
    for path in paths:
        if path.is_dir():
            inside = (inner for inner in path.rglob("*") if inner.is_file() and not _is_hidden(inner, path))
            files += sorted(inner for inner in inside if results is None or results not in inner.resolve().parents)
        elif path.exists():
            files.append(path)
        else:
            raise ConfigurationError(f"{path} does not exist")
    return list(dict.fromkeys(files))


def _is_hidden(file: Path, folder: Path) -> bool:
    # A folder of a project has .git and .venv, in which no program writes its logs.
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def digest_of_head(path: Path, length: int | None = None) -> tuple[str, int]:
    """Return a digest of the beginning of a file, and the number of bytes that it covers.

    Args:
        path: the file.
        length: the number of bytes; None for as many as are there, up to 4,096.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD if length is None else length)
    return hashlib.sha256(head).hexdigest(), len(head)


def batches(path: Path, position: int, rows: int) -> Iterator[Batch]:
    """Yield the rows of a file in batches.

    Args:
        path: the file.
        position: the position to begin at; 0 for the beginning.
        rows: the number of rows before it.

    Raises:
        ConfigurationError: the file cannot be read.
        MissingExtra: it is a Parquet file, and the package that reads it is not installed.
    """
    start, size, lines = position, 0, list[bytes]()
    try:
        for end, line in _rows(path, position):
            lines.append(line)
            size += len(line)
            if len(lines) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield Batch(str(path), start, end, rows + 1, lines)
                rows += len(lines)
                start, size, lines = end, 0, []
            position = end
    except (OSError, sqlite3.Error) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    if lines:
        yield Batch(str(path), start, position, rows + 1, lines)


def _rows(path: Path, position: int) -> Iterator[Row]:
    with path.open("rb") as file:
        head = file.read(len(_SQLITE))
    if head == _SQLITE:
        return _recorded_rows(path, position)
    if head.startswith(_PARQUET):
        return _parquet_rows(path, position)
    if path.suffix.lower() in _WHOLE_TEXTS:
        return _text_row(path, position)
    if path.suffix.lower() == ".log":
        return _engine_lines(path, position)
    return _json_lines(path, position)


def is_unfinished(path: Path, position: int) -> bool:
    """Return whether a file of lines ends in a line that was not read, because a program still writes it.

    Args:
        path: the file.
        position: the position behind the last row that was read. Complete lines that are not answers may follow it.
    """
    with path.open("rb") as file:
        head = file.read(len(_SQLITE))
        if head == _SQLITE or head.startswith(_PARQUET) or path.suffix.lower() in _WHOLE_TEXTS:
            return False
        if file.seek(0, os.SEEK_END) <= position:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _engine_lines(path: Path, position: int) -> Iterator[Row]:
    """Yield the answers in a log of an engine, or of JSON lines; other lines are passed over."""
    for end, line in _json_lines(path, position):
        if (row := line if line is _TOO_LONG else logged_answer(line)) is not None:
            yield end, row


def _json_lines(path: Path, position: int) -> Iterator[Row]:
    with path.open("rb") as file:
        file.seek(position)
        for line, size in bounded_lines(file, MAX_ROW):
            if line and line.strip() and not line.endswith(b"\n") and not _is_json(line):
                return  # a program still writes this line, and the next run reads it
            position += size
            yield position, _TOO_LONG if line is None else line


def _is_json(line: bytes) -> bool:
    with suppress(ValueError, RecursionError):
        json.loads(line)
        return True
    return False


def _text_row(path: Path, position: int) -> Iterator[Row]:
    """Yield a whole file as one text; the position behind it is its size and 1, which is not 0 for an empty file.

    Raises:
        ConfigurationError: the file has changed since it was read.
    """
    size = path.stat().st_size
    if position == size + 1:
        return
    if position:
        raise ConfigurationError(f"{path} has changed since it was read: name another --out")
    text = path.read_bytes().decode("utf-8", "replace") if size <= MAX_ROW else ""
    yield size + 1, json.dumps({"text": text}).encode() if size <= MAX_ROW else _TOO_LONG


def _recorded_rows(path: Path, position: int) -> Iterator[Row]:
    """Yield the turns of a database of recorded runs, and one row for what cannot be read.

    A directory of logs may have databases of any program, and damaged ones; its other files are still read.
    """
    if position == _BEHIND_ALL_TURNS:
        return
    try:
        yield from _turns(path, position)
    except (StateError, sqlite3.DatabaseError) as error:
        cause = error.__cause__ or error
        is_damaged = is_damage(cause)
        if not (is_damaged or isinstance(cause, sqlite3.NotSupportedError)):
            raise
        reason = f"the database is damaged: {cause}" if is_damaged else str(cause)
        yield _BEHIND_ALL_TURNS, json.dumps({"error": reason}).encode()


def _turns(path: Path, position: int) -> Iterator[Row]:
    """Yield the turns of recorded runs whose calls are in the text; the others have no text that could be read."""
    connection = open_database(path, SCHEMA, VERSION, make=False)
    query = "SELECT id, model, format, raw, request FROM turns WHERE id > ? AND format != ? AND raw != '' ORDER BY id"
    calls_query = "SELECT tool, arguments FROM calls WHERE turn = ? ORDER BY position"
    with closing(connection):

        @lru_cache(64)
        def tools(number: int) -> list[Any] | None:
            stored = connection.execute("SELECT role, text FROM messages WHERE id = ?", (number,)).fetchone()
            return _definitions(stored[1]) if stored and stored[0] == TOOLS else None

        for id, model, format, raw, request in connection.execute(query, (position, NATIVE)):
            numbers = message_numbers(request or "")
            calls = [{"name": name, "arguments": text} for name, text in connection.execute(calls_query, (id,))]
            row: dict[str, Any] = {"model": model, "format": format, "text": raw, "calls": calls}
            if numbers and (definitions := tools(numbers[0])) is not None:
                row["tools"] = definitions
            yield id, json.dumps(row).encode()


def _definitions(text: str) -> list[Any] | None:
    """Return the tools that were stored with a request; None if their text was shortened."""
    try:
        return [json.loads(line.partition(" ")[2]) for line in text.split("\n")]
    except ValueError:
        return None


def _parquet_rows(path: Path, position: int) -> Iterator[Row]:
    with needs_extra("A Parquet file", "parquet"):
        from pyarrow import ArrowException, parquet
    number = 0
    try:
        with closing(parquet.ParquetFile(path)) as file:
            for group in range(file.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                if number + size <= position:
                    number += size
                    continue
                for block in file.iter_batches(BATCH_ROWS, row_groups=[group]):
                    columns = [_column_values(column) for column in block.columns]
                    for values in zip(*columns, strict=True):
                        number += 1
                        if number > position:
                            row = dict(zip(block.schema.names, values, strict=True))
                            yield number, json.dumps(_without_nulls(row), default=_json_value).encode()
    except (ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file system failed, and not the file: the same command can go on later
        # What is left of a damaged file counts as one row that is not an answer, and the other files are still read.
        if number >= position:
            reason = " ".join(str(error).split())[:_MAX_REASON]
            yield number + 1, json.dumps({"error": f"the Parquet file is damaged: {reason}"}).encode()


def _column_values(column: Any) -> list[Any]:
    """Return the values of a column of Arrow.

    Python has no form for some of them, such as dates in distant years: they belong to no answer, and become null.
    Texts that are not UTF-8 become bytes.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_scalar_value(scalar) for scalar in column]
    return values


def _scalar_value(scalar: Any) -> Any:
    """Return a value of Arrow, and read its parts one by one if it has no form as a whole; see `_column_values`."""
    import pyarrow

    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        if isinstance(scalar, pyarrow.StructScalar):
            return {name: _scalar_value(member) for name, member in scalar.items()}
        if isinstance(scalar, pyarrow.ListScalar):
            return [_scalar_value(item) for item in scalar.values]
        return scalar.as_buffer().to_pybytes() if isinstance(scalar, pyarrow.BinaryScalar) else None


def _without_nulls(value: Any) -> Any:
    """Return a value without members that are null: Parquet adds those to an object that other rows have."""
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _json_value(value: Any) -> str:
    """Return a value that JSON has no form for, such as a date, as text; bytes are text already."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
