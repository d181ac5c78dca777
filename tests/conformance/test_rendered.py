"""What is written into prompts stands verbatim in the prompts that publishers' own templates make."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire import ToolCall, ToolResult

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "rendered"
LEAST = {"definitions": 58, "calls": 58, "results": 70}
"""How many of 87, 81 and 81 stand there. The others differ by JSON's spacing, by what a template adds to a result, or
by a listing in Python or of one family alone."""


def _blocks(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    format, tools = row["format"], row.get("tools") or []
    called = ""
    if tools:
        yield "definitions", toolwire.render_definitions(tools, format=format)
    for message in row["messages"]:
        if message.get("tool_calls"):
            inner = [(call, call.get("function") or call) for call in message["tool_calls"]]
            calls = [
                ToolCall(one["name"], _arguments(one.get("arguments")), str(call.get("id") or ""))
                for call, one in inner
            ]
            called = calls[-1].name
            try:
                yield "calls", toolwire.render_calls(calls, format=format, tools=tools)
            except toolwire.RenderError:
                yield "calls", "\0"
        if message.get("role") == "tool":
            name = message.get("tool_name") or message.get("name") or called
            result = ToolResult(str(message.get("tool_call_id") or ""), name, message["content"])
            yield "results", toolwire.render_results([result], format=format)


def _arguments(value: Any) -> dict[str, Any]:
    return json.loads(value) if isinstance(value, str) else dict(value or {})


@pytest.mark.skipif(not FOLDER.is_dir(), reason="prompts made by publishers' templates are not beside this checkout")
def test_blocks_stand_in_publishers_prompts() -> None:
    found = dict.fromkeys(LEAST, 0)
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            for kind, text in _blocks(row):
                found[kind] += text in row["prompt"]
    assert all(found[kind] >= least for kind, least in LEAST.items()), found


@pytest.mark.skipif(not FOLDER.is_dir(), reason="prompts made by publishers' templates are not beside this checkout")
def test_the_format_is_told_by_publishers_prompts() -> None:
    rows = [
        json.loads(line) for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]
    rows = [row for row in rows if any(message.get("tool_calls") for message in row["messages"])]
    wrong = [row["id"] for row in rows if toolwire.detect_from_template(row["prompt"]).format != row["format"]]
    assert len(wrong) <= 3, wrong  # those write no call in full, or with other white space
