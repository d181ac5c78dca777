"""Whether an agent is the one that a run began with."""

import json
from dataclasses import replace
from typing import Any

import pytest

from toolwire import Tier
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member
from toolwire.agent.compatibility import changes, configuration
from toolwire.agent.hooks import Hooks
from toolwire.policy.intent import TierGate
from toolwire.telemetry import CoachedBackend
from toolwire.telemetry.coached_backend import Coach
from toolwire.testing import ScriptedBackend


def add(number: int) -> int:
    """Adds."""
    return number


def wipe(number: int) -> int:
    """Wipes."""
    return number


def model(name: str = "m", api: str = "", format: str = "") -> ScriptedBackend:
    made = ScriptedBackend([])
    made.model, made.api, made.format = name, api, format
    return made


def agent(*tools: Any, named: str = "m", **config: Any) -> Agent:
    return Agent(model(named), tools or [add], AgentConfig(**config))


def team(member: Agent) -> Agent:
    """Who coordinates one member."""
    lead = agent()
    member.config = replace(member.config, name="worker")
    AgentTeam(lead, [Member(member, "Works.")])
    return lead


def test_run_can_be_resumed_after_a_change_of_these_settings() -> None:
    was = configuration(agent())
    assert changes(was, configuration(agent())) == []
    assert changes(was, configuration(agent(budget=Budget(rounds=3), silence=1.0, answer_seconds=None))) == []
    assert changes(was, configuration(agent(extra_headers={"x-key": "a new secret"}))) == []
    by_words = configuration(agent(gate="intent"))
    assert changes(by_words, configuration(agent(gate=TierGate()))) == [], "the same gate by its name"
    assert json.loads(json.dumps(was)) == was


@pytest.mark.parametrize(
    "config",
    [
        {"system": "Be brief."},
        {"tier": Tier.RUN},
        {"gate": TierGate(min_tier=Tier.RUN)},
        {"gate": TierGate(detect=lambda question: Tier.RUN)},
        {"definitions": 5},
        {"require_tool_call": True},
        {"after_results": "Go on."},
        {"after_failures": "Look again."},
        {"context": 1000},
        {"settings": {"temperature": 0.0}},
        {"extra_body": {"min_p": 0.1}},
        {"hooks": Hooks(response=(lambda response, turn: response,))},
    ],
    ids=lambda config: next(iter(config)),
)
def test_change_of_other_settings_is_reported(config: dict[str, Any]) -> None:
    named = next(iter(config))
    expected = [f"its prompts or other settings differ ({', '.join(sorted([named]))})"]
    found = changes(configuration(agent()), configuration(agent(**config)))
    assert found == expected


def test_changes_of_members_are_reported() -> None:
    was = configuration(team(agent(add, system="Be nice.")))
    assert changes(was, configuration(team(agent(add, system="Be nice.", budget=Budget(rounds=3))))) == []
    assert changes(was, configuration(team(agent(wipe, named="tiny", system="Be quick.")))) == [
        "of the member worker: the model was 'm' and is 'tiny'",
        "of the member worker: its prompts or other settings differ (system)",
        "of the member worker: the tool add is gone",
        "of the member worker: the tool wipe is new",
    ]
    assert changes(was, configuration(agent())) == ["the tool worker is gone"]
    plain = agent()
    (*_, definition) = team(agent()).registry
    plain.registry.register(definition, run=lambda task: task)
    assert changes(was, configuration(plain)) == ["the tool worker is not an agent any more"]
    assert changes(configuration(plain), was) == ["the tool worker is an agent"]
    deeper = configuration(team(team(agent(wipe))))
    assert changes(configuration(team(team(agent(add)))), deeper)[0].startswith(
        "of the member worker: of the member worker: the tool add"
    )


def test_members_that_call_one_another_are_compared_once() -> None:
    lead = team(agent())
    lead.registry.lookup("worker").run.__self__.agent.registry.register(  # type: ignore[union-attr]
        add, name="lead", run=Member(lead, "Leads.").work
    )
    assert changes(configuration(lead), configuration(lead)) == []


def test_coach_that_has_learned_is_not_a_change() -> None:
    formats = {"hermes": model(format="hermes"), "forge_xml": model(format="forge_xml")}
    coach = Coach("m", list(formats))
    coached = Agent(CoachedBackend(formats, coach), [add])
    was = configuration(coached)
    for _ in range(3):
        coach.learn("hermes", good=False)
        coach.learn("forge_xml", good=True)
    assert coached.backend.format == "forge_xml"
    assert changes(was, configuration(coached)) == []
    assert changes(was, configuration(agent())) == ["the format was 'coach' and is ''"]


def test_record_in_another_form_is_reported_as_a_change() -> None:
    now = configuration(team(agent()))
    for name in ("settings", "tools", "members"):
        said = f"its {name} were recorded in another form, so they cannot be compared"
        assert changes({**now, name: "ab" * 32}, now) == [said]
    said = "the member worker was recorded in another form, so it cannot be compared"
    assert changes({**now, "members": {"worker": "ab"}}, now) == [said]


def test_output_type_is_compared() -> None:
    def typed(output_type: Any, **config: Any) -> dict[str, Any]:
        return configuration(Agent(model(), [add], AgentConfig(**config), output_type=output_type))

    assert "output" not in configuration(agent())["settings"]
    assert changes(typed(int), typed(int, output_retries=5)) == []
    assert changes(typed(int), typed(bool)) == ["its prompts or other settings differ (output)"]
    assert changes(typed(int), typed(int, output_mode="tool")) == ["its prompts or other settings differ (output)"]
    assert changes(configuration(agent()), typed(int)) == ["its prompts or other settings differ (output)"]
