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
from toolwire.agent.run_events import ApprovalRequested as ApprovalRequested
from toolwire.agent.run_events import CorrectionAdded as CorrectionAdded
from toolwire.agent.run_events import MemberEvent as MemberEvent
from toolwire.agent.run_events import ReplayEnded as ReplayEnded
from toolwire.agent.run_events import RunEnded as RunEnded
from toolwire.agent.run_events import RunResumed as RunResumed
from toolwire.agent.run_events import TaskStarted as TaskStarted
from toolwire.agent.run_events import ToolFinished as ToolFinished
from toolwire.agent.run_events import ToolStarted as ToolStarted
from toolwire.agent.run_events import TranslationNoted as TranslationNoted
from toolwire.agent.run_events import TurnStarted as TurnStarted
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
    "ApprovalRequested",
    "Budget",
    "CallHook",
    "Configuration",
    "CorrectionAdded",
    "DurableRuns",
    "Environment",
    "Hooks",
    "ManifestInjector",
    "Member",
    "MemberEvent",
    "ModelProfile",
    "Models",
    "Prices",
    "PromptHook",
    "ReplayEnded",
    "ResponseHook",
    "ResultHook",
    "RunEnded",
    "RunFailed",
    "RunInfo",
    "RunResumed",
    "TaskStarted",
    "ToolFinished",
    "ToolStarted",
    "TranslationNoted",
    "TurnInfo",
    "TurnStarted",
    "load_agent",
    "load_team",
    "open_agent",
    "open_team",
]
