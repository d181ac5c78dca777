"""Agents: a model with tools, in a loop, until the task is done. Needs the extra `agent`."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agent.agent": "Agent",
        "agent.budget": "Budget Prices",
        "agent.config": "AgentConfig",
        "agent.durable": "DurableRuns",
        "agent.hooks": "CallHook Hooks ManifestInjector PromptHook ResponseHook ResultHook TurnInfo",
        "agent.loading": "Environment load_agent load_team open_agent open_team",
        "agent.model_pool": "Models",
        "agent.run_events": (
            "AgentEvent ApprovalRequested CorrectionAdded MemberEvent ReplayEnded RunEnded RunResumed TaskStarted "
            "ToolFinished ToolStarted TranslationNoted TurnStarted"
        ),
        "agent.run_store": "RunInfo",
        "agent.team": "AgentTeam Member",
        "config.tables": "AgentTable AgentTeamConfig Configuration ModelProfile",
        "errors": "RunFailed",
    },
)
