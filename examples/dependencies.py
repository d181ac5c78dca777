"""Give tools what they need: a database and the user who asks, which the model neither sees nor chooses.

Run it with `OPENAI_API_KEY=... python examples/dependencies.py`, or with `TOOLWIRE_EXAMPLE_URL` set to the address
of any server that speaks Chat Completions.
"""

import os
from dataclasses import dataclass

from toolwire import Agent, Client, ToolContext, tool


@dataclass
class Shop:
    """What the tools need."""

    orders: dict[str, list[str]]
    user: str


@tool
def my_orders(context: ToolContext[Shop]) -> list[str]:
    """Return the orders of the user."""
    return context.deps.orders[context.deps.user]


@tool
def order(context: ToolContext[Shop], item: str) -> str:
    """Order an item for the user."""
    context.deps.orders[context.deps.user].append(item)
    return f"{item} is ordered"


shop = Shop({"Ada": ["tea"], "Grace": ["ink"]}, user="Ada")
with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
    agent = Agent(client, [my_orders, order])
    print(agent.ask_sync("Order a cup, and list my orders.", deps=shop))
