"""What the main objects show of themselves: what a debugger needs, and no secrets."""

from __future__ import annotations

import pytest

from toolwire import Agent, Client, Policy, Rule, Session, Tier, ToolExecutor, ToolRegistry
from toolwire.agent import AgentConfig
from toolwire.mcp import McpRouter, McpServer
from toolwire.testing import ScriptedBackend, ScriptedTransport


def tool_named(name: str) -> dict[str, object]:
    return {"name": name, "parameters": {"type": "object"}}


REGISTRY = ToolRegistry([tool_named("look"), tool_named("write")])


def used_session() -> Session:
    session = Session(Tier.WALK, untrusted=True)
    session.record_question("my password is hunter2")
    session.record_call("look", 0.0)
    return session


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            Agent(ScriptedBackend([]), REGISTRY, AgentConfig(name="reader"), telemetry=False),
            "<Agent 'reader': model 'scripted', 2 tools>",
        ),
        (
            Client(
                *("openai", "m"),
                base_url="https://me:hunter2@models.test/v1?key=hunter2",
                key="hunter2",
                transport=ScriptedTransport("openai", []),
            ),
            "<Client openai_chat: model 'm' at https://models.test>",
        ),
        (REGISTRY, "<ToolRegistry of 2 tools: look, write>"),
        (ToolRegistry(), "<ToolRegistry of 0 tools: none>"),
        (used_session(), "<Session: tier WALK, untrusted, 1 calls>"),
        (
            ToolExecutor(REGISTRY, policy=Policy((Rule("deny", tool="write"),))),
            "<ToolExecutor: 2 tools, 1 rules, 0 limits>",
        ),
        (
            McpRouter([McpServer(name="files", command="serve", env={"KEY": "hunter2"})], ToolRegistry()),
            "<McpRouter of 1 servers: files>",
        ),
    ],
)
def test_objects_say_what_they_are_and_no_secrets(value: object, shown: str) -> None:
    assert repr(value) == shown


def test_a_long_registry_is_shown_in_part() -> None:
    shown = repr(ToolRegistry([tool_named(f"tool_{number}") for number in range(50)]))
    assert shown.startswith("<ToolRegistry of 50 tools: tool_0, tool_1,")
    assert shown.endswith(", 30 more>")


def test_a_policy_shows_its_rules() -> None:
    assert "Rule(effect='deny', tool='write'" in repr(Policy((Rule("deny", tool="write"),)))
