"""Decide which calls run: rules for the clear cases, a question to the user for the rest, a limit on all.

    OPENAI_API_KEY=... python examples/own_policy.py "Please delete old.txt, build.log and notes.txt."

Deny beats ask, and ask beats allow, whatever the order of the rules. The same rules can be in a TOML file.
"""

import argparse
import asyncio

from toolwire import Agent, Approval, ApprovalAnswer, Client, Limit, Policy, Rule, Tier, present, tool
from toolwire.policy import Text

FILES = {"notes.txt": "buy tea", "old.txt": "...", "build.log": "ok"}


@tool(tier=Tier.RUN, requires_confirmation=True)
def delete_file(name: str) -> str:
    """Delete a file."""
    del FILES[name]
    return f"{name} is deleted"


POLICY = Policy(
    (
        Rule("allow", "delete_file", {"name": Text("*.log")}, confirm=False),  # runs without a question
        Rule("deny", "delete_file", {"name": Text("notes*")}, reason="Notes are never deleted."),
    ),
    limits=(Limit(calls=10, tool="delete_file"),),
)


async def confirm(approval: Approval) -> ApprovalAnswer:
    """Show the exact call and ask the user."""
    print(present(approval))
    answer = await asyncio.to_thread(input, "Run it? [y/n] ")
    return ApprovalAnswer(answer == "y", reason="The user wants to keep it.")


async def main(task: str, base_url: str) -> None:
    """Let an agent work under the policy, and print its answer and what is left."""
    async with Client("openai", "gpt-5-mini", base_url=base_url) as client:
        agent = Agent(client, [delete_file], policy=POLICY, confirm=confirm)
        print(await agent.ask(task))
    print("left:", *FILES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Work under a policy.")
    parser.add_argument("task", nargs="?", default="Please delete old.txt, build.log and notes.txt.")
    parser.add_argument("--base-url", default="")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.task, arguments.base_url))
