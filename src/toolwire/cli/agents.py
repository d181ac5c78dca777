"""Agents as the options of a command ask for them: of a file, or made for the occasion."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Surroundings, open_agent, open_team
from toolwire.builtin import builtin_tools, ending_tools, reading_tools
from toolwire.cli.screen import CliError, console, say, styled
from toolwire.cli.small import GO_ON, RESULT_CHARACTERS, SYSTEM, TRY_AGAIN
from toolwire.cli.source import file_tools
from toolwire.cli.tools import tier_of
from toolwire.configuration import Configuration, ModelProfile, load_configuration
from toolwire.errors import ConfigurationError, DefinitionError, ToolError
from toolwire.executor import Confirm, ToolExecutor
from toolwire.intent import TierGate
from toolwire.models import LOCAL, Models, local_name
from toolwire.policy import Policy
from toolwire.registry import ToolRegistry
from toolwire.tools import Tier
from toolwire.wire.registry import AUTO, get_format

if TYPE_CHECKING:
    from toolwire.local import LocalModel

DEFAULT_MODEL = "1.5b"
CONTEXT = 12_000
"""Tokens of a conversation that a model on this machine is asked with."""
ROUNDS = {True: 6, False: 20}
"""How often a model may be asked: one on this machine, another."""
BY_WORDS = "auto"
"""The tier of each task is what its words ask for."""

Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help="Wire format the model is asked to write; else what is best known for it."),
]
Model = Annotated[
    str | None,
    typer.Option(help="0.5b, 1.5b, the path of a GGUF file, or hf:REPO/FILE; with --api or --base-url, its name."),
]
Api = Annotated[
    str | None, typer.Option(help="The API of a model that is not on this machine; the key is in the environment.")
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="The server's address; its API is openai_chat unless --api says.")
]
KeyEnv = Annotated[str, typer.Option("--key-env", help="The environment variable that holds the key for --base-url.")]
TierName = Annotated[
    str | None,
    typer.Option(
        help="What tasks may do: crawl (search), walk (read), run (change); auto: run if their words ask for it."
    ),
]
Rules = Annotated[str | None, typer.Option("--policy", help="A TOML file with the rules of what may run.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Agree to what would be asked; what is denied stays so.")]
Config = Annotated[
    str | None, typer.Option("--config", "-c", help="A TOML file with agents and teams, see `toolwire init`.")
]
Named = Annotated[str | None, typer.Option("--agent", help="The agent or team of --config.")]
Rounds = Annotated[int | None, typer.Option(min=1, max=1000, help="How many times the model may write.")]
Trace = Annotated[
    bool, typer.Option("--trace", help="Leave nothing out: raw calls, repairs, decisions, whole results.")
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options.

    Attributes:
        tier: that holds where none is given.
        system: for the model, where there are tools and no file says what.
    """

    roots: list[str] | None
    tools: list[str] | None
    format: str | None
    model: str | None
    api: str | None
    base_url: str | None
    key_env: str
    tier: str | None
    policy: str | None
    config: str | None
    agent: str | None
    rounds: int | None
    system: str = SYSTEM

    @property
    def remote(self) -> bool:
        """Whether the model is not on this machine, as far as the options say."""
        return self.api is not None or self.base_url is not None

    def checked(self) -> Wanted:
        """These options, if they go together.

        Raises:
            CliError: they do not.
            UnknownFormat, UnknownApi: there is none of that name.
        """
        if self.format is not None:
            if self.format.lower() in (AUTO, "plain"):
                raise CliError(
                    f"{self.format} cannot be asked for; `toolwire formats` lists formats that a model can write"
                )
            get_format(self.format)
        if self.tier is not None and self.tier.lower() != BY_WORDS:
            tier_of(self.tier)
        if self.config is not None:
            for name, value in (("--model", self.model), ("--api", self.api), ("--base-url", self.base_url)):
                if value is not None:
                    raise CliError(f"{name} does not go with --config, whose profiles say which model it is")
        elif self.agent is not None:
            raise CliError("--agent needs --config, the file that describes the agent")
        if self.remote and self.model is None:
            raise CliError("say with --model what the server calls the model")
        if not self.remote and self.config is None:
            _check_local(self.model or DEFAULT_MODEL)
        return self

    @property
    def profile(self) -> ModelProfile:
        """The model that they name."""
        if self.remote:
            return ModelProfile(
                provider=self.api or "", model=self.model or "", url=self.base_url or "", key_env=self.key_env
            )
        return ModelProfile(provider=LOCAL, model=self.model or DEFAULT_MODEL)


