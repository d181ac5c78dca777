"""Models by profile: opened as the profile says, and closed together.

A profile names a model on this machine or behind an API. Behind an API, tool calls have fields of their own, unless the
profile, the agent or its team asks for calls in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from toolwire.client.client import Client
from toolwire.client.exchange import Transport
from toolwire.client.transport import Retry
from toolwire.config.tables import COACH, LOCAL, ModelProfile, SettingsTable
from toolwire.errors import ConfigurationError, DefinitionError
from toolwire.models.backends import ApiBackend, Backend, Source, TextBackend, client_source
from toolwire.models.constraints import GRAMMAR_SERVERS, Constraint
from toolwire.models.local.model_files import HUB, open_model
from toolwire.models.local.weights import WEIGHTS, measured_format
from toolwire.models.model_group import Fallback
from toolwire.models.process_sources import Writer, local_source
from toolwire.providers.api_registry import find_api
from toolwire.providers.base import ProviderApi
from toolwire.providers.negotiation import WRITTEN_BY_DEFAULT, FormatNegotiator, Plan, ToolsConfig
from toolwire.telemetry.coached_backend import text_backend
from toolwire.wire.format_registry import AUTO
from toolwire.wire.profiles import detect_from_template
from toolwire.wire.profiles import profile as model_profile

SMALL = "forge_xml"
"""The wire format for unknown models on this machine."""

DEFAULT_API = "openai_chat"
"""The API of a server of which only the URL is given."""


def local_name(profile: ModelProfile) -> str:
    """Return the name of a profile's model for `toolwire.models.local.locate`; "" if it is not on this machine."""
    prefix = f"{LOCAL}:"
    if profile.model.startswith(prefix):
        return profile.model.removeprefix(prefix)
    if profile.provider == LOCAL:
        return profile.model or next(reversed(WEIGHTS))
    alone = not profile.provider and not profile.url
    return profile.model if alone and profile.model.endswith(".gguf") else ""


def _provider(profile: ModelProfile) -> str:
    return profile.provider or (DEFAULT_API if profile.url else "")


def api_of(profile: ModelProfile, plan: Plan) -> ProviderApi:
    """Return the API of a profile: that of its provider, or else the one that its model's name implies.

    Args:
        profile: the profile of a model behind an API.
        plan: the formats of its tools.

    Raises:
        ConfigurationError: neither is known.
    """
    api = find_api(_provider(profile)) or find_api(plan.definitions)
    if api is None:
        raise ConfigurationError(f"the provider of {profile.model!r} is unknown: give a provider, or a url")
    return profile.server.api(api)


def open_client(
    profile: ModelProfile,
    api: str | ProviderApi,
    *,
    text_format: str | None,
    transport: Transport | None = None,
    retry: Retry | None = None,
    key: str | None = None,
) -> Client:
    """Return a client of a profile's model behind an API; see `Client` for the arguments.

    Args:
        profile: the profile of the model.
        api: the API, or its name.
        text_format: the wire format of calls in the text of an answer.
        transport: sends the requests; None for HTTP.
        retry: when a request that failed is repeated, in place of the profile's policy; None for that.
        key: the key, in place of the one that the profile's variable contains; None for that.

    Raises:
        ConfigurationError: the API has no public endpoint, and the profile has no URL.
    """
    if retry is None and profile.retry is not None:
        retry = Retry(**profile.retry.model_dump())
    return Client(
        api,
        profile.model,
        base_url=profile.url,
        key=key,
        key_env=profile.key_env,
        transport=transport,
        retry=None if transport is not None else retry,
        text_format=text_format,
        settings=profile.settings.to_settings(),
        extra_body=profile.extra_body,
        extra_headers=profile.extra_headers,
    )


