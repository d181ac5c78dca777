"""`toolwire ask`: let an agent answer one question, with the model and tools that the options name."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.agent_options import AgentOptions, RequireToolCall
from toolwire.cli.console import CliError, claim_output, say
from toolwire.cli.option_groups import takes_options

EXAMPLES = """Examples:

toolwire ask "In which file is the function collect defined? Search for def collect in src." --root .

toolwire ask "Which files are in docs?" --root . --format anthropic_xml --trace

toolwire ask "What is in notes.txt?" --root ~/notes --model ~/models/my.gguf --json

toolwire ask "Which files are in docs?" --root . --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B -f hermes

toolwire ask "Correct the spelling in README.md." --root . --model anthropic:claude-sonnet-4-5

toolwire ask "What does this invoice cost?" --attach invoice.pdf --model anthropic:claude-sonnet-4-5

toolwire ask "And in euros?" --session invoices --model anthropic:claude-sonnet-4-5

toolwire ask "Which invoices are open?" --config toolwire.toml --agent clerk

The answer goes to standard output, progress to standard error. Small local models have a short context and make many
mistakes: ask them for one fact, and name the folder or the words to look for.

Exit status: 0 answered; 1 not answered, or answered without a tool call that succeeded although --require-tool-call
or the agent's require_tool_call asks for one; 2 wrong usage or bad input, such as a file that cannot be attached; 130
interrupted. A denied call does not end the run: the model reads of it and continues."""


@takes_options(AgentOptions)
def ask(
    question: Annotated[str, typer.Argument(help="The question to answer, or the task to do.")],
    options: AgentOptions,
    require_tool_call: RequireToolCall = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per event.")] = False,
) -> None:
    """Ask a model that can use the files below --root; a change of a file needs your approval."""
    options = options.validate()
    if not (question.strip() or options.attach):
        raise CliError("the question is empty")
    with needs_extra("An agent", options.extra):
        from toolwire.cli.ask_run import (
            ask_and_show,  # here, because agents are slow to import
        )

    with claim_output():
        outcome = asyncio.run(ask_and_show(question, options, json=json))
    end = outcome.end
    assert end is not None
    if end.reason == "error":
        raise CliError(end.detail, status=1)
    if missing := outcome.missing_call(require_tool_call):
        raise CliError(missing, status=1)
    if outcome.tools and end.good and outcome.without_call and not options.attach:
        say(f"toolwire: {outcome.without_call}, so the answer is not based on any file or lookup", "yellow")
    if not end.good:
        raise typer.Exit(1)
