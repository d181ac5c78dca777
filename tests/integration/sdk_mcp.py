"""An MCP server made with the official SDK 2.x: sdk_mcp.py stdio | http."""

import base64
import socket
import sys

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import CallToolResult, ResourceLink, TextContent, ToolAnnotations
from pydantic import BaseModel

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
server = MCPServer("probe")
HARMLESS = ToolAnnotations(destructive_hint=False)


class Weather(BaseModel):
    city: str
    degrees: float


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=HARMLESS)
def weather(city: str) -> Weather:
    """The weather."""
    return Weather(city=city, degrees=21.5)


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def boom(x: str) -> str:
    """Fails."""
    raise ValueError(x)


@server.tool(annotations=HARMLESS)
def picture() -> Image:
    """An image."""
    return Image(data=base64.b64decode(DOT), format="png")


@server.tool(annotations=HARMLESS)
def mixed() -> CallToolResult:
    """Text and a link."""
    content = [TextContent(text="a"), ResourceLink(uri="file:///x", name="x")]
    return CallToolResult(content=content, structured_content={"k": 1})


@server.tool(annotations=HARMLESS)
async def slow(steps: int, ctx: Context) -> str:
    """Tells how far it is."""
    for at in range(steps):
        await ctx.report_progress(at + 1, steps, f"step {at + 1}")
    return "done"


@server.tool(annotations=HARMLESS)
async def grow(ctx: Context) -> str:
    """Offers one tool more, and says so."""

    def grown() -> str:
        return "grown"

    server.add_tool(grown, description="Grew.", annotations=HARMLESS)
    await ctx.notify_tools_changed()
    return "done"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        print(port, flush=True)
        server.run("streamable-http", host="127.0.0.1", port=port)
