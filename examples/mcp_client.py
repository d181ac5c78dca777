"""Ask a model that uses the tools of an MCP server.

    pip install 'toolwire[agent,mcp]'
    OPENAI_API_KEY=... python examples/mcp_client.py

The server is `mcp_server.py` beside this file; `McpServer(name="shop", url="https://...")` is one that is reached over
HTTP. With `TOOLWIRE_EXAMPLE_URL`, any server that speaks Chat Completions answers in place of OpenAI.
"""

import os
import sys

from toolwire import Agent, Client, Tier
from toolwire.mcp import McpRouter, McpServer

server = os.path.join(os.path.dirname(__file__), "mcp_server.py")
# Tools of a server count as RUN unless you say that they only read.
shop = McpServer(name="shop", command=sys.executable, args=(server,), tier=Tier.WALK)
with (
    McpRouter([shop], approve=True) as router,
    Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client,
):
    print(Agent(client, router.registry).ask_sync("How much tea is left?"))
