"""Agents: a model with tools, until the task is done."""

from toolwire.agent.budgets import Budget, Prices
from toolwire.agent.loop import Agent, AgentConfig
from toolwire.agent.team import AgentTeam, Member

__all__ = ["Agent", "AgentConfig", "AgentTeam", "Budget", "Member", "Prices"]
