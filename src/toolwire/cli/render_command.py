"""`toolwire render`: write definitions, calls or results as a model expects them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

import toolwire
from toolwire.cli.console import CliError
from toolwire.cli.input_files import loads, named, read_json, read_tools
from toolwire.messages import ToolCall, ToolResult

EXAMPLES = """Examples:

toolwire render definitions tools.json --format hermes

toolwire render calls calls.json --format forge_xml --tools tools.json

toolwire render results results.json --format anthropic_xml

Definitions are `{"name": ..., "description": ..., "parameters": {...}}`, or as OpenAI, Anthropic and MCP write them.
Calls are `{"name": ..., "arguments": {...}}`, results `{"tool_name": ..., "call_id": ..., "result": ...}` or with
`"error"`; one of them, or a list."""


class What(StrEnum):
    """What to render."""

    DEFINITIONS = "definitions"
    CALLS = "calls"
    RESULTS = "results"


def render(
    what: Annotated[What, typer.Argument(help="What the file holds.")],
    file: Annotated[str, typer.Argument(help="JSON file; - is standard input.")],
    format: Annotated[str, typer.Option("--format", "-f", help="Wire format; `toolwire formats` lists them.")],
    tools: Annotated[
        str | None, typer.Option(help="JSON file with the definitions of the tools that calls are for.")
    ] = None,
) -> None:
    """Write definitions, calls or results as a model expects them."""
    toolwire.get_format(format)
    match what:
        case What.DEFINITIONS:
            text = toolwire.render_definitions(read_tools(file), format=format)
        case What.CALLS:
            calls = [_call(one, named(file)) for one in _objects(file)]
            text = toolwire.render_calls(calls, format=format, tools=read_tools(tools))
        case What.RESULTS:
            text = toolwire.render_results([_result(one, named(file)) for one in _objects(file)], format=format)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def _objects(file: str) -> list[Mapping[str, Any]]:
    value = read_json(file)
    objects = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) for one in objects):
        raise CliError(f"{named(file)} must hold an object or a list of objects")
    return objects


def _call(value: Mapping[str, Any], file: str) -> ToolCall:
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    arguments = inner.get("arguments", inner.get("input", {}))
    if isinstance(arguments, str):
        arguments = loads(arguments, f"{file}: the arguments text of a call")
    name = inner.get("name")
    given = "arguments" in inner or "input" in inner
    if not (given and isinstance(name, str) and isinstance(arguments, dict)):
        raise CliError(f'{file}: a call needs "name" (text) and "arguments" (an object)')
    return ToolCall(name, arguments, id=str(value.get("id", "")), server=str(value.get("server", "")))


def _result(value: Mapping[str, Any], file: str) -> ToolResult:
    name = value.get("tool_name", value.get("name"))
    if not isinstance(name, str) or ("result" in value) == ("error" in value):
        raise CliError(f'{file}: a result needs "tool_name" (text) and either "result" or "error"')
    error = value.get("error")
    return ToolResult(str(value.get("call_id", "")), name, value.get("result"), None if error is None else str(error))
