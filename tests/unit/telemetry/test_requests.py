"""Requests in records: each message once, without secrets, and none where contents are left out."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.telemetry.scripts import add

import toolwire
from toolwire import ImagePart, Message, ParsedResponse, TextPart, ToolCall
from toolwire.agent import Agent, AgentConfig
from toolwire.telemetry import Archive, Recorded, Recorder
from toolwire.telemetry.request_rows import StoredMessages, message_text
from toolwire.testing import ScriptedBackend


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "turns.db")
    yield recorder
    recorder.close()


def calling(round: int) -> ParsedResponse:
    return ParsedResponse(tool_calls=(ToolCall("add", {"a": round, "b": 2}, f"c{round}"),))


def recorded(recorder: Recorder, answers: list[ParsedResponse | str], task: str = "Add.") -> Recorded:
    config = AgentConfig(system="You add numbers.")
    agent = Agent(ScriptedBackend(answers), [add], config, observers=[recorder])
    asyncio.run(agent.ask(task, run_id="sums"))
    assert recorder.flush()
    return Archive(recorder.path).run("sums")


def texts(run: Recorded, turn: int) -> list[tuple[str, str]]:
    rows = [run.messages[number] for number in run.turns[turn]["request"]]
    return [(row["role"], row["text"]) for row in rows]


def test_a_request_is_the_prompt_the_tools_and_the_conversation(recorder: Recorder) -> None:
    run = recorded(recorder, [calling(1), "3"])
    (_, tools), *messages = texts(run, 0)
    assert tools.startswith('add {"name": "add", "description": ')
    assert messages == [("system", "You add numbers."), ("user", "Add.")]
    assert texts(run, 1)[1:] == [*messages, ("assistant", 'add {"a": 1, "b": 2}'), ("tool", "3")]


def test_a_message_is_stored_once_however_many_rounds_there_are(recorder: Recorder) -> None:
    rounds = 12
    run = recorded(recorder, [*map(calling, range(rounds)), "done"])
    assert len(run.turns) == rounds + 1
    assert len(run.messages) == 3 + 2 * rounds  # tools, prompt and task; then a call and its result in each round
    assert len(run.turns[-1]["request"]) == 3 + 2 * rounds
    for before, turn in zip(run.turns, run.turns[1:], strict=False):
        assert turn["request"][: len(before["request"])] == before["request"]


def test_no_content_is_stored_where_it_is_left_out(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db", content=False)
    run = recorded(recorder, [calling(1), "3"], "A private matter.")
    recorder.close()
    assert (run.messages, run.turns[0]["request"]) == ({}, [])
    whole = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not [text for text in (b"private matter", b"You add numbers") if text in whole]


def test_a_secret_that_shows_later_is_taken_out_of_requests_before_it(recorder: Recorder) -> None:
    secret = "Zx9hunter77"

    @toolwire.tool
    def log_in(password: str) -> str:
        """Logs in."""
        return "welcome"

    login = ParsedResponse(tool_calls=(ToolCall("log_in", {"password": secret}, "1"),))
    config = AgentConfig(system=f"The word is {secret}.")
    agent = Agent(ScriptedBackend(["fine", login, "done"]), [log_in], config, observers=[recorder])
    asyncio.run(agent.ask(f"Log in with {secret}", run_id="sums"))
    assert recorder.flush()
    asyncio.run(agent.ask(f"Log in with {secret}", run_id="again"))
    recorder.close()
    texts = [row["text"] for row in Archive(recorder.path).run("again").messages.values()]
    assert [text for text in texts if "[redacted]" in text][:2] == [
        "The word is [redacted].",
        "Log in with [redacted]",
    ]
    assert not [text for text in texts if secret in text]


def test_messages_go_with_the_turns_that_refer_to_them(recorder: Recorder) -> None:
    recorded(recorder, ["hi"])
    with closing(sqlite3.connect(recorder.path, isolation_level=None)) as connection:
        connection.execute("UPDATE turns SET started_at = 0")
        recorder.evict(connection)
        assert connection.execute("SELECT COUNT(*) FROM messages").fetchone() == (0,)


def test_a_message_whose_identity_was_reused_is_another(recorder: Recorder) -> None:
    """The store keeps the messages themselves, so that no new one can have the identity of one that is gone."""
    stored = StoredMessages()
    rows: list[object] = []

    def insert(row: object) -> int:
        rows.append(row)
        return len(rows)

    numbers = [
        stored.store(toolwire.ChatRequest((Message("user", (TextPart(f"text {at}"),)),)), "r", (), insert)[0]
        for at in range(200)
    ]
    assert numbers == list(range(1, 201))


def test_the_text_of_a_message_names_its_images() -> None:
    image = ImagePart(url="https://example.org/a.png")
    assert message_text(Message("user", (TextPart("Look:"), image))) == "Look:\n(image: https://example.org/a.png)"
