"""Keywords of agents, and errors for keywords of agents and runs that belong elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypedDict

from toolwire.agent.budget import Budget
from toolwire.agent.config import AgentConfig
from toolwire.agent.deferral import Defer
from toolwire.agent.run_context import RunOptions
from toolwire.execution.approval_requests import Confirm
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.policy import Policy
from toolwire.providers.model_settings import SETTINGS
from toolwire.telemetry.records import Observer
from toolwire.text.suggest import Places, check_options


class AgentKeywords(TypedDict, total=False):
    """Options of an agent, besides its model, its tools, its settings and the type of its output.

    Attributes:
        policy: decides which calls may run; None for the default policy.
        confirm: asks for approval where the policy requires it. A plain function is called in a thread, for one
            question at a time. "defer" ends a run with the reason "pending" instead; see `Agent.resume`.
        executor: makes the executor of a run, in place of one for the policy and the configured timeout, so neither
            can be passed beside it. It gets the registry and the function that asks for approval.
        observers: receive the records of each run.
        telemetry: True to record runs on this machine, None to do so if TOOLWIRE_RECORD says so; OpenTelemetry is used
            in both cases if it is configured. False for neither; see `toolwire.telemetry.standard_observers`.
    """

    policy: Policy | None
    confirm: Confirm | Defer | None
    executor: Callable[[ToolRegistry, Confirm | None], ToolExecutor] | None
    observers: Iterable[Observer]
    telemetry: bool | None


_CONFIG = frozenset(AgentConfig.__dataclass_fields__)
_BUDGET = frozenset(Budget.__dataclass_fields__)
_ARGUMENTS = frozenset(("backend", "tools", "config", "output_type", *AgentKeywords.__annotations__))
_OF_AGENT: Places = {
    "it is a setting, config=AgentConfig({}=...)": _CONFIG,
    "it is part of the budget, config=AgentConfig(budget=Budget({}=...))": _BUDGET,
    "it is a setting of the model, config=AgentConfig(settings={'{}': ...})": SETTINGS,
    "it is an option of a run, agent.ask(task, {}=...)": frozenset(RunOptions.__annotations__),
    "it belongs to a team, AgentTeam(agent, {}=[...])": frozenset(("members", "handoffs")),
}
_OF_RUN: Places = {
    "it is a setting of the model, settings={'{}': ...}": SETTINGS,
    "it is part of the budget, budget=Budget({}=...)": _BUDGET,
    "it belongs to the agent, Agent(..., {}=...)": _ARGUMENTS,
    "it is a setting of the agent, AgentConfig({}=...)": _CONFIG,
}


def check_agent_options(options: Iterable[str]) -> None:
    """Check the names of the keywords of an agent.

    Raises:
        TypeError: a name is not known; the message says so if it is a setting, or belongs to a run or a team.
    """
    check_options("Agent", options, _ARGUMENTS, _OF_AGENT)


def check_run_options(function: str, options: Iterable[str], known: Collection[str]) -> None:
    """Check the names of the options of a run.

    Raises:
        TypeError: a name is not known; the message says so if it belongs to the model, to the budget or to the agent.
    """
    check_options(function, options, known, _OF_RUN)
