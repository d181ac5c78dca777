"""Files on the inspector's page: exports, recorded runs, rows of texts and of traffic; and what is refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.inspector.recorded_exchanges import ask, get, inspected

from toolwire import ParsedResponse, ToolCall, parse, tool
from toolwire.agent import Agent
from toolwire.errors import ConfigurationError
from toolwire.inspector.inspector import Inspector
from toolwire.inspector.trace_files import open_files
from toolwire.telemetry import Archive, Recorder
from toolwire.testing import ScriptedBackend

OWN = Path(__file__).parents[2] / "conformance" / "own.jsonl"


def views(inspector: Inspector) -> list[Any]:
    return [inspector.view(id) for id in inspector.ids()]


def test_an_export_shows_what_the_gateway_showed(tmp_path: Path) -> None:
    gateway, live = inspected()
    ask(gateway, "chat", "text")
    ask(gateway, "messages", "api")
    file = tmp_path / "export.jsonl"
    file.write_bytes(get(gateway, "/export").body)
    stored = open_files([file])
    assert stored.source == "export.jsonl"
    for before, after in zip(views(live), views(stored), strict=True):
        assert {**after, "row": {**after["row"], "version": 0}} == {**before, "row": {**before["row"], "version": 0}}
    rows = stored.rows(1 << 40, 10)
    assert [row["number"] for row in rows] == [2, 1]


def test_an_export_twice_gives_each_exchange_an_id_of_its_own(tmp_path: Path) -> None:
    gateway, _ = inspected()
    ask(gateway, "chat", "text")
    file = tmp_path / "export.jsonl"
    file.write_bytes(get(gateway, "/export").body)
    assert len(set(open_files([file, file]).ids())) == 2


def test_the_rows_of_texts_show_the_calls_that_are_in_them() -> None:
    rows = [json.loads(line) for line in OWN.read_text("utf-8").splitlines()]
    inspector = open_files([OWN])
    assert inspector.ids() == [row["id"] for row in rows]
    for row in rows[:100]:
        view = inspector.view(row["id"])
        assert view is not None
        text = "".join(step["raw"] for step in view["steps"])
        tools = view["request"]["tools"]
        if text != row["text"] or tools != row.get("tools", []):
            assert "[redacted]" in json.dumps([text, tools])
            continue
        read = parse(text, format=row["format"], tools=tools, fallback="whole_message")
        assert [call["name"] for call in view["calls"] if call["complete"]] == [c.name for c in read.tool_calls]
        assert [problem["kind"] for problem in view["problems"]] == [p.kind for p in read.problems]


def test_recorded_traffic_is_read_in_the_words_of_its_api(tmp_path: Path) -> None:
    gateway, live = inspected()
    for stream in (True, False):
        ask(gateway, "messages", "api", stream=stream)
    lines = [get(gateway, f"/exchanges/{id}/row").body for id in live.ids()]
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(b"".join(lines))
    for before, after in zip(views(live), views(open_files([file])), strict=True):
        assert after["calls"][0]["arguments"] == before["calls"][0]["arguments"] == {"city": "Paris"}
        assert after["content"] == before["content"] and after["row"]["output"] == 12
        assert after["row"]["state"] == "done"


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


def recorded_run(path: Path) -> Archive:
    model = ScriptedBackend(
        [
            ParsedResponse("I look.", tool_calls=(ToolCall("look", {"place": "box"}, "call_1"),)),
            ParsedResponse("Nothing."),
        ]
    )
    recorder = Recorder(path)
    asyncio.run(Agent(model, tools=[look], observers=[recorder]).run_to_end("What is in the box?"))
    recorder.close()
    return Archive(path)


def test_runs_of_agents_are_shown_from_their_database_and_from_a_trace(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    recorded = recorded_run(database).run()
    trace = tmp_path / "trace.jsonl"
    records = [{"record": "run", **recorded.run}]
    records += [{"record": "message", **message} for message in recorded.messages.values()]
    records += [{"record": "turn", **turn} for turn in recorded.turns]
    trace.write_text("\n".join(json.dumps(record) for record in records))
    for path in (database, trace):
        first, second = views(open_files([path]))
        assert first["calls"][0]["name"] == "look" and first["calls"][0]["arguments"] == {"place": "box"}
        assert first["calls"][0]["result"] == "nothing in box"
        assert first["row"]["api_in"] == "agent" and first["row"]["session"] == second["row"]["session"]
        assert "What is in the box?" in json.dumps(first["request"])
        assert second["content"] == "Nothing." and second["row"]["number"] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"text": "a", "format": "hermes"}\n{', "line 2: this is not JSON"),
        (b'{"other": 1}\n', "line 1: this is not an exchange"),
        (b"[1]\n", "line 1: this is not an exchange"),
        (b'{"record": "turn", "round": 1}\n', "line 1: this is not an exchange"),
        (b"SQLite format 3\x00 but nothing behind it", "bad.jsonl: "),
        (b"\xff\xfe", "line 1: this is not JSON"),
    ],
)
def test_a_file_that_cannot_be_shown_is_named_with_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        open_files([file])
    assert message in str(caught.value) and "bad.jsonl" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.jsonl: No such file"):
        open_files([tmp_path / "none.jsonl"])
