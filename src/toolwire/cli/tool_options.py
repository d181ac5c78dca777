"""Options that name tools: directories for the built-in tools, and files with tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from toolwire.builtin.toolsets import builtin_tools
from toolwire.cli.console import CliError
from toolwire.cli.input_files import display_name, read_tools
from toolwire.config.tables import load_configuration
from toolwire.errors import ConfigurationError, DefinitionError, ToolError
from toolwire.execution.registry import ToolRegistry
from toolwire.execution.tool_files import python_tools
from toolwire.policy.policy import Policy
from toolwire.tools import Tool, ToolDefinition

Roots = Annotated[
    list[str] | None,
    typer.Option("--root", help="A directory in which the built-in tools may work; may be repeated."),
]
ToolFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--tools", help="A JSON file with definitions, or a Python file with @tool functions; may be repeated."
    ),
]

PolicyFile = Annotated[str | None, typer.Option("--policy", help="A TOML file with the rules for calls.")]
Approve = Annotated[bool, typer.Option("--yes", "-y", help="Approve calls without asking; denied calls stay denied.")]


def load_policy(path: str | None) -> Policy:
    """Return the policy in a file; the default policy without a file."""
    return load_configuration(path).policy.to_policy() if path else Policy()


def load_registry(roots: list[str] | None, files: list[str] | None) -> ToolRegistry:
    """Return a registry with the built-in tools for some directories and the tools in some files.

    Raises:
        CliError: a directory or a file cannot be used, or two tools have the same name.
    """
    try:
        registry = ToolRegistry(builtin_tools(*(roots or [])) if roots else ())
    except ToolError as error:
        raise CliError(str(error)) from error
    for path in files or []:
        for tool in file_tools(path):
            try:
                registry.register(tool)
            except DefinitionError as error:
                raise CliError(f"{display_name(path)}: {error}") from error
    return registry


def file_tools(path: str) -> Sequence[Tool[..., Any] | ToolDefinition]:
    """Return the tools in a file: functions of Python code, or definitions in JSON.

    Raises:
        CliError: the file cannot be used.
    """
    if not path.endswith(".py"):
        return read_tools(path)
    try:
        return python_tools(path)
    except ConfigurationError as error:
        raise CliError(str(error)) from error
    except ToolError as error:
        raise CliError(str(error), status=1) from error
