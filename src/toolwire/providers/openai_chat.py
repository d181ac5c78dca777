"""OpenAI Chat Completions, and the providers that took it over, as a table of facts.

Source: https://platform.openai.com/docs/api-reference/chat; those of the other providers are beside their settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolwire.errors import ConfigurationError
from toolwire.messages import FileKind
from toolwire.providers import chat_settings as settings
from toolwire.providers.base import ProviderApi
from toolwire.providers.chat_completions import ChatCompletions, Facts
from toolwire.providers.chat_parts import OPENROUTER
from toolwire.providers.identifiers import Alphabet
from toolwire.providers.output_support import BEST_EFFORT, JSON_ONLY, OPEN_SERVER, STRICT_WITHOUT_TOOLS

_FILES: frozenset[FileKind] = frozenset(("document", "audio"))

_OPEN = Facts(strict=False, output=OPEN_SERVER)
"""A server of open models: vLLM, SGLang, llama.cpp."""

_OPENAI = Facts(
    custom=True,
    allowed_tools=True,
    reasoning="",
    max_tokens="max_completion_tokens",
    files=_FILES,
    file_ids=True,
)
"""The API itself; only its own types have tools with text input, and choices of several tools."""

_VISIBLE_64 = Alphabet(r"\x21-\x7e", 64)

_AUDIO: frozenset[FileKind] = frozenset(("audio",))

PROVIDERS = {
    "openai_chat": _OPENAI,
    "azure": _OPENAI,
    "azure_deployments": _OPENAI,
    "groq": Facts(
        reasoning="reasoning", max_tokens="max_completion_tokens", output=BEST_EFFORT, settings=settings.GROQ
    ),
    "deepseek": replace(_OPEN, ids=_VISIBLE_64, output=JSON_ONLY, settings=settings.DEEPSEEK),
    "xai": Facts(settings=settings.XAI),
    "openrouter": Facts(
        reasoning="reasoning",
        ids=_VISIBLE_64,
        seals=frozenset((OPENROUTER,)),
        output=STRICT_WITHOUT_TOOLS,
        settings=settings.OPENROUTER,
        files=_FILES,
        cache_marks=True,
    ),
    "together": replace(_OPEN, settings=settings.TOGETHER),
    "fireworks": replace(_OPEN, settings=settings.FIREWORKS),
    "cerebras": Facts(output=STRICT_WITHOUT_TOOLS, settings=settings.CEREBRAS),
    "moonshot": replace(_OPEN, output=JSON_ONLY, settings=settings.MOONSHOT),
    "vllm": replace(_OPEN, settings=settings.VLLM, files=_AUDIO),
    "sglang": replace(_OPEN, settings=settings.SGLANG),
    "llama_cpp": replace(_OPEN, settings=settings.LLAMA_CPP, files=_AUDIO),
    "lm_studio": replace(_OPEN, reasoning="reasoning", settings=settings.LM_STUDIO),
    "ollama_chat": replace(_OPEN, reasoning="reasoning", settings=settings.OLLAMA_CHAT),
    "zai": replace(_OPEN, choices=False, output=JSON_ONLY, settings=settings.ZAI),
    "venice": replace(_OPEN, output=BEST_EFFORT, settings=settings.VENICE),
    "hugging_face": replace(_OPEN, reasoning="reasoning", output=BEST_EFFORT, settings=settings.HUGGING_FACE),
    "deepinfra": replace(_OPEN, output=BEST_EFFORT, settings=settings.DEEPINFRA),
    "cloudflare": replace(_OPEN, output=BEST_EFFORT, settings=settings.CLOUDFLARE),
    # What nearly all servers of this shape accept; OpenAI alone renamed max_tokens and takes no reasoning back.
    "openai_compatible": replace(_OPEN, settings=settings.COMPATIBLE, file_ids=True),
}

_GEMINI = replace(_OPEN, reasoning="", seals=frozenset(("gemini",)), output=BEST_EFFORT, settings=settings.GEMINI_CHAT)
GEMINI_CHAT = ChatCompletions("gemini_chat", _GEMINI)
"""Gemini's own API of this shape, which requires its thought signatures back; passed in place of a name."""

APIS = tuple(ChatCompletions(name, facts) for name, facts in PROVIDERS.items())


def with_facts(api: ProviderApi, changes: Mapping[str, Any]) -> ChatCompletions:
    """Return an API of this shape with other facts.

    Args:
        api: the API.
        changes: facts by their names; `id_length` is the maximum length of ids, in characters.

    Raises:
        ConfigurationError: the API has another shape.
    """
    if type(api) is not ChatCompletions:
        raise ConfigurationError(
            f"{api.name} is not an API of Chat Completions, so it has no facts of a server: leave out `server`, or "
            "name a provider such as openai_compatible"
        )
    facts = dict(changes)
    if (length := facts.pop("id_length", None)) is not None:
        facts["ids"] = Alphabet(r"\x21-\x7e", length)
    return ChatCompletions(api.name, replace(api.facts, **facts))
