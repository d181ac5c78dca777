"""Settings of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Literal, get_args

from toolwire._surface import check_number, check_type
from toolwire.agent.budget import Budget
from toolwire.agent.hooks import Hooks
from toolwire.agent.summarize import Summarize
from toolwire.errors import ConfigurationError
from toolwire.execution.disclosure import BUDGET_TOKENS
from toolwire.policy.intent import TierGate
from toolwire.providers.model_settings import SETTINGS, ModelOptions, ModelSettings, RequestAdditions
from toolwire.providers.output_request import OutputMode
from toolwire.text.suggest import Places, explains_keywords
from toolwire.tools import TIER, Tier


class ConfigOptions(ModelOptions, total=False):
    """Settings of one run that count before those of its agent.

    Attributes:
        settings, extra_body, extra_headers: additions to the requests; see `toolwire.models.ModelOptions`.
        budget: what the run may use, in place of the agent's budget; None for that. Without prices of its own it has
            those of the agent's budget.
    """

    budget: Budget | None


_ELSEWHERE: Places = {
    "it is part of the budget, budget=Budget({}=...)": frozenset(Budget.__dataclass_fields__),
    "it is a setting of the model, settings={'{}': ...}": SETTINGS,
    "it belongs to the agent, Agent(..., {}=...)": frozenset(
        ("backend", "tools", "output_type", "policy", "confirm", "executor", "observers", "telemetry")
    ),
    "it is an option of a run, agent.ask(task, {}=...)": frozenset(("deps", "history", "conversation")),
}


@explains_keywords(_ELSEWHERE)
@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Settings of an agent; all have defaults.

    Attributes:
        name: name of the agent, in a team and in records.
        system: the system prompt; `{{tools}}` in it is replaced by the tools.
        tier: the highest tier of tools that a task can use; None for all tools, or for what the gate unlocks.
        gate: unlocks tiers by the words of each task: "intent" for the rules of `IntentDetector`, or a `TierGate`. None
            offers all tools in every task, so the list of tools stays the same throughout a conversation; the policy
            and the approver then decide which calls run.
        timeout: maximum number of seconds of one tool call, for tools without a timeout of their own; None for no
            maximum.
        definitions: maximum number of tokens for tool definitions in a request. If they need more, the model searches
            for tools on demand.
        budget: what a run may use.
        require_tool_call: whether the answers must call tools: until a call has succeeded, so that the last answer
            rests on its result; see `RunEnded.has_result`. If some tools end the turn, every answer must call a tool,
            and the run ends with one of those, at the earliest with the first call: its result is the answer.
        calls_per_answer: maximum number of calls of one answer; None for no maximum. Calls beyond it neither run nor
            stay in the conversation, and the model is told how many there were.
        silence: maximum number of seconds between two events of an answer before it counts as broken off; None for no
            maximum.
        answer_seconds: maximum number of seconds for one answer; None for no maximum.
        after_results: a reminder behind results, in that prompt alone, unless there is something to correct. `{task}`
            in it is replaced by the task, of which small models lose sight.
        after_failures: the reminder after a turn in which all calls failed; "" for that of `after_results`. Calls that
            were denied are not counted as failures here.
        context: approximate maximum number of tokens in a request, including prompt and definitions; None for no
            maximum. A longer conversation is shortened at its beginning; see `ContextReduced`.
        compaction: summarises what would be left out of a conversation that is too long; None to leave it out.
        hooks: functions that change prompts, answers, calls and results.
        output_mode: how the model is asked for a structured output: "native", by a schema that the API guarantees;
            "tool", by a tool whose arguments are the output; "text", by JSON in its text. "auto" for what its API can
            do: "native", unless the API takes no tools beside a schema and there are some; "tool" otherwise. A model
            that is asked with text alone writes JSON; or, if there are tools, a call of the tool in its format.
        output_retries: maximum number of invalid outputs that are explained to the model before the run ends.
        settings: settings of the model's answers, such as `{"temperature": 0.2}`. Other names than those of
            `toolwire.models.ModelSettings` become members of the body of each request.
        extra_body: members of the body of each request; see `toolwire.models.ModelOptions`.
        extra_headers: headers of each request.
    """

    name: str = "agent"
    system: str = ""
    tier: Tier | None = None
    gate: TierGate | Literal["intent"] | None = None
    timeout: float | None = None
    definitions: int = BUDGET_TOKENS
    budget: Budget = field(default_factory=Budget)
    require_tool_call: bool = False
    calls_per_answer: int | None = 100
    silence: float | None = 600.0
    answer_seconds: float | None = 3600.0
    after_results: str = ""
    after_failures: str = ""
    context: int | None = None
    compaction: Summarize | None = None
    hooks: Hooks = field(default_factory=Hooks)
    output_mode: OutputMode = "auto"
    output_retries: int = 2
    settings: ModelSettings = field(default_factory=ModelSettings)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check the types that are easily confused.

        Raises:
            ConfigurationError: there is a tier and a gate, or compaction without a maximum for the context.
            DefinitionError: a setting of the model has an invalid value.
            TypeError: a value has another type, or a setting of the model is misspelt.
            ValueError: a limit is below zero.
        """
        for name, kind in (("budget", Budget), ("hooks", Hooks)):
            check_type(name, getattr(self, name), kind, f"a {kind.__name__}")
        check_type("compaction", self.compaction, (Summarize, NoneType), "Summarize() or None")
        check_type("tier", self.tier, (Tier, NoneType), f"{TIER}, or None")
        if self.gate != "intent":
            check_type("gate", self.gate, (TierGate, NoneType), '"intent", a TierGate or None')
        if self.gate is not None and self.tier is not None:
            raise ConfigurationError("an agent has a tier or a gate, not both: TierGate(max_tier=...) limits a gate")
        if self.output_mode not in get_args(OutputMode):
            modes = ", ".join(map(repr, get_args(OutputMode)))
            raise ConfigurationError(f"output_mode is one of {modes}, not {self.output_mode!r:.40}")
        check_number("output_retries", self.output_retries, "a number of outputs", whole=True)
        if self.compaction is not None and self.context is None:
            raise ConfigurationError("compaction=Summarize() needs context=, the number of tokens that are too many")
        for limit in ("timeout", "silence", "answer_seconds"):
            check_number(limit, getattr(self, limit), "a number of seconds", optional=True)
        check_number("calls_per_answer", self.calls_per_answer, "a number of calls", least=1, whole=True, optional=True)
        check_number("definitions", self.definitions, "a number of tokens", whole=True)
        check_number("context", self.context, "a number of tokens", least=1, whole=True, optional=True)
        check_type("name", self.name, str, "text")
        check_type("system", self.system, str, "text")
        RequestAdditions.of(self.settings, self.extra_body, self.extra_headers)

    def with_options(self, options: ConfigOptions) -> AgentConfig:
        """Return the settings of one run: its budget, and its additions to requests, count before these.

        Raises:
            DefinitionError, TypeError: see the constructor.
        """
        inner = RequestAdditions.of(options.get("settings"), options.get("extra_body"), options.get("extra_headers"))
        budget = options.get("budget") or self.budget
        check_type("budget", budget, Budget, "a Budget or None")
        if budget.prices is None:
            budget = replace(budget, prices=self.budget.prices)
        additions = inner.over(RequestAdditions.of(self.settings, self.extra_body, self.extra_headers))
        return replace(
            self,
            settings=additions.settings,
            extra_body=additions.extra_body,
            extra_headers=additions.extra_headers,
            budget=budget,
        )

    @property
    def tier_gate(self) -> TierGate | None:
        """The gate that unlocks tiers; None if all tools are offered."""
        return self.gate if isinstance(self.gate, TierGate) or self.gate is None else TierGate()
