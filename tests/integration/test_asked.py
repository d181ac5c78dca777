"""The benchmark of answers to prompts, on rows of its own; `benchmarks/asked.py` needs a folder of real ones."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import asked

ROOT = Path(__file__).resolve().parents[2]
TOOL = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
CALL = [{"add": {"a": [1]}}]
ANSWERS = (
    ("[add(a=1)]", CALL),
    ('{"function": "add", "params": {"a": 1}}', CALL),
    ("add(a=2)", CALL),  # not the expected call
    ("I cannot call add here.", []),
)
RULE = """
def matches(calls, expected):
    return [{name: {key: [value] for key, value in arguments.items()}} for name, arguments in calls] == expected
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"model": "m", "tools": "t", "text": text, "expected": expected} for text, expected in ANSWERS]
    (tmp_path / "asked").mkdir()
    (tmp_path / "asked" / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "asked" / "tools.json").write_text(json.dumps({"t": [TOOL]}), "utf-8")
    (tmp_path / "asked.py").write_text(RULE, "utf-8")
    return tmp_path


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "asked.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_without_rows_it_says_so(tmp_path: Path) -> None:
    done = run("--rows", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing measured" in done.stderr and str(tmp_path / "asked" / "rows.jsonl") in done.stderr


def test_rows_are_counted(folder: Path, tmp_path: Path) -> None:
    done = run("--rows", str(folder), "--json", str(tmp_path / "figures.json"))
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    first = figures["readings"][0]
    assert figures["rows"] == 4
    assert [first[key] for key in ("parser", "readable", "right", "refusals", "called", "raised")] == [
        "Toolwire", 3, 2, 1, 0, 0
    ]  # fmt: skip


def test_parser_that_raises_is_counted_and_calls_of_unknown_tools_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(text: str, _: list[Any]) -> asked.Calls:
        if "cannot" in text:
            raise ValueError(text)
        return [("add", {"a": 1}), ("other", {})]

    monkeypatch.setattr(asked, "peers", lambda: iter([(("peer", "read", "1"), read)]))
    rows = [{"tools": "t", "text": text, "expected": expected} for text, expected in ANSWERS]
    reading = asked.measure(rows, {"t": [TOOL]}, lambda calls, expected: calls == [("add", {"a": 1})])[-1]
    assert (reading.parser, reading.right, reading.raised, reading.called) == ("peer", 3, 1, 0)


@pytest.mark.parametrize(
    ("value", "calls"),
    [
        ({"name": "f", "arguments": {"a": 1}}, [("f", {"a": 1})]),
        ([{"name": "f", "parameters": {}}, {"g": {"b": (1,)}}], [("f", {}), ("g", {"b": (1,)})]),
        ({"tool_calls": [{"name": "f", "args": {}}]}, [("f", {})]),
        ("text", []),
    ],
)
def test_calls_in_json_values(value: Any, calls: asked.Calls) -> None:
    assert asked.objects(value) == calls
