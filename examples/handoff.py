"""Hand a conversation over to an agent with other instructions and tools.

Run it with `OPENAI_API_KEY=... python examples/handoff.py`, or with `TOOLWIRE_EXAMPLE_URL` set to the address of any
server that speaks Chat Completions.
"""

import os

from toolwire import Agent, Client, tool
from toolwire.agent import AgentConfig, AgentTeam, Handoff


@tool
def find_invoice(number: int) -> str:
    """Return an invoice."""
    return f"Invoice {number}: 12 EUR"


with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
    billing = Agent(client, [find_invoice], AgentConfig("billing", system="You answer questions about invoices."))
    desk = Agent(client, config=AgentConfig("desk", system="You greet customers, and hand them over."))
    team = AgentTeam(desk, handoffs=[Handoff(billing, "Knows all invoices.")])
    print(team.ask_sync("How much is invoice 7?"))
