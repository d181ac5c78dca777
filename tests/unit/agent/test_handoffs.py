"""Hand-offs: another agent continues the same conversation in the same run."""

import asyncio
from typing import Any

import pytest

from toolwire import Agent, FinishReason, ParsedResponse, Tier, ToolCall, Usage, tool
from toolwire.agent import AgentChanged, AgentConfig, AgentTeam, Budget, Handoff, Member, Prices, RunEnded, ToolFinished
from toolwire.agent.compatibility import changes, configuration
from toolwire.agent.journal import MemoryJournal
from toolwire.agent.loop import MAX_HANDOVERS, NO_HANDOVER, ONE_HANDOVER
from toolwire.errors import ConfigurationError, DefinitionError
from toolwire.policy.approval import Approval
from toolwire.policy.policy import Policy, Rule
from toolwire.testing import ScriptedBackend


@tool
def find_invoice(number: int) -> str:
    """Return an invoice."""
    return f"Invoice {number}: 12 euros"


@tool(tier=Tier.RUN)
def pay_back(number: int) -> str:
    """Pay an invoice back."""
    return "paid"


def calling(*names: str, **arguments: Any) -> ParsedResponse:
    calls = tuple(ToolCall(name, arguments, f"{name}_{at}") for at, name in enumerate(names))
    return ParsedResponse(tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS, usage=Usage(10, 1))


def agent(name: str, *answers: ParsedResponse | str, tools: Any = (), **options: Any) -> Agent:
    config = options.pop("config", AgentConfig(name=name, system=f"You are {name}."))
    return Agent(ScriptedBackend(answers), tools, config, **options)


def requests(of: Agent) -> list[Any]:
    assert isinstance(of.backend, ScriptedBackend)
    return of.backend.requests


def run(team: AgentTeam, **options: Any) -> tuple[list[Any], RunEnded]:
    events: list[Any] = list(team.run_sync("What was invoice 7?", **options))
    return events, events[-1]


def test_other_agent_continues_with_its_own_prompt_and_tools() -> None:
    billing = agent("billing", calling("find_invoice", number=7), "It was 12 euros.", tools=[find_invoice])
    desk = agent("desk", calling("transfer_to_billing"))
    events, ended = run(AgentTeam(desk, handoffs=[Handoff(billing, "Questions about invoices.")]))
    assert (ended.answer, ended.agent, ended.rounds) == ("It was 12 euros.", "billing", 3)
    assert [event for event in events if isinstance(event, AgentChanged)] == [AgentChanged("billing", "desk")]
    assert [event for event in events if isinstance(event, RunEnded)] == [ended]
    (first, _) = requests(billing)
    assert "You are billing." in str(first.messages[0])
    assert "You are desk." not in str(first.messages)
    assert "What was invoice 7?" in str(first.messages[1])
    assert [definition.name for definition in first.tools] == ["find_invoice"]
    assert [definition.name for definition in requests(desk)[0].tools] == ["transfer_to_billing"]


def test_a_required_call_is_another_one_than_the_hand_over() -> None:
    config = AgentConfig(name="billing", require_tool_call=True)
    answers = "I think 9 euros.", calling("find_invoice", number=7), "It was 12 euros."
    billing = agent("billing", *answers, tools=[find_invoice], config=config)
    _, ended = run(AgentTeam(agent("desk", calling("transfer_to_billing")), handoffs=[Handoff(billing, "Invoices.")]))
    assert (ended.reason, ended.answer, ended.has_result) == ("answered", "It was 12 euros.", True)
    assert [request.tool_choice.mode for request in requests(billing)] == ["required", "required", "auto"]


def test_a_hand_over_alone_is_no_result() -> None:
    desk = agent("desk", calling("transfer_to_billing"))
    _, ended = run(AgentTeam(desk, handoffs=[Handoff(agent("billing", "I think 9 euros."), "Invoices.")]))
    assert (ended.good, ended.has_result) == (True, False)


