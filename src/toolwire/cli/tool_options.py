"""The tools that the command line is given: the built-in ones for some directories, and those of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from toolwire.builtin.toolsets import builtin_tools
from toolwire.cli.console import CliError
from toolwire.cli.input_files import named, read_tools
from toolwire.errors import ConfigurationError, DefinitionError, ToolError
from toolwire.execution.registry import ToolRegistry
from toolwire.execution.tool_files import python_tools
from toolwire.tools import Tool, ToolDefinition

Roots = Annotated[
    list[str] | None,
    typer.Option("--root", help="A directory below which the built-in tools may work; may be repeated."),
]
ToolFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--tools", help="Definitions in JSON, or a Python file whose @tool functions are taken; may be repeated."
    ),
]

PolicyFile = Annotated[str | None, typer.Option("--policy", help="A TOML file with the rules for calls.")]
Approve = Annotated[
    bool, typer.Option("--yes", "-y", help="Approve calls without asking; what is denied stays denied.")
]


def gather(roots: list[str] | None, files: list[str] | None) -> ToolRegistry:
    """The built-in tools for some directories, and the tools in some files.

    Raises:
        CliError: a directory or a file cannot be used, or two tools have one name.
    """
    try:
        registry = ToolRegistry(builtin_tools(*(roots or [])) if roots else ())
    except ToolError as error:
        raise CliError(str(error)) from error
    for path in files or []:
        for one in file_tools(path):
            try:
                registry.register(one)
            except DefinitionError as error:
                raise CliError(f"{named(path)}: {error}") from error
    return registry


def file_tools(path: str) -> Sequence[Tool[..., Any] | ToolDefinition]:
    """The tools in a file: those that Python code makes, or definitions in JSON.

    Raises:
        CliError: it cannot be used.
    """
    if not path.endswith(".py"):
        return read_tools(path)
    try:
        return python_tools(path)
    except ConfigurationError as error:
        raise CliError(str(error)) from error
    except ToolError as error:
        raise CliError(str(error), status=1) from error
