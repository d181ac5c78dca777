"""Make tools of the methods of an object: they share its state, and one of them asks before it runs.

Run it with `OPENAI_API_KEY=... python examples/object_tools.py`, or with `TOOLWIRE_EXAMPLE_URL` set to the address of
any server that speaks Chat Completions.
"""

import os

from toolwire import Agent, Approval, Client, tool_options, tools_from


class Orders:
    """Orders of tea, milk and so on."""

    def __init__(self) -> None:
        self.items = ["tea", "milk"]

    def pending(self) -> list[str]:
        """Return the items that were ordered."""
        return self.items

    @tool_options(destructive=True)
    def cancel(self, item: str) -> str:
        """Cancel the order of an item."""
        self.items.remove(item)
        return f"{item} is cancelled"


def approve(approval: Approval) -> bool:
    """Ask the user whether a call may run."""
    return input(f"{approval.call.name} {approval.call.arguments}? [y/n] ") == "y"


orders = Orders()
with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
    print(Agent(client, tools_from(orders), confirm=approve).ask_sync("Cancel the milk."))
print("still ordered:", *orders.items)
