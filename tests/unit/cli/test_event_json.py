"""Tests of the JSON objects that `--json` prints for events of a run."""

from __future__ import annotations

import pytest

from toolwire import OpaquePart, OpaquePartReceived, ToolCall
from toolwire.agent.run_events import AgentEvent, ApprovalRequested, MemberEvent, ReplayEnded, TaskStarted, TurnStarted
from toolwire.cli.event_printer import event_json
from toolwire.policy.approval import Approval
from toolwire.policy.intent import Intent
from toolwire.tools import Tier, ToolDefinition

_CALL = ToolCall("delete", {"path": "a"}, "call_1")


@pytest.mark.parametrize(
    ("event", "body"),
    [
        (
            TaskStarted("Look.", Intent(Tier.CRAWL, "", "nothing is changed"), ("delete",)),
            {
                "event": "task",
                "task": "Look.",
                "tier": "CRAWL",
                "reason": "nothing is changed",
                "locked_tools": ["delete"],
            },
        ),
        (
            MemberEvent("clerk", MemberEvent("scout", TurnStarted(2))),
            {
                "event": "member",
                "member": "clerk",
                "member_event": {"event": "member", "member": "scout", "member_event": {"event": "turn", "round": 2}},
            },
        ),
        (
            ApprovalRequested(Approval(_CALL, ToolDefinition("delete"), "it deletes a file")),
            {
                "event": "approval",
                "call": {"id": "call_1", "name": "delete", "arguments": {"path": "a"}},
                "reason": "it deletes a file",
            },
        ),
        (ReplayEnded(), {"event": "replay_ended"}),
        (
            OpaquePartReceived(OpaquePart({"type": "web_search_call"}, "openai_responses")),
            {"event": "opaque_part", "part": {"data": {"type": "web_search_call"}, "provider": "openai_responses"}},
        ),
    ],
)
def test_keys_of_events(event: AgentEvent, body: dict[str, object]) -> None:
    assert event_json(event) == body
