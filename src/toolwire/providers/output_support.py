"""Structured outputs of the APIs: the place of the schema in a request, and the schemas that each API accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.providers.identifiers import WORD_64
from toolwire.providers.openapi_schemas import read_openapi_schema
from toolwire.providers.output_schema import OUTPUT, OutputSchema
from toolwire.providers.request import Notes
from toolwire.providers.schema_dialects import (
    JSON_SCHEMA,
    OPENAPI,
    SEALED,
    STRICT,
    Dialect,
    lower,
)
from toolwire.text.json_reading import read_json
from toolwire.text.json_text import JsonError, json_text
from toolwire.tools import ToolDefinition

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """The place of an output schema in a body.

    Attributes:
        container: the member that contains the place; "" for the body itself.
        members: the members that belong to it.
        write: returns these members for a schema.
        read: returns the schema in a container; None if there is none that it can read.
        described: whether the members have a place for the description of the output.
    """

    container: str
    members: tuple[str, ...]
    write: Callable[[OutputSchema], Json]
    read: Callable[[Mapping[str, Any]], OutputSchema | None]
    described: bool = False

    def put(self, body: Json, output: OutputSchema) -> None:
        """Write a schema into a body, whose own members are not replaced."""
        target = body
        if self.container:
            target = body[self.container] = dict(body.get(self.container) or {})
        for member, value in self.write(output).items():
            target.setdefault(member, value)

    def take(self, body: Json) -> OutputSchema | None:
        """Remove the schema from a body and return it; None if there is none, and the body stays as it is."""
        source = body.get(self.container) if self.container else body
        output = self.read(source) if isinstance(source, Mapping) else None
        if output is None or not isinstance(source, Mapping):
            return None
        rest = {member: value for member, value in source.items() if member not in self.members}
        if not self.container:
            body.clear()
            body.update(rest)
        elif rest:
            body[self.container] = rest
        else:
            del body[self.container]
        return output


@dataclass(frozen=True, slots=True)
class OutputSupport:
    """Properties of an API's structured outputs.

    Attributes:
        place: the place of the schema in a request.
        schemas: the dialect of schemas; None if the API can be asked for JSON, but takes no schema.
        strict: the dialect of strict mode; None if there is no such mode.
        free: whether the API can be asked for JSON without a schema.
        with_tools: whether a request may have tools too. If not, the request is refused, or no tool is ever called.
        shown: whether the model sees the schema. If not, it only limits what the model can write.
    """

    place: OutputPlace
    schemas: Dialect | None = JSON_SCHEMA
    strict: Dialect | None = None
    free: bool = True
    with_tools: bool = False
    shown: bool = True

    def accepts(self, output: OutputSchema, *, tools: bool) -> bool:
        """Return whether the API can guarantee this schema in a request with or without tools."""
        if self.schemas is None or (tools and not self.with_tools):
            return False
        try:
            self._lowered(output, Notes())
        except DefinitionError:
            return False
        return True

    def fit(self, output: OutputSchema, api: str, notes: Notes) -> OutputSchema | None:
        """Return a schema as the API accepts it, with notes of all that is lost; None if it accepts none."""
        if output.schema is not None and self.schemas is None:
            notes.changed(OUTPUT, f"{api} takes no schema for answers: it is asked for any JSON object")
            output = replace(output, schema=None)
        if output.description and not (self.place.described and output.schema is not None):
            notes.dropped(f"{OUTPUT}/description", f"{api} has no description of answers")
        if output.schema is None:
            if self.free:
                return output
            notes.dropped(OUTPUT, f"{api} cannot be asked for JSON without a schema")
            return None
        try:
            return self._lowered(output, notes)
        except DefinitionError as error:
            notes.dropped(OUTPUT, f"{api} cannot guarantee this schema: {error}")
            return None

    def _lowered(self, output: OutputSchema, notes: Notes) -> OutputSchema:
        name = WORD_64.fit(output.name or OUTPUT)
        definition = ToolDefinition(name, parameters=dict(output.schema or {}))
        assert self.schemas is not None
        if output.strict is True and self.strict is not None:
            strict_notes = Notes()  # losses of a translation that fails do not count
            try:
                schema = lower(definition, self.strict, strict_notes)
            except DefinitionError as error:
                notes.changed(OUTPUT, f"it cannot be strict: {error}")
                return replace(output, name=name, schema=lower(definition, self.schemas, notes), strict=False)
            notes.extend(strict_notes)
            return replace(output, name=name, schema=schema)
        strict = output.strict if self.strict is not None else None
        return replace(output, name=name, schema=lower(definition, self.schemas, notes), strict=strict)


def _named(output: OutputSchema) -> Json:
    """Return the members of OpenAI's JSON Schema formats."""
    written: Json = {"name": output.name or OUTPUT, "schema": output.schema}
    if output.description:
        written["description"] = output.description
    if output.strict is not None:
        written["strict"] = output.strict
    return written


def _read_named(data: Any) -> OutputSchema | None:
    if not isinstance(data, Mapping) or not isinstance(data.get("schema"), Mapping):
        return None
    strict = data.get("strict")
    return OutputSchema(
        dict(data["schema"]),
        str(data.get("name") or ""),
        str(data.get("description") or ""),
        strict if isinstance(strict, bool) else None,
    )


def _write_response_format(output: OutputSchema) -> Json:
    if output.schema is None:
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": _named(output)}}


