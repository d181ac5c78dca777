"""Models of the gateway from profiles of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Literal

from toolwire.agent.model_pool import Models, local_name
from toolwire.agent.prices import Prices
from toolwire.config.gateway_tables import GatewayModelTable
from toolwire.config.tables import Configuration, ModelProfile
from toolwire.errors import ConfigurationError
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.upstreams import ApiUpstream, TextUpstream
from toolwire.models.backends import ApiBackend, Backend, TextBackend
from toolwire.models.constraints import Constraint, GrammarServer
from toolwire.wire.format_registry import AUTO, get_format

_GRAMMAR_SERVERS: Mapping[str, GrammarServer] = {"llama_cpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}
"""Servers that take grammars in a field of their own, by the names of providers."""
ANY_MODEL = "*"
"""The model of a profile that is asked for whatever model the client names."""


async def load_models(configuration: Configuration, models: Models) -> ModelTable:
    """Open the models that a configuration offers to clients of the gateway.

    Args:
        configuration: the configuration; without models of the gateway, each profile is offered under its own name.
        models: opens them, and closes them later.

    Raises:
        ConfigurationError: there is no model, or one cannot be opened.
        ProviderError: a model on this machine cannot be loaded.
    """
    tables = configuration.gateway.models or {name: GatewayModelTable() for name in configuration.profiles}
    if not tables:
        raise ConfigurationError("there is no model: add a table profiles.NAME")
    opened: dict[tuple[str, str | None, str | None], Upstream] = {}

    async def upstream(profile: str, table: GatewayModelTable) -> Upstream:
        key = profile, table.calls_in_text, table.constrain
        if key not in opened:
            opened[key] = await _open(profile, configuration.profiles[profile], models, table)
        return opened[key]

    served: list[ServedModel] = []
    for name, table in tables.items():
        profiles = table.profiles_of(name)
        fallback = configuration.profiles[profiles[0]].fallback if table.fallback is None else table.fallback
        served.append(
            ServedModel(
                name,
                tuple([await upstream(profile, table) for profile in profiles]),
                tuple(table.shares.values()),
                tuple([await upstream(profile, table) for profile in fallback]),
                table.context or 0,
                None if table.prices is None else Prices(**table.prices.model_dump()),
            )
        )
    return ModelTable(served)


async def _open(name: str, profile: ModelProfile, models: Models, table: GatewayModelTable) -> Upstream:
    backend = await models.open(profile)
    if table.constrain is not None:
        backend = _constrained(name, profile, backend, table.constrain)
    if not isinstance(backend, ApiBackend):
        return TextUpstream(backend, name=name)
    format = table.calls_in_text or ""
    if format not in ("", "none", AUTO):
        format = get_format(format).name
    return ApiUpstream(
        backend.client, name=name, model="" if profile.model == ANY_MODEL else profile.model, calls_in_text=format
    )


def _constrained(name: str, profile: ModelProfile, backend: Backend, mode: Literal["auto", "required"]) -> Backend:
    """Return a backend that writes calls under a grammar."""
    if not isinstance(backend, TextBackend):
        raise ConfigurationError(
            f"profiles.{name}: constrain needs a model that writes its calls as text: set tools.definition_format"
        )
    server = "" if local_name(profile) else _GRAMMAR_SERVERS.get(profile.provider)
    if server is None:
        providers = ", ".join(_GRAMMAR_SERVERS)
        raise ConfigurationError(
            f"profiles.{name}: constrain needs a provider whose field for grammars is known ({providers}), "
            f"not {profile.provider!r:.40}"
        )
    constrained = copy(backend)  # the same model may be offered without a grammar too
    constrained.constraint = Constraint(mode, server)
    return constrained
