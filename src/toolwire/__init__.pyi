# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.agent.agent import Agent as Agent
from toolwire.agent.budget import Budget as Budget
from toolwire.agent.config import AgentConfig as AgentConfig
from toolwire.agent.conversation_json import dump_messages as dump_messages
from toolwire.agent.conversation_json import dump_session as dump_session
from toolwire.agent.conversation_json import load_messages as load_messages
from toolwire.agent.conversation_json import load_session as load_session
from toolwire.builtin.run_command import CommandSettings as CommandSettings
from toolwire.builtin.toolsets import answer_tool as answer_tool
from toolwire.builtin.toolsets import builtin_tools as builtin_tools
from toolwire.builtin.toolsets import command_tools as command_tools
from toolwire.builtin.toolsets import editing_tools as editing_tools
from toolwire.builtin.toolsets import ending_tools as ending_tools
from toolwire.builtin.toolsets import reading_tools as reading_tools
from toolwire.client.client import Client as Client
from toolwire.config.tables import load_configuration as load_configuration
from toolwire.envelope.envelope import Envelope as Envelope
from toolwire.envelope.grammar import EnvelopeDocument as EnvelopeDocument
from toolwire.envelope.grammar import EnvelopeHeader as EnvelopeHeader
from toolwire.envelope.grammar import EnvelopeSection as EnvelopeSection
from toolwire.envelope.grammar import read_envelope as read_envelope
from toolwire.envelope.te_tools import read_handle as read_handle
from toolwire.errors import ConfigurationError as ConfigurationError
from toolwire.errors import ConversationError as ConversationError
from toolwire.errors import DefinitionError as DefinitionError
from toolwire.errors import EnvelopeError as EnvelopeError
from toolwire.errors import JournalError as JournalError
from toolwire.errors import MissingExtra as MissingExtra
from toolwire.errors import OutputError as OutputError
from toolwire.errors import PolicyWarning as PolicyWarning
from toolwire.errors import ProviderError as ProviderError
from toolwire.errors import RealRequestError as RealRequestError
from toolwire.errors import RenderError as RenderError
from toolwire.errors import RunFailed as RunFailed
from toolwire.errors import StateError as StateError
from toolwire.errors import ToolError as ToolError
from toolwire.errors import ToolwireDeprecationWarning as ToolwireDeprecationWarning
from toolwire.errors import ToolwireError as ToolwireError
from toolwire.errors import UnknownApi as UnknownApi
from toolwire.errors import UnknownFormat as UnknownFormat
from toolwire.errors import UnknownTool as UnknownTool
from toolwire.events import ArgumentsDelta as ArgumentsDelta
from toolwire.events import CallEnd as CallEnd
from toolwire.events import CallStart as CallStart
from toolwire.events import CitationReceived as CitationReceived
from toolwire.events import ContentDelta as ContentDelta
from toolwire.events import Event as Event
from toolwire.events import Finish as Finish
from toolwire.events import OpaquePartReceived as OpaquePartReceived
from toolwire.events import ProblemFound as ProblemFound
from toolwire.events import ReasoningDelta as ReasoningDelta
from toolwire.events import ReasoningEnd as ReasoningEnd
from toolwire.events import UsageCounted as UsageCounted
from toolwire.events import collect as collect
from toolwire.events import replay as replay
from toolwire.events import watch as watch
from toolwire.execution.approval_requests import Confirm as Confirm
from toolwire.execution.confirmation import Together as Together
from toolwire.execution.disclosure import Disclosure as Disclosure
from toolwire.execution.disclosure import count_definitions as count_definitions
from toolwire.execution.executor import ExecutorOptions as ExecutorOptions
from toolwire.execution.executor import ToolExecutor as ToolExecutor
from toolwire.execution.method_tools import tool_options as tool_options
from toolwire.execution.method_tools import tools_from as tools_from
from toolwire.execution.outcomes import Issue as Issue
from toolwire.execution.outcomes import Outcome as Outcome
from toolwire.execution.registry import ToolRegistry as ToolRegistry
from toolwire.execution.tool_context import BudgetLeft as BudgetLeft
from toolwire.execution.tool_context import CallEnvironment as CallEnvironment
from toolwire.execution.tool_context import ToolContext as ToolContext
from toolwire.grammars.message_grammar import Grammar as Grammar
from toolwire.grammars.message_grammar import GrammarReasoning as GrammarReasoning
from toolwire.grammars.message_grammar import GrammarSyntax as GrammarSyntax
from toolwire.grammars.message_grammar import grammar as grammar
from toolwire.messages import CitationPart as CitationPart
from toolwire.messages import CitedSource as CitedSource
from toolwire.messages import Content as Content
from toolwire.messages import FileKind as FileKind
from toolwire.messages import FilePart as FilePart
from toolwire.messages import FinishReason as FinishReason
from toolwire.messages import ImagePart as ImagePart
from toolwire.messages import Message as Message
from toolwire.messages import OpaquePart as OpaquePart
from toolwire.messages import ParsedResponse as ParsedResponse
from toolwire.messages import Part as Part
from toolwire.messages import Problem as Problem
from toolwire.messages import ProblemKind as ProblemKind
from toolwire.messages import ReasoningPart as ReasoningPart
from toolwire.messages import TextPart as TextPart
from toolwire.messages import ToolCall as ToolCall
from toolwire.messages import ToolResult as ToolResult
from toolwire.messages import Usage as Usage
from toolwire.policy.approval import Approval as Approval
from toolwire.policy.approval import ApprovalAnswer as ApprovalAnswer
from toolwire.policy.approval import present as present
from toolwire.policy.intent import Intent as Intent
from toolwire.policy.intent import IntentDetector as IntentDetector
from toolwire.policy.intent import TierGate as TierGate
from toolwire.policy.policy import Limit as Limit
from toolwire.policy.policy import Policy as Policy
from toolwire.policy.policy import Rule as Rule
from toolwire.policy.session import Session as Session
from toolwire.providers.api_registry import apis as apis
from toolwire.providers.api_registry import get_api as get_api
from toolwire.providers.base import ProviderApi as ProviderApi
from toolwire.providers.chat_deltas import CallSpacing as CallSpacing
from toolwire.providers.chat_deltas import chat_deltas as chat_deltas
from toolwire.providers.chat_deltas import closed_calls as closed_calls
from toolwire.providers.chat_deltas import short_call_id as short_call_id
from toolwire.providers.negotiation import FormatNegotiator as FormatNegotiator
from toolwire.providers.negotiation import ToolsConfig as ToolsConfig
from toolwire.providers.output_schema import OutputSchema as OutputSchema
from toolwire.providers.parsing import merge_text as merge_text
from toolwire.providers.parsing import parse as parse
from toolwire.providers.parsing import sources as sources
from toolwire.providers.request import ChatRequest as ChatRequest
from toolwire.providers.request import Note as Note
from toolwire.providers.request import Notes as Notes
from toolwire.providers.request import ToolChoice as ToolChoice
from toolwire.providers.stream_codec import StreamDecoder as StreamDecoder
from toolwire.providers.stream_codec import StreamEncoder as StreamEncoder
from toolwire.providers.stream_codec import StreamEncoding as StreamEncoding
from toolwire.runtime.allowed_roots import AllowedRoots as AllowedRoots
from toolwire.runtime.attachments import attach as attach
from toolwire.text.tokens import TokenCount as TokenCount
from toolwire.text.tokens import count_tokens as count_tokens
from toolwire.tools import BehaviorOptions as BehaviorOptions
from toolwire.tools import Isolation as Isolation
from toolwire.tools import Preview as Preview
from toolwire.tools import Tier as Tier
from toolwire.tools import Tool as Tool
from toolwire.tools import ToolDefinition as ToolDefinition
from toolwire.tools import ToolOptions as ToolOptions
from toolwire.tools import tool as tool
from toolwire.wire.arguments import ReadArguments as ReadArguments
from toolwire.wire.arguments import read_arguments as read_arguments
from toolwire.wire.call_openers import may_contain_call as may_contain_call
from toolwire.wire.fallback import FallbackLevel as FallbackLevel
from toolwire.wire.format_registry import format_names as format_names
from toolwire.wire.format_registry import formats as formats
from toolwire.wire.format_registry import get_format as get_format
from toolwire.wire.prepared_tools import usable_definitions as usable_definitions
from toolwire.wire.profiles import Profile as Profile
from toolwire.wire.profiles import detect_from_template as detect_from_template
from toolwire.wire.profiles import profile as profile
from toolwire.wire.prompt_state import prompt_opens_reasoning as prompt_opens_reasoning
from toolwire.wire.prompts import Manifest as Manifest
from toolwire.wire.prompts import prompt as prompt
from toolwire.wire.prompts import render_calls as render_calls
from toolwire.wire.prompts import render_definitions as render_definitions
from toolwire.wire.prompts import render_manifest as render_manifest
from toolwire.wire.prompts import render_results as render_results
from toolwire.wire.stream_parser import ParseOptions as ParseOptions
from toolwire.wire.stream_parser import StreamParser as StreamParser
from toolwire.wire.syntax import WireFormat as WireFormat

