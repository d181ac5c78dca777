"""Agents: a model with tools, until the task is done."""

from toolwire.agent.agents import Agent
from toolwire.agent.budgets import Budget, Prices
from toolwire.agent.config import AgentConfig
from toolwire.agent.configured import Surroundings, load_agent, load_team, open_agent, open_team
from toolwire.agent.team import AgentTeam, Member
from toolwire.configuration import AgentTable, AgentTeamConfig

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentTable",
    "AgentTeam",
    "AgentTeamConfig",
    "Budget",
    "Member",
    "Prices",
    "Surroundings",
    "load_agent",
    "load_team",
    "open_agent",
    "open_team",
]
