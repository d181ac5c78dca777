"""The context of a call: dependencies, budget, progress and cancellation, for tools that ask for it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from unittest.mock import Mock

import pytest

import toolwire
from toolwire import (
    ConfigurationError,
    DefinitionError,
    ParsedResponse,
    ToolCall,
    ToolContext,
    ToolExecutor,
    ToolRegistry,
)
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Handoff, Hooks, Member, TurnInfo
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


def needed(annotation: Any) -> dict[str, str]:
    """Return the dependencies that a tool with this annotation of its context needs."""

    async def look(context: Any) -> str:
        return ""

    look.__annotations__["context"] = annotation
    return ToolRegistry([look]).needed_dependencies()


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (ToolContext[Shop], "Shop"),
        (ToolContext[dict[str, Any]], "dict[str, typing.Any]"),
        (ToolContext[Shop | dict[str, int]], "Shop | dict"),
        ("ToolContext[Unknown]", "Unknown"),
        ("toolwire.ToolContext[dict[str, Unknown]]", "dict[str, Unknown]"),
        (ToolContext, ""),
        (ToolContext[Any], ""),
        (ToolContext[object], ""),
        (ToolContext[Shop | None], ""),
        (ToolContext[TypeVar("T")], ""),  # type: ignore[misc]
        ("ToolContext[Unknown | None]", ""),
        ("ToolContext[typing.Any]", ""),
    ],
)
def test_type_of_the_dependencies_says_whether_a_tool_needs_them(annotation: Any, wanted: str) -> None:
    assert [wanted in type_name for type_name in needed(annotation).values()] == [True] * bool(wanted)


def test_run_without_the_dependencies_that_a_tool_needs_is_refused_before_the_model_is_asked() -> None:
    model = ScriptedBackend([ParsedResponse("done")])
    shop = Agent(model, [price_of], AgentConfig(name="shop"))
    lead = AgentTeam(Agent(model, config=AgentConfig(name="lead")), [Member(shop, "Knows prices.")])
    desk = AgentTeam(Agent(model, config=AgentConfig(name="desk")), handoffs=[Handoff(shop, "Knows prices.")])
    for agent in (shop, lead, desk):
        for begin in (agent.run, agent.ask_sync, agent.run_sync):
            with pytest.raises(ConfigurationError, match=r"the tool price_of needs dependencies, Shop: pass deps="):
                list(begin("Go."))  # type: ignore[call-overload]
    assert model.requests == []
    assert shop.ask_sync("Go.", deps=Shop({})) == "done"


class Fake:
    """A shop of a test, with the methods that a protocol names."""

    def price(self) -> int:
        return 3


class Priced(Protocol):
    """Anything with a price."""

    def price(self) -> int: ...


@pytest.mark.parametrize(
    ("annotation", "deps", "admitted"),
    [
        (ToolContext[Shop], Shop({}), True),
        (ToolContext[Shop], "a shop", False),
        (ToolContext[Shop], Shop, False),
        (ToolContext[Shop], Fake(), False),
        (ToolContext[Shop], Mock(spec=Shop), True),
        (ToolContext[Shop | None], None, True),
        (ToolContext[Shop | None], {}, False),
        (ToolContext[Shop | dict[str, int]], {"tea": 3}, True),
        (ToolContext[dict[str, int]], [3], False),
        (ToolContext[Mapping[str, int]], {}, True),
        (ToolContext[float], 3, True),
        (ToolContext[Priced], Fake(), True),
        (ToolContext["Unknown"], "anything", True),  # type: ignore[name-defined]
        ("ToolContext[Unknown]", "anything", True),
        (ToolContext[Any], "anything", True),
        (ToolContext[TypeVar("T")], "anything", True),  # type: ignore[misc]
        (ToolContext, "anything", True),
    ],
)
def test_dependencies_of_another_class_than_a_tool_names_are_refused(
    annotation: Any, deps: object, admitted: bool
) -> None:
    async def look(context: Any) -> str:
        """Look."""
        return ""

    look.__annotations__["context"] = annotation
    model = ScriptedBackend(["done"])
    agent = Agent(model, [look])
    if admitted:
        assert agent.ask_sync("Go.", deps=deps) == "done"
        return
    with pytest.raises(TypeError, match=r"deps must be of the type .*, which the tool look names, not "):
        agent.ask_sync("Go.", deps=deps)
    assert model.requests == []


def test_tool_that_is_registered_later_needs_its_dependencies_too() -> None:
    agent = Agent(ScriptedBackend(["first", "second"]))
    assert agent.ask_sync("Go.") == "first"
    agent.registry.register(price_of)
    with pytest.raises(ConfigurationError, match="price_of needs dependencies"):
        agent.ask_sync("Go.")
    agent.registry.enable("price_of", enabled=False)
    assert agent.ask_sync("Go.") == "second"


def test_run_that_is_resumed_needs_the_dependencies_again() -> None:
    def order(context: ToolContext[Shop], item: str) -> str:
        """Order an item."""
        return f"{item} costs {context.deps.prices[item]}"

    tools = [toolwire.tool(destructive=True)(order)]
    first = Agent(ScriptedBackend([calls("order", item="tea")]), tools, confirm="defer")
    *_, end = first.run_sync("Go.", deps=Shop({"tea": 3}))
    assert isinstance(end, RunEnded)
    assert end.pending is not None
    second = Agent(ScriptedBackend(["ordered"]), tools, confirm="defer")
    with pytest.raises(ConfigurationError, match="order needs dependencies"):
        second.ask_resumed_sync(end.pending, {"call_order": True})
    assert second.ask_resumed_sync(end.pending, {"call_order": True}, deps=Shop({"tea": 3})) == "ordered"


@pytest.mark.parametrize("output_type", [None, int])
def test_hooks_find_the_dependencies_of_the_run_in_the_turn(output_type: Any) -> None:
    def priced(prompt: str, turn: TurnInfo) -> str:
        return f"{prompt} {turn.deps.prices}"

    model = ScriptedBackend(["3"])
    config = AgentConfig(system="Prices:", hooks=Hooks(prompt=(priced,)))
    Agent(model, config=config, output_type=output_type).ask_sync("Go.", deps=Shop({"tea": 3}))
    assert model.requests[0].messages[0].text.startswith("Prices: {'tea': 3}")


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
