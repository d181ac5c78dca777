# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.agent.agent import Agent as Agent
from toolwire.agent.budget import Budget as Budget
from toolwire.agent.budget import Prices as Prices
from toolwire.agent.config import AgentConfig as AgentConfig
from toolwire.agent.loading import Environment as Environment
from toolwire.agent.loading import load_agent as load_agent
from toolwire.agent.loading import load_team as load_team
from toolwire.agent.loading import open_agent as open_agent
from toolwire.agent.loading import open_team as open_team
from toolwire.agent.run_events import RunEnded as RunEnded
from toolwire.agent.team import AgentTeam as AgentTeam
from toolwire.agent.team import Member as Member
from toolwire.config.tables import AgentTable as AgentTable
from toolwire.config.tables import AgentTeamConfig as AgentTeamConfig
from toolwire.errors import RunFailed as RunFailed

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentTable",
    "AgentTeam",
    "AgentTeamConfig",
    "Budget",
    "Environment",
    "Member",
    "Prices",
    "RunEnded",
    "RunFailed",
    "load_agent",
    "load_team",
    "open_agent",
    "open_team",
]
