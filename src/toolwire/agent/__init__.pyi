# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.agent.agent import Agent as Agent
from toolwire.agent.budget import Budget as Budget
from toolwire.agent.budget import Prices as Prices
from toolwire.agent.config import AgentConfig as AgentConfig
from toolwire.agent.durable import DurableRuns as DurableRuns
from toolwire.agent.hooks import CallHook as CallHook
from toolwire.agent.hooks import Hooks as Hooks
from toolwire.agent.hooks import ManifestInjector as ManifestInjector
from toolwire.agent.hooks import PromptHook as PromptHook
from toolwire.agent.hooks import ResponseHook as ResponseHook
from toolwire.agent.hooks import ResultHook as ResultHook
from toolwire.agent.hooks import TurnInfo as TurnInfo
from toolwire.agent.loading import Environment as Environment
from toolwire.agent.loading import load_agent as load_agent
from toolwire.agent.loading import load_team as load_team
from toolwire.agent.loading import open_agent as open_agent
from toolwire.agent.loading import open_team as open_team
from toolwire.agent.model_pool import Models as Models
from toolwire.agent.run_events import AgentEvent as AgentEvent
from toolwire.agent.run_events import ApprovalAsked as ApprovalAsked
from toolwire.agent.run_events import CallBegun as CallBegun
from toolwire.agent.run_events import CallDone as CallDone
from toolwire.agent.run_events import CaughtUp as CaughtUp
from toolwire.agent.run_events import Corrected as Corrected
from toolwire.agent.run_events import MemberSpoke as MemberSpoke
from toolwire.agent.run_events import Noted as Noted
from toolwire.agent.run_events import Resumed as Resumed
from toolwire.agent.run_events import RunEnded as RunEnded
from toolwire.agent.run_events import TaskBegun as TaskBegun
from toolwire.agent.run_events import TurnBegun as TurnBegun
from toolwire.agent.run_store import RunInfo as RunInfo
from toolwire.agent.team import AgentTeam as AgentTeam
from toolwire.agent.team import Member as Member
from toolwire.config.tables import AgentTable as AgentTable
from toolwire.config.tables import AgentTeamConfig as AgentTeamConfig
from toolwire.config.tables import Configuration as Configuration
from toolwire.config.tables import ModelProfile as ModelProfile
from toolwire.errors import RunFailed as RunFailed

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentEvent",
    "AgentTable",
    "AgentTeam",
    "AgentTeamConfig",
    "ApprovalAsked",
    "Budget",
    "CallBegun",
    "CallDone",
    "CallHook",
    "CaughtUp",
    "Configuration",
    "Corrected",
    "DurableRuns",
    "Environment",
    "Hooks",
    "ManifestInjector",
    "Member",
    "MemberSpoke",
    "ModelProfile",
    "Models",
    "Noted",
    "Prices",
    "PromptHook",
    "ResponseHook",
    "ResultHook",
    "Resumed",
    "RunEnded",
    "RunFailed",
    "RunInfo",
    "TaskBegun",
    "TurnBegun",
    "TurnInfo",
    "load_agent",
    "load_team",
    "open_agent",
    "open_team",
]
