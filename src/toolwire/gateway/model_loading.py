"""Models of the gateway from profiles of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from toolwire.agent.model_pool import Models, open_client
from toolwire.agent.prices import Prices
from toolwire.config.gateway_tables import GatewayModelTable
from toolwire.config.tables import Configuration, ModelProfile
from toolwire.errors import ConfigurationError
from toolwire.gateway.answer_retries import RetriedUpstream
from toolwire.gateway.gateway_tools import GatewayTools, ToolUpstream
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.upstreams import ApiUpstream, TextUpstream
from toolwire.models.backends import ApiBackend, Backend

ANY_MODEL = "*"
"""The model of a profile that is asked for whatever model the client names."""
_OwnUpstream = ApiUpstream | TextUpstream


async def load_models(configuration: Configuration, models: Models, tools: GatewayTools | None = None) -> ModelTable:
    """Open the models that a configuration offers to clients of the gateway.

    Args:
        configuration: the configuration; without models of the gateway, each profile is offered under its own name.
        models: opens them, and closes them later.
        tools: the tools of the gateway; None for none.

    Raises:
        ConfigurationError: there is no model, or one cannot be opened.
        ProviderError: a model on this machine cannot be loaded.
    """
    tables = configuration.gateway.models or {name: GatewayModelTable() for name in configuration.profiles}
    if not tables:
        raise ConfigurationError("there is no model: add a table profiles.NAME")
    opened: dict[tuple[str, str | None, str | None], _OwnUpstream] = {}
    checks: dict[str, Callable[[], str]] = {}

    async def upstream(profile: str, table: GatewayModelTable) -> _OwnUpstream:
        key = profile, table.calls_in_text, table.constrain
        if key not in opened:
            with _errors_naming(profile, configuration):
                opened[key] = await _open(profile, configuration.profiles[profile], models, table, checks)
        return opened[key]

    served: list[ServedModel] = []
    for name, table in tables.items():
        profiles = table.profiles_of(name)
        fallback = configuration.profiles[profiles[0]].fallback if table.fallback is None else table.fallback
        opened_upstreams = [await upstream(profile, table) for profile in (*profiles, *fallback)]
        upstreams = _retried(name, opened_upstreams) if table.retries else list[Upstream](opened_upstreams)
        if table.tools:
            if tools is None:
                raise ConfigurationError(f"gateway.models.{name}: tools: there are none in [gateway.tools]")
            upstreams = [ToolUpstream(upstream, tools) for upstream in upstreams]
        served.append(
            ServedModel(
                name,
                tuple(upstreams[: len(profiles)]),
                tuple(table.shares.values()),
                tuple(upstreams[len(profiles) :]),
                table.context or 0,
                None if table.prices is None else Prices(**table.prices.model_dump()),
            )
        )
    return ModelTable(served, checks)


@contextmanager
def _errors_naming(profile: str, configuration: Configuration) -> Iterator[None]:
    """Let errors of a configuration begin with the key of the profile, if there are several."""
    try:
        yield
    except ConfigurationError as error:
        if len(configuration.profiles) == 1:
            raise
        raise ConfigurationError(f"profiles.{profile}: {error}") from error


def _retried(name: str, upstreams: Sequence[_OwnUpstream]) -> list[Upstream]:
    """Return the backends of a model so that those whose calls are read in the text are asked once more."""
    if not any(upstream.may_read_text for upstream in upstreams):
        raise ConfigurationError(
            f"gateway.models.{name}: retries needs a model that writes its calls as text: set tools.definition_format "
            "of its profile, or calls_in_text"
        )
    return [RetriedUpstream(upstream) if upstream.may_read_text else upstream for upstream in upstreams]


async def _open(
    name: str, profile: ModelProfile, models: Models, table: GatewayModelTable, checks: dict[str, Callable[[], str]]
) -> _OwnUpstream:
    """Open the backend of a profile, and add its check to `checks`."""
    if table.constrain is not None:
        profile = profile.model_copy(update={"constrain": table.constrain})
    backend = await models.open(profile)
    checks[name] = partial(_missing, profile, backend)
    if not isinstance(backend, ApiBackend):
        return TextUpstream(backend, name=name)
    if backend.constraint is not None:
        raise ConfigurationError(
            f"constrain of {name!r:.80} needs calls in the text: of other calls, requests say which tools are strict"
        )
    model = "" if profile.model == ANY_MODEL else profile.model
    return ApiUpstream(backend.client, name=name, model=model, calls_in_text=table.calls_in_text or "")


def _missing(profile: ModelProfile, backend: Backend) -> str:
    """Return what requests to a backend lack, such as its key; "" for nothing."""
    if not backend.api:
        return ""
    native = backend if isinstance(backend, ApiBackend) else None
    client = native.client if native else open_client(profile, backend.api, text_format=None)
    try:
        client.open({}, model=profile.model)  # nothing is sent before it is entered
    except ConfigurationError as error:
        return str(error)
    return ""
