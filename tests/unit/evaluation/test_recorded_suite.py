from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.telemetry.scripts import ADD, go

from toolwire import ConfigurationError
from toolwire.evaluation.recorded_suite import load_recorded
from toolwire.telemetry import Archive, Recorder


def recorded(path: Path, *runs: tuple[str, list[str], str], content: bool = True) -> Archive:
    recorder = Recorder(path / "turns.db", content=content)
    for id, texts, task in runs:
        go(texts, recorder, run_id=id, task=task)
    assert recorder.flush()
    recorder.close()
    return Archive(path / "turns.db")


def test_a_first_turn_whose_calls_worked_is_a_question(tmp_path: Path) -> None:
    archive = recorded(
        tmp_path,
        ("good", [ADD % "1", ADD % "7", "It is 3."], "Add 1 and 2."),
        ("prose", ["Hello."], "Hi."),
        ("failed", ['<tool_call>\n{"name": "fail", "arguments": {}}\n</tool_call>', "No."], "Fail."),
    )
    suite = load_recorded(archive)
    (question,) = suite.questions
    assert question.id == "good.1.1"
    assert [message.role for message in question.messages][-1] == "user"
    assert {tool.name for tool in question.tools} == {"add", "fail", "wipe"}
    (call,) = question.expected.calls
    assert (call.name, call.arguments) == ("add", {"a": [1], "b": [2]})


def test_a_shortened_text_is_reported(tmp_path: Path) -> None:
    archive = recorded(tmp_path, ("good", [ADD % "1", "3"], "Add."), ("long", [ADD % "1", "3"], "Add " + "x" * 5_000))
    suite = load_recorded(archive)
    assert [question.id for question in suite.questions] == ["good.1.1"]
    assert suite.broken[0].place == "the recorded turn long.1.1"
    assert suite.broken[0].reason == "its user message was shortened when it was recorded"


def test_nothing_to_ask_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no first turn whose calls all worked"):
        load_recorded(recorded(tmp_path / "a", ("prose", ["Hello."], "Hi.")))
    without_texts = recorded(tmp_path / "b", ("figures", [ADD % "1", "3"], "Add."), content=False)
    with pytest.raises(ConfigurationError, match="has no first turn"):
        load_recorded(without_texts)
