"""Runs over scripted text, so that it is read as a model's is; and an observer that keeps what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import toolwire
from toolwire import ContentDelta, Event, Finish, FinishReason, Message, ToolError
from toolwire.agent import Agent, AgentConfig
from toolwire.models.backends import Source, TextBackend
from toolwire.telemetry import EndRecord, Observer, RunRecord, TurnRecord

ADD = '<tool_call>\n{"name": "add", "arguments": {"a": %s, "b": 2}}\n</tool_call>'


@toolwire.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@toolwire.tool
def fail() -> int:
    """Fails."""
    raise ToolError("broken")


@toolwire.tool(requires_confirmation=True)
def wipe(path: str, password: str = "") -> str:
    """Wipes."""
    return f"{path} is gone, and so is {password}"


TOOLS = [add, fail, wipe]


class Heard:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.runs: list[RunRecord] = []
        self.turns: list[TurnRecord] = []
        self.ends: list[EndRecord] = []

    def begin(self, run: RunRecord, /) -> None:
        self.runs.append(run)

    def turn(self, turn: TurnRecord, /) -> None:
        self.turns.append(turn)

    def end(self, end: EndRecord, /) -> None:
        self.ends.append(end)


def source(texts: Iterable[str], piece: int = 7) -> Source:
    """A model that writes these texts, one after the other, then "done"."""
    left = iter(texts)

    async def stream(messages: list[Message]) -> AsyncGenerator[Event]:
        text = next(left, "done")
        for at in range(0, len(text), piece):
            yield ContentDelta(text[at : at + piece])
        yield Finish(FinishReason.STOP)

    return stream


def go(
    texts: Iterable[str],
    *observers: Observer,
    format: str = "hermes",
    model: str = "tiny",
    task: str = "Work.",
    run_id: str = "",
    config: AgentConfig | None = None,
    **options: Any,
) -> None:
    """A run of an agent over texts."""
    backend = TextBackend(source(texts), format=format, model=model)
    config = config or AgentConfig(tier=toolwire.Tier.RUN)
    agent = Agent(backend, TOOLS, config, observers=observers, telemetry=False, **options)

    async def main() -> None:
        async for _ in agent.run(task, run_id=run_id):
            pass

    asyncio.run(main())
