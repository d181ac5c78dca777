"""MCP: tools of other programs in our registry (`McpRouter`), and our registry for other programs (`McpService`).

All but reading configuration needs the extra `mcp`; names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolwire.mcp.approvals import Approvals
    from toolwire.mcp.http import HttpOptions, Listening, serve_http
    from toolwire.mcp.login import Logins
    from toolwire.mcp.router import McpRouter, ServerQuestion, ServerStatus, ToolProgress, ToolStatus
    from toolwire.mcp.server import McpService
    from toolwire.mcp.servers import McpServer, ToolSettings, load_servers

_HOMES = {
    "approvals": ("Approvals",),
    "http": ("HttpOptions", "Listening", "serve_http"),
    "login": ("Logins",),
    "router": ("McpRouter", "ServerQuestion", "ServerStatus", "ToolProgress", "ToolStatus"),
    "server": ("McpService",),
    "servers": ("McpServer", "ToolSettings", "load_servers"),
}
__all__ = [
    "Approvals",
    "HttpOptions",
    "Listening",
    "Logins",
    "McpRouter",
    "McpServer",
    "McpService",
    "ServerQuestion",
    "ServerStatus",
    "ToolProgress",
    "ToolSettings",
    "ToolStatus",
    "load_servers",
    "serve_http",
]


def __getattr__(name: str) -> Any:
    """A public name, from the module in which it lives."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"toolwire.mcp.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
