"""`toolwire reparse`: logs read again in processes, killed at any moment, and continued without loss."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from toolwire.cli import run

JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
HERMES = f"<tool_call>\n{JSON}\n</tool_call>"
TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
KILLS = 20


def write(path: Path, count: int) -> Path:
    """Write rows of each class; the sixth of each is not an answer."""
    with path.open("w", encoding="utf-8") as file:
        for at in range(count):
            text = HERMES.replace("Paris", f"City {at}") if at % 3 else "No."
            calls = [] if at % 2 else [{"name": "get_weather", "arguments": {"city": f"City {at}"}}]
            row = {"model": f"m{at % 2}", "text": text, "calls": calls, "tools": [TOOL]}
            file.write(json.dumps(row if at % 6 != 5 else {"nothing": at}) + "\n")
    return path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reparse(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[Any, str]:
    """Return the figures, or None, and what was written to standard error."""
    assert run(["reparse", *arguments, "--json"]) == status
    captured = capsys.readouterr()
    return json.loads(captured.out) if captured.out else None, captured.err


def test_classes_by_model_in_processes_and_without(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "a.jsonl", 1_200)
    alone, _ = reparse(capsys, "a.jsonl", "-f", "hermes", "--workers", "1", "--out", "one")
    assert alone["counts"] == {
        "": {"broken": 200},
        "m0": {"lost": 200, "same": 400},
        "m1": {"gained": 200, "none": 200},
    }
    assert alone["rows"] == 1_200
    assert alone["broken"][0].startswith("a.jsonl, row 6: it has no text")
    several, _ = reparse(capsys, "a.jsonl", "-f", "hermes", "--workers", "2", "--out", "two")
    assert several == alone
    assert Path("one/different.jsonl").read_bytes() == Path("two/different.jsonl").read_bytes()
    first = json.loads(Path("one/different.jsonl").read_text("utf-8").splitlines()[0])
    assert first == {
        "source": "a.jsonl",
        "row": 1,
        "model": "m0",
        "class": "lost",
        "before": [["get_weather", {"city": "City 0"}]],
        "now": [],
    }


def test_a_second_run_reads_only_what_was_added(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(here / "a.jsonl", 6)
    reparse(capsys, "a.jsonl", "-f", "hermes", "--workers", "1")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"model": "new", "text": HERMES, "calls": []}) + "\n")
    figures, _ = reparse(capsys, "a.jsonl", "-f", "hermes", "--workers", "1")
    assert figures["rows"] == 7 and figures["counts"]["new"] == {"gained": 1}


def test_figures_say_that_they_include_other_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write(here / name, 1)
    _, alone = reparse(capsys, "a.jsonl", "-f", "hermes", "--workers", "1")
    assert "earlier" not in alone
    figures, said = reparse(capsys, "b.jsonl", "-f", "hermes", "--workers", "1")
    assert figures["rows"] == 2
    assert "the figures include 1 file of earlier commands, such as a.jsonl; --out DIR names another directory" in said


def test_the_table_and_the_check(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "a.jsonl", 6)
    assert run(["reparse", "a.jsonl", "-f", "hermes", "--workers", "1", "--check"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("model\tanswers\tsame\tnone\tgained\tlost\tbroken\n")
    assert "m0\t3\t2 (66.7%)\t0 (0.0%)\t0 (0.0%)\t1 (33.3%)\t0 (0.0%)\n" in captured.out
    assert "lost    a.jsonl, row 1\n" in captured.out
    assert "toolwire: a.jsonl, row 6: it has no text" in captured.err
    (here / "good.jsonl").write_text(json.dumps({"text": HERMES, "calls": [json.loads(JSON)]}), "utf-8")
    assert run(["reparse", "good.jsonl", "-f", "hermes", "--workers", "1", "--check", "--out", "good"]) == 0


def test_a_file_without_any_answer_is_bad_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "notes.jsonl").write_text('{"note": 1}\nno JSON\n', "utf-8")
    assert run(["reparse", "notes.jsonl", "--workers", "1"]) == 2
    captured = capsys.readouterr()
    assert "toolwire: notes.jsonl, row 1: it has no text" in captured.err
    *_, last = captured.err.splitlines()
    assert last.startswith("toolwire: none of the rows is an answer: files of JSON have one object in each line, and")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.jsonl",), "missing.jsonl does not exist"),
        (("a.jsonl", "-f", "herms"), "herms"),
        (("a.jsonl", "--was", "herms"), "herms"),
        (("a.jsonl", "--fallback", "some"), "--fallback is none, whole_message, embedded"),
        (("empty",), "there is no file in empty"),
    ],
)
def test_wrong_usage_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    write(here / "a.jsonl", 1)
    (here / "empty").mkdir()
    figures, error = reparse(capsys, *arguments, status=2)
    assert figures is None and message in error and error.count("\n") == 1


def figures_of(path: Path) -> tuple[Any, ...]:
    queries = (
        "SELECT * FROM counts ORDER BY model, class",
        "SELECT * FROM tallies ORDER BY model, kind, name",
        "SELECT row, class, now FROM different ORDER BY row",
        "SELECT row FROM broken ORDER BY row",
        "SELECT position, rows FROM sources",
    )
    with closing(sqlite3.connect(path)) as connection:
        return tuple(connection.execute(query).fetchall() for query in queries)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_twenty_kills_lose_no_row_and_count_none_twice(here: Path) -> None:
    count = 16_000
    write(here / "a.jsonl", count)
    command = [sys.executable, "-m", "toolwire", "reparse", "a.jsonl", "-f", "hermes", "--workers"]
    whole = subprocess.run([*command, "1", "--out", "whole"], capture_output=True, check=False)
    assert whole.returncode == 0, whole.stderr
    choose = random.Random(7)
    database = here / "killed" / "reparse.db"
    kills = moved = 0
    while kills < KILLS:
        # Most runs have one process, which starts faster; the results are written by it in any case.
        workers = "1" if kills % 5 else "2"
        arguments = [*command, workers, "--out", "killed"]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = rows_in(database)
        # Killed at a random moment after the first batches of this run, or before them.
        goal = before + choose.choice((0, 1, 300, 700))
        while process.poll() is None and rows_in(database) < goal:
            time.sleep(0.005)
        time.sleep(choose.random() * 0.02)
        process.kill()
        process.wait()
        assert process.returncode == -signal.SIGKILL, "the file is too small for so many kills"
        kills += 1
        moved += rows_in(database) > before
    assert moved >= KILLS // 3
    assert subprocess.run([*command, "2", "--out", "killed"], capture_output=True, check=False).returncode == 0
    assert figures_of(database) == figures_of(here / "whole" / "reparse.db")
    assert sum(rows for *_, rows in figures_of(database)[0]) == count


def rows_in(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute("SELECT COALESCE(SUM(rows), 0) FROM sources").fetchone()[0])
        except sqlite3.OperationalError:  # not created yet
            return 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_processes_end_with_a_run_that_is_killed(here: Path) -> None:
    write(here / "a.jsonl", 24_000)
    command = [sys.executable, "-m", "toolwire", "reparse", "a.jsonl", "-f", "hermes", "--workers", "2"]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while rows_in(here / "reparse" / "reparse.db") == 0:
        assert process.poll() is None
        time.sleep(0.01)
    assert len(members(process.pid)) >= 3
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert members(process.pid) == []


def members(session: int) -> list[int]:
    """Return the processes of a session that are not zombies."""
    processes = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                processes.append(int(entry))
    return processes


def test_results_beside_the_logs_are_not_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = here / "mixed"
    logs.mkdir()
    (logs / "a.jsonl").write_text(json.dumps({"text": "Hello.", "calls": []}))
    for _ in range(2):
        assert run(["reparse", str(logs), "--out", str(logs / "out"), "--workers", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rows"] == 1


def test_files_of_other_programs_are_named_and_left_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = here / "mixed"
    logs.mkdir()
    (logs / "z.jsonl").write_text(json.dumps({"text": "Hello.", "calls": []}))
    with closing(sqlite3.connect(logs / "photos.db")) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
        connection.execute("PRAGMA user_version=1")
    content = (logs / "photos.db").read_bytes()
    for _ in range(2):
        assert run(["reparse", str(logs), "--workers", "1", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["counts"] == {"": {"broken": 1, "none": 1}}
        assert "a database of another program" in report["broken"][0]
    assert (logs / "photos.db").read_bytes() == content


def test_lone_surrogates_in_names_and_texts_do_not_end_the_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")  # a name that is not UTF-8
    row = {"model": "m\ud800", "text": "t\udfff", "calls": [{"name": "w\ud800"}]}
    (here / name).write_text(json.dumps(row))
    for _ in range(2):
        assert run(["reparse", str(here / name), "--workers", "1", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["counts"] == {"m\\ud800": {"lost": 1}}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals of a terminal")
def test_an_interruption_of_all_processes_prints_one_line(here: Path) -> None:
    (here / "many.jsonl").write_text((json.dumps({"text": "<tool_call>" * 30}) + "\n") * 30_000)
    command = [sys.executable, "-m", "toolwire", "reparse", "many.jsonl", "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=here, start_new_session=True)
    # The workers import their modules when the file of results is there, and answer nothing yet.
    while not (here / "reparse" / "reparse.db").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in errors and b"KeyboardInterrupt" not in errors
