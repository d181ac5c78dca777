"""`toolwire tools`: list tools, show the definition of one, check a file of definitions."""

from __future__ import annotations

import json as jsontext
from typing import Annotated, Any

import typer
from rich.console import Console

from toolwire.cli.console import CliError, claim_output, console, emit, plain, say, styled
from toolwire.cli.input_files import read_definitions
from toolwire.cli.tool_options import Roots, ToolFiles, file_tools, load_registry
from toolwire.errors import DefinitionError, UnknownTool
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import Tier, ToolDefinition, as_definition

app = typer.Typer(no_args_is_help=True, help="List tools, show the definition of one, check a file of definitions.")

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


ADD_TOOLS = "--root DIR adds the built-in tools, --tools FILE the tools in a Python or JSON file"
NO_TOOLS = f"no tools: {ADD_TOOLS}"


@app.command("list", epilog=LIST_EXAMPLES)
def list_tools(
    root: Roots = None,
    tools: ToolFiles = None,
    tier: Annotated[str, typer.Option(help="List only tools that a session of this tier may call.")] = "RUN",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per tool.")] = False,
) -> None:
    """List the built-in tools for --root and the tools in --tools."""
    with claim_output():  # because Python files are run, which may print
        registry = load_registry(root, tools)
    definitions = registry.definitions(tier=tier_of(tier))
    if json:
        for definition in definitions:
            emit(_definition_json(definition))
        return
    if not definitions:
        has_tools = len(registry) > 0
        say(f"a session of tier {tier.upper()} may call none of the tools" if has_tools else NO_TOOLS)
    screen = console()
    for definition in definitions:
        print_definition(screen, definition, definition.tier.name)


def print_definition(screen: Console, definition: ToolDefinition, tier: str, note: str = "") -> None:
    """Print the name of a tool, its tier and the first line of its description."""
    asks = ", asks" if definition.requires_confirmation else ""
    screen.print(styled(definition.name, "bold"), styled(f"  {tier}{asks}{note}", "cyan"), sep="")
    if definition.description:
        screen.print(styled("    " + definition.description.splitlines()[0], "dim"))


@app.command(epilog=SCHEMA_EXAMPLES)
def schema(
    name: Annotated[str, typer.Argument(help="The name of the tool.")],
    root: Roots = None,
    tools: ToolFiles = None,
) -> None:
    """Show the definition of a tool as JSON: its description, parameters schema and tier."""
    with claim_output():
        registry = load_registry(root, tools)
    try:
        definition = registry.lookup(name).definition
    except UnknownTool as error:
        raise CliError(str(error) if len(registry) else f"{error} {ADD_TOOLS}.") from error
    console().print(styled(jsontext.dumps(_definition_json(definition), indent=2, ensure_ascii=False)))


@app.command(epilog=CHECK_EXAMPLES)
def check(
    file: Annotated[
        str,
        typer.Argument(
            help="A JSON file with one definition, a list, or an object with the key `tools`; a Python file with @tool "
            "functions; - reads JSON from standard input."
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per definition.")] = False,
) -> None:
    """Check definitions in the shape of any provider: names, schemas, references and patterns."""
    value: list[Any]
    if file.endswith(".py"):
        with claim_output():
            value = [as_definition(tool) for tool in file_tools(file)]
    else:
        value = read_definitions(file)
    wrong, names = 0, set[str]()
    for index, item in enumerate(value):
        name, why = _check_definition(item, names)
        wrong += bool(why)
        label = name or f"number {index + 1}"
        if json:
            emit({"at": index, "name": name, "usable": not why, "problem": why})
        elif why:
            console().print(styled(f"{label}: ", "bold"), styled(why, "red"), sep="")
        else:
            console().print(styled(f"{label}: ", "bold"), styled("can be used", "green"), sep="")
    if wrong:
        if not json:
            say(f"{wrong} of {len(value)} cannot be used", "red")
        raise typer.Exit(1)


def _check_definition(value: Any, seen: set[str]) -> tuple[str, str]:
    """Return the name of a definition and its problem; "" for an unknown name or no problem."""
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
    """Return a tier by its name.

    Raises:
        CliError: there is no such tier.
    """
    try:
        return Tier[name.upper()]
    except KeyError:
        names = [tier.name.lower() for tier in Tier]
        hint = did_you_mean(closest(name, names)) or f"; the tiers are {', '.join(names)}"
        raise CliError(f"unknown tier {name!r}{hint}") from None


def _definition_json(definition: ToolDefinition) -> dict[str, Any]:
    body: dict[str, Any] = plain(definition)
    return {**body, "tier": definition.tier.name}
