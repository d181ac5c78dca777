"""Negotiation of formats: how definitions are sent to a model, how its calls are read, and how results are sent.

The order of precedence is explicit configuration, the model's profile, the provider's API, then `auto`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar, Unpack

from toolwire._surface import check_type
from toolwire.errors import ConfigurationError, DefinitionError, UnknownFormat
from toolwire.events import Event
from toolwire.messages import ParsedResponse, ToolResult
from toolwire.providers.api_registry import apis, find_api
from toolwire.providers.message_parts import Json
from toolwire.providers.parsing import merge_text, parse
from toolwire.providers.request import Notes
from toolwire.providers.stream_codec import StreamDecoder
from toolwire.wire.format_registry import AUTO, get_format
from toolwire.wire.profiles import profile
from toolwire.wire.prompts import prompt, render_definitions, render_results
from toolwire.wire.stream_parser import StreamParser, TextOptions

_A = TypeVar("_A", "DefinitionAdapter", "CallParser", "ResultAdapter")

XML_FORMAT = "autobyteus_xml"
"""The wire format that `use_xml_tool_format` selects."""

WRITTEN_BY_DEFAULT = "hermes"
"""The wire format that is written to an unknown model: most models were trained on it."""

CONFIG_NAMES = {"qwen": "utp_xml", "qwen_xml": "utp_xml", "anthropic": "anthropic_xml", "openai": "openai_chat"}
"""Names for formats and APIs that are valid only in a configuration."""


@dataclass(frozen=True, slots=True)
class ToolsConfig:
    """The configuration of tools; None for each setting that is not configured.

    Attributes:
        definition_format: how definitions are sent: an API's name (its own fields) or a wire format's (the prompt).
        call_parser: how calls in text are read: a wire format, "auto", or an API's name for its own fields alone.
        result_format: how results are sent; as `definition_format`.
        use_xml_tool_format: definitions, calls and results as XML in the text, whatever the model is.
    """

    definition_format: str | None = None
    call_parser: str | None = None
    result_format: str | None = None
    use_xml_tool_format: bool | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The negotiated formats, each the name of an API or of a wire format.

    Attributes:
        definitions: how definitions are sent.
        calls: how calls in text are read; native calls are read in any case.
        results: how results are sent.
        reason: the reason, in one sentence.
    """

    definitions: str
    calls: str
    results: str
    reason: str


class DefinitionAdapter:
    """Writes definitions in one format."""

    def __init__(self, format: str) -> None:
        self.format = _written(format)
        self._api = find_api(format)

    @property
    def native(self) -> bool:
        """True if definitions are a field of the request, not part of its text."""
        return self._api is not None

    def render(self, tools: Iterable[Any], *, notes: Notes | None = None) -> Any:
        """Return the definitions: the value of the API's field, or text."""
        if self._api is not None:
            body = self._api.encode_request((), tools=tools, notes=notes)
            return body.get("tools") or body.get("toolConfig") or []
        return render_definitions(tools, format=self.format)

    def format_system_prompt(self, base: str, tools: Iterable[Any]) -> str:
        """Return the system prompt, with the definitions and instructions unless these have a field."""
        return base if self.native else prompt(tools, format=self.format, system=base)


class CallParser:
    """Reads calls in the fields of an API, and in text in one format."""

    def __init__(self, format: str) -> None:
        self.format = format
        self._api = find_api(format)
        self._text = AUTO if self._api is not None else format

    def parse(self, text_or_response: Any, **options: Unpack[TextOptions]) -> ParsedResponse:
        """Parse a whole message; see `toolwire.parse`."""
        return parse(text_or_response, api=self._api, format=self._text, **options)

    def stream(self, events: Iterable[Event], **options: Unpack[TextOptions]) -> Iterable[Event]:
        """Yield the events of an API's answer, with the calls in its text; see `toolwire.merge_text`."""
        return merge_text(events, format=self._text, **options)

    def text_parser(self, **options: Unpack[TextOptions]) -> StreamParser:
        """Return a parser of text; see `StreamParser`."""
        return StreamParser(format=self._text, **options)

    def decoder(self, *, tools: Any = (), id_seed: str = "") -> StreamDecoder:
        """Return a decoder of a streamed answer.

        Raises:
            DefinitionError: the format is a text format.
        """
        if self._api is None:
            raise DefinitionError(f"{self.format} is a text format; only an API can decode a stream")
        return self._api.stream_decoder(tools=tools, id_seed=id_seed)


