"""MCP: tools of MCP servers in our registry (`McpRouter`), and our registry as an MCP server (`McpService`).

Everything except reading configuration needs the extra `mcp`.
"""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "execution.executor": "RunningOptions",
        "mcp.approvals": "Approvals",
        "mcp.client_context": "Caller current_caller log report_progress",
        "mcp.http_server": "HttpOptions Listening serve_http",
        "mcp.oauth": "Logins",
        "mcp.router": "McpRouter",
        "mcp.server": "McpService",
        "mcp.server_status": "Approve ServerQuestion ServerState ServerStatus ToolProgress ToolState ToolStatus",
        "mcp.servers": "McpServer ToolSettings load_servers",
    },
)
