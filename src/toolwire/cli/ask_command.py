"""`toolwire ask`: an agent answers a question, with whatever model and tools the options name."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.agent_options import AgentOptions
from toolwire.cli.console import CliError, output_is_ours, say
from toolwire.cli.option_groups import takes_options

EXAMPLES = """Examples:

toolwire ask "In which file is the function collect defined? Search for def collect in src." --root .

toolwire ask "Which files are in docs?" --root . --format anthropic_xml --trace

toolwire ask "What is in notes.txt?" --root ~/notes --model ~/models/my.gguf --json

toolwire ask "Which files are in docs?" --root . --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B -f hermes

toolwire ask "Correct the spelling in README.md." --root . --api anthropic --model claude-sonnet-4-5 --tier run

toolwire ask "Which invoices are open?" --config toolwire.toml --agent clerk

The answer goes to standard output, what happens meanwhile to standard error. Models as small as those on this machine
read little and err often: ask them for one fact, and name the folder or the words to look for.

Exit status 1: the question was not answered."""


@takes_options(AgentOptions)
def ask(
    question: Annotated[str, typer.Argument(help="The question to answer, or the task to do.")],
    options: AgentOptions,
    require_tool_call: Annotated[
        bool, typer.Option("--require-tool-call", help="Fail unless a tool call was read and run.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per event.")] = False,
) -> None:
    """Ask a model; it may list, read and search files below --root, and more with --tier run."""
    options = options.checked()
    with needs_extra("An agent"):
        from toolwire.cli.ask_run import answered  # here, since an agent is much to load for a command that needs none

    with output_is_ours():
        end, ran, tooled = asyncio.run(answered(question, options, json=json))
    if require_tool_call and not ran:
        raise CliError("no tool call was read and run", status=1)
    if tooled and end.good and not ran:
        say("toolwire: no tool was run, so the answer rests on nothing that was looked up", "yellow")
    if end.reason == "error":
        raise CliError(end.detail, status=1)
    if not end.good:
        raise typer.Exit(1)
