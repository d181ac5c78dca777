"""Agents and teams from a configuration, in code or in a TOML file.

    async with load_agent("toolwire.toml", "reader") as agent:
        print(await agent.ask("Which files are in docs?"))

The connections and servers of an agent are closed at the end of the block.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from json import loads
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from toolwire._surface import check_type
from toolwire.agent.agent import Agent
from toolwire.agent.budget import Budget
from toolwire.agent.config import AgentConfig
from toolwire.agent.deferral import Defer
from toolwire.agent.mcp_tools import register_servers
from toolwire.agent.model_pool import Models
from toolwire.agent.prices import Prices
from toolwire.agent.summarize import Summarize
from toolwire.agent.team import AgentTeam, Handoff, Member
from toolwire.builtin.toolsets import answer_tool, builtin_tools, ending_tools
from toolwire.config.tables import (
    AgentTable,
    AgentTeamConfig,
    BudgetTable,
    Configuration,
    EnvelopeTable,
    SummarizeTable,
    load_configuration,
)
from toolwire.envelope.envelope import Envelope
from toolwire.envelope.te_tools import read_handle
from toolwire.errors import ConfigurationError, DefinitionError, PolicyWarning, ToolError
from toolwire.execution.approval_requests import Confirm
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Shaping
from toolwire.execution.registry import ToolRegistry
from toolwire.execution.tool_files import python_tools
from toolwire.policy.intent import TierGate
from toolwire.policy.lint import checked, misnomers
from toolwire.policy.policy import Policy
from toolwire.text.suggest import check_options
from toolwire.tools import TIER, Tier

if TYPE_CHECKING:
    from toolwire.mcp.server_status import Approve

AnyPath = str | PathLike[str]
MakeExecutor = Callable[[ToolRegistry, Confirm | None], ToolExecutor]


@dataclass(frozen=True, slots=True)
class Environment:
    """Dependencies of an agent that are not in the configuration file.

    Attributes:
        folder: directory where relative paths begin.
        models: opens models; its owner closes it. None for one that is closed with the agents.
        confirm: asks for approval of a call; "defer" ends a run with pending approvals.
        policy: policy in place of the file's.
        tools: additional tools, for the agent itself or for a team's coordinator.
        tier: tier of every task, in place of the file's.
        approve: asks whether an MCP server may be used. Without it, servers are used only if approved before.
        sign_in: shows the user the URL at which to sign in to a server; called with the server's name and the URL.
        telemetry: whether runs are recorded, for agents whose file does not say; see `Agent`.
    """

    folder: AnyPath = "."
    models: Models | None = None
    confirm: Confirm | Defer | None = None
    policy: Policy | None = None
    tools: Iterable[Any] = ()
    tier: Tier | None = None
    approve: Approve | None = None
    sign_in: Callable[[str, str], None] | None = None
    telemetry: bool | None = None

    def __post_init__(self) -> None:
        """Check the types that are easily mistaken.

        Raises:
            TypeError: a value is of another type.
        """
        check_type("folder", self.folder, (str, PathLike), "a path")
        check_type("policy", self.policy, (Policy, NoneType), "a Policy or None")
        check_type("tier", self.tier, (Tier, NoneType), f"{TIER}, or None")


class EnvironmentOptions(TypedDict, total=False):
    """Keywords of `Environment`, which describes them and has their defaults."""

    folder: AnyPath
    models: Models | None
    confirm: Confirm | Defer | None
    policy: Policy | None
    tools: Iterable[Any]
    tier: Tier | None
    approve: Approve | None
    sign_in: Callable[[str, str], None] | None
    telemetry: bool | None


@asynccontextmanager
async def load_agent(path: AnyPath, name: str = "", **environment: Unpack[EnvironmentOptions]) -> AsyncGenerator[Agent]:
    """Open an agent of a TOML file, for use with `async with`.

    Args:
        path: the file; relative paths in it begin in its directory.
        name: name of the agent; may be left out if the file has one only.
        environment: see `Environment`.

    Raises:
        ConfigurationError: the file or one of the tools cannot be used, or there is no such agent.
        ToolError: an MCP server cannot be used.
        ProviderError: its model cannot be loaded.
        TypeError: an option is unknown, or a value is of another type.
    """
    options = _environment("load_agent", path, environment)
    async with open_agent(load_configuration(path), name, options, source=str(path)) as agent:
        yield agent


@asynccontextmanager
async def load_team(
    path: AnyPath, name: str = "", **environment: Unpack[EnvironmentOptions]
) -> AsyncGenerator[AgentTeam]:
    """Open a team of a TOML file; see `load_agent`."""
    options = _environment("load_team", path, environment)
    async with open_team(load_configuration(path), name, options, source=str(path)) as team:
        yield team


def _environment(function: str, path: AnyPath, options: EnvironmentOptions) -> Environment:
    """Return the environment of agents of a file; relative paths begin in its directory."""
    check_options(function, options, EnvironmentOptions.__annotations__)
    check_type("path", path, (str, PathLike), "a path")
    defaults: EnvironmentOptions = {"folder": Path(path).parent, **options}
    return Environment(**defaults)


@asynccontextmanager
async def open_agent(
    configuration: Configuration, name: str = "", environment: Environment | None = None, *, source: str = ""
) -> AsyncGenerator[Agent]:
    """Open an agent of a configuration; see `load_agent`. `source` is the file that messages name."""
    name = _named(name, "agent", configuration.agents, configuration.teams, source)
    async with AsyncExitStack() as stack:
        building = await _Building.begin(configuration, environment or Environment(), source, stack)
        yield await building.agent(name)


@asynccontextmanager
async def open_team(
    configuration: Configuration, name: str = "", environment: Environment | None = None, *, source: str = ""
) -> AsyncGenerator[AgentTeam]:
    """Open a team of a configuration; see `load_agent`."""
    name = _named(name, "team", configuration.teams, configuration.agents, source)
    async with AsyncExitStack() as stack:
        building = await _Building.begin(configuration, environment or Environment(), source, stack)
        yield await building.team(configuration.teams[name])


def _named(name: str, kind: str, known: Iterable[str], others: Iterable[str], source: str) -> str:
    """Return the name of the agent or team that is meant.

    Raises:
        ConfigurationError: there is none of this name, or none is named and there are several.
    """
    names, where = list(known), f"{source}: " if source else ""
    if name in names:
        return name
    available = f"there {'are ' + ', '.join(names) if names else 'is none'}"
    if name:
        other = f"; {name} is {'a team' if kind == 'agent' else 'an agent'}" if name in others else ""
        raise ConfigurationError(f"{where}there is no {kind} {name!r}; {available}{other}")
    if not names:
        raise ConfigurationError(f"{where}there is no {kind}: add a table {kind}s.NAME")
    if len(names) != 1:
        raise ConfigurationError(f"{where}name the {kind}: {available}")
    return names[0]


class _Building:
    """Builds the agents of one configuration; a stack closes what they open."""

    def __init__(
        self, configuration: Configuration, given: Environment, source: str, stack: AsyncExitStack, models: Models
    ) -> None:
        self._configuration = configuration
        self._given = given
        self._source = source
        self._where = f"{source}: " if source else ""
        self._stack = stack
        self._models = models
        self._policy = given.policy or configuration.policy.to_policy()
        self._alone = len(configuration.agents) == 1  # so every name in the policy must be a tool of this agent

    @classmethod
    async def begin(
        cls, configuration: Configuration, given: Environment, source: str, stack: AsyncExitStack
    ) -> _Building:
        for keys, message in configuration.dangling():
            raise ConfigurationError(f"{source + ': ' if source else ''}{'.'.join(keys)}: {message}")
        models = given.models
        if models is None:
            models = await stack.enter_async_context(Models())
        return cls(configuration, given, source, stack, models)

    async def team(self, team: AgentTeamConfig) -> AgentTeam:
        xml = team.use_xml_tool_format
        lead = await self.agent(team.coordinator, team=xml)
        members = [
            Member(await self.agent(name, team=xml, alone=False), member.description, member.tier)
            for name, member in team.members.items()
        ]
        handoffs = [
            Handoff(await self.agent(name, team=xml, alone=False), other.description, other.tier)
            for name, other in team.handoffs.items()
        ]
        return AgentTeam(lead, members, handoffs=handoffs)

    async def agent(self, name: str, *, team: bool | None = None, alone: bool = True) -> Agent:
        """Build one agent; `alone` says whether it also gets the tools and the tier of the environment."""
        table = self._configuration.agents[name]
        try:
            backend = await self._models.open_chain(
                self._configuration.chain(name),
                format=table.format,
                use_xml_tool_format=table.use_xml_tool_format,
                team=team,
            )
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._where}agents.{name}: {error}") from error
        where = f"{self._where}agents.{name}.tools"
        try:
            registry = ToolRegistry(self._tools(table))
        except (ConfigurationError, DefinitionError, ToolError) as error:
            raise ConfigurationError(f"{where}: {error}") from error
        for tool in self._given.tools if alone else ():
            try:
                registry.register(tool)
            except DefinitionError as error:
                raise ConfigurationError(f"{where}: {error}; the program that opens the agent adds it too") from error
        shape = None if table.envelope is None else self._enveloped(table.envelope, registry)
        await register_servers(
            table.tools.mcp,
            registry,
            self._configuration,
            self._source,
            self._stack,
            approve=self._given.approve,
            sign_in=self._given.sign_in,
        )
        self._compare(name, registry)
        config = _config(name, table)
        if alone and self._given.tier is not None:
            config = replace(config, tier=self._given.tier, gate=None)
        if table.compaction is not None:
            config = replace(config, compaction=await self._summarize(table.compaction))
        return Agent(
            backend,
            registry,
            config,
            output_type=self._output(name, table),
            confirm=self._given.confirm,
            executor=self._executor(table, shape),
            telemetry=self._given.telemetry if table.telemetry is None else table.telemetry,
        )

    async def _summarize(self, table: SummarizeTable) -> Summarize:
        chain = self._configuration.profile_chain(table.profile) if table.profile else ()
        backend = await self._models.open_chain(chain) if chain else None
        options = table.model_dump(include={"keep", "instructions"}, exclude_none=True)
        return Summarize(backend, **options)

    def _output(self, name: str, table: AgentTable) -> dict[str, Any] | None:
        """Return the JSON Schema of an agent's answer; None for text.

        Raises:
            ConfigurationError: its file cannot be read or contains none.
        """
        if not isinstance(table.output, str):
            return table.output
        where = f"{self._where}agents.{name}.output"
        try:
            schema = loads((Path(self._given.folder) / Path(table.output).expanduser()).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{where}: {table.output} cannot be read: {error}") from error
        if not isinstance(schema, dict):
            raise ConfigurationError(f"{where}: {table.output} contains no JSON Schema, which is an object")
        return schema

    def _tools(self, table: AgentTable) -> list[Any]:
        folder, sources = Path(self._given.folder), table.tools
        tools: list[Any] = []
        if sources.builtin:
            ending = {tool.definition.name for tool in ending_tools()}
            roots = [folder / Path(root).expanduser() for root in sources.builtin]
            tools += [tool for tool in builtin_tools(*roots) if tool.definition.name not in ending]
        tools += ending_tools() if sources.ending else ()
        tools += (answer_tool(),) if sources.answer else ()
        for file in sources.python:
            tools += python_tools(folder / Path(file).expanduser())
        return tools

    def _enveloped(self, table: EnvelopeTable, registry: ToolRegistry) -> Shaping:
        envelope = Envelope(agent=table.agent, budget=table.budget, preview=table.preview)
        registry.register(read_handle(envelope))
        return envelope.shape

    def _compare(self, name: str, registry: ToolRegistry) -> None:
        """Compare the names in the policy with an agent's tools.

        Raises:
            ConfigurationError: a name is misspelt. If there are several agents, the name may be a tool of another, so
                this is only a warning.
        """
        tools = registry.known()
        if not self._alone:
            for misnomer in misnomers(self._policy, tools):
                if misnomer.near:
                    warnings.warn(f"{self._where}{misnomer} (of the agent {name})", PolicyWarning, stacklevel=2)
            return
        try:
            checked(self._policy, tools)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self._where}{error}") from error

    def _executor(self, table: AgentTable, shape: Shaping | None) -> MakeExecutor:
        def make(registry: ToolRegistry, confirm: Confirm | None) -> ToolExecutor:
            return ToolExecutor(
                registry,
                policy=self._policy,
                confirm=confirm,
                timeout=table.timeout,
                shape=shape,
                check="warn" if self._alone else False,
            )

        return make


def _config(name: str, table: AgentTable) -> AgentConfig:
    defaults = AgentConfig()
    gate = None
    if table.gate is not None:
        gate = TierGate(max_tier=table.gate.max, min_tier=table.gate.min, sticky=table.gate.sticky)
    return AgentConfig(
        name=name,
        system=table.system,
        tier=table.tier,
        gate=gate,
        definitions=defaults.definitions if table.definitions is None else table.definitions,
        budget=_budget(table.budget),
        require_tool_call=table.require_tool_call,
        calls_per_answer=table.calls_per_answer or defaults.calls_per_answer,
        after_results=table.after_results,
        after_failures=table.after_failures,
        context=table.context,
        settings=table.settings.to_settings(),
        extra_body=table.extra_body,
        extra_headers=table.extra_headers,
    )


def _budget(table: BudgetTable) -> Budget:
    prices = None if table.prices is None else Prices(**table.prices.model_dump())
    return Budget(table.rounds, table.calls, table.tokens, table.seconds, table.money, prices)
