"""The end of a run as a value, the budget of one run, and settings that are passed in a wrong place."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import toolwire
from toolwire import ConfigurationError, ParsedResponse, ProviderError, ToolCall, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Handoff, Member, PendingApprovals, Prices
from toolwire.testing import ScriptedBackend


@toolwire.tool
def count(number: int) -> int:
    """Return the next number."""
    return number + 1


def calling(number: int, usage: Usage | None = None) -> ParsedResponse:
    return ParsedResponse(tool_calls=(ToolCall("count", {"number": number}, str(number)),), usage=usage)


def counting(rounds: int = 50) -> Agent[str]:
    usage = Usage(90, 10)
    return Agent(ScriptedBackend([*(calling(number, usage) for number in range(rounds)), "enough"]), [count])


def test_end_of_a_run_has_its_answer_messages_and_usage() -> None:
    end = Agent(ScriptedBackend([calling(1, Usage(5, 1)), ParsedResponse("two", usage=Usage(7, 1))]), [count])
    ended = asyncio.run(end.run_to_end("Count."))
    assert (ended.reason, ended.answer, ended.rounds, ended.calls) == ("answered", "two", 2, 1)
    assert (ended.usage.input_tokens, ended.usage.output_tokens) == (12, 2)
    assert [message.role for message in ended.messages] == ["user", "assistant", "tool", "assistant"]


def test_a_call_of_a_tool_that_the_provider_defined_runs_the_registered_tool_of_its_name() -> None:
    commands: list[object] = []

    @toolwire.tool
    def shell(action: dict[str, object]) -> str:
        """Run a command."""
        commands.append(action)
        return "a.txt"

    item = {"type": "shell_call", "id": "s", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"}
    asked = toolwire.get_api("openai_responses").decode_response({"status": "completed", "output": [item]})
    assert not asked.tool_calls
    ended = Agent(ScriptedBackend([asked, "one file"]), [shell]).run_to_end_sync("Which files?")
    assert (ended.answer, ended.calls, commands) == ("one file", 1, [{"commands": ["ls"]}])
    unanswered = Agent(ScriptedBackend([asked, "none"]), [count]).run_to_end_sync("Which files?")
    (result,) = unanswered.messages[2].parts
    assert isinstance(result, toolwire.ToolResult)
    assert "shell" in str(result.error)


def test_run_without_an_answer_has_an_end_too() -> None:
    ended = Agent(ScriptedBackend([ProviderError("overloaded", status=529)])).run_to_end_sync("Count.")
    assert (ended.reason, ended.good, ended.answer) == ("error", False, "")
    assert "overloaded" in ended.detail


def test_output_and_teams_have_it() -> None:
    agent = Agent(ScriptedBackend(['{"response": 3}', '{"response": 4}']), output_type=int)
    assert agent.run_to_end_sync("How many?").output == 3
    other = Agent(ScriptedBackend([]), [count], AgentConfig(name="counter"), output_type=int)
    assert AgentTeam(agent, handoffs=[Handoff(other, "Counts.")]).run_to_end_sync("How many?").output == 4


@pytest.mark.parametrize(
    ("budget", "rounds", "detail"),
    [
        (Budget(rounds=3), 3, "3 rounds"),
        (Budget(calls=2), 3, "2 calls"),
        (Budget(tokens=250), 4, "250 tokens"),
        (Budget(money=0.0009, prices=Prices(input=3.0, output=15.0)), 4, "0.0009 money"),
    ],
)
def test_budget_of_one_run_replaces_that_of_the_agent(budget: Budget, rounds: int, detail: str) -> None:
    ended = counting().run_to_end_sync("Count.", budget=budget)
    assert (ended.reason, ended.rounds) == ("budget", rounds)
    assert detail in ended.detail
    assert counting(10).run_to_end_sync("Count.").rounds == 11, "the next run has the budget of the agent"


def test_budget_of_one_run_has_the_prices_of_the_agent() -> None:
    backend = ScriptedBackend([ParsedResponse("two", usage=Usage(1_000_000, 0))])
    agent = Agent(backend, config=AgentConfig(budget=Budget(prices=Prices(input=2.0))))
    assert agent.run_to_end_sync("Count.", budget=Budget(money=9.0)).money == 2.0


def test_budget_of_money_that_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a budget of money needs prices"):
        counting().ask_sync("Count.", budget=Budget(money=1.0))
    wrong: Any = 3
    with pytest.raises(TypeError, match="budget must be a Budget or None, not 3"):
        counting().ask_sync("Count.", budget=wrong)


def pending_at(agent: Agent[str]) -> PendingApprovals:
    pending = agent.run_to_end_sync("Count.").pending
    assert pending is not None
    return pending


@pytest.mark.parametrize("kind", ["agent", "member", "handoff", "member of a handoff"])
def test_budget_of_money_is_refused_at_once_where_one_of_the_models_has_no_prices(kind: str) -> None:
    priced = AgentConfig(name="priced", budget=Budget(prices=Prices()))
    asked = [ScriptedBackend(["done"]) for _ in range(3)]
    first, second, third = (
        Agent(backend, config=replace(priced, name=name) if name else None)
        for backend, name in zip(asked, ("first", "" if kind == "handoff" else "second", ""), strict=True)
    )
    if kind == "member":
        AgentTeam(first, [Member(third, "Works.")])
    if "handoff" in kind:
        AgentTeam(first, handoffs=[Handoff(second, "Continues.")])
    if kind == "member of a handoff":
        AgentTeam(second, [Member(third, "Works.")])
    working = third if kind == "agent" else first
    with pytest.raises(ConfigurationError, match="a budget of money needs prices"):
        working.run("Go.", budget=Budget(money=1.0))  # before the first event is asked for
    assert not any(backend.requests for backend in asked)


def test_prices_of_the_budget_count_in_the_agents_of_the_same_run_alone() -> None:
    budget = Budget(money=1.0, prices=Prices())
    other = Agent(ScriptedBackend([]), config=AgentConfig(name="other"))
    asker = Agent(ScriptedBackend(["done"]))
    AgentTeam(asker, handoffs=[Handoff(other, "Continues.")])
    assert asker.ask_sync("Go.", budget=budget) == "done"
    AgentTeam(other, [Member(Agent(ScriptedBackend([]), config=AgentConfig(name="third")), "Works.")])
    with pytest.raises(ConfigurationError, match="a budget of money needs prices"):
        asker.run("Go.", budget=budget)


def test_budget_of_a_resumed_run_is_refused_at_once_if_it_cannot_be_counted() -> None:
    dangerous = toolwire.tool(destructive=True)(count.__wrapped__)
    agent = Agent(ScriptedBackend([calling(1), "two"]), [dangerous], confirm="defer")
    pending = pending_at(agent)
    decisions = {approval.id: True for approval in pending.approvals}
    with pytest.raises(ConfigurationError, match="a budget of money needs prices"):
        agent.resume(pending, decisions, budget=Budget(money=1.0))
    assert agent.ask_resumed_sync(pending, decisions) == "two"


@pytest.mark.parametrize("setting", ["system", "budget", "name", "timeout", "settings"])
def test_setting_that_is_passed_to_the_agent_is_shown_in_its_place(setting: str) -> None:
    options: Any = {setting: "x"}
    with pytest.raises(TypeError, match=rf"it is a setting, config=AgentConfig\({setting}=...\)"):
        Agent(ScriptedBackend([]), **options)
