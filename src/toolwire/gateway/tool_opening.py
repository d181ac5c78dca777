"""Tools of the gateway from the table `gateway.tools` of a configuration."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from toolwire.agent.mcp_tools import register_servers
from toolwire.builtin.toolsets import builtin_tools
from toolwire.config.gateway_tables import GatewayToolsTable
from toolwire.config.tables import Configuration
from toolwire.errors import ConfigurationError, DefinitionError, ToolError
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.gateway.gateway_tools import GatewayTools, limited_results
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import Tool


@asynccontextmanager
async def opened_tools(configuration: Configuration, path: Path | None) -> AsyncGenerator[GatewayTools | None]:
    """Open the tools of the gateway, and close their servers at the end; None if it has none.

    Args:
        configuration: the configuration.
        path: its file, in whose directory relative paths begin.

    Raises:
        ConfigurationError: a tool or a server cannot be used.
    """
    table = configuration.gateway.tools
    if not (table.builtin or table.mcp):
        yield None
        return
    async with AsyncExitStack() as stack:
        try:
            registry = ToolRegistry(_builtin(table, Path() if path is None else path.parent))
            await register_servers(table.mcp, registry, configuration, "" if path is None else str(path), stack)
        except (DefinitionError, ToolError) as error:
            raise ConfigurationError(f"gateway.tools: {error}") from error
        # Names in the policy may be those of agents in the same file, so a misspelled one is only a warning.
        policy = configuration.policy.to_policy()
        shape = limited_results(table.max_result)
        executor = ToolExecutor(registry, policy=policy, timeout=table.timeout, shape=shape, check="warn")
        yield GatewayTools(registry, executor, table.rounds, table.show_tools)


def _builtin(table: GatewayToolsTable, folder: Path) -> list[Tool[..., object]]:
    if not table.builtin:
        return []
    if not table.root:
        raise ConfigurationError("gateway.tools.root: name the directory below which the built-in tools work")
    tools = {
        tool.definition.name: tool
        for tool in builtin_tools(folder / Path(table.root).expanduser())
        if not tool.behavior.ends_turn
    }
    for name in table.builtin:
        if name not in tools:
            hint = did_you_mean(closest(name, tools, limit=3))
            raise ConfigurationError(f"gateway.tools.builtin: there is no tool {name!r:.80}{hint} ({', '.join(tools)})")
    return [tools[name] for name in dict.fromkeys(table.builtin)]
