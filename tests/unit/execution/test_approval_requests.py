"""Requests for approval: the answers that are no approval, and what each says to the model."""

import asyncio
from typing import Any

import pytest

from toolwire import Session, ToolCall
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.policy import Policy, Rule


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (False, "The user refused this call of add."),
        (ApprovalAnswer(False, reason="not today", by="Ann"), "Ann refused this call of add: not today"),
        (ApprovalAnswer(False, unanswered=True), "Nobody has approved this call of add, so it did not run."),
        ("yes", "Nobody could be asked about add, so it did not run: confirm returned 'yes', and not True, False or"),
        (OSError("closed"), "Nobody could be asked about add, so it did not run: OSError: closed"),
        (TimeoutError(), "Nobody approved add in time, so it did not run."),
        (asyncio.CancelledError(), "The question about add was withdrawn, so it did not run."),
    ],
)
def test_everything_but_an_approval_is_a_denial(answer: Any, message: str) -> None:
    async def confirm(_: Approval) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    ran: list[int] = []

    def add(a: int) -> None:
        """Add a number."""
        ran.append(a)

    executor = ToolExecutor(ToolRegistry([add]), policy=Policy((Rule("ask"),)), confirm=confirm)
    outcome = asyncio.run(executor.run(ToolCall("add", {"a": 1}), Session()))
    assert outcome.issue is not None
    assert (outcome.issue.kind, outcome.issue.message[: len(message)]) == ("denied", message)
    assert not ran
