"""Open the agent that the options of a command describe: from a file, or from the options alone."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolwire.agent.agent import Agent
from toolwire.agent.budget import Budget
from toolwire.agent.config import AgentConfig
from toolwire.agent.loading import Environment, open_agent, open_team
from toolwire.agent.model_pool import Models, local_name
from toolwire.agent.team import AgentTeam
from toolwire.builtin.toolsets import answer_tool, builtin_tools, ending_tools
from toolwire.cli.agent_options import DEFAULT_MODEL, AgentOptions
from toolwire.cli.console import CliError, console, say, styled
from toolwire.cli.mcp_command import confirm_at_terminal, silence_sdk_loggers
from toolwire.cli.small_model_prompts import GO_ON, GO_ON_BY_CALL, TRY_AGAIN
from toolwire.cli.small_model_tools import small_reading_tools
from toolwire.cli.tool_options import file_tools, load_policy
from toolwire.cli.tools_command import tier_of
from toolwire.config.option_profiles import option_profile
from toolwire.config.tables import LOCAL, Configuration, ModelProfile, load_configuration
from toolwire.errors import ConfigurationError, DefinitionError, MissingExtra, ToolError
from toolwire.execution.approval_requests import AsyncConfirm
from toolwire.execution.registry import ToolRegistry
from toolwire.models.backends import Backend
from toolwire.policy.intent import TierGate
from toolwire.policy.policy import Policy
from toolwire.providers.output_request import FINAL_ANSWER
from toolwire.telemetry.defaults import SWITCH
from toolwire.telemetry.recorder import Recorder
from toolwire.tools import Tier

if TYPE_CHECKING:
    from toolwire.mcp.server_status import ServerQuestion
    from toolwire.models.local.runtime import LocalModel

CONTEXT = 12_000
"""Maximum tokens of a request to a model on this machine."""
ROUNDS = {True: 6, False: 20}
"""Maximum number of model turns, by whether the model is on this machine."""


@dataclass(slots=True)
class OpenAgent:
    """An open agent, with the means to change its model.

    Attributes:
        runner: runs tasks; the agent or the team.
        agent: the agent, or the coordinator of the team.
        profiles: profile of its model, and those of the models that answer where it fails.
        models: opens other models.
        default: its model, asked for calls as the file or the profile says; None if it is to be opened for that.
    """

    runner: Agent[Any] | AgentTeam[Any]
    agent: Agent[Any]
    profiles: tuple[ModelProfile, ...]
    models: Models
    default: Backend | None = None

    @property
    def local(self) -> bool:
        """True if the model is on this machine."""
        return bool(local_name(self.profiles[0]))

    async def use_format(self, format: str | None) -> None:
        """Ask the model, and those that answer where it fails, for calls in another format; None for the default."""
        if format is None and self.default is not None:
            self.agent.backend = self.default
        else:
            self.agent.backend = await self.models.open_chain(self.profiles, format=format)


@asynccontextmanager
async def open_from_options(options: AgentOptions, confirm: AsyncConfirm, system: str) -> AsyncGenerator[OpenAgent]:
    """Open the agent that the options describe.

    Raises:
        CliError, ToolwireError: it cannot be opened.
    """
    rules = load_policy(options.policy) if options.policy else None
    async with Models(load=load_local) as models:
        if options.config is None:
            opened_agent = await _agent_from_options(options, system, models, confirm, rules)
            _announce_recording(opened_agent.agent)
            yield opened_agent
            return
        silence_sdk_loggers()
        configuration = load_configuration(options.config)
        environment = Environment(
            folder=os.path.dirname(options.config) or ".",
            models=models,
            confirm=confirm,
            policy=rules,
            approve=_approve_server,
            sign_in=_sign_in,
            tools=_tools(options, Tier.RUN, small=False),
            tier=None if options.tier is None else tier_of(options.tier),
            telemetry=True,
        )
        name = options.agent or ""
        if name in configuration.teams or (not name and len(configuration.teams) == 1 < len(configuration.agents)):
            async with open_team(configuration, name, environment, source=options.config) as team:
                _announce_recording(team.coordinator)
                yield await _apply_overrides(options, _from_file(configuration, team, team.coordinator, models))
        else:
            async with open_agent(configuration, name, environment, source=options.config) as agent:
                _announce_recording(agent)
                yield await _apply_overrides(options, _from_file(configuration, agent, agent, models))


def _announce_recording(agent: Agent) -> None:
    """Say where runs are recorded, before the first one is."""
    for observer in agent.observers:
        if isinstance(observer, Recorder) and not observer.path.exists():
            say(
                f"toolwire: runs are recorded in {observer.path}, for toolwire trace; "
                f"{SWITCH}=off switches this off, {SWITCH}=figures stores no text"
            )


async def _approve_server(question: ServerQuestion) -> bool:
    """Ask for the approval of an MCP server."""
    say(question.text, "")
    return confirm_at_terminal("Approve it?", yes=False)


def _sign_in(name: str, address: str) -> None:
    say(f"{name} wants you to sign in. Open this address in a browser:\n{address}", "")


def _profile_from_options(options: AgentOptions) -> ModelProfile:
    """Return a profile of the model that the options name."""
    constrain = options.constraint_mode
    if options.remote:
        return option_profile(
            provider=options.api or "",
            model=options.model or "",
            url=options.base_url or "",
            key_env=options.key_env,
            constrain=constrain,
        )
    return option_profile(provider=LOCAL, model=options.model or DEFAULT_MODEL, constrain=constrain)


def _from_file(
    configuration: Configuration, runner: Agent[Any] | AgentTeam[Any], agent: Agent[Any], models: Models
) -> OpenAgent:
    return OpenAgent(runner, agent, configuration.chain(agent.config.name), models, agent.backend)


async def _apply_overrides(options: AgentOptions, opened_agent: OpenAgent) -> OpenAgent:
    """Override the file with the options of the command line."""
    if options.format is not None:
        await opened_agent.use_format(options.format)
    if options.max_rounds is not None:
        config = opened_agent.agent.config
        opened_agent.agent.config = replace(config, budget=replace(config.budget, rounds=options.max_rounds))
    return opened_agent


async def _agent_from_options(
    options: AgentOptions, system: str, models: Models, confirm: AsyncConfirm, rules: Policy | None
) -> OpenAgent:
    profile = _profile_from_options(options)
    small = bool(local_name(profile))
    tier = None if options.tier is None else tier_of(options.tier)
    # A small model is confused by many tools; it gets those that change something if the user asks for them.
    built_in = Tier.WALK if small and options.gate is None else Tier.RUN
    # A model that may write nothing but calls, one per answer, ends with the tool for its answer.
    only_calls = small and options.constraint_mode == "required"
    tools = _tools(options, built_in if tier is None else tier, small=small, only_calls=only_calls)
    try:
        registry = ToolRegistry(tools)
        if only_calls and tools:
            _add_answer_tool(registry)
    except DefinitionError as error:
        raise CliError(str(error)) from error
    config = AgentConfig(
        system=system if tools else "",
        tier=None if options.gate else tier,
        # A user who names a root wants it read, whatever the words of the task are.
        gate=TierGate(min_tier=Tier.WALK, max_tier=Tier.RUN if tier is None else tier) if options.gate else None,
        budget=Budget(rounds=options.max_rounds or ROUNDS[small]),
        after_results=GO_ON_BY_CALL if only_calls else GO_ON if small else "",
        after_failures=TRY_AGAIN if small else "",
        context=CONTEXT if small else None,
        settings={"parallel": False} if only_calls else {},
    )
    try:
        backend = await models.open(profile, format=options.format)
        agent = Agent(backend, registry, config, policy=rules, confirm=confirm, telemetry=True)
    except ConfigurationError as error:
        raise CliError(str(error)) from error
    except MissingExtra as error:
        if not small:
            raise
        raise CliError(
            f"{error}; or name a model behind an API, such as --model openai:gpt-5-mini", status=1
        ) from error
    return OpenAgent(agent, agent, (profile,), models)


def _add_answer_tool(registry: ToolRegistry) -> None:
    """Let a model that writes nothing but calls end its turn with a tool; one of the user's may have its name."""
    if FINAL_ANSWER not in registry:
        registry.register(answer_tool())
    elif not registry.lookup(FINAL_ANSWER).behavior.ends_turn:
        raise CliError(
            f"the model could not answer with --constrain required: your tool {FINAL_ANSWER} does not end its turn. "
            "Give the tool another name, or the option ends_turn=True"
        )


