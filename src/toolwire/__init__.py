"""Toolwire: tool calling with any language model.

A public name is imported when it is first asked for, so that nobody pays for what is not used.
"""

import importlib
import sys
import types
import typing

if typing.TYPE_CHECKING:
    from toolwire.answers import merge_text, parse, sources
    from toolwire.apis import apis, get_api
    from toolwire.apis.base import ProviderApi
    from toolwire.arguments import ReadArguments, read_arguments
    from toolwire.builtin import builtin_tools
    from toolwire.configuration import load_configuration
    from toolwire.consent import Agreement, Approval, present
    from toolwire.conversation import ChatRequest, Note, Notes, ToolChoice
    from toolwire.disclosure import Disclosure, count_definitions
    from toolwire.envelope.shaping import Envelope
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
    from toolwire.executor import Issue, Outcome, ToolExecutor
    from toolwire.intent import Intent, IntentDetector, TierGate
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
    from toolwire.policy import Limit, Policy, Rule
    from toolwire.profiles import Profile, detect_from_template, profile
    from toolwire.prompting import Manifest, prompt, render_calls, render_definitions, render_manifest, render_results
    from toolwire.reading import StreamParser
    from toolwire.registry import ToolRegistry
    from toolwire.roots import AllowedRoots
    from toolwire.session import Session
    from toolwire.tokens import TokenCount, count_tokens
    from toolwire.tools import Tier, Tool, ToolDefinition, tool
    from toolwire.watching import watch
    from toolwire.wire.registry import formats, get_format
    from toolwire.wire.syntax import WireFormat

__all__ = [
    "Agreement",
    "AllowedRoots",
    "Approval",
    "ArgumentsDelta",
    "CallEnd",
    "CallStart",
    "ChatRequest",
    "ConfigurationError",
    "ContentDelta",
    "DefinitionError",
    "Disclosure",
    "Envelope",
    "Event",
    "Finish",
    "FinishReason",
    "FormatNegotiator",
    "ImagePart",
    "Intent",
    "IntentDetector",
    "Issue",
    "Limit",
    "Manifest",
    "Message",
    "Note",
    "Notes",
    "OpaquePart",
    "Outcome",
    "ParsedResponse",
    "Passed",
    "Policy",
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
    "Rule",
    "Session",
    "StreamParser",
    "TextPart",
    "Tier",
    "TierGate",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolError",
    "ToolExecutor",
    "ToolRegistry",
    "ToolResult",
    "ToolsConfig",
    "ToolwireError",
    "UnknownApi",
    "UnknownFormat",
    "Usage",
    "UsageCounted",
    "WireFormat",
    "apis",
    "builtin_tools",
    "collect",
    "count_definitions",
    "count_tokens",
    "detect_from_template",
    "formats",
    "get_api",
    "get_format",
    "load_configuration",
    "merge_text",
    "parse",
    "present",
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

_HOMES: typing.Final = {
    "builtin": "builtin_tools",
    "configuration": "load_configuration",
    "consent": "Agreement Approval present",
    "disclosure": "Disclosure count_definitions",
    "envelope.shaping": "Envelope",
    "executor": "Issue Outcome ToolExecutor",
    "intent": "Intent IntentDetector TierGate",
    "policy": "Limit Policy Rule",
    "registry": "ToolRegistry",
    "roots": "AllowedRoots",
    "session": "Session",
    "tokens": "TokenCount count_tokens",
    "answers": "merge_text parse sources",
    "apis": "apis get_api",
    "apis.base": "ProviderApi",
    "arguments": "ReadArguments read_arguments",
    "conversation": "ChatRequest Note Notes ToolChoice",
    "errors": (
        "ConfigurationError DefinitionError ProviderError RenderError ToolError ToolwireError UnknownApi UnknownFormat"
    ),
    "events": (
        "ArgumentsDelta CallEnd CallStart ContentDelta Event Finish Passed ProblemFound ReasoningDelta ReasoningEnd "
        "UsageCounted collect replay"
    ),
    "messages": (
        "FinishReason ImagePart Message OpaquePart ParsedResponse Problem ReasoningPart TextPart ToolCall ToolResult "
        "Usage"
    ),
    "negotiation": "FormatNegotiator ToolsConfig",
    "profiles": "Profile detect_from_template profile",
    "prompting": "Manifest prompt render_calls render_definitions render_manifest render_results",
    "reading": "StreamParser",
    "tools": "Tier Tool ToolDefinition tool",
    "watching": "watch",
    "wire.registry": "formats get_format",
    "wire.syntax": "WireFormat",
}
"""The modules that the public names live in, as above."""
_HOME: typing.Final = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> typing.Any:
    """Import a public name."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'toolwire' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"toolwire.{home}"), name)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    """The public names too, imported or not."""
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Where a module has the name of a public function, as `apis` has, the name means both."""

    def __setattr__(self, name: str, value: object) -> None:
        """Make a module that has been imported callable, if a function of its name is public."""
        if name in _HOME and isinstance(value, types.ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)


class _Callable(types.ModuleType):
    """A module that can be called as the function in it that has its name."""

    def __call__(self, *arguments: typing.Any, **named: typing.Any) -> typing.Any:
        """Call the function."""
        return vars(self)[self.__name__.rpartition(".")[2]](*arguments, **named)


sys.modules[__name__].__class__ = _Package
