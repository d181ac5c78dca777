"""Settings of an agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType

from toolwire._surface import check_type
from toolwire.agent.budget import Budget
from toolwire.agent.hooks import Hooks
from toolwire.execution.disclosure import BUDGET_TOKENS
from toolwire.policy.intent import TierGate
from toolwire.tools import TIER, Tier


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Settings of an agent; all have defaults.

    Attributes:
        name: name of the agent, in a team and in records.
        system: the system prompt; `{{tools}}` in it is replaced by the tools.
        tier: the tier of every task; None for the one that the gate reads from the words of the task.
        gate: unlocks tiers by what a task asks for.
        definitions: maximum number of tokens for tool definitions in a request. If they need more, the model searches
            for tools on demand.
        budget: what a run may use.
        require_tool_call: whether every answer must call a tool; the run then ends with a tool that ends the turn.
        silence: maximum number of seconds between two events of an answer before it counts as broken off; None for no
            maximum.
        answer_seconds: maximum number of seconds for one answer; None for no maximum.
        after_results: a reminder behind results, in that prompt alone, unless there is something to correct. `{task}`
            in it is replaced by the task, of which small models lose sight.
        after_failures: the reminder after a turn in which all calls failed; "" for that of `after_results`. Calls that
            were denied are not counted as failures here.
        context: approximate maximum number of tokens in a request, including prompt and definitions; None for no
            maximum. A longer conversation is shortened at its beginning.
        hooks: functions that change prompts, answers, calls and results.
        temperature, max_tokens: sampling options of each answer; None for the defaults of the model.
    """

    name: str = "agent"
    system: str = ""
    tier: Tier | None = None
    gate: TierGate = field(default_factory=TierGate)
    definitions: int = BUDGET_TOKENS
    budget: Budget = field(default_factory=Budget)
    require_tool_call: bool = False
    silence: float | None = 600.0
    answer_seconds: float | None = 3600.0
    after_results: str = ""
    after_failures: str = ""
    context: int | None = None
    hooks: Hooks = field(default_factory=Hooks)
    temperature: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the types that are easily confused.

        Raises:
            TypeError: a value has another type.
        """
        for name, kind in (("gate", TierGate), ("budget", Budget), ("hooks", Hooks)):
            check_type(name, getattr(self, name), kind, f"a {kind.__name__}")
        check_type("tier", self.tier, (Tier, NoneType), f"{TIER}, or None")
        check_type("name", self.name, str, "text")
        check_type("system", self.system, str, "text")
