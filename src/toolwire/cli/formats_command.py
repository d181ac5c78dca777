"""`toolwire formats`: list the wire formats, or show one with a sample."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.pretty import Pretty
from rich.table import Table

import toolwire
from toolwire.cli.console import CliError, console, emit, styled
from toolwire.cli.format_option import read_format
from toolwire.errors import DefinitionError, RenderError
from toolwire.messages import ToolCall
from toolwire.tools import ToolDefinition
from toolwire.wire.format_export import export_formats, export_schema
from toolwire.wire.response_templates import response_template
from toolwire.wire.syntax import WireFormat

EXAMPLES = """Examples:

toolwire formats

toolwire formats hermes

toolwire formats --json | jq .name

toolwire formats --export > formats.json

toolwire formats hermes --response-template"""

SAMPLE_TOOL = ToolDefinition(
    "get_weather",
    "The weather in a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
SAMPLE_CALL = ToolCall("get_weather", {"city": "Paris", "days": 3})


def formats(
    name: Annotated[
        str | None,
        typer.Argument(
            callback=read_format, help="The name or an alias of one format, or a JSON file that describes one."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per format.")] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Print the whole descriptions as one JSON document, for other readers.")
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of that document.")] = False,
    as_template: Annotated[
        bool, typer.Option("--response-template", help="Print one format as the response template of a checkpoint.")
    ] = False,
) -> None:
    """List the wire formats, or show one: a sample and its description."""
    chosen = {"--json": json, "--export": export, "--schema": schema, "--response-template": as_template}
    options = [option for option, is_chosen in chosen.items() if is_chosen]
    if len(options) > 1:
        raise CliError(f"{' and '.join(options)} print different things; choose one")
    if schema and name is not None:
        raise CliError("--schema is that of all formats; leave out the name")
    wire_formats = [toolwire.get_format(alias) for alias in ([name] if name is not None else toolwire.formats())]
    if as_template:
        if name is None:
            raise DefinitionError("--response-template needs the name of a format: toolwire formats hermes ...")
        emit(response_template(name))
    elif schema:
        emit(export_schema())
    elif export:
        emit(export_formats(wire_formats))
    elif json:
        for wire_format in wire_formats:
            emit(_facts(wire_format))
    elif name is None:
        _table(wire_formats)
    else:
        _details(wire_formats[0])


def _facts(wire_format: WireFormat) -> dict[str, Any]:
    return {
        "name": wire_format.name,
        "aliases": list(wire_format.aliases),
        "title": wire_format.title,
        "models": wire_format.models,
        "markers": wire_format.markers,
        "source": wire_format.source,
        "sample": _sample(wire_format),
    }


def _sample(wire_format: WireFormat) -> str:
    try:
        return toolwire.render_calls([SAMPLE_CALL], format=wire_format.name, tools=[SAMPLE_TOOL])
    except RenderError:
        return ""


def _table(wire_formats: list[WireFormat]) -> None:
    screen = console()
    if not screen.is_terminal:
        for wire_format in wire_formats:
            sys.stdout.write("\t".join((wire_format.name, ",".join(wire_format.aliases), wire_format.title)) + "\n")
        return
    table = Table("name", "aliases", "description", "written by", box=None, pad_edge=False)
    for wire_format in wire_formats:
        table.add_row(
            styled(wire_format.name, "bold"), ", ".join(wire_format.aliases), wire_format.title, wire_format.models
        )
    screen.print(table, soft_wrap=False)


def _details(wire_format: WireFormat) -> None:
    screen = console()
    screen.print(styled(f"{wire_format.name}: {wire_format.title}", "bold"))
    for label, value in (
        ("Aliases", ", ".join(wire_format.aliases)),
        ("Written by", wire_format.models),
        ("Source", wire_format.source),
    ):
        if value:
            screen.print(styled(f"{label}: {value}"))
    if not wire_format.markers:
        screen.print(styled("It has no markers of its own: only calls to known tools are parsed."))
    if sample := _sample(wire_format):
        screen.print(styled("\nA call:\n", "bold"), styled(sample), sep="")
    screen.print(styled("\nDescription:", "bold"))
    screen.print(Pretty(wire_format, expand_all=False), soft_wrap=False)
