"""Formats that commands read from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolwire.cli import format_option, run
from toolwire.wire import format_registry

TEXT = 'I look. CALL get_weather {"city": "Paris"} END'
TOOLS = [{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
CALL = [{"node": "Lit", "text": "CALL", "after": " "}, {"node": "Name", "after": " "}, {"node": "Args"}]
BLOCK = [{"node": "Call", "nodes": CALL}, {"node": "Lit", "text": "END", "need": "forgiven", "before": " "}]
LINES = {"name": "call_lines", "title": "CALL NAME {..} END", "blocks": [[{"node": "Many", "nodes": BLOCK}]]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with the files, and forget the format afterwards."""
    monkeypatch.setattr(format_registry, "_registered", [])
    monkeypatch.setattr(format_option, "_described", [])
    monkeypatch.chdir(tmp_path)
    Path("lines.json").write_text(json.dumps(LINES))
    Path("tools.json").write_text(json.dumps(TOOLS))
    Path("answer.txt").write_text(TEXT)
    yield tmp_path
    for cached in (format_registry.all_formats, format_registry._by_name, format_registry._by_spelling):
        cached.cache_clear()


def test_parse_reads_the_format_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["parse", "answer.txt", "--format", "lines.json", "--json"]) == 0
    (call,) = json.loads(capsys.readouterr().out)["tool_calls"]
    assert (call["name"], call["arguments"], call["format"]) == ("get_weather", {"city": "Paris"}, "call_lines")


def test_what_formats_exports_is_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["formats", "lines.json", "--export"]) == 0
    Path("again.json").write_text(capsys.readouterr().out)
    assert run(["formats", "again.json"]) == 0
    assert 'CALL get_weather {"city": "Paris", "days": 3} END' in capsys.readouterr().out


def test_a_grammar_is_written_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["render", "grammar", "tools.json", "--format", "lines.json", "--tool-choice", "required"]) == 0
    assert '"CALL"' in capsys.readouterr().out
    Path("call.txt").write_text(TEXT.removeprefix("I look. "))
    assert run(["check-grammar", "call.txt", "--tools", "tools.json", "--format", "lines.json"]) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_logs_are_read_again_in_any_process(workers: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.jsonl").write_text(json.dumps({"text": TEXT, "calls": []}) + "\n")
    assert run(["reparse", "rows.jsonl", "--format", "lines.json", "--workers", workers, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == {"": {"gained": 1}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{"name": "x", "blocks": [[{"node": "Litt"}]]}', "wrong.json: the format.blocks.0.0: {'node': 'Litt'} is not"),
        ('{"name": "hermes"}', "wrong.json: the format 'hermes' has a name that is taken"),
        ('{"version": 1, "formats": []}', "wrong.json describes 0 formats: one file describes one"),
        ("[1]", "wrong.json: it is not an object"),
        ("{", "wrong.json"),
    ],
)
def test_a_file_that_describes_no_format(document: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.json").write_text(document)
    assert run(["parse", "answer.txt", "--format", "wrong.json"]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["parse", "answer.txt", "--format", "none.json"]) == 2
    assert "cannot read none.json" in capsys.readouterr().err
