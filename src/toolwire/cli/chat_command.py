"""`toolwire chat`: a conversation with an agent, in a terminal or through a pipe."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.agent_options import (
    BY_WORDS,
    Api,
    BaseUrl,
    Config,
    Format,
    KeyEnv,
    Model,
    Named,
    Rounds,
    Rules,
    TierName,
    Trace,
    Wanted,
    Yes,
)
from toolwire.cli.approval_prompt import somebody
from toolwire.cli.console import output_is_ours
from toolwire.cli.small_model_prompts import CHAT_SYSTEM
from toolwire.cli.tool_options import Roots, ToolFiles

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


def chat(
    root: Roots = None,
    tools: ToolFiles = None,
    format: Format = None,
    model: Model = None,
    api: Api = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = "",
    tier: TierName = None,
    policy: Rules = None,
    yes: Yes = False,
    config: Config = None,
    agent: Named = None,
    max_rounds: Rounds = None,
    resume: Annotated[
        str | None,
        typer.Option(help="Go on with a conversation that was saved with /save; last: with the last one there was."),
    ] = None,
    trace: Trace = False,
) -> None:
    """Talk with a model that works with tools below --root; what it may do is asked about here."""
    wanted = Wanted(
        *(root, tools, format, model, api, base_url, key_env, tier, policy, config, agent, max_rounds),
        system=CHAT_SYSTEM,
    ).checked()
    if tier is None and config is None and wanted.remote:
        wanted = replace(wanted, tier=BY_WORDS)
    with needs_extra("An agent"):
        from toolwire.cli.chat_session import talk  # here, since an agent is much to load for a command that needs none

    with nullcontext() if somebody() else output_is_ours():
        asyncio.run(talk(wanted, resume or "", agree=yes, trace=trace))
