"""Agents as the options of a command ask for them: of a file, or made for the occasion."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolwire.agent.agent import Agent
from toolwire.agent.budget import Budget
from toolwire.agent.config import AgentConfig
from toolwire.agent.loading import Environment, open_agent, open_team
from toolwire.agent.model_pool import LOCAL, Models, local_name
from toolwire.agent.team import AgentTeam
from toolwire.builtin.toolsets import builtin_tools, ending_tools, reading_tools
from toolwire.cli.agent_options import BY_WORDS, DEFAULT_MODEL, AgentOptions
from toolwire.cli.console import CliError, console, say, styled
from toolwire.cli.mcp_command import agreed_to, quiet
from toolwire.cli.small_model_prompts import GO_ON, RESULT_CHARACTERS, TRY_AGAIN
from toolwire.cli.tool_options import file_tools
from toolwire.cli.tools_command import tier_of
from toolwire.config.tables import Configuration, ModelProfile, load_configuration
from toolwire.errors import ConfigurationError, DefinitionError, ToolError
from toolwire.execution.approval_requests import Confirm
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.intent import TierGate
from toolwire.policy.policy import Policy
from toolwire.tools import Tier

if TYPE_CHECKING:
    from toolwire.mcp.server_status import ServerQuestion
    from toolwire.models.local.runtime import LocalModel

CONTEXT = 12_000
"""Tokens of a conversation that a model on this machine is asked with."""
ROUNDS = {True: 6, False: 20}
"""How often a model may be asked: one on this machine, another."""


@dataclass(slots=True)
class Opened:
    """An agent that was opened, and what its model can be changed with.

    Attributes:
        run_by: whom to give tasks: the agent, or a team.
        agent: the agent, or the team's coordinator.
        profile: of its model.
        models: opens others.
    """

    run_by: Agent | AgentTeam
    agent: Agent
    profile: ModelProfile
    models: Models

    @property
    def local(self) -> bool:
        """Whether the model is on this machine."""
        return bool(local_name(self.profile))


@asynccontextmanager
async def opened(options: AgentOptions, confirm: Confirm, system: str) -> AsyncGenerator[Opened]:
    """The agent that the options describe.

    Raises:
        CliError, ToolwireError: it cannot be made.
    """
    rules = load_configuration(options.policy).policy.made() if options.policy else None
    async with Models(load=load_local) as models:
        if options.config is None:
            yield await _occasional(options, system, models, confirm, rules)
            return
        quiet()
        configuration = load_configuration(options.config)
        given = Environment(
            folder=os.path.dirname(options.config) or ".",
            models=models,
            confirm=confirm,
            policy=rules,
            approve=_approved,
            sign_in=_sign_in,
            tools=_tools(options, Tier.RUN, small=False),
            tier=None if options.tier is None or options.tier.lower() == BY_WORDS else tier_of(options.tier),
        )
        name = options.agent or ""
        if name in configuration.teams or (not name and len(configuration.teams) == 1 < len(configuration.agents)):
            async with open_team(configuration, name, given, source=options.config) as team:
                yield await _adjusted(
                    options, Opened(team, team.coordinator, _profile(configuration, team.coordinator), models)
                )
        else:
            async with open_agent(configuration, name, given, source=options.config) as agent:
                yield await _adjusted(options, Opened(agent, agent, _profile(configuration, agent), models))


async def _approved(question: ServerQuestion) -> bool:
    """Ask whether an MCP server may be used like this."""
    say(question.text, "")
    return agreed_to("Is that right?", yes=False)


def _sign_in(name: str, address: str) -> None:
    say(f"{name} wants you to sign in. Open this address in a browser:\n{address}", "")


def _named(options: AgentOptions) -> ModelProfile:
    """The model that the options name."""
    if options.remote:
        return ModelProfile(
            provider=options.api or "", model=options.model or "", url=options.base_url or "", key_env=options.key_env
        )
    return ModelProfile(provider=LOCAL, model=options.model or DEFAULT_MODEL)


def _profile(configuration: Configuration, agent: Agent) -> ModelProfile:
    name = configuration.agents[agent.config.name].profile or next(iter(configuration.profiles))
    return configuration.profiles[name]


async def _adjusted(options: AgentOptions, found: Opened) -> Opened:
    """What was asked for on the command line counts more than the file."""
    if options.format is not None:
        found.agent.backend = await found.models.open(found.profile, format=options.format)
    if options.max_rounds is not None:
        config = found.agent.config
        found.agent.config = replace(config, budget=replace(config.budget, rounds=options.max_rounds))
    return found


async def _occasional(
    options: AgentOptions, system: str, models: Models, confirm: Confirm, rules: Policy | None
) -> Opened:
    profile = _named(options)
    small = bool(local_name(profile))
    by_words = options.tier is not None and options.tier.lower() == BY_WORDS
    tier = None if by_words else tier_of(options.tier or "walk")
    tools = _tools(options, Tier.RUN if tier is None else tier, small=small)
    try:
        registry = ToolRegistry(tools)
    except DefinitionError as error:
        raise CliError(str(error)) from error
    config = AgentConfig(
        system=system if tools else "",
        tier=tier,
        gate=TierGate(min_tier=Tier.WALK),  # whoever names a root wants it read
        budget=Budget(rounds=options.max_rounds or ROUNDS[small]),
        after_results=GO_ON if small else "",
        after_failures=TRY_AGAIN if small else "",
        context=CONTEXT if small else None,
    )
    try:
        backend = await models.open(profile, format=options.format)
        agent = Agent(backend, registry, config, policy=rules, confirm=confirm)
    except ConfigurationError as error:
        raise CliError(str(error)) from error
    return Opened(agent, agent, profile, models)


def _tools(options: AgentOptions, tier: Tier, *, small: bool) -> list[object]:
    """The built-in tools for the roots, up to a tier, and those of the files that are given."""
    found: list[object] = []
    if options.root:
        ending = {one.definition.name for one in ending_tools()}
        try:
            reading = reading_tools(*options.root, characters=RESULT_CHARACTERS) if small else ()
            others = builtin_tools(*options.root, tier=tier)
        except ToolError as error:
            raise CliError(str(error)) from error
        names = {one.definition.name for one in reading}
        found += [one for one in reading if one.definition.tier <= tier]
        found += [one for one in others if one.definition.name not in ending | names]
    for path in options.tools or ():
        found += file_tools(path)
    return found


def load_local(name: str) -> LocalModel:
    """The model, loaded; a progress bar on standard error while its weights come."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from toolwire.models.local.model_files import locate
    from toolwire.models.local.runtime import LocalModel

    columns = (TextColumn("weights"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    progress = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
    with progress if screen.is_terminal else nullcontext():  # older rich ends a disabled one with an empty line
        task = progress.add_task("weights", total=None, visible=False)

        def came(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        def told(text: str) -> None:
            progress.console.print(styled(text, "dim"))

        path = locate(name, say=told, progress=came)
    say(f"toolwire: loading {path.name}")
    # The runtime hears nothing while it loads, so Ctrl-C is left to the system, which ends the process at once.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return LocalModel(path)
    finally:
        signal.signal(signal.SIGINT, handler)