def _read_response_format(body: Mapping[str, Any]) -> OutputSchema | None:
    format = body.get("response_format")
    if not isinstance(format, Mapping):
        return None
    match format.get("type"):
        case "json_schema":
            return _read_named(format.get("json_schema")) or _read_named(format)
        case "json_object":
            return _read_named(format) or OutputSchema(None)  # some servers take a schema here too
    return None


def _write_text_format(output: OutputSchema) -> Json:
    return {"format": {"type": "json_object"} if output.schema is None else {"type": "json_schema", **_named(output)}}


def _read_text_format(text: Mapping[str, Any]) -> OutputSchema | None:
    format = text.get("format")
    if not isinstance(format, Mapping):
        return None
    return OutputSchema(None) if format.get("type") == "json_object" else _read_named(format)


def _write_output_config(output: OutputSchema) -> Json:
    return {"format": {"type": "json_schema", "schema": output.schema}}


def _read_output_config(config: Mapping[str, Any]) -> OutputSchema | None:
    return _read_named(config.get("format"))


def _write_bedrock(output: OutputSchema) -> Json:
    named = _named(replace(output, strict=None))
    structure = {"jsonSchema": {**named, "schema": json_text(named["schema"])}}
    return {"textFormat": {"type": "json_schema", "structure": structure}}


def _read_bedrock(config: Mapping[str, Any]) -> OutputSchema | None:
    match config.get("textFormat"):
        case {"structure": {"jsonSchema": {"schema": str(text), **named}}}:
            try:
                schema, _ = read_json(text, repair=False)
            except JsonError:
                return None
            return _read_named({**named, "schema": schema})
    return None


def _write_gemini(member: str) -> Callable[[OutputSchema], Json]:
    def write(output: OutputSchema) -> Json:
        schema = {} if output.schema is None else {member: output.schema}
        return {"responseMimeType": "application/json", **schema}

    return write


def _read_gemini(settings: Mapping[str, Any]) -> OutputSchema | None:
    if settings.get("responseMimeType") != "application/json":
        return None
    if isinstance(schema := settings.get("responseJsonSchema"), Mapping):
        return OutputSchema(dict(schema))
    if isinstance(schema := settings.get("responseSchema"), Mapping):
        return OutputSchema(read_openapi_schema(schema))
    return OutputSchema(None)


def _write_ollama(output: OutputSchema) -> Json:
    return {"format": "json" if output.schema is None else output.schema}


def _read_ollama(body: Mapping[str, Any]) -> OutputSchema | None:
    format = body.get("format")
    if isinstance(format, Mapping) and format:
        return OutputSchema(dict(format))
    return OutputSchema(None) if format == "json" else None


def _write_cohere(output: OutputSchema) -> Json:
    schema = {} if output.schema is None else {"json_schema": output.schema}
    return {"response_format": {"type": "json_object", **schema}}


def _read_cohere(body: Mapping[str, Any]) -> OutputSchema | None:
    match body.get("response_format"):
        case {"type": "json_object", "json_schema": Mapping() as schema}:
            return OutputSchema(dict(schema))
        case {"type": "json_object"}:
            return OutputSchema(None)
    return None


def _write_interactions(output: OutputSchema) -> Json:
    schema = {} if output.schema is None else {"schema": output.schema}
    return {"response_format": {"type": "text", "mime_type": "application/json", **schema}}


def _read_interactions(body: Mapping[str, Any]) -> OutputSchema | None:
    match body.get("response_format"):
        case {"type": "text", "mime_type": "application/json", "schema": Mapping() as schema}:
            return OutputSchema(dict(schema))
        case {"type": "text", "mime_type": "application/json"}:
            return OutputSchema(None)
    return None


_RESPONSE_FORMAT = OutputPlace("", ("response_format",), _write_response_format, _read_response_format, described=True)
_GEMINI_MEMBERS = ("responseMimeType", "responseJsonSchema", "responseSchema")

OPENAI_CHAT = OutputSupport(_RESPONSE_FORMAT, strict=STRICT, with_tools=True)
STRICT_WITHOUT_TOOLS = OutputSupport(_RESPONSE_FORMAT, strict=STRICT)
BEST_EFFORT = OutputSupport(_RESPONSE_FORMAT)
OPEN_SERVER = OutputSupport(_RESPONSE_FORMAT, shown=False)
JSON_ONLY = OutputSupport(_RESPONSE_FORMAT, None)
OPENAI_RESPONSES = OutputSupport(
    OutputPlace("text", ("format",), _write_text_format, _read_text_format, described=True),
    strict=STRICT,
    with_tools=True,
)
ANTHROPIC = OutputSupport(
    OutputPlace("output_config", ("format",), _write_output_config, _read_output_config),
    SEALED,
    free=False,
    with_tools=True,
)
BEDROCK = OutputSupport(
    OutputPlace("outputConfig", ("textFormat",), _write_bedrock, _read_bedrock, described=True),
    SEALED,
    free=False,
    with_tools=True,
)
GEMINI = OutputSupport(
    OutputPlace("generationConfig", _GEMINI_MEMBERS, _write_gemini("responseJsonSchema"), _read_gemini)
)
GEMINI_OPENAPI = OutputSupport(
    OutputPlace("generationConfig", _GEMINI_MEMBERS, _write_gemini("responseSchema"), _read_gemini), OPENAPI
)
INTERACTIONS = OutputSupport(OutputPlace("", ("response_format",), _write_interactions, _read_interactions))
OLLAMA = OutputSupport(OutputPlace("", ("format",), _write_ollama, _read_ollama), shown=False)
COHERE = OutputSupport(OutputPlace("", ("response_format",), _write_cohere, _read_cohere))
