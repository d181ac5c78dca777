from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.unit.telemetry.scripts import ADD, go

from toolwire import ConfigurationError
from toolwire.errors import StateError
from toolwire.reparse import row_sources
from toolwire.reparse.progress_file import ProgressFile
from toolwire.reparse.reread_answers import ReparseOptions, reread
from toolwire.reparse.row_sources import BATCH_ROWS, batches, find_sources, is_unfinished
from toolwire.telemetry import Recorder


def rows(path: Path, position: int = 0) -> list[Any]:
    return [json.loads(line) for batch in batches(path, position, 0) for line in batch.lines]


def write(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps({"text": f"{at}"}) + "\n" for at in range(count)), "utf-8")
    return path


def test_json_lines_continue_at_every_batch(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", 3 * BATCH_ROWS - 1)
    found = list(batches(path, 0, 0))
    assert [len(batch.lines) for batch in found] == [BATCH_ROWS, BATCH_ROWS, BATCH_ROWS - 1]
    assert [batch.first for batch in found] == [1, 1 + BATCH_ROWS, 1 + 2 * BATCH_ROWS]
    assert found[-1].end == path.stat().st_size
    for before, behind in pairwise(found):
        assert behind.start == before.end
        assert next(batches(path, before.end, before.first + BATCH_ROWS - 1)) == behind


def test_a_row_that_is_too_long_is_one_broken_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sources, "MAX_ROW", 100)
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": "x" * size}) for size in (5, 1_000, 88, 89, 6)]
    path.write_text("\n".join(lines), "utf-8")
    found = rows(path)
    assert [row.get("text") for row in found] == [
        "x" * 5,
        None,
        "x" * 88,
        None,
        "x" * 6,
    ]
    (batch,) = batches(path, 0, 0)
    result = reread(batch.lines, ReparseOptions(format="hermes"))
    assert [position for position, _ in result.broken] == [1, 3]
    assert "longer than" in result.broken[0][1]


def test_a_text_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sources, "MAX_ROW", 100)
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 100)
    assert rows(path) == [{"text": "x" * 100}]
    path.write_bytes(b"x" * 101)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is read"))
        (row,) = rows(path)
    assert "longer than" in row["error"]
    assert rows(path, 102) == []


def test_texts_and_directories(tmp_path: Path) -> None:
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    (tmp_path / "logs" / "deep" / "b.txt").write_bytes(b"one \xff\ntwo")
    (tmp_path / "logs" / ".hidden").write_text("x")
    (tmp_path / "logs" / ".git" / "logs").mkdir(parents=True)
    (tmp_path / "logs" / ".git" / "logs" / "HEAD").write_text("x")
    write(tmp_path / "logs" / "a.jsonl", 1)
    files = find_sources([tmp_path / "logs", tmp_path / "logs" / "a.jsonl"])
    assert [file.name for file in files] == ["a.jsonl", "b.txt"]
    assert rows(files[1]) == [{"text": "one \ufffd\ntwo"}]
    with pytest.raises(ConfigurationError, match="missing does not exist"):
        find_sources([tmp_path / "missing"])


def test_recorded_runs(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db")
    go([ADD % "1", ADD % "7", "It is 3."], recorder, run_id="a", task="Add.")
    assert recorder.flush()
    recorder.close()
    first, second, third = rows(tmp_path / "turns.db")
    assert first["text"] == ADD % "1" and first["calls"][0]["name"] == "add"
    assert {tool["name"] for tool in first["tools"]} == {"add", "fail", "wipe"}
    lines = [json.dumps(row).encode() for row in (first, second, third)]
    result = reread(lines, ReparseOptions())
    assert sorted(kind for _, kind in result.counts) == ["none", "same"]
    (batch,) = batches(tmp_path / "turns.db", 0, 0)
    assert rows(tmp_path / "turns.db", batch.end) == []


@pytest.mark.parametrize("is_head", [True, False])
def test_a_damaged_database_is_one_row_that_is_not_an_answer(is_head: bool, tmp_path: Path) -> None:
    path = tmp_path / "turns.db"
    recorder = Recorder(path)
    for number in range(40):
        go([ADD % str(number), "It is 3. " * 100], recorder, run_id=str(number), task="Add.")
    assert recorder.flush()
    recorder.close()
    data = path.read_bytes()
    # The header stays in both: without it, the file is no database, and its lines are read as JSON.
    damage = 16 if is_head else 3 * len(data) // 4
    path.write_bytes(data[:damage] + bytes([0xA5]) * (len(data) - damage))
    *read, last = rows(path)
    assert last["error"].startswith("the database is damaged: ")
    assert len(read) < 80
    *_, batch = batches(path, 0, 0)
    assert rows(path, batch.end) == []


def test_a_database_that_another_process_writes_is_read_later(tmp_path: Path) -> None:
    path = tmp_path / "turns.db"
    recorder = Recorder(path)
    go([ADD % "1", "It is 3."], recorder, run_id="a", task="Add.")
    assert recorder.flush()
    recorder.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises((ConfigurationError, StateError), match="locked"):
            rows(path)
    assert len(rows(path)) == 2


def test_parquet_continues_inside_a_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"text": [str(at) for at in range(1_000)], "model": ["m"] * 1_000})
    parquet.write_table(table, path, row_group_size=300)
    assert [row["text"] for row in rows(path)] == [str(at) for at in range(1_000)]
    assert [row["text"] for row in rows(path, 437)] == [str(at) for at in range(437, 1_000)]


