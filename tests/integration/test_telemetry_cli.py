"""`toolwire trace`, `stats` and `coach`, over what runs recorded."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.telemetry.scripts import ADD, go

from toolwire import Agent, ProviderError, cli
from toolwire.telemetry import Recorder
from toolwire.testing import ScriptedBackend


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def recorded(state: Path) -> Iterator[Path]:
    recorder = Recorder(state / "turns.db")
    go(["hi"], recorder, run_id="older")
    broken = "<tool_call>{]"
    go(
        ["Adding \x1b[31mred. " + ADD % '"1"', broken, "[add(a=1, b=2)]", "It is 3."],
        recorder,
        run_id="newer",
        task="Add 1 and 2.",
    )
    for at in range(40):
        recorder.outcome("tiny", "forge_xml", good=at % 2 == 0)
        recorder.outcome("tiny", "qwen3_coder", good=at > 0)
    assert recorder.flush()
    recorder.close()
    yield state


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert cli.run(arguments) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


def test_trace_shows_the_newest_run(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, "trace")
    assert shown.startswith("run newer")
    assert "task: Add 1 and 2.\n" in shown
    assert shown.index("round 1") < shown.index("round 2") < shown.index("round 3")
    assert "\x1b" not in shown
    assert "new in the request of 3 parts\n  tools add, fail, wipe\n  system " in shown
    assert shown.count("user Add 1 and 2.") == 1
    assert "  tool 3\n" in shown
    assert "repairs: coerced 1" in shown
    assert "  arguments" in shown
    assert '  add {"a": 1, "b": 2}\n    allowed, repaired: coerced' in shown
    assert "    -> 3\n" in shown
    assert "could not be read\n  <tool_call>{" in shown
    assert "asked for hermes, found call_list" in shown
    assert "answered after 4 rounds, 2 calls" in shown
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []


def test_trace_says_that_a_failed_request_has_no_answer(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(state / "turns.db")
    failing = Agent(ScriptedBackend([ProviderError("it is down")]), observers=[recorder], telemetry=False)
    failing.run_to_end_sync("Hello!")
    recorder.close()
    shown = run(capsys, "trace")
    assert "asked for fields of its API, found no call; ended by error" in shown
    assert "new in the request of 1 part\n" in shown
    assert "the model wrote\n  (no answer)\n" in shown
    assert "error after 1 round, 0 calls, " in shown
    assert run(capsys, "stats").split()[-7:] == ["0", "-", "-", "0", "-", "-", "-"]


def test_trace_takes_the_beginning_of_an_id(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "trace", "old").startswith("run older")
    assert "no run 'x' is recorded" in run(capsys, "trace", "x", status=1)


def test_trace_as_json_holds_all_of_it(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rows = map(json.loads, run(capsys, "trace", "--json").splitlines())
    messages = {row["id"]: row for row in rows if row["record"] == "message"}
    turns = [row for row in rows if row["record"] == "turn"]
    assert (first["record"], first["id"], first["children"]) == ("run", "newer", [])
    assert [turn["round"] for turn in turns] == [1, 2, 3, 4]
    assert [turn["good"] for turn in turns] == [1, 0, 0, None]
    assert turns[0]["calls"][0]["result"] == "3"
    assert turns[0]["events"][0][0] == "content"
    assert [messages[number]["role"] for number in turns[0]["request"]] == ["tools", "system", "user"]
    assert turns[1]["request"][:3] == turns[0]["request"], "a message is stored once"


@pytest.mark.need(38)
@pytest.mark.mission("A18")
def test_trace_gives_back_what_was_written(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "trace", "--raw", "3") == "[add(a=1, b=2)]"
    assert "no round 9" in run(capsys, "trace", "--raw", "9", status=2)


def test_a_raw_answer_does_not_steer_a_terminal(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program gets it as it was written."""
    assert run(capsys, "trace", "--raw", "1").startswith("Adding \x1b[31mred. ")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert run(capsys, "trace", "--raw", "1").startswith("Adding \\x1b[31mred. ")


