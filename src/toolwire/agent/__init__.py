"""Agents: a model with tools, until the task is done."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from toolwire.agent.agents import Agent
    from toolwire.agent.budgets import Budget, Prices
    from toolwire.agent.config import AgentConfig
    from toolwire.agent.configured import Surroundings, load_agent, load_team, open_agent, open_team
    from toolwire.agent.events import RunEnded
    from toolwire.agent.team import AgentTeam, Member
    from toolwire.configuration import AgentTable, AgentTeamConfig
    from toolwire.errors import RunFailed

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentTable",
    "AgentTeam",
    "AgentTeamConfig",
    "Budget",
    "Member",
    "Prices",
    "RunEnded",
    "RunFailed",
    "Surroundings",
    "load_agent",
    "load_team",
    "open_agent",
    "open_team",
]

_HOMES: typing.Final = {
    "agent.agents": "Agent",
    "agent.budgets": "Budget Prices",
    "agent.config": "AgentConfig",
    "agent.configured": "Surroundings load_agent load_team open_agent open_team",
    "agent.events": "RunEnded",
    "agent.team": "AgentTeam Member",
    "configuration": "AgentTable AgentTeamConfig",
    "errors": "RunFailed",
}
"""The modules that the names live in, imported when they are asked for: what opens models needs `toolwire[agent]`."""
_HOME: typing.Final = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> typing.Any:
    """Import a public name."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'toolwire.agent' has no attribute {name!r}")
    return globals().setdefault(name, getattr(importlib.import_module(f"toolwire.{home}"), name))


def __dir__() -> list[str]:
    """The public names too, imported or not."""
    return sorted({*globals(), *__all__})
