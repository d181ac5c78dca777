"""`toolwire ask` with a small model on this machine: the model is scripted, everything else is real."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire import FinishReason, ToolCall
from toolwire.cli import open_agent, run
from toolwire.events import Finish

READ = ToolCall("read_file", {"path": "a.txt", "start_line": 2})
ANSWER = ToolCall("final_answer", {"text": "It has 3 lines."})


class Local:
    """A model in this process that writes these texts, and keeps what it was asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.prompts: list[list[dict[str, str]]] = []
        self.grammars: list[str] = []

    def stream(self, messages: Any, /, *, max_tokens: int | None = None, grammar: str = "") -> Generator[str | Finish]:
        self.prompts.append([dict(message) for message in messages])
        self.grammars.append(grammar)
        yield self.texts.pop(0)
        yield Finish(FinishReason.STOP)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


def written(*calls: ToolCall) -> str:
    return toolwire.render_calls(calls, format="forge_xml")


def ask(monkeypatch: pytest.MonkeyPatch, model: Local, *options: str) -> int:
    monkeypatch.setattr(open_agent, "load_local", lambda name: model)
    return run(["ask", "How long?", *options])


REQUIRED = ("--constrain", "required")


def test_small_model_answers_by_a_call(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Local(written(READ) + written(READ), written(ANSWER))
    assert ask(monkeypatch, model, "--root", str(root), *REQUIRED) == 0
    shown = capsys.readouterr()
    assert shown.out == "It has 3 lines.\n"
    assert shown.err.count("call    read_file") == 1, "an answer is one call"
    assert "result  one" in shown.err, "a short file is shown whole"
    assert "final_answer" in model.prompts[0][0]["content"] and "end_line" not in model.prompts[0][0]["content"]
    assert all(model.grammars)


def test_answer_of_a_small_model_without_a_lookup_is_said_to_rest_on_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, Local(written(ANSWER)), "--root", str(root), *REQUIRED) == 0
    assert "no tool was run" in capsys.readouterr().err
    assert ask(monkeypatch, Local(written(ANSWER)), "--root", str(root), *REQUIRED, "--require-tool-call") == 1


@pytest.mark.parametrize("ends", [True, False])
def test_own_final_answer_of_a_small_model_has_to_end_its_turn(
    ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text(
        f"import toolwire\n\n\n@toolwire.tool(ends_turn={ends})\ndef final_answer(text: str) -> str:\n"
        '    """Answer."""\n    return text\n'
    )
    status = ask(monkeypatch, Local(written(ANSWER)), "--tools", str(tools), *REQUIRED)
    shown = capsys.readouterr()
    assert (status, shown.out) == ((0, "It has 3 lines.\n") if ends else (2, ""))
    assert ("your tool final_answer does not end its turn" in shown.err) is not ends


@pytest.mark.parametrize("options", [[], ["--constrain", "auto"]])
def test_small_model_may_write_prose_otherwise(options: list[str], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Local(written(READ), "It has 3 lines.")
    assert ask(monkeypatch, model, "--root", str(root), *options) == 0
    assert "final_answer" not in model.prompts[0][0]["content"] and "end_line" in model.prompts[0][0]["content"]


def test_small_model_without_tools_answers_in_prose(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Local("I cannot see it.")
    assert ask(monkeypatch, model, *REQUIRED) == 0
    assert (capsys.readouterr().out, model.grammars) == ("I cannot see it.\n", [""])
