"""Room in a budget: runs that share one reserve room for an answer, and wait if there is none."""

import asyncio
from contextvars import Context
from typing import Any

import pytest

from toolwire import FinishReason, ParsedResponse, ToolCall, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member, Prices
from toolwire.agent.budget import BudgetUsedUp, ExpectedCost, RunLimits
from toolwire.agent.run_events import RunEnded
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


@pytest.mark.parametrize("usage", [Usage(10**18, 10**18), Usage(10, 10, cached_tokens=10**18), Usage(10, 10, 0, -5)])
def test_an_impossible_number_of_tokens_is_replaced_by_an_estimate(usage: Usage) -> None:
    agent = Agent(ScriptedBackend([ParsedResponse("done", usage=usage)]))
    end = asyncio.run(agent.run_to_end("Go"))
    assert end.usage.estimated
    assert max(end.usage.input_tokens, end.usage.cached_tokens) < 100
    assert end.usage.reasoning_tokens >= 0
