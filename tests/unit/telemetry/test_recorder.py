"""The recorder and the archive, on real files: what is kept, what is not, and what happens when it cannot be."""

import asyncio
import json
import logging
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.telemetry.scripts import ADD, Heard, fail, go, wipe

from toolwire import ParsedResponse, ProviderError, ToolCall, ToolResult
from toolwire.agent import Agent, AgentConfig, AgentTeam, Member
from toolwire.errors import ConfigurationError, RunFailed, StateError
from toolwire.events import ArgumentsDelta, CallStart, ReasoningDelta
from toolwire.telemetry import (
    Archive,
    EndRecord,
    Recorder,
    RunRecord,
    Tally,
    TurnRecord,
    flush,
    standard_archive,
)
from toolwire.telemetry import recorder as module
from toolwire.telemetry.row_codec import MAX_EVENTS, MAX_RAW, NOT_KEPT, kept, turn_rows
from toolwire.testing import ScriptedBackend

SECRET = "hunter2-and-more"
LOGIN = '<tool_call>{"name": "wipe", "arguments": {"path": "/x", "password": "' + SECRET + '"}}</tool_call>'


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    made = Recorder(tmp_path / "turns.db")
    yield made
    made.close()


def archive_of(recorder: Recorder) -> Archive:
    assert recorder.flush(60)
    assert recorder.lost == 0
    return Archive(recorder.path)


def turn(**changes: object) -> TurnRecord:
    heard = Heard()
    go([ADD % 1], heard)
    return replace(heard.turns[0], **changes)  # type: ignore[arg-type]


@pytest.mark.mission("A18")
def test_a_run_is_kept_whole(recorder: Recorder) -> None:
    texts = ["Adding. " + ADD % '"1"', "<tool_call>{]", '<tool_call>{"name": "fail", "arguments": {}}</tool_call>']
    go(texts, recorder, run_id="abcdef", task="Work on it.")
    found = archive_of(recorder).run("abc")
    assert (found.run["id"], found.run["task"], found.run["reason"], found.run["rounds"]) == (
        "abcdef",
        "Work on it.",
        "answered",
        4,
    )
    first, second, third, last = found.turns
    assert first["raw"] == "Adding. " + ADD % '"1"'
    assert [kind for kind, _, _ in first["events"]] == [
        *("content", "call start", "arguments", "call end", "usage", "finish")
    ]
    assert first["repairs"] == {"coerced": 1}
    assert first["formats"] == ["hermes"]
    (call,) = first["calls"]
    assert (call["tool"], json.loads(call["arguments"]), call["decision"]) == ("add", {"a": 1, "b": 2}, "allowed")
    assert (call["ok"], call["result"], call["repairs"]) == (1, "3", ["coerced"])
    assert second["failed"].startswith("<tool_call>{")
    assert sum(second["problems"].values()) == 1
    assert second["correction"]
    assert (third["calls"][0]["ok"], third["calls"][0]["error"]) == (0, "broken")
    assert (last["calls"], last["good"]) == ([], None)


def test_runs_are_found_by_their_beginning_or_as_the_newest(recorder: Recorder) -> None:
    for name in ("aaa1", "aaa2", "b"):
        go(["hi"], recorder, run_id=name)
    archive = archive_of(recorder)
    assert archive.run().run["id"] == "b"
    assert archive.run("aaa2").run["id"] == "aaa2"
    assert [run["id"] for run in archive.runs(2)] == ["b", "aaa2"]
    with pytest.raises(StateError, match=r"several runs begin with 'aaa': aaa1, aaa2"):
        archive.run("aaa")
    with pytest.raises(StateError, match="no run 'x' is recorded"):
        archive.run("x")
    with pytest.raises(StateError, match="no such file yet"):
        Archive(recorder.path.with_name("none.db")).run()


