"""What is easily mistaken is told where it is made."""

import asyncio
from typing import Any

import pytest

import toolwire
from toolwire.agent import Agent, AgentConfig, AgentTeam, Member
from toolwire.testing import ScriptedBackend


@toolwire.tool
def stock(item: str) -> int:
    """How much there is."""
    return 3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: AgentConfig(tier="run"), "tier must be a Tier, such as Tier.RUN, or None, not 'run'"),  # type: ignore[arg-type]
        (lambda: AgentConfig(budget={"rounds": 3}), "budget must be a Budget, not dict"),  # type: ignore[arg-type]
        (lambda: AgentConfig(gate="run"), 'gate must be "intent", a TierGate or None'),  # type: ignore[arg-type]
        (lambda: Agent(3), "backend must be a Backend, a Client, or text such as"),  # type: ignore[arg-type]
        (lambda: Agent(ScriptedBackend([]), stock), "a list of tools"),  # type: ignore[arg-type]
        (lambda: Agent(ScriptedBackend([]), config={}), "config must be an AgentConfig"),  # type: ignore[arg-type]
        (
            lambda: AgentTeam(Agent(ScriptedBackend([])), [Agent(ScriptedBackend([]))]),  # type: ignore[list-item]
            "members must be a sequence of Member",
        ),
    ],
)
def test_argument_of_a_wrong_type_is_named(make: Any, said: str) -> None:
    with pytest.raises(TypeError, match="not") as caught:
        make()
    assert said in str(caught.value)


def test_script_without_another_answer_is_an_error() -> None:
    agent = Agent(ScriptedBackend(["Hello."]))
    assert asyncio.run(agent.ask("Hi")) == "Hello."
    with pytest.raises(toolwire.agent.RunFailed, match="the script has no answer 2: the model was asked more often"):
        asyncio.run(agent.ask("Hi"))
    assert Member(agent, "Greets.").agent is agent
