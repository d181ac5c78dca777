"""Tools of the MCP servers that a configuration names, in a registry."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from toolwire._surface import needs_extra
from toolwire.config.tables import Configuration
from toolwire.errors import ToolError
from toolwire.execution.registry import ToolRegistry

if TYPE_CHECKING:
    from toolwire.mcp.server_status import Approve


async def register_servers(
    names: Collection[str],
    registry: ToolRegistry,
    configuration: Configuration,
    source: str,
    stack: AsyncExitStack,
    *,
    approve: Approve | None = None,
    sign_in: Callable[[str, str], None] | None = None,
) -> None:
    """Register the tools of MCP servers, which the stack closes.

    Args:
        names: the servers.
        registry: gets their tools.
        configuration: describes them if there is no file.
        source: the file that describes them; "" for none.
        stack: closes the connections.
        approve: asks whether a server may be used; without it, servers are used only if approved before.
        sign_in: shows the user the URL at which to sign in to a server; called with the server's name and the URL.

    Raises:
        ToolError: a server cannot be used; the error says why.
    """
    if not names:
        return
    with needs_extra("MCP"):
        from toolwire.mcp.approvals import Approvals
        from toolwire.mcp.oauth import Logins, login
        from toolwire.mcp.router import McpRouter
        from toolwire.mcp.servers import McpServer, load_servers
    if source:
        servers = load_servers(source)
    else:
        tables = configuration.mcp.get("servers", {})
        servers = [McpServer.model_validate({**server, "name": name}) for name, server in tables.items()]
    servers = [server for server in servers if server.name in names]
    logins = Logins.of_user()
    auth = {
        server.name: login(server, partial(sign_in, server.name), logins)
        for server in servers
        if sign_in is not None and server.login and server.enabled
    }
    router = McpRouter(servers, registry, approvals=Approvals.of_user(), approve=approve, auth=auth)
    await stack.enter_async_context(router)
    # A server that was used before is started by the first call, since its tools are known.
    new = [server.name for server in router.servers() if server.state != "off" and not server.tools]
    for status in await router.connect(*new) if new else ():
        if status.state != "ready":
            hint = f"; `toolwire mcp approve {status.name}` asks about it" if status.state == "not approved" else ""
            raise ToolError(f"the MCP server {status.name} cannot be used: {status.reason or status.state}{hint}")
