"""Begin a run, let its process die, and resume the run in another process.

    pip install 'toolwire[durable]'
    OPENAI_API_KEY=... python examples/durable_worker.py begin order-7 "Order tea, then milk." --crash
    OPENAI_API_KEY=... python examples/durable_worker.py resume order-7

The second process repeats what was finished and continues from there: the model is not asked again for an answer that
it gave, and no order is placed twice. `toolwire runs show order-7` shows what was recorded.
"""

import argparse
import asyncio
import os

from toolwire import Agent, Client, Tier, tool
from toolwire.agent import AgentConfig, DurableRuns, ReplayEnded, RunEnded, ToolFinished


@tool(tier=Tier.RUN)
def order(item: str) -> str:
    """Order an item."""
    print("ordering", item, flush=True)
    return f"{item} is on its way"


async def main(arguments: argparse.Namespace) -> None:
    """Begin or resume a run, and print what happens."""
    config = AgentConfig(name="shop", tier=Tier.RUN)
    async with Client("openai", "gpt-5-mini", base_url=arguments.base_url) as client:
        agent = Agent(client, [order], config)
        async with DurableRuns(agent, database=arguments.database) as runs:
            begin = arguments.command == "begin"
            events = runs.run(arguments.task, run_id=arguments.run_id) if begin else runs.resume(arguments.run_id)
            async for event in events:
                match event:
                    case ReplayEnded():
                        print("-- what follows is new")
                    case ToolFinished(outcome):
                        print(outcome.result.text, flush=True)
                        if begin and arguments.crash:
                            os._exit(1)  # as if the power had failed
                    case RunEnded(answer=answer):
                        print(answer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Resume a run after a crash.")
    parser.add_argument("command", choices=["begin", "resume"])
    parser.add_argument("run_id")
    parser.add_argument("task", nargs="?", default="Order tea, then milk.")
    parser.add_argument("--crash", action="store_true", help="end the process after the first call")
    parser.add_argument("--database", default="runs.sqlite3")
    parser.add_argument("--base-url", default="")
    asyncio.run(main(parser.parse_args()))
