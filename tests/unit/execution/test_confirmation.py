"""What the calls of one response ask is one question; each call gets its own answer."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from toolwire import ToolCall, ToolDefinition
from toolwire.execution.confirmation import Together, turn
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.policy import Policy, Rule
from toolwire.policy.session import Session


class Asked:
    def __init__(self, *, answers: Any = None) -> None:
        self.questions: list[list[int]] = []
        self.ran: list[int] = []
        self.answers = answers

    def work(self, number: int) -> int:
        """Works."""
        self.ran.append(number)
        return number

    async def ask(self, approvals: Sequence[Approval]) -> Any:
        self.questions.append([one.call.arguments["number"] for one in approvals])
        await asyncio.sleep(0)
        if self.answers is not None:
            return self.answers
        return [ApprovalAnswer(one.call.arguments["number"] % 2 == 0) for one in approvals]

    async def run(self, *numbers: int, concurrency: int = 16) -> list[bool]:
        registry = ToolRegistry([self.work])
        executor = ToolExecutor(
            registry, policy=Policy((Rule("ask"),)), confirm=Together(self.ask), concurrency=concurrency
        )
        calls = [ToolCall("work", {"number": number}) for number in numbers]
        return [one.success for one in await executor.execute(calls, Session())]


def test_calls_of_one_response_are_one_question() -> None:
    asked = Asked()
    assert asyncio.run(asked.run(1, 2, 3, 4)) == [False, True, False, True]
    assert asked.questions == [[1, 2, 3, 4]]
    assert sorted(asked.ran) == [2, 4]


def test_how_many_may_run_at_a_time_is_no_bound_on_what_is_asked_at_once() -> None:
    asked = Asked()
    assert asyncio.run(asked.run(2, 4, 6, concurrency=1)) == [True, True, True]
    assert asked.questions == [[2, 4, 6]]


@pytest.mark.parametrize("answers", [[], [True], [True, True, True]])
def test_a_wrong_number_of_answers_is_none(answers: list[bool]) -> None:
    asked = Asked(answers=answers)
    assert asyncio.run(asked.run(1, 2)) == [False, False]
    assert asked.ran == []


def test_responses_after_one_another_are_questions_of_their_own() -> None:
    asked = Asked()

    async def both() -> None:
        await asked.run(2)
        await asked.run(4)

    asyncio.run(both())
    assert asked.questions == [[2], [4]]


def test_who_stops_waiting_is_not_answered() -> None:
    asked = Asked()

    async def main() -> None:
        running = asyncio.create_task(asked.run(2, 4))
        while not asked.questions:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(0)

    asyncio.run(main())
    assert asked.ran == []


def test_a_cancelled_question_is_an_error_at_once() -> None:
    asked = Asked()

    async def ask(_: Sequence[Approval]) -> Any:
        raise asyncio.CancelledError

    asked.ask = ask  # type: ignore[method-assign]
    assert asyncio.run(asyncio.wait_for(asked.run(2, 4), 20)) == [False, False]
    assert asked.ran == []


def test_a_question_of_another_thread_s_loop_is_not_lost() -> None:
    together, answers = Together(Asked().ask), list[ApprovalAnswer | bool]()

    async def one(number: int) -> None:
        approval = Approval(ToolCall("work", {"number": number}), ToolDefinition("work"), "")
        answers.append(await asyncio.wait_for(together(approval), 5))

    async def main() -> None:
        mine = asyncio.create_task(one(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # it waits now
        thread = threading.Thread(target=lambda: asyncio.run(one(1)))
        thread.start()
        thread.join()
        await mine

    asyncio.run(main())
    assert answers == [ApprovalAnswer(False), ApprovalAnswer(True)]


def test_the_time_to_answer_begins_with_ones_turn() -> None:
    lock, asked = asyncio.Lock(), list[int]()

    async def confirm(approval: Approval) -> bool:
        async with turn(lock):
            asked.append(approval.call.arguments["number"])
            if len(asked) == 1:
                await asyncio.Event().wait()  # nobody answers
            return True

    async def main() -> list[bool]:
        registry, policy = ToolRegistry([Asked().work]), Policy((Rule("ask"),))
        executor = ToolExecutor(registry, policy=policy, confirm=confirm, confirm_timeout=0.05)
        calls = [ToolCall("work", {"number": number}) for number in (1, 2)]
        return [one.success for one in await executor.execute(calls, Session())]

    assert asyncio.run(main()) == [False, True]
