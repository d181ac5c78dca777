"""Toolwire: tool calling with any language model.

A public name is imported when it is first used.
"""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agent.agent": "Agent",
        "agent.budget": "Budget",
        "agent.config": "AgentConfig",
        "agent.conversation_json": "dump_messages dump_session load_messages load_session",
        "builtin.run_command": "CommandSettings",
        "builtin.toolsets": "answer_tool builtin_tools command_tools editing_tools ending_tools reading_tools",
        "client.client": "Client",
        "config.tables": "load_configuration",
        "envelope.envelope": "Envelope",
        "envelope.grammar": "EnvelopeDocument EnvelopeHeader EnvelopeSection read_envelope",
        "envelope.te_tools": "read_handle",
        "errors": (
            "ConfigurationError ConversationError DefinitionError EnvelopeError JournalError MissingExtra OutputError "
            "PolicyWarning ProviderError RenderError RealRequestError RunFailed StateError ToolError "
            "ToolwireDeprecationWarning "
            "ToolwireError UnknownApi UnknownFormat UnknownTool"
        ),
        "events": (
            "ArgumentsDelta CallEnd CallStart CitationReceived ContentDelta Event Finish OpaquePartReceived "
            "ProblemFound ReasoningDelta ReasoningEnd UsageCounted collect replay watch"
        ),
        "execution.approval_requests": "Confirm",
        "execution.confirmation": "Together",
        "execution.disclosure": "Disclosure count_definitions",
        "execution.executor": "ExecutorOptions ToolExecutor",
        "execution.method_tools": "tool_options tools_from",
        "execution.outcomes": "Issue Outcome",
        "execution.registry": "ToolRegistry",
        "execution.tool_context": "BudgetLeft CallEnvironment ToolContext",
        "grammars.message_grammar": "Grammar GrammarReasoning GrammarSyntax grammar",
        "messages": (
            "CitationPart Content FileKind FilePart FinishReason ImagePart Message OpaquePart ParsedResponse Part "
            "Problem ProblemKind ReasoningPart CitedSource TextPart ToolCall ToolResult Usage"
        ),
        "policy.approval": "ApprovalAnswer Approval present",
        "policy.intent": "Intent IntentDetector TierGate",
        "policy.policy": "Limit Policy Rule",
        "policy.session": "Session",
        "providers.api_registry": "apis get_api",
        "providers.base": "ProviderApi",
        "providers.chat_deltas": "CallSpacing chat_deltas closed_calls short_call_id",
        "providers.negotiation": "FormatNegotiator ToolsConfig",
        "providers.output_schema": "OutputSchema",
        "providers.parsing": "merge_text parse sources",
        "providers.request": "ChatRequest Note Notes ToolChoice",
        "providers.stream_codec": "StreamDecoder StreamEncoder StreamEncoding",
        "runtime.allowed_roots": "AllowedRoots",
        "runtime.attachments": "attach",
        "text.tokens": "TokenCount count_tokens",
        "tools": "BehaviorOptions Isolation Preview Tier Tool ToolDefinition ToolOptions tool",
        "wire.arguments": "ReadArguments read_arguments",
        "wire.call_openers": "may_contain_call",
        "wire.fallback": "FallbackLevel",
        "wire.format_registry": "format_names formats get_format",
        "wire.prepared_tools": "usable_definitions",
        "wire.profiles": "Profile detect_from_template profile",
        "wire.prompt_state": "prompt_opens_reasoning",
        "wire.prompts": "Manifest prompt render_calls render_definitions render_manifest render_results",
        "wire.stream_parser": "ParseOptions StreamParser",
        "wire.syntax": "WireFormat",
    },
)
