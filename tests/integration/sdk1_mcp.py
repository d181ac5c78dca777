"""An MCP server made with the official SDK 1.x: sdk1_mcp.py stdio | streamable-http | sse. Run by its interpreter."""

import socket
import sys

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

kind = sys.argv[1]
port = 0
if kind != "stdio":
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
server = FastMCP("probe1", host="127.0.0.1", port=port)


class Weather(BaseModel):
    city: str
    degrees: float


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def weather(city: str) -> Weather:
    """The weather."""
    return Weather(city=city, degrees=21.5)


@server.tool()
def boom(x: str) -> str:
    """Fails."""
    raise ValueError(x)


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Tells how far it is."""
    for at in range(steps):
        await ctx.report_progress(at + 1, steps)
    return "done"


if kind != "stdio":
    print(port, flush=True)
server.run(kind)
