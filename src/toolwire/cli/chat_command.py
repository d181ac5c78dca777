"""`toolwire chat`: a conversation with an agent, in a terminal or through a pipe."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.agent_options import BY_WORDS, AgentOptions
from toolwire.cli.approval_prompt import somebody
from toolwire.cli.console import output_is_ours
from toolwire.cli.option_groups import takes_options

EXAMPLES = """Examples:

toolwire chat --root .

toolwire chat --root ~/notes --api anthropic --model claude-sonnet-4-5

toolwire chat --root . --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B --format hermes

toolwire chat --root . --resume last

toolwire chat --config toolwire.toml --agent clerk --resume monday.json

echo "Which files are in docs?" | toolwire chat --root .

In it, /help lists the commands. Enter sends, Alt-Enter begins a new line, pasted lines stay together. Ctrl-C stops the
answer, a second one leaves, as Ctrl-D does. Through a pipe each line is a message, and standard output gets the
answers."""


@takes_options(AgentOptions)
def chat(
    options: AgentOptions,
    resume: Annotated[
        str | None,
        typer.Option(help="Continue a conversation that was saved with /save; last: the most recent one."),
    ] = None,
) -> None:
    """Chat with a model that uses tools below --root; approvals are asked for here."""
    options = options.checked()
    if options.tier is None and options.config is None and options.remote:
        options = replace(options, tier=BY_WORDS)
    with needs_extra("An agent"):
        from toolwire.cli.chat_session import talk  # here, since an agent is much to load for a command that needs none

    with nullcontext() if somebody() else output_is_ours():
        asyncio.run(talk(options, resume or ""))
