"""The models of the gateway, as each API lists them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from toolwire.gateway.client_calls import ClientCall
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.model_table import ServedModel
from toolwire.providers.failure_kinds import UNKNOWN_MODEL

OLLAMA_VERSION = "0.13.4"
"""The version of Ollama whose API this is. Clients refuse older ones."""
LISTED_AT = "2026-01-01T00:00:00Z"
DEFAULT_CONTEXT = 131_072
"""The number of tokens that a list names for a model whose limit is not known."""


async def list_models(call: ClientCall) -> None:
    """List the models; one body has the members of all clients: OpenAI's, Anthropic's, Gemini's, and those of Codex."""
    models = await call.models()
    data = [_for_openai(model) for model in models]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {"first_id": None, "last_id": None}
    listed = [{**_for_gemini(model), **_for_codex(model)} for model in models]
    await call.send_json({"object": "list", "data": data, "has_more": False, **ends, "models": listed})


async def describe_model(call: ClientCall) -> None:
    """Describe one model; the body has the members of OpenAI's, Anthropic's and Gemini's clients."""
    model = call.model(call.path["model"])
    model = replace(model, name=call.path["model"])  # one name of a pattern
    await call.send_json({**_for_gemini(model), **_for_openai(model)})


def _for_openai(model: ServedModel) -> dict[str, Any]:
    """Return the entry of a model for clients of OpenAI and Anthropic."""
    return {
        "id": model.name,
        "object": "model",
        "type": "model",
        "created": 0,
        "created_at": LISTED_AT,
        "owned_by": "toolwire",
        "display_name": model.name,
    }


def _for_codex(model: ServedModel) -> dict[str, Any]:
    return {
        "slug": model.name,
        "display_name": model.name,
        "description": None,
        "default_reasoning_level": None,
        "supported_reasoning_levels": [],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": 1,
        "availability_nux": None,
        "upgrade": None,
        "base_instructions": "",
        "supports_reasoning_summaries": False,
        "support_verbosity": False,
        "default_verbosity": None,
        "apply_patch_tool_type": None,
        "truncation_policy": {"mode": "bytes", "limit": 10_000},
        "supports_parallel_tool_calls": True,
        "context_window": model.context or DEFAULT_CONTEXT,
        "experimental_supported_tools": [],
    }


async def gemini_models(call: ClientCall) -> None:
    """List the models as Gemini does."""
    await call.send_json({"models": [_for_gemini(model) for model in await call.models()]})


async def gemini_model(call: ClientCall) -> None:
    """Describe one model as Gemini does."""
    model = call.model(call.path["model"])
    await call.send_json(_for_gemini(replace(model, name=call.path["model"])))


def _for_gemini(model: ServedModel) -> dict[str, Any]:
    return {
        "name": f"models/{model.name}",
        "version": "1",
        "displayName": model.name,
        "inputTokenLimit": model.context or DEFAULT_CONTEXT,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


async def ollama_tags(call: ClientCall) -> None:
    """List the models as Ollama does."""
    await call.send_json({"models": [_for_ollama(model) for model in await call.models()]})


async def ollama_running(call: ClientCall) -> None:
    """List the models that are loaded, as Ollama does: all of them."""
    models = [{**_for_ollama(model), "expires_at": LISTED_AT, "size_vram": 0} for model in await call.models()]
    await call.send_json({"models": models})


async def ollama_show(call: ClientCall) -> None:
    """Describe one model as Ollama does."""
    body = await call.body()
    name = body.get("model") or body.get("name")
    if not isinstance(name, str):
        raise GatewayFailure(UNKNOWN_MODEL, "the request names no model")
    model = call.model(name)
    details = _for_ollama(model)["details"]
    info = {"general.architecture": "toolwire", "toolwire.context_length": model.context or DEFAULT_CONTEXT}
    capabilities = ["completion", "tools", "thinking", "vision"]
    await call.send_json({"details": details, "model_info": info, "capabilities": capabilities, "template": ""})


async def ollama_version(call: ClientCall) -> None:
    """Return the version of Ollama whose API this is."""
    await call.send_json({"version": OLLAMA_VERSION})


def _for_ollama(model: ServedModel) -> dict[str, Any]:
    # Clients take models of one digest for two names of one model.
    digest = hashlib.sha256(model.name.encode()).hexdigest()
    family = {"family": "toolwire", "families": ["toolwire"]}
    details = {"parent_model": "", "format": "gguf", **family, "parameter_size": "", "quantization_level": ""}
    name = {"name": model.name, "model": model.name}
    return {**name, "modified_at": LISTED_AT, "size": 0, "digest": digest, "details": details}
