"""The logger "toolwire": a line for each request, answer and call, without texts and secrets."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.unit.telemetry.scripts import add

from toolwire import ParsedResponse, ToolCall, Usage
from toolwire.agent import Agent, AgentConfig
from toolwire.testing import ScriptedBackend


def run_agent() -> None:
    call = ToolCall("add", {"a": 1, "b": 2}, "c1")
    invented = ToolCall("sk-ant-api03-invented", {}, "c2")
    answers = [ParsedResponse(tool_calls=(call, invented), usage=Usage(100, 10)), "The secret sum is 3."]
    agent = Agent(ScriptedBackend(answers), [add], AgentConfig(system="A private prompt."))
    asyncio.run(agent.ask("A private question.", run_id="r"))


def test_each_request_answer_and_call_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="toolwire"):
        run_agent()
    lines = [record.getMessage() for record in caplog.records if record.name == "toolwire"]
    beginnings = [
        "run r: agent begins, with scripted",
        "run r: round 1, attempt 1: 2 messages and 1 tools for scripted",
        "run r: round 1: 2 calls, 0 problems, 100 + 10 tokens in ",
        "run r: call of add: allowed, succeeded in ",
        "run r: call of an unknown tool: unknown_tool, failed in ",
        "run r: round 2, attempt 1: 4 messages",
        "run r: round 2: 0 calls",
        "run r: ended: answered after 2 rounds and 2 calls in ",
    ]
    assert len(lines) == len(beginnings)
    for line, beginning in zip(sorted(lines), sorted(beginnings), strict=True):
        assert line.startswith(beginning)
    assert not [text for text in ("private", "secret", "sk-ant") if text in " ".join(lines)]


def test_nothing_is_logged_at_the_usual_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        run_agent()
    assert [record for record in caplog.records if record.name.startswith("toolwire")] == []
