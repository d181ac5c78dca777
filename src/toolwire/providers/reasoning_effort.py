"""The effort that a model spends on reasoning, as provider APIs spell it: a level, a number of tokens, or a switch.

The levels are those of the API. Which of them a model takes is up to the model; the server reports others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolwire.providers.member_paths import MISSING, Paths, member
from toolwire.providers.model_settings import EFFORTS, Effort

BUDGETS: Mapping[Effort, int] = {
    "minimal": 512, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 32768, "max": 32768,
}  # fmt: skip
"""Tokens for each effort, where an API takes a number alone; low, medium and high as Google converts them.

Source: https://ai.google.dev/gemini-api/docs/openai
"""

Levels = Mapping[Effort, str]


def _levels(*efforts: Effort) -> Levels:
    return {effort: effort for effort in efforts}


ALL_LEVELS = _levels(*EFFORTS)


@dataclass(frozen=True, slots=True)
class ReasoningMembers:
    """The members of an API's body for reasoning, each by its path; see `SettingMembers`.

    Attributes:
        level: the path of the level; "" if there is none.
        levels: the API's words for the levels, in rising order.
        budget: the path of the maximum number of tokens; "" if there is none.
        least: the smallest such number.
        off: what turns reasoning off, if no level does.
        on: what turns it on, if it has neither levels nor a budget.
        with_level: what a level needs besides, so that the model reasons at all.
        with_level_models: matches the names of the models that need it; None for all.
        with_budget: what a budget needs besides.
        budget_models: matches the names of models that came before the levels, so that they take a budget alone.
        within_answer: whether the budget is part of the maximum length of the answer, and has to be below it.
    """

    level: str = ""
    levels: Levels = field(default_factory=dict)
    budget: str = ""
    least: int = 1
    off: Paths = field(default_factory=dict)
    on: Paths = field(default_factory=dict)
    with_level: Paths = field(default_factory=dict)
    with_level_models: re.Pattern[str] | None = None
    with_budget: Paths = field(default_factory=dict)
    budget_models: re.Pattern[str] | None = None
    within_answer: bool = False

    def write(self, effort: Effort | int, model: str = "") -> tuple[Paths, str]:
        """Return the members for an effort of a model, and how its meaning differs; "" if it does not."""
        if self.budget_models is not None and self.budget_models.search(model):
            return replace(self, levels={}, budget_models=None).write(effort)
        if effort == "none":
            return self._written_off()
        if isinstance(effort, int):
            if self.budget:
                reason = f"{self.least} tokens are the least" if effort < self.least else ""
                return self._written_budget(max(effort, self.least)), reason
            members, _ = self.write(effort_within(effort), model)
            return members, f"it takes no number of tokens: {_shown(members)}"
        if self.levels:
            level = self._nearest(effort)
            needed = self.with_level_models is None or self.with_level_models.search(model)
            members = {self.level: self.levels[level], **(self.with_level if needed else {})}
            return members, "" if level == effort else f"it has no such level: {_shown(members)}"
        if self.budget:
            members = self._written_budget(max(BUDGETS[effort], self.least))
            return members, f"it has no levels: {_shown(members)}"
        return self.on, f"it has no levels: {_shown(self.on)}"

    def _written_off(self) -> tuple[Paths, str]:
        if self.off:
            return self.off, ""
        level = next(iter(self.levels))
        members = {self.level: self.levels[level]}
        return members, "" if level == "none" else f"it cannot turn reasoning off: {_shown(members)}"

    def _written_budget(self, tokens: int) -> Paths:
        return {**self.with_budget, self.budget: tokens}

    def _nearest(self, effort: Effort) -> Effort:
        """Return the highest level that is not above an effort, or the lowest level."""
        active = [level for level in self.levels if level != "none"]
        below = [level for level in active if EFFORTS.index(level) <= EFFORTS.index(effort)]
        return below[-1] if below else active[0]

    def read(self, body: Mapping[str, Any]) -> tuple[Effort | int | None, tuple[str, ...]]:
        """Return the effort that a body asks for, None for none that is known, and the paths that say so."""
        if self.budget and _contains(body, self.with_budget):
            tokens = member(body, self.budget)
            if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0:
                return tokens, (self.budget, *self.with_budget)
        if self.off and _contains(body, self.off):
            return "none", tuple(self.off)
        word = member(body, self.level) if self.level else MISSING
        for effort, level in self.levels.items():
            if isinstance(word, str) and word.lower() == level.lower():
                return effort, (self.level,)
        return None, ()


def effort_within(tokens: int) -> Effort:
    """Return the lowest effort that has at least this number of tokens."""
    return next((effort for effort, budget in BUDGETS.items() if tokens <= budget), "max")


def _contains(body: Mapping[str, Any], members: Paths) -> bool:
    for path, value in members.items():
        actual = member(body, path)
        if type(actual) is not type(value) or actual != value:
            return False
    return True


def _shown(members: Paths) -> str:
    return " and ".join(f"{path} is {value!r}" for path, value in members.items())


IMPLIED: Mapping[str, tuple[str, ...]] = {
    "thinking.type": ("adaptive", "enabled"),
    "additionalModelRequestFields.thinking.type": ("adaptive", "enabled"),
}
"""Values of members, by their paths, that add nothing to an effort that was read beside them."""

_CLAUDE_WITHOUT_LEVELS = re.compile(r"claude-(3|(opus|sonnet|haiku)-4-(0|1|5|2025))")
_DISABLED = {"thinking.type": "disabled"}
_ENABLED = {"thinking.type": "enabled"}
_BEDROCK = "additionalModelRequestFields.thinking"
_GEMINI = "generationConfig.thinkingConfig"

CHAT = ReasoningMembers("reasoning_effort", ALL_LEVELS)
"""Source: https://platform.openai.com/docs/api-reference/chat/create. Also vLLM's, SGLang's and Mistral's levels."""