def test_agents_hand_on_and_back_but_not_for_ever() -> None:
    looks = [calling("find_invoice", number=at) for at in range(5)]  # other calls between: no repetition ends the run
    billing = agent(
        "billing", *[answer for look in looks for answer in (look, calling("transfer_to_desk"))], tools=[find_invoice]
    )
    desk = agent("desk", *[calling("transfer_to_billing")] * 5, "From the desk.")
    AgentTeam(billing, handoffs=[Handoff(desk, "Anything else.")])
    events, ended = run(AgentTeam(desk, handoffs=[Handoff(billing, "Invoices.")]))
    assert len([event for event in events if isinstance(event, AgentChanged)]) == MAX_HANDOVERS
    refused = [event.outcome.result.error for event in events if isinstance(event, ToolFinished)][-1]
    assert refused == NO_HANDOVER
    assert (ended.agent, ended.answer) == ("desk", "From the desk.")


def test_handing_over_in_a_circle_ends_as_other_repetitions_do() -> None:
    billing = agent("billing", *[calling("transfer_to_desk")] * 9, "From billing.")
    desk = agent("desk", *[calling("transfer_to_billing")] * 9, "From the desk.")
    AgentTeam(billing, handoffs=[Handoff(desk, "Anything else.")])
    _, ended = run(AgentTeam(desk, handoffs=[Handoff(billing, "Invoices.")]))
    assert ended.reason == "repeats"


def test_conversation_goes_to_one_agent_only() -> None:
    billing, refunds = agent("billing", "From billing."), agent("refunds", "From refunds.")
    desk = agent("desk", calling("transfer_to_billing", "transfer_to_refunds"))
    events, ended = run(AgentTeam(desk, handoffs=[Handoff(billing, "Invoices."), Handoff(refunds, "Refunds.")]))
    assert ended.answer == "From billing."
    results = {
        event.outcome.call.name: event.outcome.result.error for event in events if isinstance(event, ToolFinished)
    }
    assert results == {"transfer_to_billing": None, "transfer_to_refunds": ONE_HANDOVER}


def test_policy_is_that_of_the_other_agent_and_approval_that_of_the_first() -> None:
    asked: list[str] = []

    def confirm(approval: Approval) -> bool:
        asked.append(approval.call.name)
        return True

    policy = Policy([Rule(tool="pay_back", effect="ask")])
    refunds = agent("refunds", calling("pay_back", number=7), "Done.", tools=[pay_back], policy=policy)
    desk = agent("desk", calling("transfer_to_refunds"), confirm=confirm)
    _, ended = run(AgentTeam(desk, handoffs=[Handoff(refunds, "Refunds.")]))
    assert (asked, ended.answer) == (["pay_back"], "Done.")


def test_budget_of_the_first_agent_holds_for_all() -> None:
    billing = agent("billing", *[calling("find_invoice", number=n) for n in range(5)], "last", tools=[find_invoice])
    config = AgentConfig(name="desk", budget=Budget(rounds=3))
    desk = agent("desk", calling("transfer_to_billing"), config=config)
    _, ended = run(AgentTeam(desk, handoffs=[Handoff(billing, "Invoices.")]))
    assert (ended.reason, ended.rounds) == ("budget", 3)


def test_each_agent_is_paid_by_its_own_prices() -> None:
    def priced(name: str, price: float) -> AgentConfig:
        return AgentConfig(name=name, budget=Budget(money=1_000, prices=Prices(input=price * 1e6)))

    last = ParsedResponse("12", usage=Usage(10, 1))
    billing = agent("billing", last, config=priced("billing", 2))
    desk = agent("desk", calling("transfer_to_billing"), config=priced("desk", 1))
    _, ended = run(AgentTeam(desk, handoffs=[Handoff(billing, "Invoices.")]))
    assert ended.money == 10 * 1 + 10 * 2
    with pytest.raises(ConfigurationError, match="needs prices"):
        AgentTeam(agent("desk", config=priced("desk", 1)), handoffs=[Handoff(agent("free"), "Free.")])


