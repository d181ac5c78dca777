"""Prompts of publishers' templates, and the text that Toolwire renders in their place.

A row holds `family`, `format`, `tools`, `messages` and the `prompt`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.rows import Row, load

import toolwire
from toolwire import ToolCall, ToolResult


def prompts(folder: Path) -> list[Row]:
    """Return the rows of all files in a folder."""
    return [row for path in sorted(folder.glob("*.jsonl")) for row in load(path)]


def blocks(row: Row) -> Iterator[tuple[str, str]]:
    """Yield "definitions", "calls" or "results" and the text for a prompt; "\\0" where Toolwire refuses."""
    format, tools = row["format"], row.get("tools") or []
    tool_name = ""
    if tools:
        yield "definitions", toolwire.render_definitions(tools, format=format)
    for message in row["messages"]:
        if message.get("tool_calls"):
            inner = [(call, call.get("function") or call) for call in message["tool_calls"]]
            calls = [
                ToolCall(item["name"], _arguments(item.get("arguments")), str(call.get("id") or ""))
                for call, item in inner
            ]
            tool_name = calls[-1].name
            try:
                yield "calls", toolwire.render_calls(calls, format=format, tools=tools)
            except toolwire.RenderError:
                yield "calls", "\0"
        if message.get("role") == "tool":
            name = message.get("tool_name") or message.get("name") or tool_name
            result = ToolResult(str(message.get("tool_call_id") or ""), name, message["content"])
            yield "results", toolwire.render_results([result], format=format)


def _arguments(value: Any) -> dict[str, Any]:
    return json.loads(value) if isinstance(value, str) else dict(value or {})