def _tools(options: AgentOptions, tier: Tier, *, small: bool, only_calls: bool = False) -> list[object]:
    """Return the built-in tools for the roots, up to a tier, and the tools in the given files."""
    tools: list[object] = []
    if options.root:
        ending = {tool.definition.name for tool in ending_tools()}
        try:
            reading = small_reading_tools(*options.root, only_calls=only_calls) if small else []
            builtin = builtin_tools(*options.root, tier=tier)
        except ToolError as error:
            raise CliError(str(error)) from error
        names = {tool.definition.name for tool in reading}
        tools += [tool for tool in reading if tool.definition.tier <= tier]
        tools += [tool for tool in builtin if tool.definition.name not in ending | names]
    for path in options.tools or ():
        tools += file_tools(path)
    return tools


def load_local(name: str) -> LocalModel:
    """Load a model, with a progress bar on standard error while its weights are downloaded."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from toolwire.models.local.model_files import locate
    from toolwire.models.local.runtime import LocalModel

    columns = (TextColumn("weights"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    progress = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
    with (
        progress if screen.is_terminal else nullcontext()
    ):  # older versions of rich print an empty line for a disabled progress bar
        task = progress.add_task("weights", total=None, visible=False)

        def report_progress(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        def report_step(text: str) -> None:
            progress.console.print(styled(text, "dim"))

        path = locate(name, say=report_step, progress=report_progress)
    say(f"toolwire: loading {path.name}")
    # The runtime cannot be interrupted while it loads, so Ctrl-C is left to the system, which ends the process.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return LocalModel(path)
    finally:
        signal.signal(signal.SIGINT, handler)
