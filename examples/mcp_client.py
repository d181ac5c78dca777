"""Offer the tools of an MCP server to an agent.

    pip install 'toolwire[agent,mcp]'
    OPENAI_API_KEY=... python examples/mcp_client.py "Show me which stock is low."

The server is `mcp_server.py` beside this file. It is started only after it was approved; an approval is stored if the
router gets `approvals=Approvals.of_user()`.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from toolwire import Agent, Client, Tier, ToolRegistry
from toolwire.agent import AgentConfig
from toolwire.mcp import McpRouter, McpServer, ServerQuestion
from toolwire.models import ApiBackend

SERVER = McpServer(
    name="shop",
    command=sys.executable,
    args=(str(Path(__file__).with_name("mcp_server.py")),),
    tier=Tier.WALK,  # tools of a server count as RUN unless you say that they only read
)


async def approve(question: ServerQuestion) -> bool:
    """Ask the user whether a server may be started."""
    return input(f"Start the MCP server {question.server}? [y/n] ") == "y"


async def main(question: str, base_url: str) -> None:
    """Print the answer to a question about the shop."""
    registry = ToolRegistry()
    async with (
        McpRouter([SERVER], registry, approve=approve) as router,
        Client("openai", "gpt-5-mini", base_url=base_url) as client,
    ):
        for status in await router.connect():
            print(status.name, status.state, [tool.name for tool in status.tools])
        print(await Agent(ApiBackend(client), registry, AgentConfig(tier=Tier.WALK)).ask(question))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Offer the tools of an MCP server to an agent.")
    parser.add_argument("question", nargs="?", default="Show me how much tea is left.")
    parser.add_argument("--base-url", default="")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.question, arguments.base_url))
