"""A team: a coordinator gives tasks to two members, each with its own model, tools and instructions.

    OPENAI_API_KEY=... ANTHROPIC_API_KEY=... python examples/team.py "How much tea do we have, and what does more cost?"

With `--base-url`, all of them use one server that speaks OpenAI's API.
"""

import argparse
import asyncio

from toolwire import Agent, Client, tool
from toolwire.agent import AgentConfig, AgentTeam, Budget, Member, MemberEvent, RunEnded, ToolFinished


@tool
def count_stock(item: str) -> int:
    """Return how many of an item are in stock."""
    return {"tea": 3}.get(item, 0)


@tool
def find_price(item: str) -> str:
    """Return the price of an item."""
    return {"tea": "4.50 EUR"}.get(item, "unknown")


async def main(question: str, base_url: str) -> None:
    """Print what the members do, then the answer."""
    large = Client("openai", "gpt-5", base_url=base_url)
    small = Client("openai", "gpt-5-mini", base_url=base_url) if base_url else Client("anthropic", "claude-haiku-4-5")
    async with large, small:
        counter = Agent(small, [count_stock], AgentConfig(name="counter", budget=Budget(rounds=4)))
        buyer = Agent(small, [find_price], AgentConfig(name="buyer", budget=Budget(rounds=4)))
        coordinator = Agent(large, config=AgentConfig(name="keeper", system="You keep a shop."))
        members = [Member(counter, "Knows what is in stock."), Member(buyer, "Knows prices.")]
        async for event in AgentTeam(coordinator, members).run(question):
            match event:
                case MemberEvent(member, ToolFinished(outcome)):
                    print(f"{member}: {outcome.call.name} -> {outcome.result.text}")
                case RunEnded(answer=answer):
                    print(answer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask a team.")
    parser.add_argument("question", nargs="?", default="How much tea do we have, and what does more cost?")
    parser.add_argument("--base-url", default="")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.question, arguments.base_url))
