"""`toolwire formats`: what wire formats there are, and what each looks like."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.pretty import Pretty
from rich.table import Table

import toolwire
from toolwire.cli.console import console, emit, styled
from toolwire.errors import RenderError
from toolwire.messages import ToolCall
from toolwire.tools import ToolDefinition
from toolwire.wire.syntax import WireFormat

EXAMPLES = """Examples:

toolwire formats

toolwire formats hermes

toolwire formats --json | jq .name"""

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
    name: Annotated[str | None, typer.Argument(help="One format, by name or alias.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a format.")] = False,
) -> None:
    """List the wire formats, or show one: a sample and its description."""
    found = [toolwire.get_format(one) for one in ([name] if name is not None else toolwire.formats())]
    if json:
        for one in found:
            emit(_facts(one))
    elif name is None:
        _table(found)
    else:
        _details(found[0])


def _facts(one: WireFormat) -> dict[str, Any]:
    return {
        "name": one.name,
        "aliases": list(one.aliases),
        "title": one.title,
        "models": one.models,
        "markers": one.markers,
        "source": one.source,
        "sample": _sample(one),
    }


def _sample(one: WireFormat) -> str:
    try:
        return toolwire.render_calls([SAMPLE_CALL], format=one.name, tools=[SAMPLE_TOOL])
    except RenderError:
        return ""


def _table(found: list[WireFormat]) -> None:
    screen = console()
    if not screen.is_terminal:
        for one in found:
            sys.stdout.write("\t".join((one.name, ",".join(one.aliases), one.title)) + "\n")
        return
    table = Table("name", "aliases", "what it is", "written by", box=None, pad_edge=False)
    for one in found:
        table.add_row(styled(one.name, "bold"), ", ".join(one.aliases), one.title, one.models)
    screen.print(table, soft_wrap=False)


def _details(one: WireFormat) -> None:
    screen = console()
    screen.print(styled(f"{one.name}: {one.title}", "bold"))
    for label, value in (("Aliases", ", ".join(one.aliases)), ("Written by", one.models), ("Source", one.source)):
        if value:
            screen.print(styled(f"{label}: {value}"))
    if not one.markers:
        screen.print(styled("It has no markers of its own: only calls to known tools are read."))
    if sample := _sample(one):
        screen.print(styled("\nA call:\n", "bold"), styled(sample), sep="")
    screen.print(styled("\nDescription:", "bold"))
    screen.print(Pretty(one, expand_all=False), soft_wrap=False)
