"""`toolwire chat`: a conversation with an agent, in a terminal or through a pipe."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.agent_options import AgentOptions, RequireToolCall
from toolwire.cli.approval_prompt import is_interactive
from toolwire.cli.console import CliError, claim_output
from toolwire.cli.option_groups import takes_options

EXAMPLES = """Examples:

toolwire chat --root .

toolwire chat --root ~/notes --model anthropic:claude-sonnet-4-5

toolwire chat --root . --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B --format hermes

toolwire chat --root . --session garden

toolwire chat --root . --resume last

toolwire chat --config toolwire.toml --agent clerk --resume monday.json

echo "Which files are in docs?" | toolwire chat --root .

In the chat, /help lists the commands. Enter sends the message, Alt-Enter begins a new line, and pasted lines stay
together. Ctrl-C stops the answer; a second Ctrl-C or Ctrl-D leaves. When input is piped, each line is a message and the
answers go to standard output.

Exit status 1: input was piped, and a message was not answered, or answered without a tool call that succeeded although
--require-tool-call or the agent's require_tool_call asks for one."""


@takes_options(AgentOptions)
def chat(
    options: AgentOptions,
    resume: Annotated[
        str | None,
        typer.Option(help="Continue a conversation that was saved with /save; last: the most recent one."),
    ] = None,
    require_tool_call: RequireToolCall = False,
) -> None:
    """Chat with a model that uses tools below --root; approvals are asked for here."""
    options = options.validate()
    if resume is not None and options.session is not None:
        raise CliError("--resume and --session each name a conversation: give one of them")
    with needs_extra("An agent", options.extra):
        from toolwire.cli.chat_session import (
            converse_with_agent,  # here, because agents are slow to import
        )

    with nullcontext() if is_interactive() else claim_output():
        all_answered = asyncio.run(converse_with_agent(options, resume or "", require_tool_call=require_tool_call))
    # A user at a terminal has seen what failed; a script sees only the status.
    if not all_answered and not is_interactive():
        raise typer.Exit(1)
