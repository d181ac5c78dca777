# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.agent.agent import Agent as Agent
from toolwire.agent.agent_keywords import AgentKeywords as AgentKeywords
from toolwire.agent.budget import Budget as Budget
from toolwire.agent.config import AgentConfig as AgentConfig
from toolwire.agent.config import ConfigOptions as ConfigOptions
from toolwire.agent.conversation_store import Conversation as Conversation
from toolwire.agent.conversation_store import ConversationInfo as ConversationInfo
from toolwire.agent.conversation_store import ConversationStore as ConversationStore
from toolwire.agent.durable import DurableRuns as DurableRuns
from toolwire.agent.durable import run_durably as run_durably
from toolwire.agent.hooks import CallHook as CallHook
from toolwire.agent.hooks import Hooks as Hooks
from toolwire.agent.hooks import ManifestInjector as ManifestInjector
from toolwire.agent.hooks import MessagesHook as MessagesHook
from toolwire.agent.hooks import PromptHook as PromptHook
from toolwire.agent.hooks import ResponseHook as ResponseHook
from toolwire.agent.hooks import ResultHook as ResultHook
from toolwire.agent.hooks import TurnInfo as TurnInfo
from toolwire.agent.journal import Journal as Journal
from toolwire.agent.journal import MemoryJournal as MemoryJournal
from toolwire.agent.loading import Environment as Environment
from toolwire.agent.loading import load_agent as load_agent
from toolwire.agent.loading import load_team as load_team
from toolwire.agent.loading import open_agent as open_agent
from toolwire.agent.loading import open_team as open_team
from toolwire.agent.model_pool import Models as Models
from toolwire.agent.pending import PendingApproval as PendingApproval
from toolwire.agent.pending import PendingApprovals as PendingApprovals
from toolwire.agent.prices import ModelPrices as ModelPrices
from toolwire.agent.prices import Prices as Prices
from toolwire.agent.prices import PublishedPrices as PublishedPrices
from toolwire.agent.prices import published_prices as published_prices
from toolwire.agent.run_context import DurableRunOptions as DurableRunOptions
from toolwire.agent.run_context import ResumeOptions as ResumeOptions
from toolwire.agent.run_context import RunOptions as RunOptions
from toolwire.agent.run_context import SubmitOptions as SubmitOptions
from toolwire.agent.run_events import AgentChanged as AgentChanged
from toolwire.agent.run_events import AgentEvent as AgentEvent
from toolwire.agent.run_events import ApprovalRequested as ApprovalRequested
from toolwire.agent.run_events import ContextReduced as ContextReduced
from toolwire.agent.run_events import CorrectionAdded as CorrectionAdded
from toolwire.agent.run_events import EndReason as EndReason
from toolwire.agent.run_events import MemberEvent as MemberEvent
from toolwire.agent.run_events import ModelChosen as ModelChosen
from toolwire.agent.run_events import PartialOutput as PartialOutput
from toolwire.agent.run_events import ProgressReported as ProgressReported
from toolwire.agent.run_events import ReplayEnded as ReplayEnded
from toolwire.agent.run_events import RunEnded as RunEnded
from toolwire.agent.run_events import RunResumed as RunResumed
from toolwire.agent.run_events import TaskStarted as TaskStarted
from toolwire.agent.run_events import ToolFinished as ToolFinished
from toolwire.agent.run_events import ToolStarted as ToolStarted
from toolwire.agent.run_events import TranslationNoted as TranslationNoted
from toolwire.agent.run_events import TurnStarted as TurnStarted
from toolwire.agent.run_store import RunInfo as RunInfo
from toolwire.agent.summarize import Summarize as Summarize
from toolwire.agent.team import AgentTeam as AgentTeam
from toolwire.agent.team import Handoff as Handoff
from toolwire.agent.team import Member as Member
from toolwire.config.tables import AgentTable as AgentTable
from toolwire.config.tables import AgentTeamConfig as AgentTeamConfig
from toolwire.config.tables import Configuration as Configuration
from toolwire.config.tables import ModelProfile as ModelProfile
from toolwire.config.tables import RetryTable as RetryTable
from toolwire.config.tables import ServerTable as ServerTable
from toolwire.config.tables import SettingsTable as SettingsTable
from toolwire.config.tables import SummarizeTable as SummarizeTable
from toolwire.errors import OutputError as OutputError
from toolwire.errors import RunFailed as RunFailed
from toolwire.providers.output_request import OutputMode as OutputMode
from toolwire.schema.output_type import OutputType as OutputType

__all__ = [
    "Agent",
    "AgentChanged",
    "AgentConfig",
    "AgentEvent",
    "AgentKeywords",
    "AgentTable",
    "AgentTeam",
    "AgentTeamConfig",
    "ApprovalRequested",
    "Budget",
    "CallHook",
    "ConfigOptions",
    "Configuration",
    "ContextReduced",
    "Conversation",
    "ConversationInfo",
    "ConversationStore",
    "CorrectionAdded",
    "DurableRunOptions",
    "DurableRuns",
    "EndReason",
    "Environment",
    "Handoff",
    "Hooks",
    "Journal",
    "ManifestInjector",
    "Member",
    "MemberEvent",
    "MemoryJournal",
    "MessagesHook",
    "ModelChosen",
    "ModelPrices",
    "ModelProfile",
    "Models",
    "OutputError",
    "OutputMode",
    "OutputType",
    "PartialOutput",
    "PendingApproval",
    "PendingApprovals",
    "Prices",
    "ProgressReported",
    "PromptHook",
    "PublishedPrices",
    "ReplayEnded",
    "ResponseHook",
    "ResultHook",
    "ResumeOptions",
    "RetryTable",
    "RunEnded",
    "RunFailed",
    "RunInfo",
    "RunOptions",
    "RunResumed",
    "ServerTable",
    "SettingsTable",
    "SubmitOptions",
    "Summarize",
    "SummarizeTable",
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
    "published_prices",
    "run_durably",
]
