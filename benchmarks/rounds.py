"""What a round of an agent costs beside the model and the tool: without records, and with them.

    python -m benchmarks.rounds [--database URL] [--json]

A round is an answer of the model with one call, the call, and its result. All figures come from one run, the measured
things taking turns: the median of milliseconds a round. With records each round writes three: the answer, that the call
begins, and what became of it. `memory` keeps them in a dict, so it is what making the records costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

from toolwire import FinishReason, ParsedResponse, Tier, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.durable import DurableRuns
from toolwire.agent.journal import MemoryJournal
from toolwire.agent.run_events import AgentEvent
from toolwire.events import Event, replay
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.providers.request import ChatRequest

ROUNDS = 20
TURNS = 15
TEXT = "A line of what a tool gave back, as long as lines are.\n" * 20


class Model:
    """Calls a tool in each round but the last, at once."""

    model, api, format = "measured", "", ""

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        """The next call."""
        seen = sum(isinstance(part, ToolResult) for message in request.messages for part in message.parts)
        usage = Usage(1000, 50)
        call = ToolCall("look", {"number": seen}, f"call_{seen}")
        more = ParsedResponse("Let me look.", tool_calls=(call,), finish_reason=FinishReason.TOOL_CALLS, usage=usage)
        for event in replay(more if seen < ROUNDS - 1 else ParsedResponse("Done.", usage=usage)):
            yield event


async def look(number: int) -> str:
    """Looks."""
    return f"{number}: {TEXT}"


def agent_of(name: str) -> Agent:
    """The agent that is measured."""
    config = AgentConfig(name=name, tier=Tier.RUN, budget=Budget(rounds=ROUNDS + 1))
    return Agent(Model(), [look], config, telemetry=False)


async def _heard(events: AsyncGenerator[AgentEvent]) -> None:
    async with aclosing(events):
        async for _ in events:
            pass


async def measured(database: str = "") -> dict[str, float]:
    """Milliseconds a round, by what it is recorded in."""
    plain, numbers = agent_of("plain"), iter(range(10**9))
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        kept = database or f"{folder}/runs.sqlite3"
        runs = await stack.enter_async_context(DurableRuns(agent_of("recorded"), database=kept))
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "not recorded": lambda: _heard(plain.run("Look.")),
            "memory": lambda: _heard(plain.run("Look.", journal=MemoryJournal())),
            "database": lambda: _heard(runs.run("Look.", run_id=f"{folder} {next(numbers)}")),
        }
        taken: dict[str, list[float]] = {name: [] for name in kinds}
        for at in range(TURNS + 1):
            for name, run in kinds.items():
                begun = time.perf_counter()
                await run()
                if at:  # the first warms up
                    taken[name].append((time.perf_counter() - begun) / ROUNDS * 1e3)
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default="", help="an address of PostgreSQL; else a temporary SQLite file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures: dict[str, Any] = asyncio.run(measured(options.database))
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        above = value - figures["not recorded"]
        print(f"{name:14}{value:8.2f} ms a round{f', {above:.2f} more' if above else ''}")


if __name__ == "__main__":
    main()