def test_resumed_run_is_with_the_agent_to_which_it_was_handed_over() -> None:
    class Cut(MemoryJournal):
        async def write(self, name: str, text: str) -> None:
            if name.startswith("answer.3"):
                raise RuntimeError("the process ends here")
            await super().write(name, text)

    def team(*answers: ParsedResponse | str) -> AgentTeam:
        billing = agent("billing", *answers, tools=[find_invoice])
        return AgentTeam(agent("desk", calling("transfer_to_billing")), handoffs=[Handoff(billing, "Invoices.")])

    journal = Cut()
    with pytest.raises(RuntimeError, match="ends here"):
        run(team(calling("find_invoice", number=7), "lost"), journal=journal, run_id="r")
    events, ended = run(team("It was 12 euros."), journal=MemoryJournal(journal.records), run_id="r")
    assert (ended.answer, ended.agent, ended.rounds) == ("It was 12 euros.", "billing", 3)
    assert [event.agent for event in events if isinstance(event, AgentChanged)] == ["billing"]


def test_other_agent_is_part_of_what_a_recorded_run_depends_on() -> None:
    def described(system: str) -> dict[str, Any]:
        billing = agent("billing", config=AgentConfig(name="billing", system=system))
        return configuration(AgentTeam(agent("desk"), handoffs=[Handoff(billing, "Invoices.")]).coordinator)

    (difference,) = changes(described("one"), described("two"))
    assert "of the member transfer_to_billing" in difference


def test_impossible_handoffs_are_errors() -> None:
    desk, billing = agent("desk"), agent("billing")
    with pytest.raises(DefinitionError, match="needs a description"):
        AgentTeam(desk, handoffs=[Handoff(billing, "")])
    with pytest.raises(DefinitionError, match="registry of its own"):
        AgentTeam(desk, handoffs=[Handoff(Agent(billing.backend, desk.registry), "Invoices.")])
    with pytest.raises(DefinitionError, match="cannot hand over to its own name: give one of them another"):
        AgentTeam(desk, [Member(billing, "Invoices.")], handoffs=[Handoff(agent("desk"), "The same.")])
    assert not desk.registry.definitions(), "a team that is refused changes nothing"
    with pytest.raises(TypeError, match="handoffs"):
        AgentTeam(desk, handoffs=[billing])  # type: ignore[list-item]


def test_answer_of_another_agent_has_the_type_of_the_first() -> None:
    typed = {"output_type": dict[str, int]}
    with pytest.raises(ConfigurationError, match="billing may give the answer, so it needs the output_type"):
        AgentTeam(agent("desk", **typed), handoffs=[Handoff(agent("billing"), "Invoices.")])
    with pytest.raises(ConfigurationError, match="billing may give the answer"):
        AgentTeam(agent("desk", **typed), handoffs=[Handoff(agent("billing", output_type=int), "Invoices.")])
    handing = calling("transfer_to_billing")
    same: Any = AgentTeam(
        agent("desk", handing, **typed), handoffs=[Handoff(agent("billing", '{"a": 1}', **typed), "Bills.")]
    )
    assert same.ask_sync("What is it?") == {"a": 1}
    text = AgentTeam(agent("desk", handing), handoffs=[Handoff(agent("billing", '{"a": 1}', **typed), "Bills.")])
    ended = text.run_to_end_sync("What is it?")
    assert (ended.answer, ended.output) == ('{"a": 1}', {"a": 1})


def test_team_answers() -> None:
    team = AgentTeam(agent("desk", calling("transfer_to_b")), handoffs=[Handoff(agent("b", "yes"), "B.")])
    assert asyncio.run(team.ask("Is it?")) == "yes"
