"""Provider APIs: one file each, and the tuple that lists them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from toolwire.apis import (
    anthropic_messages,
    bedrock_converse,
    cohere,
    gemini,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
from toolwire.apis.base import ProviderApi
from toolwire.errors import UnknownApi

APIS: tuple[ProviderApi, ...] = (
    *openai_chat.APIS,
    *openai_responses.APIS,
    *anthropic_messages.APIS,
    *bedrock_converse.APIS,
    *gemini.APIS,
    *ollama.APIS,
    *cohere.APIS,
    *mistral.APIS,
)

_ALIASES = {
    "openai": "openai_chat",
    "chat_completions": "openai_chat",
    "responses": "openai_responses",
    "anthropic": "anthropic_messages",
    "claude": "anthropic_messages",
    "google": "gemini",
    "vertex": "gemini",
    "bedrock": "bedrock_converse",
    "llama.cpp": "llama_cpp",
}


# What a response of each API holds; the first whose keys are all there counts.
_SHAPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("openai_chat", frozenset(("choices",))),
    ("gemini", frozenset(("candidates",))),
    ("gemini", frozenset(("promptFeedback",))),
    ("bedrock_converse", frozenset(("stopReason", "output"))),
    ("openai_responses", frozenset(("object", "output"))),
    ("anthropic_messages", frozenset(("role", "content", "stop_reason"))),
    ("ollama", frozenset(("message", "done"))),
    ("cohere", frozenset(("message", "finish_reason"))),
)


def api_of(response: Mapping[str, Any]) -> ProviderApi | None:
    """The API that a response is of, told by its keys."""
    return next((get_api(name) for name, keys in _SHAPES if keys <= response.keys()), None)


def apis() -> tuple[str, ...]:
    """The names of all provider APIs."""
    return tuple(api.name for api in APIS)


def get_api(name: str | ProviderApi) -> ProviderApi:
    """The provider API of this name or alias.

    Raises:
        UnknownApi: there is none; its message suggests the nearest ones.
    """
    if isinstance(name, ProviderApi):
        return name
    known = {api.name: api for api in APIS}
    plain = name.lower().replace("-", "_")
    found = known.get(_ALIASES.get(plain, plain))
    if found is None:
        names = sorted({*known, *_ALIASES})
        raise UnknownApi(name, difflib.get_close_matches(plain, names, n=3, cutoff=0.5), known)
    return found