def test_trace_lists_runs(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split("\t") for line in run(capsys, "trace", "--list").splitlines()]
    assert [(line[0], line[2], line[3], line[4], line[5], line[7]) for line in lines] == [
        ("newer", "tiny", "hermes", "answered", "4", "Add 1 and 2."),
        ("older", "tiny", "hermes", "answered", "1", "Work."),
    ]
    (only,) = map(json.loads, run(capsys, "trace", "--list", "--last", "1", "--json").splitlines())
    assert (only["id"], only["turns"]) == ("newer", 4)


def test_trace_says_how_many_records_were_dropped(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "dropped" not in run(capsys, "trace") + run(capsys, "trace", "--list")
    with closing(sqlite3.connect(recorded / "turns.db")) as connection, connection:
        connection.executemany("INSERT INTO losses VALUES (?, ?, 1e12)", [("newer", 3), ("never begun", 4)])
    why = "were dropped: too many at once, or the file could not be written\n"
    assert f"3 records of this run {why}" in run(capsys, "trace")
    assert "dropped" not in run(capsys, "trace", "older")
    assert run(capsys, "trace", "--list").endswith(f"7 records in all runs {why}")
    assert json.loads(run(capsys, "trace", "--json").splitlines()[0])["lost"] == 3
    assert [json.loads(line)["lost"] for line in run(capsys, "trace", "--list", "--json").splitlines()] == [3, 0]


def test_stats_count_per_model_and_format(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, "stats")
    assert "hermes        5  80.0%  33.3%      2  100.0%" in shown
    assert "hermes: repairs: coerced 1, fallback 1\n" in shown
    assert "hermes: written in other formats: call_list 1\n" in shown
    (row,) = map(json.loads, run(capsys, "stats", "--json", "--since", "1h").splitlines())
    assert (row["model"], row["format"], row["answers"], row["parse_rate"]) == ("tiny", "hermes", 5, 0.8)
    assert (row["tool_success"], row["mismatches"]) == (1.0, {"call_list": 1})
    assert run(capsys, "stats", "--json", "--model", "other") == ""
    assert "no such answer" in run(capsys, "stats", "--since", "2100-01-01", status=1)
    assert "'yesterday' is not a time" in run(capsys, "stats", "--since", "yesterday", status=2)


def test_coach_recommends_with_its_bounds(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, "coach", "report")
    lines = [line.split() for line in shown.splitlines()]
    assert ["qwen3_coder", "40", "97.5%", "87.1%", "99.6%", "recommended"] in lines
    assert ["forge_xml", "40", "50.0%", "35.2%", "64.8%"] in lines
    assert "Not settled: hermes may be as good." not in shown
    (report,) = map(json.loads, run(capsys, "coach", "report", "--model", "tiny", "--json").splitlines())
    assert (report["recommended"], report["settled"], report["interval"]) == ("qwen3_coder", True, "wilson")
    assert [one["format"] for one in report["formats"]] == ["forge_xml", "qwen3_coder", "hermes"]
    assert "no outcome of big" in run(capsys, "coach", "report", "--model", "big", status=1)


def test_where_nothing_is_recorded_that_is_said(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("trace",), ("stats",), ("coach", "report")):
        assert "nothing is recorded yet" in run(capsys, *arguments, status=1)
    assert list(state.iterdir()) == []


@pytest.mark.need(38)
def test_a_trace_can_be_read_again(recorded: Path) -> None:
    toolwire = f"{sys.executable} -m toolwire"
    command = f"{toolwire} trace --raw 1 | {toolwire} parse --format hermes --json"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    (call,) = json.loads(done.stdout)["tool_calls"]
    assert (call["name"], call["arguments"]) == ("add", {"a": "1", "b": 2})


def test_each_command_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("trace",), ("stats",), ("coach", "report")):
        assert "Examples:" in run(capsys, *arguments, "--help")
