"""Tests of confirmation hooks: one question for all calls of a response, plain functions, and time limits."""

import asyncio
import gc
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from tests.simulated_time import run_simulated

from toolwire import ToolCall, ToolDefinition
from toolwire.execution.confirmation import Together, as_async, turn
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


# -- plain functions -----------------------------------------------------------------------------------------------


async def approved(confirm: Any, *numbers: int, seconds: float = 60.0) -> list[str]:
    """Return the error of each call; "" for a call that was approved."""
    registry, policy = ToolRegistry([Asked().work]), Policy((Rule("ask"),))
    executor = ToolExecutor(registry, policy=policy, confirm=confirm, confirm_timeout=seconds)
    calls = [ToolCall("work", {"number": number}) for number in numbers]
    return [result.error or "" for result in await executor.execute(calls, Session())]


def test_a_plain_approver_does_not_block_the_event_loop() -> None:
    asked, answered = threading.Event(), threading.Event()

    def confirm(_: Approval) -> bool:
        asked.set()
        return answered.wait(20)

    async def main() -> list[str]:
        running = asyncio.create_task(approved(confirm, 1))
        while not asked.is_set():
            await asyncio.sleep(0)
        answered.set()  # by the event loop, which is free while the function waits
        return await running

    assert asyncio.run(main()) == [""]


def test_a_plain_approver_is_asked_one_question_at_a_time() -> None:
    busy, most, order = 0, 0, list[int]()

    def confirm(approval: Approval) -> bool:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        order.append(approval.call.arguments["number"])
        time.sleep(0.01)
        busy -= 1
        return True

    assert asyncio.run(approved(confirm, 1, 2, 3)) == ["", "", ""]
    assert (most, order) == (1, [1, 2, 3])


def test_a_plain_approver_answers_several_event_loops() -> None:
    barrier = threading.Barrier(2, timeout=20)

    def confirm(_: Approval) -> bool:
        barrier.wait()  # passes only if both loops ask at once
        return True

    hook, errors = as_async(confirm), list[list[str]]()
    threads = [threading.Thread(target=lambda: errors.append(asyncio.run(approved(hook, 1)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [[""], [""]]


def test_a_plain_approver_that_is_late_or_fails_refuses() -> None:
    release = threading.Event()

    def late(_: Approval) -> bool:
        release.wait(20)
        return True

    def fails(_: Approval) -> bool:
        raise OSError("the terminal is closed")

    (too_late,) = asyncio.run(approved(late, 1, seconds=0.01))
    release.set()
    assert too_late == "Nobody approved work in time, so it did not run."
    (failed,) = asyncio.run(approved(fails, 1))
    assert failed.endswith("so it did not run: OSError: the terminal is closed")


def test_the_time_of_a_plain_approver_counts_from_its_own_question() -> None:
    release = threading.Event()

    def confirm(approval: Approval) -> bool:
        return approval.call.arguments["number"] != 1 or release.wait(20)

    late, in_time = asyncio.run(approved(confirm, 1, 2, seconds=0.05))
    release.set()
    assert (late, in_time) == ("Nobody approved work in time, so it did not run.", "")


def test_a_plain_function_answers_all_questions_together() -> None:
    main = threading.get_ident()
    threads: list[int] = []

    def ask(approvals: Sequence[Approval]) -> list[bool]:
        threads.append(threading.get_ident())
        return [approval.call.arguments["number"] != 2 for approval in approvals]

    errors = asyncio.run(approved(Together(ask), 1, 2, 3))
    assert [not error for error in errors] == [True, False, True]
    assert len(threads) == 1
    assert main not in threads


def test_a_plain_approver_has_the_name_of_its_function() -> None:
    class Terminal:
        name = "terminal"

        def __call__(self, approval: Approval) -> bool:
            return bool(approval)

    assert vars(as_async(Terminal()))["name"] == "terminal"
    assert vars(as_async(lambda _: True))["name"] == "user"


def test_calls_that_are_asked_about_together_do_not_wait_for_the_turn_of_their_question() -> None:
    """The time counts from when the calls were asked about, also for the first of them."""
    lock = asyncio.Lock()

    async def ask(approvals: Sequence[Approval]) -> list[bool]:
        async with turn(lock):
            return [True for _ in approvals]

    async def main() -> list[str]:
        async with lock:
            return await approved(Together(ask), 1, 2, seconds=10)

    late = "Nobody approved work in time, so it did not run."
    assert run_simulated(main()) == [late, late]


def test_a_question_to_which_nothing_else_refers_is_not_forgotten() -> None:
    async def ask(_: Sequence[Approval]) -> list[bool]:
        await asyncio.Event().wait()
        return [True]

    together = Together(ask)

    async def main() -> bool:
        question = asyncio.create_task(together(Approval(ToolCall("work"), ToolDefinition("work"), "")))
        for _ in range(5):
            await asyncio.sleep(0)
        gc.collect()
        for _ in range(5):
            await asyncio.sleep(0)
        try:
            return question.done()
        finally:
            question.cancel()

    assert not asyncio.run(main())


def test_an_interrupt_withdraws_the_questions() -> None:
    async def ask(_: Sequence[Approval]) -> list[bool]:
        raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    try:
        question = loop.create_task(Together(ask)(Approval(ToolCall("work"), ToolDefinition("work"), "")))
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(question)
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(asyncio.wait_for(question, 5))
    finally:
        loop.close()