@pytest.mark.parametrize("damage", ["end", "middle", "footer"])
def test_a_damaged_parquet_file_is_one_row_that_is_not_an_answer(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"text": [f"{at} {at * at}" for at in range(1_000)]})
    parquet.write_table(table, path, row_group_size=300, compression="snappy", use_dictionary=False)
    data = bytearray(path.read_bytes())
    if damage == "end":
        del data[-100:]
    elif damage == "middle":
        data[len(data) // 2 : len(data) // 2 + 200] = bytes([255]) * 200
    else:
        data[-60:-20] = bytes(40)
    path.write_bytes(data)
    *read, last = rows(path)
    assert last["error"].startswith("the Parquet file is damaged: ")
    assert [row["text"] for row in read] == [f"{at} {at * at}" for at in range(len(read))]
    assert (len(read) > 0) == (damage == "middle")
    (_, broken) = reread([json.dumps(last).encode()], ReparseOptions()).broken[0]
    assert "damaged" in broken
    # A later command begins behind the row that says so, and does not count it again.
    assert rows(path, len(read) + 1) == []


def test_progress_belongs_to_options_and_files(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", 2)
    progress = ProgressFile(tmp_path / "p.db", {"format": "hermes"})
    assert progress.progress(path) == (0, 0)
    (batch,) = batches(path, 0, 0)
    progress.add(batch, reread(batch.lines, ReparseOptions(format="hermes")))
    assert progress.progress(path) == (path.stat().st_size, 2)
    with pytest.raises(StateError, match="another process reads"):
        progress.add(batch, reread(batch.lines, ReparseOptions(format="hermes")))
    assert progress.summary()["rows"] == 2
    with path.open("a", encoding="utf-8") as file:
        file.write('{"text": "more"}\n')
    assert progress.progress(path)[1] == 2  # a log that has grown is read from there
    path.write_text('{"text": "another file"}\n', "utf-8")
    with pytest.raises(ConfigurationError, match="is not the file that was read before"):
        progress.progress(path)
    progress.close()
    with pytest.raises(ConfigurationError, match=r"has results of other options \(format, tools\): name"):
        ProgressFile(tmp_path / "p.db", {"format": "pythonic", "tools": [{"name": "f"}]})


def test_a_line_that_is_still_written_is_left_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "growing.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b')
    (batch,) = batches(path, 0, 0)
    assert (len(batch.lines), batch.end) == (1, len('{"text": "a"}\n'))
    assert is_unfinished(path, batch.end)
    with path.open("a") as file:
        file.write('c"}')
    (batch,) = batches(path, batch.end, 1)
    assert [json.loads(line) for line in batch.lines] == [{"text": "bc"}]
    assert not is_unfinished(path, batch.end)


def test_a_log_that_ends_in_a_line_without_an_answer_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text('INFO: start\n{"text": "a"}\nINFO: shutting down\n')
    (batch,) = batches(path, 0, 0)
    assert [json.loads(line) for line in batch.lines] == [{"text": "a"}]
    assert not is_unfinished(path, batch.end)
    with path.open("a") as file:
        file.write('{"text": "b')
    assert is_unfinished(path, batch.end)


def test_a_text_that_has_changed_is_not_taken_as_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    for text in ("", "x" * 5_000):
        path.write_text(text)
        (batch,) = batches(path, 0, 0)
        assert json.loads(batch.lines[0]) == {"text": text}
        assert list(batches(path, batch.end, 1)) == []
    path.write_text("x" * 5_000 + "<tool_call>")
    with pytest.raises(ConfigurationError, match="has changed since it was read"):
        list(batches(path, batch.end, 1))


def test_columns_of_parquet_that_python_cannot_express(tmp_path: Path) -> None:
    path = tmp_path / "answers.parquet"
    arguments = pyarrow.struct([("a", pyarrow.int64()), ("b", pyarrow.int64())])
    call = pyarrow.struct([("name", pyarrow.string()), ("arguments", arguments)])
    latin = pyarrow.Array.from_buffers(pyarrow.string(), 1, pyarrow.array([b"Gr\xfc\xdfe"]).buffers())
    distant = pyarrow.array([2**40], pyarrow.timestamp("s"))
    columns = {
        "text": pyarrow.array([b'<tool_call>"\n'], pyarrow.binary()),
        "time": pyarrow.array([1], pyarrow.timestamp("ns")),
        "far": distant,
        "note": latin,
        "notes": pyarrow.ListArray.from_arrays([0, 1], latin),
        "message": pyarrow.StructArray.from_arrays([latin, distant], ["content", "time"]),
        "calls": pyarrow.array([[{"name": "f", "arguments": {"a": 1}}]], pyarrow.list_(call)),
    }
    parquet.write_table(pyarrow.table(columns), path)
    (row,) = rows(path)
    assert row["text"] == '<tool_call>"\n'
    assert row["calls"] == [{"name": "f", "arguments": {"a": 1}}]
    assert row["note"] == "Gr\ufffd\ufffde"
    assert row["notes"] == ["Gr\ufffd\ufffde"]
    assert row["message"] == {"content": "Gr\ufffd\ufffde"}  # the part that has no form does not take the others away
    assert "far" not in row
