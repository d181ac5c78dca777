"""`toolwire tools`: which tools there are, what models are told of one, whether a file of definitions can be used."""

from __future__ import annotations

import json as jsontext
from typing import Annotated, Any

import typer

from toolwire.cli.console import CliError, console, emit, output_is_ours, plain, say, styled
from toolwire.cli.input_files import named, read_json
from toolwire.cli.tool_options import Roots, ToolFiles, file_tools, gather
from toolwire.errors import DefinitionError
from toolwire.tools import Tier, ToolDefinition, as_definition

app = typer.Typer(no_args_is_help=True, help="List tools, show what models are told of one, check definitions.")

LIST_EXAMPLES = """Examples:

toolwire tools list --root .

toolwire tools list --tools my_tools.py --tools weather.json --tier WALK --json"""

SCHEMA_EXAMPLES = """Examples:

toolwire tools schema read_file --root .

toolwire tools schema get_weather --tools weather.json"""

CHECK_EXAMPLES = """Examples:

toolwire tools check weather.json

toolwire tools check my_tools.py

curl -s https://example.org/tools.json | toolwire tools check -

Exit status 1: a definition cannot be used."""


NO_TOOLS = "no tools: --root DIR gives the built-in ones, --tools FILE those of a Python or JSON file"


@app.command("list", epilog=LIST_EXAMPLES)
def list_tools(
    root: Roots = None,
    tools: ToolFiles = None,
    tier: Annotated[str, typer.Option(help="Only those that a session of this tier may call.")] = "RUN",
    json: Annotated[bool, typer.Option("--json", help="One JSON object per tool.")] = False,
) -> None:
    """List the built-in tools for --root, and those of --tools."""
    with output_is_ours():  # not that of Python files, which are run
        registry = gather(root, tools)
    found = registry.definitions(tier=tier_of(tier))
    if json:
        for one in found:
            emit(_described(one))
        return
    if not found:
        say(f"no tools that a session of tier {tier.upper()} may call" if root or tools else NO_TOOLS)
    screen = console()
    for one in found:
        asks = ", asks" if one.requires_confirmation else ""
        screen.print(styled(one.name, "bold"), styled(f"  {one.tier.name}{asks}", "cyan"), sep="")
        if one.description:
            screen.print(styled("    " + one.description.splitlines()[0], "dim"))


@app.command(epilog=SCHEMA_EXAMPLES)
def schema(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    root: Roots = None,
    tools: ToolFiles = None,
) -> None:
    """Show all that is known of a tool, as JSON: its description, parameters schema, tier."""
    with output_is_ours():
        registry = gather(root, tools)
    found = registry.lookup(name).definition
    console().print(styled(jsontext.dumps(_described(found), indent=2, ensure_ascii=False)))


@app.command(epilog=CHECK_EXAMPLES)
def check(
    file: Annotated[
        str,
        typer.Argument(
            help="A JSON file with one definition, a list, or `tools`; a Python file with @tool functions; "
            "- is standard input, with JSON."
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="One JSON object per definition.")] = False,
) -> None:
    """Check definitions, in any provider's shape: names, schemas, references, patterns; each is told apart."""
    value: Any
    if file.endswith(".py"):
        with output_is_ours():
            value = [as_definition(one) for one in file_tools(file)]
    else:
        value = read_json(file)
    if isinstance(value, dict):
        value = value["tools"] if isinstance(value.get("tools"), list) else [value]
    if not isinstance(value, list):
        raise CliError(f"{named(file)} holds no list of tool definitions")
    wrong, seen = 0, set[str]()
    for at, one in enumerate(value):
        name, why = _checked(one, seen)
        wrong += bool(why)
        label = name or f"number {at + 1}"
        if json:
            emit({"at": at, "name": name, "usable": not why, "problem": why})
        elif why:
            console().print(styled(f"{label}: ", "bold"), styled(why, "red"), sep="")
        else:
            console().print(styled(f"{label}: ", "bold"), styled("can be used", "green"), sep="")
    if wrong:
        if not json:
            say(f"{wrong} of {len(value)} cannot be used", "red")
        raise typer.Exit(1)


def _checked(value: Any, seen: set[str]) -> tuple[str, str]:
    """A definition's name and what is wrong with it; "" for what is not there."""
    try:
        name = as_definition(value).name
    except DefinitionError as error:
        return "", str(error)
    if name in seen:
        return name, "an earlier definition has this name"
    seen.add(name)
    try:
        as_definition(value, strict=True)
    except DefinitionError as error:
        return name, str(error)
    return name, ""


def tier_of(name: str) -> Tier:
    """A tier by its name.

    Raises:
        CliError: it is none.
    """
    try:
        return Tier[name.upper()]
    except KeyError:
        raise CliError(f"no tier {name!r}; there are {', '.join(tier.name for tier in Tier)}") from None


def _described(definition: ToolDefinition) -> dict[str, Any]:
    body: dict[str, Any] = plain(definition)
    return {**body, "tier": definition.tier.name}
