# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.execution.executor import RunningOptions as RunningOptions
from toolwire.mcp.approvals import Approvals as Approvals
from toolwire.mcp.client_context import Caller as Caller
from toolwire.mcp.client_context import current_caller as current_caller
from toolwire.mcp.client_context import log as log
from toolwire.mcp.client_context import report_progress as report_progress
from toolwire.mcp.http_server import HttpOptions as HttpOptions
from toolwire.mcp.http_server import Listening as Listening
from toolwire.mcp.http_server import serve_http as serve_http
from toolwire.mcp.oauth import Logins as Logins
from toolwire.mcp.router import McpRouter as McpRouter
from toolwire.mcp.server import McpService as McpService
from toolwire.mcp.server_status import Approve as Approve
from toolwire.mcp.server_status import ServerQuestion as ServerQuestion
from toolwire.mcp.server_status import ServerState as ServerState
from toolwire.mcp.server_status import ServerStatus as ServerStatus
from toolwire.mcp.server_status import ToolProgress as ToolProgress
from toolwire.mcp.server_status import ToolState as ToolState
from toolwire.mcp.server_status import ToolStatus as ToolStatus
from toolwire.mcp.servers import McpServer as McpServer
from toolwire.mcp.servers import ToolSettings as ToolSettings
from toolwire.mcp.servers import load_servers as load_servers

__all__ = [
    "Approvals",
    "Approve",
    "Caller",
    "HttpOptions",
    "Listening",
    "Logins",
    "McpRouter",
    "McpServer",
    "McpService",
    "RunningOptions",
    "ServerQuestion",
    "ServerState",
    "ServerStatus",
    "ToolProgress",
    "ToolSettings",
    "ToolState",
    "ToolStatus",
    "current_caller",
    "load_servers",
    "log",
    "report_progress",
    "serve_http",
]
