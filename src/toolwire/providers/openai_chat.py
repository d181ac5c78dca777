"""OpenAI Chat Completions, and the providers that took it over, as a table of facts.

Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from dataclasses import replace

from toolwire.providers.chat_completions import ChatCompletions, Facts
from toolwire.providers.chat_parts import OPENROUTER
from toolwire.providers.identifiers import Alphabet

_OPEN = Facts(strict=False, custom=False)
"""A server of open models: vLLM, SGLang, llama.cpp."""

PROVIDERS = {
    "openai_chat": Facts(reasoning="", max_tokens="max_completion_tokens"),
    "azure": Facts(reasoning="", max_tokens="max_completion_tokens"),
    "groq": Facts(reasoning="reasoning", max_tokens="max_completion_tokens"),
    "deepseek": replace(_OPEN, ids=Alphabet(r"\x21-\x7e", 64)),
    "xai": Facts(),
    "openrouter": Facts(reasoning="reasoning", ids=Alphabet(r"\x21-\x7e", 64), seals=frozenset((OPENROUTER,))),
    "together": _OPEN,
    "fireworks": _OPEN,
    "cerebras": Facts(),
    "moonshot": _OPEN,
    "vllm": _OPEN,
    "sglang": _OPEN,
    "llama_cpp": _OPEN,
}

GEMINI_CHAT = ChatCompletions("gemini_chat", replace(_OPEN, reasoning="", seals=frozenset(("gemini",))))
"""Gemini's own API of this shape, which requires its thought signatures back; passed in place of a name."""

APIS = tuple(ChatCompletions(name, facts) for name, facts in PROVIDERS.items())
