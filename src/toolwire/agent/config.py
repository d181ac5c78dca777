"""How an agent works."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolwire.agent.budget import Budget
from toolwire.agent.hooks import Hooks
from toolwire.execution.disclosure import BUDGET_TOKENS
from toolwire.policy.intent import TierGate
from toolwire.tools import Tier


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """How an agent works; every part has a sensible value of its own.

    Attributes:
        name: what it is called, in a team and in records.
        system: what the model is told beforehand; `{{tools}}` stands for the tools.
        tier: the tier of every task; None: what the gate makes of its words.
        gate: unlocks tiers by what a task asks for.
        definitions: tokens that definitions may cost in a request; if they cost more, the model finds them on demand.
        budget: what a run may use.
        require_tool_call: every answer has to call a tool; a run ends with one that ends the turn.
        silence: seconds without a piece of an answer until it counts as broken off; None: as long as it takes.
        answer_seconds: that one answer may take, likewise.
        after_results: what the model is told behind results, if nothing else is, in that prompt alone; `{task}` is the
            task. Small models lose sight of it.
        after_failures: the same where all calls failed, but for those that somebody refused; "": as after others.
        context: tokens that a request may hold, about, prompt and definitions included; None: all of the conversation
            goes with each.
        hooks: what prompts, answers, calls and results pass through.
        temperature, max_tokens: for each answer; None: as the model has it.
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
        """Check what is easily mistaken.

        Raises:
            TypeError: something is of another kind.
        """
        for name, kind in (("gate", TierGate), ("budget", Budget), ("hooks", Hooks)):
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(f"{name} is a {kind.__name__}, not {value!r:.80}")
        if self.tier is not None and not isinstance(self.tier, Tier):
            raise TypeError(f"tier is a Tier, such as Tier.RUN, or None, not {self.tier!r:.80}")
