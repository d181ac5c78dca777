"""Agents: a model with tools, until the task is done."""

from toolwire._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agent.agent": "Agent",
        "agent.budget": "Budget Prices",
        "agent.config": "AgentConfig",
        "agent.loading": "Environment load_agent load_team open_agent open_team",
        "agent.run_events": "RunEnded",
        "agent.team": "AgentTeam Member",
        "config.tables": "AgentTable AgentTeamConfig",
        "errors": "RunFailed",
    },
)