RESPONSES = ReasoningMembers("reasoning.effort", ALL_LEVELS)
"""Source: https://platform.openai.com/docs/api-reference/responses/create"""

ANTHROPIC = ReasoningMembers(
    "output_config.effort",
    _levels("low", "medium", "high", "xhigh", "max"),
    budget="thinking.budget_tokens",
    least=1024,
    off=_DISABLED,
    with_level={"thinking.type": "adaptive"},
    with_budget=_ENABLED,
    budget_models=_CLAUDE_WITHOUT_LEVELS,
    within_answer=True,
)
"""Source: https://platform.claude.com/docs/en/build-with-claude/effort and .../extended-thinking"""

BEDROCK = ReasoningMembers(
    "outputConfig.effort",
    _levels("low", "medium", "high", "xhigh", "max"),
    budget=f"{_BEDROCK}.budget_tokens",
    least=1024,
    off={f"{_BEDROCK}.type": "disabled"},
    with_level={f"{_BEDROCK}.type": "adaptive"},
    with_level_models=re.compile("claude"),
    with_budget={f"{_BEDROCK}.type": "enabled"},
    budget_models=_CLAUDE_WITHOUT_LEVELS,
    within_answer=True,
)
"""The switch and the budget are those of Anthropic's models there.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_OutputConfig.html
"""

GEMINI = ReasoningMembers(
    f"{_GEMINI}.thinkingLevel",
    {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "XHIGH"},
    budget=f"{_GEMINI}.thinkingBudget",
    off={f"{_GEMINI}.thinkingBudget": 0},
    budget_models=re.compile("gemini-2"),
)
"""Source: https://ai.google.dev/gemini-api/docs/thinking; the levels are those of the official client's types."""

INTERACTIONS = ReasoningMembers(
    "generation_config.thinking_level", _levels("minimal", "low", "medium", "high", "xhigh")
)
"""Source: https://ai.google.dev/api/interactions-api"""

COHERE = ReasoningMembers(budget="thinking.token_budget", off=_DISABLED, with_budget=_ENABLED)
"""Source: https://docs.cohere.com/docs/reasoning"""

OLLAMA = ReasoningMembers("think", _levels("low", "medium", "high", "max"), off={"think": False})
"""Source: https://docs.ollama.com/capabilities/thinking"""

OPENROUTER = ReasoningMembers("reasoning.effort", ALL_LEVELS, budget="reasoning.max_tokens")
"""Source: https://openrouter.ai/docs/use-cases/reasoning-tokens"""

VLLM = ReasoningMembers("reasoning_effort", ALL_LEVELS, budget="thinking_token_budget")
"""Source: https://docs.vllm.ai/en/latest/features/reasoning_outputs.html"""

LLAMA_CPP = ReasoningMembers(
    "chat_template_kwargs.reasoning_effort",
    _levels("low", "medium", "high"),
    budget="thinking_budget_tokens",
    off={"chat_template_kwargs.enable_thinking": False},
)
"""Source: https://github.com/ggml-org/llama.cpp/tree/master/tools/server"""

DEEPSEEK = ReasoningMembers("reasoning_effort", _levels("low", "high", "max"), off=_DISABLED)
"""Source: https://api-docs.deepseek.com/guides/thinking_mode"""

ZAI = ReasoningMembers("reasoning_effort", _levels("low", "high", "max"), off=_DISABLED)
"""Source: https://docs.z.ai/guides/capabilities/thinking-mode"""

MOONSHOT = ReasoningMembers(off=_DISABLED, on=_ENABLED)
"""Source: https://platform.moonshot.ai/docs/api/chat"""

TOGETHER = ReasoningMembers("reasoning_effort", _levels("low", "medium", "high"), off={"reasoning.enabled": False})
"""Source: https://docs.together.ai/docs/inference/chat/reasoning"""

FIREWORKS = ReasoningMembers("reasoning_effort", _levels("none", "low", "medium", "high", "xhigh", "max"))
"""Source: https://docs.fireworks.ai/guides/reasoning"""

FOUR_LEVELS = ReasoningMembers("reasoning_effort", _levels("none", "low", "medium", "high"))
"""Of Groq, xAI and Cerebras.

Source: https://console.groq.com/docs/reasoning, https://docs.x.ai/docs/guides/reasoning,
https://inference-docs.cerebras.ai/capabilities/reasoning
"""

GEMINI_CHAT = ReasoningMembers("reasoning_effort", _levels("none", "minimal", "low", "medium", "high"))
"""Source: https://ai.google.dev/gemini-api/docs/openai"""
