"""Let a person approve a call later: the first run ends with a question in a file, the second one with the answer.

Run it twice with `OPENAI_API_KEY=... python examples/approve_later.py`, or with `TOOLWIRE_EXAMPLE_URL` set to the
address of any server that speaks Chat Completions.
"""

import os
from pathlib import Path

from toolwire import Agent, Client, present, tool
from toolwire.agent import PendingApprovals

STORED = Path("pending.json")


@tool(destructive=True)
def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted"


with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
    agent = Agent(client, [delete_file], confirm="defer")
    if STORED.exists():
        pending = PendingApprovals.from_json(STORED.read_text())
        STORED.unlink()
        decisions = {item.id: input(f"{present(item.approval)}\nRun it? [y/n] ") == "y" for item in pending.approvals}
        print(agent.ask_resumed_sync(pending, decisions))
    else:
        end = agent.run_to_end_sync("Please delete old.txt.")
        assert end.pending is not None
        STORED.write_text(end.pending.to_json())
        print(end.detail)