class Models:
    """Opens models and closes their connections; a model on this machine is loaded once for all agents.

    Args:
        load: loads a model on this machine; None for `toolwire.models.local.open_model`.
        transport: sends requests to APIs; None for HTTP.
    """

    def __init__(self, *, load: Callable[[str], Writer] | None = None, transport: Transport | None = None) -> None:
        self._load = load or open_model
        self._transport = transport
        self._loaded: dict[str, Writer] = {}
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Return the object itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._opened.aclose()

    async def open(
        self,
        profile: ModelProfile,
        *,
        format: str | None = None,
        use_xml_tool_format: bool | None = None,
        team: bool | None = None,
    ) -> Backend:
        """Open a model.

        Args:
            profile: the profile of the model.
            format: a wire format, an API's name or "coach", in place of the profile's; None for that.
            use_xml_tool_format: whether calls are XML in the text, in place of the profile's setting; None for that.
            team: `use_xml_tool_format` of a team, which overrides all others; None if it is not set.

        Raises:
            ConfigurationError: the profile names no model, or its settings contradict each other.
            ProviderError: a model on this machine cannot be loaded.
        """
        backend = await self._open_model(profile, format=format, use_xml_tool_format=use_xml_tool_format, team=team)
        if profile.constrain is not None:
            _constrain(backend, profile.constrain)
        return backend

    async def _open_model(
        self, profile: ModelProfile, *, format: str | None, use_xml_tool_format: bool | None, team: bool | None
    ) -> Backend:
        if not profile.model and profile.provider != LOCAL:
            raise ConfigurationError("the profile names no model")
        tools_config = ToolsConfig(**profile.tools.model_dump())
        coach = format == COACH and not team
        if coach:
            tools_config = ToolsConfig(WRITTEN_BY_DEFAULT)  # calls in the text, in whichever format the coach chooses
        elif format is not None and format != COACH:
            tools_config = ToolsConfig(format, use_xml_tool_format=tools_config.use_xml_tool_format)
        if use_xml_tool_format is not None:
            tools_config = replace(tools_config, use_xml_tool_format=use_xml_tool_format)
        if team:
            tools_config = ToolsConfig()  # the team overrides every other setting
        negotiator = FormatNegotiator(tools_config, team=ToolsConfig(use_xml_tool_format=team))
        if name := local_name(profile):
            if profile.extra_body or profile.extra_headers:
                raise ConfigurationError(f"{name} runs in this process: it gets no requests to add anything to")
            xml = bool(tools_config.use_xml_tool_format if team is None else team)
            plan = _plan(negotiator, tools_config, name, xml=xml, template=lambda: self._template(name))
            return self._local(name, plan, profile.settings, coach=coach)
        plan = negotiator.negotiate(_provider(profile), profile.model)
        api = api_of(profile, plan)
        definitions, results = find_api(plan.definitions), find_api(plan.results)
        if (definitions is None) != (results is None):
            raise ConfigurationError(
                f"definitions as {plan.definitions} and results as {plan.results} do not go together: both are fields "
                "of the API, or both are in the text"
            )
        native = definitions is not None
        text_format = _text_format(tools_config, plan) if native else None
        client = open_client(profile, api, text_format=text_format, transport=self._transport)
        await self._opened.enter_async_context(client)
        if native:
            return ApiBackend(client)
        return _text(client_source(client), plan, profile.model, api.name, coach=coach)

    async def open_chain(
        self,
        profiles: Sequence[ModelProfile],
        *,
        format: str | None = None,
        use_xml_tool_format: bool | None = None,
        team: bool | None = None,
    ) -> Backend:
        """Open the model of a profile and those that answer where it fails; see `open`.

        Args:
            profiles: the profile, and those that its `fallback` names.
            format: see `open`; a wire format counts for each of the models, an API's name for the first one.
            use_xml_tool_format: see `open`; it counts for each of the models.
            team: see `open`; it counts for each of the models.

        Raises:
            ConfigurationError, ProviderError: see `open`.
        """
        # Models of a chain may be behind different APIs, and each of them has its own fields for calls.
        other_format = None if format is not None and find_api(format) else format
        backends = [
            await self.open(
                profile, format=other_format if index else format, use_xml_tool_format=use_xml_tool_format, team=team
            )
            for index, profile in enumerate(profiles)
        ]
        return backends[0] if len(backends) == 1 else Fallback(backends)

    def _local(self, name: str, plan: Plan, settings: SettingsTable, *, coach: bool) -> Backend:
        if find_api(plan.definitions) or find_api(plan.results):
            raise ConfigurationError(f"{name} runs in this process, so its tools are in the text: name a wire format")
        try:
            source = local_source(self._writer(name), settings.to_settings())
        except DefinitionError as error:
            raise ConfigurationError(f"the settings of the profile: {error}") from error
        return _text(source, plan, name, "", coach=coach)

    def _writer(self, name: str) -> Writer:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _template(self, name: str) -> str:
        template = getattr(self._writer(name), "chat_template", "")
        return template if isinstance(template, str) else ""


def _constrain(backend: Backend, mode: Literal["auto", "required"]) -> None:
    """Let a model write its calls under a grammar, or let an API do so that has strict tools."""
    if not isinstance(backend, (TextBackend, ApiBackend)):
        raise ConfigurationError(
            f"constrain needs a model that writes its calls in one wire format: name it, as hermes, for {backend.model}"
        )
    if not backend.takes_grammars:
        where = (
            f"an API whose field for grammars is known ({', '.join(GRAMMAR_SERVERS)})"
            if backend.format
            else "an API with strict tools, or calls in the text in one wire format, such as hermes"
        )
        raise ConfigurationError(f"constrain needs {where}; {backend.api!r:.40} is not one")
    backend.constraint = Constraint(mode)


def _plan(
    negotiator: FormatNegotiator, config: ToolsConfig, name: str, *, xml: bool, template: Callable[[], str]
) -> Plan:
    """Return the formats for a model on this machine: the configured ones, else the best for this model.

    Args:
        negotiator: knows the formats of model families.
        config: the configured formats.
        name: the size, the path or the hub's name of the model.
        xml: whether XML in the text was asked for.
        template: returns the chat template of the model, for one of an unknown family.
    """
    stem = Path(name.removeprefix(HUB)).stem
    plan = negotiator.negotiate("", stem)
    # The format in which this very model was measured to call best counts more than the one that its family learnt.
    measured = measured_format(name.removeprefix(HUB))
    if xml or _is_set(config.definition_format) or (plan.definitions != AUTO and not measured):
        return plan
    best = measured
    # Only for an unknown family: others have templates with markers that their models do not write.
    if not (best or model_profile(stem).family):
        detected = detect_from_template(template()).prompt_format
        best = "" if detected == AUTO else detected
    best = best or SMALL
    calls = plan.calls if _is_set(config.call_parser) else best
    results = plan.results if _is_set(config.result_format) else AUTO
    return replace(plan, definitions=best, calls=calls, results=results)


def _text_format(config: ToolsConfig, plan: Plan) -> str | None:
    """Return the wire format of calls in the text of a model with native tools; "" for that of its profile."""
    if config.call_parser is None:
        return ""
    return None if find_api(plan.calls) else plan.calls


def _is_set(format: str | None) -> bool:
    return format is not None and format.lower() != AUTO


def _text(source: Source, plan: Plan, model: str, api: str, *, coach: bool) -> Backend:
    if coach:
        return text_backend(source, format=COACH, model=model, api=api)
    format = WRITTEN_BY_DEFAULT if plan.definitions == AUTO else plan.definitions
    results = "" if plan.results == AUTO else plan.results
    reads = AUTO if find_api(plan.calls) else plan.calls
    return TextBackend(source, format=format, model=model, api=api, reads=reads, results=results)
