"""Provider APIs: one file each, and the tuple that lists them."""

from __future__ import annotations

import difflib

from toolwire.apis import openai_chat
from toolwire.apis.base import ProviderApi
from toolwire.errors import UnknownApi

APIS: tuple[ProviderApi, ...] = (*openai_chat.APIS,)

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
