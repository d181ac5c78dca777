"""The benchmark of recorded requests through the gateway, on rows of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks import gateway_recorded

from toolwire import ContentDelta, Event, Finish
from toolwire.gateway.client_tools import ClientTools

ROOT = Path(__file__).resolve().parents[2]
FUNCTION = {"name": "rain", "description": "", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "rain", "arguments": "{}"}}
ROW = {
    "id": "r1",
    "api": "openai_chat",
    "status": 200,
    "stream": False,
    "request": {
        "model": "m",
        "messages": [{"role": "user", "content": "Rain?"}],
        "tools": [{"type": "function", "function": FUNCTION}],
    },
    "response": {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
                "finish_reason": "tool_calls",
            }
        ],
    },
}


def run(folder: Path) -> Any:
    command = [sys.executable, "-m", "benchmarks.gateway", "recorded", "--rows", str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_recorded_request_reaches_all_apis_and_comes_back(tmp_path: Path) -> None:
    stored = {**ROW, "id": "r2", "request": {"model": "m", "previous_response_id": "resp_1"}}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (ROW, stored)), "utf-8")
    figures = run(tmp_path)
    assert (figures["requests"], figures["passed"], figures["faults"]) == (9, 9, [])
    assert figures["not_sent"] == {"continues what is stored: previous_response_id": 1}


def faults(target: str, check: Any = dict) -> list[str]:
    answer = gateway_recorded.answered(ROW)
    assert answer is not None
    return asyncio.run(gateway_recorded.faults_of(ROW, target, answer, check))


def test_an_answer_without_its_call_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_calls(self: ClientTools, events: Sequence[Event]) -> list[Event]:
        return [event for event in events if isinstance(event, ContentDelta | Finish)]

    monkeypatch.setattr(ClientTools, "restore", without_calls)
    assert faults("gemini")[0] == "calls: [] instead of [('rain', {})]"


def test_a_body_that_its_provider_refuses_is_a_fault() -> None:
    def refuse(body: Any) -> None:
        raise ValueError("no such member")

    assert faults("gemini", refuse) == ["types: no such member"]
    assert faults("openai_chat", refuse) == []  # the client's own body is passed on