__all__ = [
    "Agent",
    "AgentConfig",
    "AllowedRoots",
    "Approval",
    "ApprovalAnswer",
    "ArgumentsDelta",
    "BehaviorOptions",
    "Budget",
    "BudgetLeft",
    "CallEnd",
    "CallEnvironment",
    "CallSpacing",
    "CallStart",
    "ChatRequest",
    "CitationPart",
    "CitationReceived",
    "CitedSource",
    "Client",
    "CommandSettings",
    "ConfigurationError",
    "Confirm",
    "Content",
    "ContentDelta",
    "ConversationError",
    "DefinitionError",
    "Disclosure",
    "Envelope",
    "EnvelopeDocument",
    "EnvelopeError",
    "EnvelopeHeader",
    "EnvelopeSection",
    "Event",
    "ExecutorOptions",
    "FallbackLevel",
    "FileKind",
    "FilePart",
    "Finish",
    "FinishReason",
    "FormatNegotiator",
    "Grammar",
    "GrammarReasoning",
    "GrammarSyntax",
    "ImagePart",
    "Intent",
    "IntentDetector",
    "Isolation",
    "Issue",
    "JournalError",
    "Limit",
    "Manifest",
    "Message",
    "MissingExtra",
    "Note",
    "Notes",
    "OpaquePart",
    "OpaquePartReceived",
    "Outcome",
    "OutputError",
    "OutputSchema",
    "ParseOptions",
    "ParsedResponse",
    "Part",
    "Policy",
    "PolicyWarning",
    "Preview",
    "Problem",
    "ProblemFound",
    "ProblemKind",
    "Profile",
    "ProviderApi",
    "ProviderError",
    "ReadArguments",
    "RealRequestError",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningPart",
    "RenderError",
    "Rule",
    "RunFailed",
    "Session",
    "StateError",
    "StreamDecoder",
    "StreamEncoder",
    "StreamEncoding",
    "StreamParser",
    "TextPart",
    "Tier",
    "TierGate",
    "Together",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolContext",
    "ToolDefinition",
    "ToolError",
    "ToolExecutor",
    "ToolOptions",
    "ToolRegistry",
    "ToolResult",
    "ToolsConfig",
    "ToolwireDeprecationWarning",
    "ToolwireError",
    "UnknownApi",
    "UnknownFormat",
    "UnknownTool",
    "Usage",
    "UsageCounted",
    "WireFormat",
    "answer_tool",
    "apis",
    "attach",
    "builtin_tools",
    "chat_deltas",
    "closed_calls",
    "collect",
    "command_tools",
    "count_definitions",
    "count_tokens",
    "detect_from_template",
    "dump_messages",
    "dump_session",
    "editing_tools",
    "ending_tools",
    "format_names",
    "formats",
    "get_api",
    "get_format",
    "grammar",
    "load_configuration",
    "load_messages",
    "load_session",
    "may_contain_call",
    "merge_text",
    "parse",
    "present",
    "profile",
    "prompt",
    "prompt_opens_reasoning",
    "read_arguments",
    "read_envelope",
    "read_handle",
    "reading_tools",
    "render_calls",
    "render_definitions",
    "render_manifest",
    "render_results",
    "replay",
    "short_call_id",
    "sources",
    "tool",
    "tool_options",
    "tools_from",
    "usable_definitions",
    "watch",
]
