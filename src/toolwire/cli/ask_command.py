"""`toolwire ask`: let an agent answer one question, with the model and tools that the options name."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.agent_options import AgentOptions
from toolwire.cli.console import CliError, claim_output, say
from toolwire.cli.option_groups import takes_options

EXAMPLES = """Examples:

toolwire ask "In which file is the function collect defined? Search for def collect in src." --root .

toolwire ask "Which files are in docs?" --root . --format anthropic_xml --trace

toolwire ask "What is in notes.txt?" --root ~/notes --model ~/models/my.gguf --json

toolwire ask "Which files are in docs?" --root . --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B -f hermes

toolwire ask "Correct the spelling in README.md." --root . --api anthropic --model claude-sonnet-4-5

toolwire ask "Which invoices are open?" --config toolwire.toml --agent clerk

The answer goes to standard output, progress to standard error. Small local models have a short context and make many
mistakes: ask them for one fact, and name the folder or the words to look for.

Exit status 1: the question was not answered."""


@takes_options(AgentOptions)
def ask(
    question: Annotated[str, typer.Argument(help="The question to answer, or the task to do.")],
    options: AgentOptions,
    require_tool_call: Annotated[
        bool, typer.Option("--require-tool-call", help="Fail unless a tool call was parsed and run.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per event.")] = False,
) -> None:
    """Ask a model that can use the files below --root; a change of a file needs your approval."""
    options = options.validate()
    with needs_extra("An agent"):
        from toolwire.cli.ask_run import (
            ask_and_show,  # here, because agents are slow to import
        )

    with claim_output():
        end, tool_ran, has_tools = asyncio.run(ask_and_show(question, options, json=json))
    if require_tool_call and not tool_ran:
        raise CliError("no tool call was parsed and run", status=1)
    if has_tools and end.good and not tool_ran:
        say("toolwire: no tool was run, so the answer is not based on any file or lookup", "yellow")
    if end.reason == "error":
        raise CliError(end.detail, status=1)
    if not end.good:
        raise typer.Exit(1)
