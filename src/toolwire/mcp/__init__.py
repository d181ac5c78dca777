"""MCP: tools of other programs in our registry (`McpRouter`), and our registry for other programs (`McpService`).

All but reading configuration needs the extra `mcp`; names are imported when they are first used.
"""

from toolwire._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "mcp.approvals": "Approvals",
        "mcp.http_server": "HttpOptions Listening serve_http",
        "mcp.oauth": "Logins",
        "mcp.router": "McpRouter ServerQuestion ServerStatus ToolProgress ToolStatus",
        "mcp.server": "McpService",
        "mcp.servers": "McpServer ToolSettings load_servers",
    },
)
