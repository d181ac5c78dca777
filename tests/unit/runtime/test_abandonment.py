"""Asynchronous code that catches its own cancellation holds nobody up for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.simulated_time import SimulatedTimeLoop, run_simulated

from toolwire.runtime.abandonment import GRACE, TookTooLong, abandonable


async def stubborn() -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1_000)


async def tidy(seconds: float, log: list[str]) -> str:
    try:
        await asyncio.sleep(1_000)
    finally:
        await asyncio.sleep(seconds)
        log.append("tidied")
    return "late"


def timed(work: Callable[[], Awaitable[Any]]) -> tuple[Any, float, list[str]]:
    """Return what some work returns or raises, the seconds that it took, and the reports to the loop's handler."""
    reports: list[str] = []

    async def main() -> tuple[Any, float]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context["message"]))
        begin = loop.time()
        try:
            outcome: Any = await work()
        except (Exception, asyncio.CancelledError) as error:
            outcome = error
        return outcome, loop.time() - begin

    outcome, seconds = run_simulated(main())  # it ends, though asyncio waits for all tasks at its end
    return outcome, seconds, reports


def test_code_that_does_not_stop_is_abandoned_and_reported() -> None:
    outcome, seconds, reports = timed(lambda: abandonable(stubborn(), "the tool x", 5))
    assert isinstance(outcome, TookTooLong) and not outcome.stopped
    assert seconds == pytest.approx(5 + GRACE)
    assert reports == ["the tool x did not stop within 10 seconds after it was cancelled, and was abandoned"]


def test_code_may_clean_up_within_the_grace() -> None:
    log: list[str] = []
    outcome, seconds, reports = timed(lambda: abandonable(tidy(3, log), "x", 5))
    assert isinstance(outcome, TookTooLong) and outcome.stopped
    assert (log, seconds, reports) == (["tidied"], pytest.approx(8), [])


def test_a_cancellation_from_outside_does_not_wait_for_ever() -> None:
    async def work() -> None:
        async with asyncio.timeout(2):
            await abandonable(stubborn(), "x")

    outcome, seconds, reports = timed(work)
    assert isinstance(outcome, TimeoutError)
    assert seconds == pytest.approx(2 + GRACE)
    assert len(reports) == 1


def test_a_second_cancellation_ends_the_grace() -> None:
    async def work() -> None:
        task = asyncio.ensure_future(abandonable(stubborn(), "x"))
        for _ in range(2):
            await asyncio.sleep(1)
            task.cancel()
        await task

    outcome, seconds, reports = timed(work)
    assert isinstance(outcome, asyncio.CancelledError)
    assert (seconds, len(reports)) == (pytest.approx(2), 1)


@pytest.mark.parametrize(
    "error", [ValueError("bad"), TimeoutError("slow"), SystemExit(3), GeneratorExit(), asyncio.CancelledError()]
)
def test_errors_are_raised_where_the_code_is_awaited(error: BaseException) -> None:
    async def failing() -> None:
        raise error

    async def main() -> None:
        with pytest.raises(type(error)):
            await abandonable(failing(), "x", 5)

    with asyncio.Runner(loop_factory=SimulatedTimeLoop) as runner:
        runner.run(main())


def test_code_that_ends_in_its_first_step_costs_one_turn_of_the_event_loop() -> None:
    async def quick() -> str:
        return "done"

    async def main() -> tuple[str, int]:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        before = turns
        value = await abandonable(quick(), "x", 5)
        counting.cancel()
        return value, turns - before

    assert run_simulated(main()) == ("done", 1)


def test_the_time_of_the_first_step_counts() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedTimeLoop)

        async def slow_to_start() -> None:
            loop.block(4)
            await asyncio.sleep(1_000)

        with pytest.raises(TookTooLong):
            await abandonable(slow_to_start(), "x", 5)
        assert loop.time() == pytest.approx(5)

    run_simulated(main())
