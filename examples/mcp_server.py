"""Serve your own tools to MCP clients.

    pip install 'toolwire[mcp]'
    python examples/mcp_server.py              # for a client that starts it and speaks over its standard streams
    python examples/mcp_server.py --http 8765  # for clients on this machine; prints the address and the token

`set_stock` changes something, so clients see it only with `--tier RUN`, and each call asks the user through the client.
"""

import argparse
import asyncio

from toolwire import Tier, ToolRegistry, tool
from toolwire.mcp import HttpOptions, Listening, McpService, serve_http

STOCK = {"tea": 3, "milk": 12}


@tool(tier=Tier.WALK)
def read_stock(item: str) -> int:
    """Return how many of an item are in stock."""
    return STOCK[item]


@tool(tier=Tier.RUN, requires_confirmation=True)
def set_stock(item: str, amount: int) -> str:
    """Set how many of an item are in stock."""
    STOCK[item] = amount
    return "done"


def announce(listening: Listening) -> None:
    """Print where the server is, and the token that clients have to send."""
    print(f"{listening.url}  Authorization: Bearer {listening.token}", flush=True)


async def main(tier: Tier, port: int | None) -> None:
    """Serve until the client leaves or the process is stopped."""
    service = McpService(ToolRegistry([read_stock, set_stock]), tier=tier, name="shop")
    if port is None:
        await service.stdio()
    else:
        await serve_http(service, HttpOptions(port=port), ready=announce)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve tools over MCP.")
    parser.add_argument("--tier", choices=[tier.name for tier in Tier], default="WALK")
    parser.add_argument("--http", type=int, metavar="PORT")
    arguments = parser.parse_args()
    asyncio.run(main(Tier[arguments.tier], arguments.http))
