"""Room in a budget: runs that share one reserve room for an answer, and wait if there is none."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from contextvars import Context
from typing import Any

import pytest

from toolwire import FinishReason, Message, ParsedResponse, Session, TextPart, ToolCall, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member, Prices, Summarize
from toolwire.agent.budget import BudgetUsedUp, ExpectedCost, RunLimits, Spending
from toolwire.agent.journal import MemoryJournal
from toolwire.agent.loop import LAST_ROUND
from toolwire.agent.parent_run import ParentCall
from toolwire.agent.run_events import AgentEvent, RunEnded, ToolFinished
from toolwire.events import Event
from toolwire.models.backends import NO_OPTIONS
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedBackend


def calls_of(name: str, count: int) -> ParsedResponse:
    calls = tuple(ToolCall(name, {"task": f"part {at}"}, f"c{at}") for at in range(count))
    return ParsedResponse(tool_calls=calls, usage=Usage(10, 0), finish_reason=FinishReason.TOOL_CALLS)


def end_of(team: AgentTeam) -> RunEnded:
    return asyncio.run(team.run_to_end("Go"))


def worker(name: str = "worker", **settings: Any) -> Agent:
    answers = [ParsedResponse("done", usage=Usage(500, 0)) for _ in range(300)]
    return Agent(ScriptedBackend(answers), config=AgentConfig(name=name, **settings))


def lead(name: str, count: int, **settings: Any) -> Agent:
    answers = [calls_of(name, count), ParsedResponse("end", usage=Usage(10, 0))]
    return Agent(ScriptedBackend(answers), config=AgentConfig(**settings))


def test_many_members_cannot_exceed_a_budget_of_tokens_together() -> None:
    end = end_of(AgentTeam(lead("worker", 100, budget=Budget(tokens=2000)), [Member(worker(), "Works.")]))
    assert (end.reason, end.answer, end.usage.input_tokens) == ("budget", "end", 2020)


def test_many_members_cannot_exceed_a_budget_of_money_together() -> None:
    prices = Prices(1.0, 1.0)
    member = worker(budget=Budget(prices=prices))
    end = end_of(AgentTeam(lead("worker", 100, budget=Budget(money=0.002, prices=prices)), [Member(member, "Works.")]))
    assert (end.reason, end.usage.input_tokens) == ("budget", 2020)


def test_members_of_members_share_the_budget_of_the_outermost_run() -> None:
    answers = [answer for _ in range(50) for answer in (calls_of("worker", 10),)]
    middle = Agent(ScriptedBackend(answers), config=AgentConfig(name="middle"))
    AgentTeam(middle, [Member(worker(), "Works.")])
    end = end_of(AgentTeam(lead("middle", 10, budget=Budget(tokens=3000)), [Member(middle, "Divides.")]))
    assert end.reason == "budget"
    assert 3000 <= end.usage.input_tokens <= 3600


def test_a_budget_with_room_lets_members_work_at_the_same_time() -> None:
    async def main() -> None:
        parent = RunLimits(Budget(tokens=1000), None)
        async with RunLimits(Budget(), parent).room_for(ExpectedCost(400)):
            other = separately(RunLimits(Budget(), parent), 400)
            await asyncio.wait_for(other, 5)

    asyncio.run(main())


async def _hold(limits: RunLimits, expected: ExpectedCost) -> None:
    async with limits.room_for(expected):
        pass


def separately(limits: RunLimits, tokens: int = 900) -> asyncio.Task[None]:
    """Ask for room in a task that is not part of the answer around it."""
    return asyncio.get_running_loop().create_task(_hold(limits, ExpectedCost(tokens)), context=Context())


@pytest.mark.parametrize(
    ("outer", "inner"),
    [(Budget(tokens=1000), Budget()), (Budget(), Budget(tokens=1000)), (Budget(money=1.0), Budget())],
)
def test_an_answer_that_is_cancelled_gives_its_room_back(outer: Budget, inner: Budget) -> None:
    async def main() -> None:
        top = RunLimits(outer, None)
        shared = RunLimits(inner, top)
        entered = asyncio.Event()

        async def answer() -> None:
            async with RunLimits(Budget(), shared).room_for(ExpectedCost(900, 0.9)):
                entered.set()
                await asyncio.Event().wait()

        first = asyncio.create_task(answer())
        await entered.wait()
        given_up = asyncio.create_task(_hold(RunLimits(Budget(), shared), ExpectedCost(900, 0.9)))
        second = asyncio.create_task(_hold(RunLimits(Budget(), shared), ExpectedCost(900, 0.9)))
        await asyncio.sleep(0.01)
        assert not second.done()
        given_up.cancel()
        await asyncio.sleep(0.01)
        assert not second.done()
        first.cancel()
        await asyncio.wait_for(second, 5)

    asyncio.run(main())


def test_who_waits_learns_that_the_budget_is_used_up() -> None:
    async def main() -> None:
        parent = RunLimits(Budget(tokens=1000), None)
        first = RunLimits(Budget(), parent)
        parent.spending.open_call().append(first.spending)
        async with first.room_for(ExpectedCost(900)):
            waiting = [separately(RunLimits(Budget(), parent)) for _ in range(3)]
            await asyncio.sleep(0)
            first.spending.add(Usage(1000, 0))
        for one in waiting:
            with pytest.raises(BudgetUsedUp, match="the budget of 1000 tokens"):
                await asyncio.wait_for(one, 5)

    asyncio.run(main())


def test_who_waits_stops_when_its_own_seconds_have_passed() -> None:
    async def main() -> None:
        clock = asyncio.get_running_loop().time
        parent = RunLimits(Budget(tokens=1000), None, clock)
        async with RunLimits(Budget(), parent, clock).room_for(ExpectedCost(900)):
            late = separately(RunLimits(Budget(seconds=0.01), parent, clock))
            with pytest.raises(BudgetUsedUp):
                await asyncio.wait_for(late, 5)

    asyncio.run(main())


def test_an_answer_may_need_another_one_inside_it() -> None:
    async def main() -> None:
        parent = RunLimits(Budget(tokens=1000), None)
        async with RunLimits(Budget(), parent).room_for(ExpectedCost(900)):
            await asyncio.wait_for(_hold(RunLimits(Budget(), parent), ExpectedCost(900)), 5)

    asyncio.run(main())


def waiting_for(limits: RunLimits) -> int:
    return len(limits._queue._tickets)


def held_in_a_thread(limits: RunLimits, tokens: int, entered: threading.Event, leave: threading.Event) -> None:
    async def main() -> None:
        async with limits.room_for(ExpectedCost(tokens)):
            entered.set()
            await asyncio.to_thread(leave.wait, 30)

    asyncio.run(main())


@pytest.mark.parametrize(("tokens", "together"), [(400, True), (900, False)])
def test_runs_in_other_threads_share_the_room(tokens: int, together: bool) -> None:
    """Each thread has an event loop of its own: an agent that is called in a tool that is a plain function."""
    parent = RunLimits(Budget(tokens=1000), None)
    entered = [threading.Event(), threading.Event()]
    leave = [threading.Event(), threading.Event()]
    threads = [
        threading.Thread(target=held_in_a_thread, args=(RunLimits(Budget(), parent), tokens, entered[at], leave[at]))
        for at in range(2)
    ]
    threads[0].start()
    assert entered[0].wait(30)
    threads[1].start()
    if together:
        assert entered[1].wait(30)
    else:
        wait_until(lambda: waiting_for(parent) == 1)
        assert not entered[1].is_set()
    leave[0].set()
    assert entered[1].wait(30)
    leave[1].set()
    for thread in threads:
        thread.join(30)
    assert (waiting_for(parent), parent._expected) == (0, [])


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_a_run_whose_event_loop_was_closed_keeps_nobody_waiting() -> None:
    parent = RunLimits(Budget(tokens=1000), None)

    async def main() -> None:
        loop = asyncio.new_event_loop()
        lost = _hold(RunLimits(Budget(), parent), ExpectedCost(900))
        async with RunLimits(Budget(), parent).room_for(ExpectedCost(900)):
            await asyncio.to_thread(Context().run, step_and_close, loop, lost)
            assert waiting_for(parent) == 1
            second = separately(RunLimits(Budget(), parent))
        await asyncio.wait_for(second, 5)
        await asyncio.to_thread(lost.close)
        assert waiting_for(parent) == 0

    asyncio.run(main())


def step_and_close(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
    """Let some work wait in a loop, and close the loop without cancelling it."""

    async def main() -> None:
        work.send(None)

    loop.run_until_complete(main())
    loop.close()


def test_each_attempt_at_an_answer_needs_room() -> None:
    broken = ParsedResponse("half", usage=Usage(995, 5), finish_reason=FinishReason.ERROR)
    backend = ScriptedBackend([broken, ParsedResponse("the last words", usage=Usage(10, 1))])
    end = asyncio.run(Agent(backend, config=AgentConfig(budget=Budget(tokens=1000))).run_to_end("Go"))
    # The attempt that broke off has used the budget up, so the next request is the one for the last answer.
    assert (end.reason, end.answer, len(backend.requests)) == ("budget", "the last words", 2)
    assert any(LAST_ROUND in message.text for message in backend.requests[1].messages)
    assert end.usage.input_tokens + end.usage.output_tokens == 1011


def test_a_second_attempt_waits_for_the_room_that_another_answer_has() -> None:
    async def main() -> tuple[str, int]:
        parent = RunLimits(Budget(tokens=10_000), None)
        holding, leave = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with RunLimits(Budget(), parent).room_for(ExpectedCost(9_900)):
                holding.set()
                await leave.wait()

        class Breaking(ScriptedBackend):
            async def stream(self, request: ChatRequest, options: Any = NO_OPTIONS, /) -> AsyncGenerator[Event]:
                if not self.requests:  # another member asks while the first attempt is written
                    sibling.append(asyncio.get_running_loop().create_task(hold(), context=Context()))
                    while waiting_for(parent) == 0:
                        await asyncio.sleep(0)
                async for event in super().stream(request, options):
                    yield event

        sibling: list[asyncio.Task[None]] = []
        broken = ParsedResponse("half", usage=Usage(5, 5), finish_reason=FinishReason.ERROR)
        backend = Breaking([broken, ParsedResponse("done", usage=Usage(5, 5))])
        call = ParentCall("call", lambda _: None, Session(), [], parent)
        running = asyncio.create_task(Agent(backend).run_to_end("Go", parent=call))
        await asyncio.wait_for(holding.wait(), 5)
        while waiting_for(parent) == 0:
            assert not running.done(), running.result()
            await asyncio.sleep(0)
        requests = len(backend.requests)
        leave.set()
        return (await asyncio.wait_for(running, 5)).answer, requests

    assert asyncio.run(main()) == ("done", 1)


LONG = [Message("user", (TextPart(f"Part {at}. " + "word " * 400),)) for at in range(8)]


def test_a_summary_waits_for_room_in_the_budget_around_its_run() -> None:
    async def main() -> tuple[str, int, int]:
        parent = RunLimits(Budget(tokens=100_000), None)
        writer = ScriptedBackend([ParsedResponse("Short.", usage=Usage(4_000, 10))])
        member = summarizing(writer, ParsedResponse("done", usage=Usage(100, 1)))
        nested: list[Spending] = []
        parent.spending._open_calls.append(nested)
        call = ParentCall("call", lambda _: None, Session(), nested, parent)
        async with RunLimits(Budget(), parent).room_for(ExpectedCost(99_900)):
            running = asyncio.get_running_loop().create_task(
                member.run_to_end("Go", history=LONG, parent=call), context=Context()
            )
            while waiting_for(parent) == 0:
                assert not running.done(), running.result()
                await asyncio.sleep(0)
            before = len(writer.requests)
        end = await asyncio.wait_for(running, 5)
        return end.answer, before, parent.spending.tokens

    assert asyncio.run(main()) == ("done", 0, 4_111)


def summarizing(writer: ScriptedBackend, *answers: ParsedResponse, **settings: Any) -> Agent:
    config = AgentConfig(context=2_000, compaction=Summarize(writer, keep=2), **settings)
    return Agent(ScriptedBackend(answers), config=config)


def test_a_summary_is_not_written_when_the_budget_around_its_run_is_used_up() -> None:
    async def main() -> tuple[RunEnded, list[AgentEvent]]:
        parent = RunLimits(Budget(tokens=1000), None)
        parent.spending.add(Usage(1000, 0))
        writer = ScriptedBackend([])
        call = ParentCall("call", lambda _: None, Session(), [], parent)
        events = [event async for event in summarizing(writer).run("Go", history=LONG, parent=call)]
        assert not writer.requests
        assert isinstance(events[-1], RunEnded)
        return events[-1], events

    end, _ = asyncio.run(main())
    assert (end.reason, end.detail) == ("budget", "the budget of 1000 tokens is used up")


def test_a_run_that_is_resumed_keeps_what_was_spent_and_the_room_for_each_answer() -> None:
    async def stopped(team: AgentTeam, journal: MemoryJournal) -> int:
        """Run until three members have answered; return the tokens that are recorded."""
        finished = 0
        async with aclosing(team.run("Go", run_id="r", journal=journal)) as events:
            async for event in events:
                finished += isinstance(event, ToolFinished)
                if finished == 3:
                    break
        return finished

    def team(members: ScriptedBackend, *answers: ParsedResponse) -> AgentTeam:
        coordinator = Agent(ScriptedBackend(answers), config=AgentConfig(budget=Budget(tokens=3000)))
        return AgentTeam(coordinator, [Member(Agent(members, config=AgentConfig(name="worker")), "Works.")])

    def answering() -> ScriptedBackend:
        return ScriptedBackend([ParsedResponse("done", usage=Usage(500, 0)) for _ in range(100)])

    records: dict[str, str] = {}
    first, second = answering(), answering()
    assert asyncio.run(stopped(team(first, calls_of("worker", 50)), MemoryJournal(records))) == 3
    coordinator = team(second, ParsedResponse("end", usage=Usage(10, 0)))
    end = asyncio.run(coordinator.run_to_end("Go", run_id="r", journal=MemoryJournal(records)))
    assert (end.reason, end.answer) == ("budget", "end")
    # Ten for the calls, as many answers as there is room for, and the last answer. None is asked for twice.
    recorded = sum(name.endswith("answer.1") for name in records) - 1
    assert end.usage.input_tokens == 20 + 500 * recorded
    assert 3000 <= end.usage.input_tokens <= 3000 + 500 + 20
    assert recorded <= len(first.requests) + len(second.requests) <= recorded + 1  # one may have been cut off


@pytest.mark.parametrize("usage", [Usage(10**18, 10**18), Usage(10, 10, cached_tokens=10**18), Usage(10, 10, 0, -5)])
def test_an_impossible_number_of_tokens_is_replaced_by_an_estimate(usage: Usage) -> None:
    agent = Agent(ScriptedBackend([ParsedResponse("done", usage=usage)]))
    end = asyncio.run(agent.run_to_end("Go"))
    assert end.usage.estimated
    assert max(end.usage.input_tokens, end.usage.cached_tokens) < 100
    assert end.usage.reasoning_tokens >= 0
