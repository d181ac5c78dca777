"""Toolwire: tool calling with any language model."""

from toolwire.answers import merge_text, parse, sources
from toolwire.apis import apis, get_api
from toolwire.apis.base import ProviderApi
from toolwire.arguments import ReadArguments, read_arguments
from toolwire.conversation import ChatRequest, Note, Notes, ToolChoice
from toolwire.errors import (
    ConfigurationError,
    DefinitionError,
    ProviderError,
    RenderError,
    ToolError,
    ToolwireError,
    UnknownApi,
    UnknownFormat,
)
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
    collect,
    replay,
)
from toolwire.messages import (
    FinishReason,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    Problem,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.negotiation import FormatNegotiator, ToolsConfig
from toolwire.profiles import Profile, detect_from_template, profile
from toolwire.prompting import Manifest, prompt, render_calls, render_definitions, render_manifest, render_results
from toolwire.reading import StreamParser
from toolwire.tools import Tier, Tool, ToolDefinition, tool
from toolwire.watching import watch
from toolwire.wire.registry import formats, get_format
from toolwire.wire.syntax import WireFormat

__all__ = [
    "ArgumentsDelta",
    "CallEnd",
    "CallStart",
    "ChatRequest",
    "ConfigurationError",
    "ContentDelta",
    "DefinitionError",
    "Event",
    "Finish",
    "FinishReason",
    "FormatNegotiator",
    "ImagePart",
    "Manifest",
    "Message",
    "Note",
    "Notes",
    "OpaquePart",
    "ParsedResponse",
    "Passed",
    "Problem",
    "ProblemFound",
    "Profile",
    "ProviderApi",
    "ProviderError",
    "ReadArguments",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningPart",
    "RenderError",
    "StreamParser",
    "TextPart",
    "Tier",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolError",
    "ToolResult",
    "ToolsConfig",
    "ToolwireError",
    "UnknownApi",
    "UnknownFormat",
    "Usage",
    "UsageCounted",
    "WireFormat",
    "apis",
    "collect",
    "detect_from_template",
    "formats",
    "get_api",
    "get_format",
    "merge_text",
    "parse",
    "profile",
    "prompt",
    "read_arguments",
    "render_calls",
    "render_definitions",
    "render_manifest",
    "render_results",
    "replay",
    "sources",
    "tool",
    "watch",
]
