"""Which way to take: how definitions go to a model, how its calls are read, and how results go back.

Explicit configuration counts first, then what is known about the model, then what its provider speaks, then `auto`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack

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
"""What `use_xml_tool_format` stands for."""

WRITTEN_BY_DEFAULT = "hermes"
"""The wire format that is written where none is known: more models were trained on it than on any other."""

CONFIG_NAMES = {"qwen": "utp_xml", "qwen_xml": "utp_xml", "anthropic": "anthropic_xml", "openai": "openai_chat"}
"""Names that a configuration may use for formats and APIs; nothing else does."""


@dataclass(frozen=True, slots=True)
class ToolsConfig:
    """What a configuration says of tools; None where it says nothing.

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
    """What was settled, each an API's or a wire format's name.

    Attributes:
        definitions: how definitions are sent.
        calls: how calls in text are read; native calls are read in any case.
        results: how results are sent.
        reason: why, in a sentence.
    """

    definitions: str
    calls: str
    results: str
    reason: str


class DefinitionAdapter:
    """Definitions in one format."""

    def __init__(self, format: str) -> None:
        self.format = _written(format)
        self._api = find_api(format)

    @property
    def native(self) -> bool:
        """Whether definitions go into a field of the request, not into its text."""
        return self._api is not None

    def render(self, tools: Iterable[Any], *, notes: Notes | None = None) -> Any:
        """The definitions: what the API's request holds for them, or text."""
        if self._api is not None:
            body = self._api.encode_request((), tools=tools, notes=notes)
            return body.get("tools") or body.get("toolConfig") or []
        return render_definitions(tools, format=self.format)

    def format_system_prompt(self, base: str, tools: Iterable[Any]) -> str:
        """The system prompt; with the definitions and how to call them, unless they go into a field."""
        return base if self.native else prompt(tools, format=self.format, system=base)


class CallParser:
    """Reads calls: those of an API's own fields, and those that stand in text in one format."""

    def __init__(self, format: str) -> None:
        self.format = format
        self._api = find_api(format)
        self._text = AUTO if self._api is not None else format

    def parse(self, text_or_response: Any, **options: Unpack[TextOptions]) -> ParsedResponse:
        """Parse a whole message; see `toolwire.parse`."""
        return parse(text_or_response, api=self._api, format=self._text, **options)

    def stream(self, events: Iterable[Event], **options: Unpack[TextOptions]) -> Iterable[Event]:
        """The events of an API's answer, with the calls that stand in its text; see `toolwire.merge_text`."""
        return merge_text(events, format=self._text, **options)

    def text_parser(self, **options: Unpack[TextOptions]) -> StreamParser:
        """A parser of text; see `StreamParser`."""
        return StreamParser(format=self._text, **options)

    def decoder(self, *, tools: Any = (), id_seed: str = "") -> StreamDecoder:
        """A decoder of a streamed answer.

        Raises:
            DefinitionError: the format is one of text.
        """
        if self._api is None:
            raise DefinitionError(f"{self.format} is a format of text; an API's stream is read by that API")
        return self._api.stream_decoder(tools=tools, id_seed=id_seed)


class ResultAdapter:
    """Results in one format."""

    def __init__(self, format: str) -> None:
        self.format = _written(format)
        self._api = find_api(format)

    def render(self, results: Sequence[ToolResult], *, notes: Notes | None = None) -> list[Json] | str:
        """The messages that carry the results of one turn, or their text."""
        if self._api is not None:
            return self._api.encode_results(results, notes=notes)
        return render_results(results, format=self.format)


class FormatNegotiator:
    """Settles the formats of a model, once for each, and makes what reads and writes them.

    Args:
        config: what was configured; its names are checked.
        team: what was configured for the whole team, whose `use_xml_tool_format` wins if it is set.

    Raises:
        ConfigurationError: a configured name is no format and no API.
    """

    def __init__(self, config: ToolsConfig | None = None, *, team: ToolsConfig | None = None) -> None:
        self._config = config or ToolsConfig()
        xml = team.use_xml_tool_format if team is not None else None
        self._xml = self._config.use_xml_tool_format if xml is None else xml
        for name in (self._config.definition_format, self._config.call_parser, self._config.result_format):
            if name is not None:
                configured(name)
        self._plans: dict[tuple[str, str], Plan] = {}
        self._adapters: dict[tuple[type, str], Any] = {}

    def detect_format(self, provider: str, model: str) -> str:
        """How definitions are sent to this model: an API's name, a wire format's, or "auto" if nothing is known."""
        return self.negotiate(provider, model).definitions

    def negotiate(self, provider: str, model: str) -> Plan:
        """What is settled for a model of a provider; a provider is an API's name, or "" for text alone."""
        key = provider, model
        if key not in self._plans:
            self._plans[key] = self._negotiated(provider, model)
        return self._plans[key]

    def _negotiated(self, provider: str, model: str) -> Plan:
        known = profile(model)
        api = find_api(provider) or find_api(known.api)
        reason = known.reason
        if self._xml:
            way, calls, reason = XML_FORMAT, XML_FORMAT, "XML in the text was asked for."
        elif api is not None:
            way, calls = api.name, known.format
            if not known.api:
                reason = f"{provider or known.api} has fields for tools. {reason}"
        else:
            way, calls = known.format, known.format
        config = self._config
        if config.definition_format is not None:
            way, reason = configured(config.definition_format), "It was configured."
            calls = way if find_api(way) is None else calls
        if config.call_parser is not None:
            calls = configured(config.call_parser)
        results = configured(config.result_format) if config.result_format is not None else way
        return Plan(way, calls, results, reason)

    def get_definition_adapter(self, format: str) -> DefinitionAdapter:
        """What writes definitions in this format; the same object each time."""
        return self._adapter(DefinitionAdapter, format)

    def get_call_parser(self, format: str) -> CallParser:
        """What reads calls in this format; the same object each time."""
        return self._adapter(CallParser, format)

    def get_result_adapter(self, format: str) -> ResultAdapter:
        """What writes results in this format; the same object each time."""
        return self._adapter(ResultAdapter, format)

    def _adapter(self, kind: type[_A], format: str) -> _A:
        key = kind, format
        if key not in self._adapters:
            self._adapters[key] = kind(format)
        made: _A = self._adapters[key]
        return made


def configured(name: str) -> str:
    """The format or API that a configuration names.

    Raises:
        ConfigurationError: there is none of that name.
    """
    plain = CONFIG_NAMES.get(name.lower(), name.lower())
    if plain == AUTO or find_api(plain) is not None:
        return plain
    try:
        return get_format(plain).name
    except UnknownFormat as error:
        known = ", ".join((AUTO, *CONFIG_NAMES, *apis()))
        raise ConfigurationError(f"{error}; a configuration may also name: {known}") from error


def _written(format: str) -> str:
    return WRITTEN_BY_DEFAULT if format == AUTO else format
