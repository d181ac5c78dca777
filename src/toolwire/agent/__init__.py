"""Agents: a model with tools, in a loop, until the task is done. Needs the extra `agent`."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agent.agent": "Agent",
        "agent.agent_keywords": "AgentKeywords",
        "agent.budget": "Budget",
        "agent.config": "AgentConfig ConfigOptions",
        "agent.conversation_store": "Conversation ConversationInfo ConversationStore",
        "agent.durable": "DurableRuns run_durably",
        "agent.hooks": "CallHook Hooks ManifestInjector MessagesHook PromptHook ResponseHook ResultHook TurnInfo",
        "agent.journal": "Journal MemoryJournal",
        "agent.loading": "Environment load_agent load_team open_agent open_team",
        "agent.model_pool": "Models",
        "agent.pending": "PendingApproval PendingApprovals",
        "agent.prices": "ModelPrices Prices PublishedPrices published_prices",
        "agent.run_context": "DurableRunOptions ResumeOptions RunOptions SubmitOptions",
        "agent.run_events": (
            "AgentChanged AgentEvent ApprovalRequested ContextReduced CorrectionAdded EndReason MemberEvent "
            "ModelChosen PartialOutput ProgressReported ReplayEnded RunEnded RunResumed TaskStarted ToolFinished "
            "ToolStarted TranslationNoted TurnStarted"
        ),
        "providers.output_request": "OutputMode",
        "agent.run_store": "RunInfo",
        "agent.summarize": "Summarize",
        "agent.team": "AgentTeam Handoff Member",
        "config.tables": (
            "AgentTable AgentTeamConfig Configuration ModelProfile RetryTable ServerTable SettingsTable SummarizeTable"
        ),
        "errors": "OutputError RunFailed",
        "schema.output_type": "OutputType",
    },
)