def _check_local(name: str) -> None:
    from toolwire.local import HUB, WEIGHTS

    if not name.startswith(HUB) and name.lower() not in WEIGHTS and not os.path.isfile(os.path.expanduser(name)):
        sizes = ", ".join(WEIGHTS)
        raise CliError(
            f"no model {name!r}: it is neither a size ({sizes}), a GGUF file that is there, nor hf:REPO/FILE"
        )


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
async def opened(wanted: Wanted, confirm: Confirm) -> AsyncGenerator[Opened]:
    """The agent that the options describe.

    Raises:
        CliError, ToolwireError: it cannot be made.
    """
    rules = load_configuration(wanted.policy).policy.made() if wanted.policy else None
    async with Models(load=load_local) as models:
        if wanted.config is None:
            yield await _occasional(wanted, models, confirm, rules)
            return
        configuration = load_configuration(wanted.config)
        given = Surroundings(
            folder=os.path.dirname(wanted.config) or ".",
            models=models,
            confirm=confirm,
            policy=rules,
            tools=_tools(wanted, Tier.RUN, small=False),
            tier=None if wanted.tier is None or wanted.tier.lower() == BY_WORDS else tier_of(wanted.tier),
        )
        name = wanted.agent or ""
        if name in configuration.teams or (not name and len(configuration.teams) == 1 < len(configuration.agents)):
            async with open_team(configuration, name, given, source=wanted.config) as team:
                yield await _adjusted(
                    wanted, Opened(team, team.coordinator, _profile(configuration, team.coordinator), models)
                )
        else:
            async with open_agent(configuration, name, given, source=wanted.config) as agent:
                yield await _adjusted(wanted, Opened(agent, agent, _profile(configuration, agent), models))


def _profile(configuration: Configuration, agent: Agent) -> ModelProfile:
    name = configuration.agents[agent.config.name].profile or next(iter(configuration.profiles))
    return configuration.profiles[name]


async def _adjusted(wanted: Wanted, found: Opened) -> Opened:
    """What was asked for on the command line counts more than the file."""
    if wanted.format is not None:
        found.agent.backend = await found.models.open(found.profile, format=wanted.format)
    if wanted.rounds is not None:
        config = found.agent.config
        found.agent.config = replace(config, budget=replace(config.budget, rounds=wanted.rounds))
    return found


async def _occasional(wanted: Wanted, models: Models, confirm: Confirm, rules: Policy | None) -> Opened:
    profile = wanted.profile
    small = bool(local_name(profile))
    by_words = wanted.tier is not None and wanted.tier.lower() == BY_WORDS
    tier = None if by_words else tier_of(wanted.tier or "walk")
    tools = _tools(wanted, Tier.RUN if tier is None else tier, small=small)
    try:
        registry = ToolRegistry(tools)
    except DefinitionError as error:
        raise CliError(str(error)) from error
    config = AgentConfig(
        system=wanted.system if tools else "",
        tier=tier,
        gate=TierGate(min_tier=Tier.WALK),  # whoever names a root wants it read
        budget=Budget(rounds=wanted.rounds or ROUNDS[small]),
        after_results=GO_ON if small else "",
        after_failures=TRY_AGAIN if small else "",
        context=CONTEXT if small else None,
    )
    try:
        backend = await models.open(profile, format=wanted.format)
    except ConfigurationError as error:
        raise CliError(str(error)) from error

    def executor(registry: ToolRegistry, confirm: Confirm | None) -> ToolExecutor:
        return ToolExecutor(registry, policy=rules, confirm=confirm)

    agent = Agent(backend, registry, config, confirm=confirm, executor=executor)
    return Opened(agent, agent, profile, models)


def _tools(wanted: Wanted, tier: Tier, *, small: bool) -> list[object]:
    """The built-in tools for the roots, up to a tier, and those of the files that are given."""
    found: list[object] = []
    if wanted.roots:
        ending = {one.definition.name for one in ending_tools()}
        try:
            reading = reading_tools(*wanted.roots, characters=RESULT_CHARACTERS) if small else ()
            others = builtin_tools(*wanted.roots, tier=tier)
        except ToolError as error:
            raise CliError(str(error)) from error
        names = {one.definition.name for one in reading}
        found += [one for one in reading if one.definition.tier <= tier]
        found += [one for one in others if one.definition.name not in ending | names]
    for path in wanted.tools or ():
        found += file_tools(path)
    return found


def load_local(name: str) -> LocalModel:
    """The model, loaded; a progress bar on standard error while its weights come."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from toolwire.local import LocalModel, locate

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
