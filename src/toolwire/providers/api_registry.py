"""The table of all provider APIs: by name or alias, and by the shape of a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire._surface import check_type
from toolwire.errors import UnknownApi
from toolwire.providers import (
    anthropic_clouds,
    anthropic_messages,
    bedrock_converse,
    cohere,
    gemini,
    gemini_interactions,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
from toolwire.providers.base import ProviderApi
from toolwire.text.suggest import closest, did_you_mean

APIS: tuple[ProviderApi, ...] = (
    *openai_chat.APIS,
    *openai_responses.APIS,
    *anthropic_messages.APIS,
    *anthropic_clouds.APIS,
    *bedrock_converse.APIS,
    *gemini.APIS,
    *gemini_interactions.APIS,
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
    "interactions": "gemini_interactions",
    "bedrock": "bedrock_converse",
    "llama.cpp": "llama_cpp",
    "lmstudio": "lm_studio",
    "z.ai": "zai",
    "glm": "zai",
    "huggingface": "hugging_face",
    "ollama_v1": "ollama_chat",
    "bedrock_invoke": "anthropic_bedrock",
    "vertex_anthropic": "anthropic_vertex",
}

_NOT_YET = {
    **dict.fromkeys(("realtime", "openai_realtime", "azure_realtime"), "OpenAI's Realtime API"),
    **dict.fromkeys(("gemini_live", "live"), "Gemini's Live API"),
}
"""APIs that are asked for by these names, and that Toolwire does not speak."""

_BY_NAME = {api.name: api for api in APIS}

# Members of a response of each API. The first row whose members are all present counts.
_SHAPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("openai_chat", frozenset(("choices",))),
    ("gemini", frozenset(("candidates",))),
    ("gemini", frozenset(("promptFeedback",))),
    ("bedrock_converse", frozenset(("stopReason", "output"))),
    ("openai_responses", frozenset(("object", "output"))),
    ("gemini_interactions", frozenset(("status", "steps"))),
    ("anthropic_messages", frozenset(("role", "content", "stop_reason"))),
    ("ollama", frozenset(("message", "done"))),
    ("cohere", frozenset(("message", "finish_reason"))),
)


def api_of(response: Mapping[str, Any]) -> ProviderApi | None:
    """Return the API whose shape a response has; None for an unknown shape."""
    return next((_BY_NAME[name] for name, keys in _SHAPES if keys <= response.keys()), None)


def apis() -> tuple[str, ...]:
    """Return the names of all provider APIs."""
    return tuple(_BY_NAME)


def find_api(name: str) -> ProviderApi | None:
    """Return the provider API of this name or alias; None if there is none."""
    normalized = _normalized(name)
    return _BY_NAME.get(_ALIASES.get(normalized, normalized))


def _normalized(name: str) -> str:
    return name.lower().replace("-", "_")


def get_api(name: str | ProviderApi) -> ProviderApi:
    """Return the provider API of this name or alias.

    Raises:
        UnknownApi: there is none; the message suggests similar names.
    """
    if isinstance(name, ProviderApi):
        return name
    check_type("api", name, str, "an API's name or a ProviderApi")
    api = find_api(name)
    if api is None and (title := _NOT_YET.get(_normalized(name))):
        raise UnknownApi(
            name, [], f"{title} is not supported yet: it sends events in both directions over one open connection"
        )
    if api is None:
        names = sorted({*_BY_NAME, *_ALIASES})
        near = closest(_normalized(name), names, limit=3)
        all_names = ", ".join(_BY_NAME)
        raise UnknownApi(name, near, f"unknown provider API {name!r}{did_you_mean(near)} (known are {all_names})")
    return api