@pytest.mark.mission("A18", "F37", "F46")
def test_figures_are_per_model_and_format(recorder: Recorder) -> None:
    go([ADD % 1, ADD % '"2"', "<tool_call>{]", "5"], recorder)
    go(["[add(a=1, b=2)]", '<tool_call>{"name": "fail", "arguments": {}}</tool_call>'], recorder)
    go([ADD % 1], recorder, model="big")
    go(["<tool_call>x", "y"], recorder, format="forge_xml")
    archive = archive_of(recorder)
    figures = {(one.model, one.format): one for one in archive.figures()}
    assert list(figures) == [("big", "hermes"), ("tiny", "forge_xml"), ("tiny", "hermes")]
    tiny = figures["tiny", "hermes"]
    assert (tiny.answers, tiny.clean, tiny.calls, tiny.worked) == (7, 6, 4, 3)
    assert tiny.repairs == {"coerced": 1, "fallback": 1}
    assert tiny.mismatches == {"call_list": 1}
    assert (tiny.tried, tiny.good) == (5, 3)
    assert tiny.parse_rate == pytest.approx(6 / 7)
    assert tiny.tool_success == pytest.approx(3 / 4)
    assert 0 <= tiny.median <= tiny.p95
    assert tiny.time_to_first_event is not None
    assert [one.model for one in archive.figures(model="big")] == ["big"]
    assert [one.format for one in archive.figures(format="forge_xml")] == ["forge_xml"]
    assert archive.figures(since=time.time() + 60) == []
    assert archive.models() == ["big", "tiny"]
    assert archive.evidence("tiny") == [Tally("hermes", 5, 3)]
    assert archive.evidence("tiny", ("pythonic", "hermes")) == [Tally("pythonic"), Tally("hermes", 5, 3)]


def test_outcomes_may_come_from_elsewhere(recorder: Recorder) -> None:
    for good in (True, True, False):
        recorder.outcome("tiny", "hermes", good=good)
    assert archive_of(recorder).evidence("tiny") == [Tally("hermes", 3, 2)]


def test_secrets_are_kept_nowhere(recorder: Recorder) -> None:
    async def agree(_: object) -> bool:
        return True

    task = f"Wipe /x with password={SECRET}."
    go([LOGIN, f"I said {SECRET}."], recorder, confirm=agree, task=task)
    found = archive_of(recorder).run()
    (call,) = found.turns[0]["calls"]
    assert (call["ok"], call["decision"]) == (1, "approved by user")
    assert json.loads(call["arguments"])["password"] == "[redacted]"
    assert call["result"] == "/x is gone, and so is [redacted]"
    assert found.run["task"] == "Wipe /x with password=[redacted]"
    recorder.close()
    whole = b"".join(path.read_bytes() for path in recorder.path.parent.iterdir())
    assert SECRET.encode() not in whole
    assert b"/x is gone" in whole
    assert b"I said [redacted]" in whole


