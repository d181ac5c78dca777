"""The check of translated requests against official types and servers' rules, on rows of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = {"name": "rain", "description": "", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "rain", "arguments": "{}"}}
REQUEST = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "No."},
    ],
    "tools": [{"type": "function", "function": TOOL}],
}


def run(folder: Path, request: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    row = {"id": "r1", "api": "openai_chat", "status": 200, "stream": False, "request": request}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    command = [sys.executable, str(ROOT / "benchmarks" / "official_types.py"), "--rows", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("api", "package"),
    [("anthropic_messages", "anthropic"), ("bedrock_converse", "botocore"), ("mistral", "mistralai")],
)
def test_a_translated_request_is_valid(tmp_path: Path, api: str, package: str) -> None:
    pytest.importorskip(package)
    result = run(tmp_path, REQUEST, "--target", api, "--show", "5")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1].split() == [api, "1", "1", "1", "1"]


def test_rules_find_what_types_do_not_say() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from official_types import broken_rules
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    assert list(broken_rules("openai_chat", REQUEST)) == []
    assert list(broken_rules("mistral", REQUEST)) == ["id of a call: call_1"] * 2
    question, call, result = REQUEST["messages"]
    without = [question, call, question]
    assert list(broken_rules("openai_chat", {"messages": without})) == ["a call has no result before message 2"]
    assert list(broken_rules("openai_chat", {"messages": [result]})) == ["a result has no call in message 0"]
    named = {**REQUEST, "tools": [{"type": "function", "function": {**TOOL, "name": "a.b"}}]}
    assert list(broken_rules("openai_chat", named)) == ["name of a tool: a.b"]
    empty = {"messages": [{"role": "user", "content": ""}]}
    assert list(broken_rules("openai_chat", empty)) == ["an empty message of user"]
    assert list(broken_rules("openai_chat", {"messages": []})) == ["there is no message"]


def test_without_recordings_it_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, REQUEST, "--rows", str(tmp_path / "none"))
    assert result.returncode == 2
