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
def test_everything_but_an_approval_is_a_denial(answer: Any, message: str, caplog: pytest.LogCaptureFixture) -> None:
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
    # A faulty function is reported to the program too: the model would be the only one to learn of it.
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == (1 if answer == "yes" or type(answer) is OSError else 0)
    assert all("nobody was asked about add" in warning for warning in warnings)


def add(a: int) -> int:
    """Add a number."""
    return a


def executor_that_asks(confirm: Any) -> ToolExecutor:
    return ToolExecutor(ToolRegistry([add]), policy=Policy((Rule("ask"),)), confirm=confirm)


def test_a_hook_that_cancels_itself_denies_its_own_call_alone() -> None:
    async def confirm(approval: Approval) -> bool:
        if approval.call.arguments["a"] == 1:
            closed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            closed.cancel()
            return await closed
        return True

    calls = [ToolCall("add", {"a": 1}), ToolCall("add", {"a": 2})]
    results = asyncio.run(executor_that_asks(confirm).execute(calls, Session()))
    assert [result.success for result in results] == [False, True]
    assert "The question about add was withdrawn" in (results[0].error or "")


def test_the_cancellation_of_a_run_is_no_answer_to_its_question() -> None:
    async def main() -> list[object]:
        asked = asyncio.Event()

        async def confirm(_: Approval) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

        run = asyncio.create_task(executor_that_asks(confirm).run(ToolCall("add", {"a": 1}), Session()))
        await asked.wait()
        run.cancel()
        return await asyncio.gather(run, return_exceptions=True)

    assert [type(outcome) for outcome in asyncio.run(main())] == [asyncio.CancelledError]