def test_figures_alone_hold_no_text(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db", content=False)
    go(["Some prose. " + ADD % 1, "<tool_call>{]", "More prose."], recorder, task="A secret task.")
    found = archive_of(recorder).run()
    assert (found.run["task"], found.turns[0]["raw"], found.turns[0]["events"]) == ("", "", [])
    assert (found.turns[0]["calls"][0]["tool"], found.turns[0]["calls"][0]["ok"]) == ("add", 1)
    assert found.turns[1]["problems"]
    recorder.close()
    whole = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not [text for text in (b"prose", b"secret task", b"{]", b'"a"') if text in whole]


def test_figures_alone_hold_neither_errors_nor_names_that_were_made_up(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db", content=False)
    made_up = ToolCall("my_diagnosis", {}, "an id of the model")
    backend = ScriptedBackend([ParsedResponse(tool_calls=(made_up,)), ProviderError("400: 'my diagnosis' is no text")])
    agent = Agent(backend, [fail], observers=[recorder], telemetry=False)
    with pytest.raises(RunFailed):
        asyncio.run(agent.ask("?"))
    found = archive_of(recorder).run()
    (call,) = found.turns[0]["calls"]
    assert (call["tool"], call["id"], call["issue"], found.turns[1]["error"]) == (
        NOT_KEPT,
        "",
        "unknown_tool",
        NOT_KEPT,
    )
    assert archive_of(recorder).figures()[0].answers == 1
    recorder.close()
    whole = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not [text for text in (b"diagnosis", b"an id of") if text in whole]


def test_a_secret_is_taken_out_of_what_was_kept_before_it_was_known(recorder: Recorder) -> None:
    secret = 'Zx9 "hunter"'
    login = ToolCall("wipe", {"path": "/x", "password": secret}, "1")
    helper = Agent(ScriptedBackend([ParsedResponse(tool_calls=(login,)), "done"]), [wipe], AgentConfig(name="helper"))
    helper.observers = (recorder,)
    ask = ToolCall("helper", {"task": f"Use {secret}."}, "1")
    said = ToolCall("fail", {}, "2")
    answers = [ParsedResponse(f"I shall use {secret}.", tool_calls=(said,)), ParsedResponse(tool_calls=(ask,))]
    lead = Agent(ScriptedBackend([*answers, "done"]), [fail], observers=[recorder], telemetry=False)
    AgentTeam(lead, [Member(helper, "Wipes.")])
    asyncio.run(lead.ask(f"Wipe with {secret} please", run_id="mine"))
    found = archive_of(recorder).run("mine")
    assert found.run["task"] == "Wipe with [redacted] please"
    assert found.turns[0]["raw"].startswith("I shall use [redacted].")
    assert json.loads(found.turns[1]["calls"][0]["arguments"]) == {"task": "Use [redacted]."}
    assert archive_of(recorder).run("mine/").run["task"] == "Use [redacted]."
    recorder.close()
    whole = b"".join(path.read_bytes() for path in recorder.path.parent.iterdir())
    assert b"Zx9" not in whole


def test_runs_of_one_name_have_a_row_each(recorder: Recorder) -> None:
    for task in ("one", "two", "three"):
        go([ADD % 1, f"answer {task}"], recorder, run_id="nightly", task=task)
    go(["hi"], recorder, run_id="nights")
    archive = archive_of(recorder)
    tasks = {name: archive.run(name) for name in ("nightly", "nightly#1", "nightly#2", "nightl")}
    assert {name: found.run["task"] for name, found in tasks.items()} == {
        "nightly": "three",
        "nightly#1": "one",
        "nightly#2": "two",
        "nightl": "three",
    }
    assert all(len(found.turns) == 2 for found in tasks.values())
    assert {found.namesakes for found in tasks.values()} == {("nightly", "nightly#2", "nightly#3")}
    assert archive.run("nights").namesakes == ()


def test_a_run_that_was_stopped_and_goes_on_stays_one(recorder: Recorder) -> None:
    def begun(instance: int, task: str = "Use password=hunter2.") -> None:
        recorder.begin(RunRecord("mine", "agent", "tiny", "", "hermes", task, "", time.time(), instance))
        recorder.turn(turn(run="mine", instance=instance))

    begun(1)
    recorder.end(EndRecord("mine", "stopped", good=False, instance=1))
    begun(2)
    recorder.flush()
    assert len(Archive(recorder.path).runs()) == 1
    begun(3)  # while the second goes on: it is another
    recorder.end(EndRecord("mine", "answered", good=True, instance=2))
    recorder.end(EndRecord("mine", "stopped", good=False, instance=3))
    begun(4, "Something else.")
    recorder.end(EndRecord("mine", "answered", good=True, instance=4))
    runs = {run["id"]: (run["turns"], run["reason"]) for run in archive_of(recorder).runs()}
    assert runs == {"mine": (2, "answered"), "mine#2": (1, "stopped"), "mine#3": (1, "answered")}


def test_a_run_that_had_ended_and_is_told_again_stays_one(recorder: Recorder) -> None:
    for instance in (1, 2, 3):
        recorder.begin(RunRecord("mine", "agent", "tiny", "", "hermes", "Work.", "", time.time(), instance))
        if instance != 2:  # nothing is told of answers that came before, but for calls that were made since
            recorder.turn(turn(run="mine", instance=instance, replayed=instance == 3))
        recorder.end(
            EndRecord("mine", "budget" if instance == 1 else "answered", good=True, rounds=1, instance=instance)
        )
    found = archive_of(recorder).run("mine")
    assert (found.run["reason"], len(found.turns), len(found.turns[0]["calls"])) == ("answered", 1, 2)
    assert len(archive_of(recorder).runs()) == 1


def test_pieces_of_arguments_that_come_in_turns_are_put_together() -> None:
    events = (
        CallStart(0, "a", "1"),
        CallStart(1, "b", "2"),
        ArgumentsDelta(0, '{"password": "hun'),
        ArgumentsDelta(1, '{"k": "Stap'),
        ReasoningDelta("hm"),
        ArgumentsDelta(0, 'ter2secret"}'),
        ArgumentsDelta(1, 'le99", "n": 1}'),
    )
    rows = turn_rows(turn(events=events), content=True, known=["Staple99"])
    assert json.loads(rows.turn["events"])[2:] == [
        ["arguments", '{"password": "[redacted]"}', 2],
        ["arguments", '{"k": "[redacted]", "n": 1}', 2],
        ["reasoning", "hm", 1],
    ]


def test_only_the_user_may_read_the_file(recorder: Recorder) -> None:
    go(["hi"], recorder)
    archive_of(recorder)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in recorder.path.parent.iterdir()}
    assert modes["turns.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_what_is_too_long_is_cut() -> None:
    assert kept("a" * 10, 10) == "a" * 10
    assert kept("a" * 12, 10) == "a" * 10 + "… (2 characters left out)"
    assert "hunter" not in kept("x" * 8 + " password=hunter2", 22)
    assert kept("a\ud800b", 10) == "a\\ud800b"
    long = turn(raw="x" * (MAX_RAW * 3), events=turn().events * 100)
    rows = turn_rows(long, content=True)
    assert len(rows.turn["raw"]) < MAX_RAW + 100
    events = json.loads(rows.turn["events"])
    assert len(events) == MAX_EVENTS + 1
    assert events[-1][0] == "left out"


def test_a_file_that_cannot_be_used_breaks_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all, but long enough to be looked at" * 40)
    recorder = Recorder(broken)
    with caplog.at_level(logging.WARNING, "toolwire.telemetry"):
        go([ADD % 1, "3"], recorder)
        assert recorder.flush()
        go(["hi"], recorder)
        assert recorder.flush()
    assert recorder.lost == 7
    assert [record.message.split(":")[0] for record in caplog.records] == ["nothing is recorded"]
    recorder.close()


def test_a_value_that_is_not_what_it_should_be_costs_only_itself(recorder: Recorder) -> None:
    recorder.turn(turn(run="r", started_at=object()))
    recorder.turn(turn(run="r"))
    recorder.begin(RunRecord("r", "agent", "tiny", "", "hermes", "", "", 1.0))
    assert recorder.flush()
    assert recorder.lost == 1
    assert len(Archive(recorder.path).run("r").turns) == 1


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db", most_days=10)
    now = time.time()
    for days in (11, 9, 1):
        recorder.begin(RunRecord(f"{days} days", "agent", "tiny", "", "hermes", "", "", now - days * 86_400))
        recorder.turn(turn(run=f"{days} days", started_at=now - days * 86_400))
    recorder.flush()
    recorder.close()
    recorder.turn(turn(run="1 days", started_at=now))  # a thread that begins looks once
    archive = archive_of(recorder)
    assert {run["id"] for run in archive.runs()} == {"9 days", "1 days"}
    assert archive.evidence("tiny")[0].tried == 4, "evidence is small, and outlives its turns"
    recorder.close()


def test_messages_are_stored_once_though_old_turns_are_looked_for(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVICT_EVERY", 1)
    monkeypatch.setattr(module, "BATCH", 1)
    go([ADD % 1, ADD % 2, "3"], recorder, task="Add them.")
    texts = [message["text"] for message in archive_of(recorder).run().messages.values()]
    assert len(texts) == len(set(texts))
    assert "Add them." in texts


def test_what_is_too_much_goes_the_oldest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVICT_EVERY", 20)
    monkeypatch.setattr(module, "BATCH", 20)
    recorder = Recorder(tmp_path / "turns.db", most_bytes=400_000)
    one = turn(raw="x y" * 3_000)
    for at in range(120):
        recorder.begin(RunRecord(f"{at:03}", "agent", "tiny", "", "hermes", "", "", 1e9 + at))
        recorder.turn(replace(one, run=f"{at:03}", started_at=time.time() + at))
    archive = archive_of(recorder)
    kept_runs = [run["id"] for run in archive.runs(1_000) if run["turns"]]
    assert kept_runs[0] == "119"
    assert len(kept_runs) < 60
    assert kept_runs == sorted(kept_runs, reverse=True)
    recorder.close()
    assert recorder.path.stat().st_size < 1_000_000


@pytest.fixture
def writing(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An event before which the recorder's thread takes nothing from the queue."""
    go_on, batch = threading.Event(), module._batch

    def late_batch(*arguments: Any) -> Any:
        assert go_on.wait(30)
        return batch(*arguments)

    monkeypatch.setattr(module, "_batch", late_batch)
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    yield go_on
    go_on.set()


def test_too_much_at_once_is_dropped_counted_and_reported(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, writing: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "WAITING", 3)
    waits: list[float] = []
    wait_for = recorder._room.wait_for
    monkeypatch.setattr(recorder._room, "wait_for", lambda *given: waits.append(given[1]) or wait_for(*given))
    recorder.begin(RunRecord("r", "agent", "tiny", "", "hermes", "", "", 1.0))
    for run in ["r"] * 6 + ["never begun"] * 4:
        recorder.turn(turn(run=run))
    recorder.outcome("tiny", "hermes", good=True)
    assert recorder.lost == 9
    assert len(waits) == 1, "a run waits once, and none after it while the queue stays full"
    writing.set()
    assert recorder.flush()
    archive = Archive(recorder.path)
    assert (archive.run("r").lost, len(archive.run("r").turns)) == (4, 2)
    assert [run["lost"] for run in archive.runs()] == [4]
    assert archive.lost() == 9
    assert [record.message for record in caplog.records] == ["records of runs are dropped: there are too many at once"]
    recorder.turn(turn(run="r"))
    assert recorder.flush()
    assert (recorder.lost, archive.lost(), recorder._jammed) == (9, 9, False), "a loss is recorded once"


def test_a_run_waits_for_room_in_the_queue(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, writing: threading.Event
) -> None:
    monkeypatch.setattr(module, "WAITING", 3)
    monkeypatch.setattr(module, "PATIENCE", 30.0)
    waits = threading.Event()
    wait_for = recorder._room.wait_for
    monkeypatch.setattr(recorder._room, "wait_for", lambda *given: waits.set() or wait_for(*given))
    run = threading.Thread(target=lambda: [recorder.turn(turn(run="r")) for _ in range(20)])
    run.start()
    assert waits.wait(30)
    writing.set()
    run.join(30)
    assert len(archive_of(recorder)._read("SELECT id FROM turns")) == 20
    assert recorder.lost == 0


def test_losses_of_a_broken_file_are_recorded_once_it_can_be_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db")
    recorder.path.mkdir()
    recorder.turn(turn(run="r"))
    assert recorder.flush()
    assert recorder.lost == 1
    recorder.path.rmdir()
    assert recorder.flush()
    assert Archive(recorder.path).lost() == 1
    recorder.close()


def test_memory_of_what_waits_is_bounded(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, writing: threading.Event
) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES", 1 << 20)
    big = "x" * 300_000
    done = turn().calls[0]
    for one in (turn(raw=big), turn(calls=(replace(done, result=ToolResult("1", "add", {"a": [big]})),))):
        for _ in range(10):
            recorder.turn(one)
    assert 12 <= recorder.lost <= 19
    writing.set()
    assert recorder.flush()
    lost = recorder.lost
    recorder.turn(turn(raw=big))
    assert recorder.flush()
    assert recorder.lost == lost, "what is written waits no more"


def test_the_number_of_runs_with_counted_losses_is_bounded(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, writing: threading.Event
) -> None:
    monkeypatch.setattr(module, "WAITING", 1)
    monkeypatch.setattr(module, "COUNTED_RUNS", 2)
    for at in range(9):
        recorder.turn(turn(run=f"{at}"))
    assert len(recorder._losses) == 3
    writing.set()
    assert recorder.flush()
    assert Archive(recorder.path).lost() == recorder.lost == 8


def test_the_file_is_looked_after_by_bytes_too(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db", most_bytes=1 << 20)
    one = turn(raw="x y" * 5_000, events=turn().events)
    for at in range(400):  # 6 MB
        recorder.turn(replace(one, run=f"{at:03}", started_at=1e10))  # all of one moment
        if not at % 50:
            recorder.flush()
    assert recorder.flush()
    recorder.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3 << 20


def test_it_goes_on_after_it_was_closed(recorder: Recorder) -> None:
    recorder.turn(turn())
    recorder.close()
    recorder.turn(turn())
    assert archive_of(recorder).evidence("tiny") == [Tally("hermes", 2, 2)]


CHILD = """
    import sys, tests.unit.telemetry.scripts as scripts
    from toolwire.telemetry import Recorder
    recorder = Recorder(sys.argv[1])
    for at in range(20):
        scripts.go([scripts.ADD % at, "done"], recorder, run_id=f"{sys.argv[2]}-{at}")
"""


def test_processes_write_one_file_and_nothing_is_lost_at_their_end(tmp_path: Path) -> None:
    path = tmp_path / "turns.db"
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(path)]
    children = [subprocess.Popen([*command, str(at)]) for at in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    archive = Archive(path)
    assert len(archive.runs(1_000)) == 60
    assert archive.evidence("tiny") == [Tally("hermes", 60, 60)]
    assert archive.figures()[0].answers == 120


def _told_in_a_child(recorder: Recorder) -> None:
    go(["hi"], recorder, run_id="child")
    recorder.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_of_a_fork_records_too(recorder: Recorder) -> None:
    go(["hi"], recorder, run_id="parent")
    recorder.flush()
    child = multiprocessing.get_context("fork").Process(target=_told_in_a_child, args=(recorder,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    go(["hi"], recorder, run_id="parent again")
    assert {run["id"] for run in archive_of(recorder).runs()} == {"parent", "child", "parent again"}


def test_a_file_that_another_holds_is_waited_for(recorder: Recorder) -> None:
    go(["hi"], recorder)
    archive_of(recorder)
    holder = sqlite3.connect(recorder.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    go(["hi"], recorder)
    assert not recorder.flush(0.3)
    holder.execute("ROLLBACK")
    holder.close()
    assert len(archive_of(recorder).runs()) == 2


# -- when runs are recorded -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("switch", "telemetry", "recorded"),
    [
        ("", None, None),
        ("", False, None),
        ("", True, "a task"),
        ("on", None, "a task"),
        ("on", False, None),
        ("on", True, "a task"),
        ("figures", None, ""),
        ("figures", True, ""),
        ("off", None, None),
        ("off", True, None),
    ],
)
def test_a_library_records_only_where_it_is_asked_for(
    switch: str, telemetry: bool | None, recorded: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    monkeypatch.setenv("TOOLWIRE_RECORD", switch)
    asyncio.run(Agent(ScriptedBackend(["done"]), telemetry=telemetry).ask("a task"))
    flush()
    assert (tmp_path / "turns.db").exists() == (recorded is not None)
    if recorded is not None:
        assert [run["task"] for run in standard_archive().runs()] == [recorded]
    for observer in (*module._recorders,):
        observer.close()


def test_an_unknown_value_of_the_switch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_RECORD", "perhaps")
    with pytest.raises(ConfigurationError, match="on, off or figures, not 'perhaps'"):
        Agent(ScriptedBackend(["done"]))
    for observer in (*module._recorders,):
        observer.close()


def test_a_clock_that_jumps_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path / "turns.db", most_days=10)
    now = time.time()
    recorder.turn(turn(run="before", started_at=now))
    assert recorder.flush()
    monkeypatch.setattr(module.time, "time", lambda: now + 1e9)
    with sqlite3.connect(recorder.path) as connection:
        recorder.evict(connection)
        assert connection.execute("SELECT count(*) FROM turns").fetchone() == (1,)
    connection.close()
    recorder.close()
    again = Recorder(tmp_path / "turns.db", most_days=10)
    with sqlite3.connect(recorder.path) as connection:
        again.evict(connection)
        assert connection.execute("SELECT count(*) FROM turns").fetchone() == (0,), "by the time that it begins with"
    connection.close()
    again.close()
