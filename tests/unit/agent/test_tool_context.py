"""The context of a call: dependencies, budget, progress and cancellation, for tools that ask for it."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import pytest

import toolwire
from toolwire import DefinitionError, ParsedResponse, ToolCall, ToolContext, ToolExecutor, ToolRegistry
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member
from toolwire.agent.run_events import ProgressReported, RunEnded, ToolFinished
from toolwire.policy.session import Session
from toolwire.testing import ScriptedBackend


@dataclass
class Shop:
    """A dependency."""

    prices: dict[str, int]


@toolwire.tool
def price_of(context: ToolContext[Shop], item: str) -> int:
    """Return the price of an item.

    Args:
        context: the shop.
        item: its name.
    """
    return context.deps.prices[item]


def calls(*names: str, **arguments: Any) -> ParsedResponse:
    return ParsedResponse("", tool_calls=tuple(ToolCall(name, arguments, f"call_{name}") for name in names))


def run(agent: Agent, **options: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [event async for event in agent.run("Go.", **options)]

    return asyncio.run(main())


def results(events: list[Any]) -> list[str]:
    return [event.outcome.result.text for event in events if isinstance(event, ToolFinished)]


def test_context_is_no_parameter_for_the_model() -> None:
    assert price_of.definition.parameters == {
        "type": "object",
        "properties": {"item": {"type": "string", "description": "its name."}},
        "required": ["item"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("position", ["first", "last", "keyword", "method", "unresolved"])
def test_context_may_stand_anywhere(position: str) -> None:
    class Inside:
        pass

    class Tools:
        def method(self, item: str, context: ToolContext[Any]) -> str:
            return f"{item} {context.deps}"

    def first(context: ToolContext[str], item: str) -> str:
        return f"{item} {context.deps}"

    def last(item: str, context: ToolContext[str]) -> str:
        return f"{item} {context.deps}"

    def keyword(item: str, *, context: toolwire.ToolContext[str]) -> str:
        return f"{item} {context.deps}"

    def unresolved(item: str, context: "ToolContext[Inside]") -> str:
        return f"{item} {context.deps}"

    function = Tools().method if position == "method" else locals()[position]
    backend = ScriptedBackend([calls(position, item="tea"), ParsedResponse("done")])
    agent = Agent(backend, [function])
    assert list(backend_tool(agent, position)) == ["item"]
    assert results(run(agent, deps="deps")) == ["tea deps"]


def backend_tool(agent: Agent, name: str) -> dict[str, Any]:
    parameters: dict[str, Any] = agent.registry.lookup(name).definition.parameters["properties"]
    return parameters


def test_dependencies_reach_the_tools_of_a_run_and_of_its_members() -> None:
    shop = Shop({"tea": 7})
    member = Agent(
        ScriptedBackend([calls("price_of", item="tea"), ParsedResponse("7")]), [price_of], AgentConfig(name="clerk")
    )
    lead = Agent(ScriptedBackend([calls("clerk", task="How much is tea?"), ParsedResponse("It costs 7.")]))
    events = run(Agent(ScriptedBackend([calls("price_of", item="tea"), ParsedResponse("7")]), [price_of]), deps=shop)
    assert results(events) == ["7"]
    team = AgentTeam(lead, [Member(member, "Knows prices.")])
    inner = [event.event for event in run(team.coordinator, deps=shop) if hasattr(event, "member")]
    assert results(inner) == ["7"]


def test_context_names_the_call_the_run_and_what_is_left() -> None:
    seen: list[ToolContext[Any]] = []

    @toolwire.tool
    async def look(context: ToolContext[None]) -> str:
        """Look around."""
        seen.append(context)
        left = context.budget_left
        return f"{left.rounds} {left.calls} {left.tokens} {left.seconds is not None} {left.money}"

    backend = ScriptedBackend([calls("look"), ParsedResponse("done")])
    config = AgentConfig(budget=Budget(rounds=5, calls=3, seconds=60))
    session = Session()
    assert results(run(Agent(backend, [look], config), session=session, run_id="r")) == ["4 2 None True None"]
    (context,) = seen
    assert (context.run_id, context.call.id, context.call.name, context.deps) == ("r", "call_look", "look", None)
    assert context.session is session


@pytest.mark.parametrize("threaded", [False, True])
def test_progress_is_an_event_before_the_result(threaded: bool) -> None:
    async def work(context: ToolContext[Any]) -> str:
        """Work."""
        context.report("half")
        return "whole"

    def work_in_thread(context: ToolContext[Any]) -> str:
        """Work."""
        context.report("half")
        return "whole"

    function = toolwire.tool(name="work")(work_in_thread if threaded else work)
    events = run(Agent(ScriptedBackend([calls("work"), ParsedResponse("done")]), [function]))
    kinds = [event for event in events if isinstance(event, ProgressReported | ToolFinished)]
    progress, finished = kinds
    assert (progress.call.id, progress.value) == ("call_work", "half")
    assert finished.outcome.result.text == "whole"


def test_async_generator_reports_its_values_and_returns_the_last_one() -> None:
    @toolwire.tool
    async def download(files: int) -> AsyncGenerator[str]:
        """Download files."""
        for number in range(files):
            yield f"{number + 1} of {files}"

    events = run(Agent(ScriptedBackend([calls("download", files=3), ParsedResponse("done")]), [download]))
    assert [event.value for event in events if isinstance(event, ProgressReported)] == ["1 of 3", "2 of 3", "3 of 3"]
    assert results(events) == ["3 of 3"]


def test_plain_function_learns_that_its_call_was_given_up() -> None:
    stopped: list[float] = []

    @toolwire.tool(timeout=0.05)
    def work(context: ToolContext[Any]) -> str:
        """Work for long."""
        begun = time.monotonic()
        while not context.cancelled and time.monotonic() - begun < 20:
            time.sleep(0.005)
        context.report("nobody reads this")
        stopped.append(time.monotonic() - begun)
        return "late"

    events = run(Agent(ScriptedBackend([calls("work"), ParsedResponse("done")]), [work]))
    assert "took longer than 0.05 seconds" in results(events)[0]
    for _ in range(1000):
        if stopped:
            break
        time.sleep(0.005)
    assert stopped[0] < 10
    assert not [event for event in events if isinstance(event, ProgressReported)]
    assert isinstance(events[-1], RunEnded)


def test_executor_fills_the_context_without_an_agent() -> None:
    executor = ToolExecutor(ToolRegistry([price_of]))
    call = ToolCall("price_of", {"item": "tea"}, "1")
    environment = toolwire.CallEnvironment(deps=Shop({"tea": 3}))
    outcome = asyncio.run(executor.run(call, Session(), environment=environment))
    assert outcome.result.text == "3"


def test_context_that_cannot_be_filled_is_an_error() -> None:
    def twice(one: ToolContext[Any], other: ToolContext[Any]) -> None:
        pass

    with pytest.raises(DefinitionError, match="several parameters ask for the context"):
        toolwire.tool(twice)
    with pytest.raises(DefinitionError, match="process of its own"):
        ToolRegistry([price_of.replace(isolated=True)])
