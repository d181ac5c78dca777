"""Formats that commands read from a JSON file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolwire
from toolwire.cli import format_option, run
from toolwire.config.tables import load_configuration
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


def test_a_configuration_file_names_files_of_formats(tmp_path: Path) -> None:
    (tmp_path / "formats").mkdir()
    Path("lines.json").rename(tmp_path / "formats" / "lines.json")
    path = tmp_path / "toolwire.toml"
    path.write_text(
        'format_files = ["formats/lines.json"]\n[profiles.mine]\nmodel = "m"\ntools = { call_parser = "call_lines" }\n'
    )
    for _ in range(2):  # a gateway reads its file again
        assert load_configuration(path).profiles["mine"].tools.call_parser == "call_lines"
    assert toolwire.parse(TEXT, format="call_lines", tools=TOOLS).tool_calls[0].name == "get_weather"


@pytest.mark.parametrize(
    ("names", "content", "message"),
    [
        ('["missing.json"]', "", "missing.json: cannot be read: No such file or directory"),
        ('["bad.json"]', "{", "bad.json: it is not JSON: Expecting property name"),
        ('["bad.json"]', '{"a": NaN}', "bad.json: it is not JSON: NaN is not a number of JSON"),
        ('["bad.json"]', "[]", "bad.json: it is not an object that describes a format"),
        ('["bad.json"]', '{"name": "hermes"}', "bad.json: "),
        ('"lines.json"', "", "toolwire.toml:1: format_files: Input should be a valid tuple (it is 'lines.json')"),
    ],
)
def test_a_file_of_a_format_that_cannot_be_used_is_named(
    names: str, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("toolwire.toml").write_text(f"format_files = {names}\n[profiles.mine]\nmodel = 'm'\n")
    Path("bad.json").write_text(content)
    assert run(["check", "mine", "--config", "toolwire.toml"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_sidecar_knows_the_format_of_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = json.dumps({"id": 1, "do": "parse", "text": TEXT, "format": "call_lines", "tools": TOOLS})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{request}\n".encode())))
    assert run(["serve", "--sidecar", "--format", "lines.json"]) == 0
    assert "get_weather" in capsys.readouterr().out
    assert run(["serve", "--sidecar", "--format", "hermes"]) == 2
    assert "each request names its format" in capsys.readouterr().err