class ResultAdapter:
    """Writes results in one format."""

    def __init__(self, format: str) -> None:
        self.format = _written(format)
        self._api = find_api(format)

    def render(self, results: Sequence[ToolResult], *, notes: Notes | None = None) -> list[Json] | str:
        """Return the messages that carry the results of one turn, or their text."""
        if self._api is not None:
            return self._api.encode_results(results, notes=notes)
        return render_results(results, format=self.format)


class FormatNegotiator:
    """Negotiates the formats of models, and caches their readers and writers.

    Args:
        config: the agent's configuration; its names are checked.
        team: the team's configuration, whose `use_xml_tool_format` takes precedence.

    Raises:
        ConfigurationError: a configured name is neither a format nor an API.
    """

    def __init__(self, config: ToolsConfig | None = None, *, team: ToolsConfig | None = None) -> None:
        check_type("config", config, (ToolsConfig, NoneType), "a ToolsConfig or None")
        check_type("team", team, (ToolsConfig, NoneType), "a ToolsConfig or None")
        self._config = config or ToolsConfig()
        xml = team.use_xml_tool_format if team is not None else None
        self._xml = self._config.use_xml_tool_format if xml is None else xml
        for name in (self._config.definition_format, self._config.call_parser, self._config.result_format):
            if name is not None:
                configured(name)
        self._plans: dict[tuple[str, str], Plan] = {}
        self._adapters: dict[tuple[type, str], Any] = {}

    def detect_format(self, provider: str, model: str) -> str:
        """Return the format of definitions for this model: an API, a wire format, or "auto" if it is unknown."""
        return self.negotiate(provider, model).definitions

    def negotiate(self, provider: str, model: str) -> Plan:
        """Return the formats for a model of a provider: an API's name, or "" for a text-only model."""
        key = provider, model
        if key not in self._plans:
            self._plans[key] = self._negotiated(provider, model)
        return self._plans[key]

    def _negotiated(self, provider: str, model: str) -> Plan:
        model_profile = profile(model)
        api = find_api(provider) or find_api(model_profile.api)
        reason = model_profile.reason
        if self._xml:
            way, calls, reason = XML_FORMAT, XML_FORMAT, "XML in the text was asked for."
        elif api is not None:
            way, calls = api.name, model_profile.format
            if not model_profile.api:
                reason = f"{provider or model_profile.api} has fields for tools. {reason}"
        else:
            # A model without a format of its own is asked for one, and read in any.
            way, calls = model_profile.prompt_format, model_profile.format
        config = self._config
        if config.definition_format is not None:
            way, reason = configured(config.definition_format), "It was configured."
            calls = way if find_api(way) is None else calls
        if config.call_parser is not None:
            calls = configured(config.call_parser)
        results = configured(config.result_format) if config.result_format is not None else way
        return Plan(way, calls, results, reason)

    def get_definition_adapter(self, format: str) -> DefinitionAdapter:
        """Return the cached writer of definitions in this format."""
        return self._adapter(DefinitionAdapter, format)

    def get_call_parser(self, format: str) -> CallParser:
        """Return the cached reader of calls in this format."""
        return self._adapter(CallParser, format)

    def get_result_adapter(self, format: str) -> ResultAdapter:
        """Return the cached writer of results in this format."""
        return self._adapter(ResultAdapter, format)

    def _adapter(self, kind: type[_A], format: str) -> _A:
        key = kind, format
        if key not in self._adapters:
            self._adapters[key] = kind(format)
        adapter: _A = self._adapters[key]
        return adapter


def configured(name: str) -> str:
    """Return the format or API that a configuration names.

    Raises:
        ConfigurationError: there is none of that name.
    """
    plain = CONFIG_NAMES.get(name.lower(), name.lower())
    if plain == AUTO or find_api(plain) is not None:
        return plain
    try:
        return get_format(plain).name
    except UnknownFormat as error:
        names = ", ".join((AUTO, *CONFIG_NAMES, *apis()))
        raise ConfigurationError(f"{error}; a configuration may also name: {names}") from error


def _written(format: str) -> str:
    return WRITTEN_BY_DEFAULT if format == AUTO else format
