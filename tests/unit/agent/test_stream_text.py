"""`Agent.stream_text`: the model's text as it arrives."""

from __future__ import annotations

import asyncio

import pytest

import toolwire
from toolwire import ContentDelta, Finish, FinishReason, ParsedResponse, RunFailed, ToolCall
from toolwire.agent import Agent, AgentTeam
from toolwire.testing import ScriptedBackend


@toolwire.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def agent() -> Agent[str]:
    call = ParsedResponse("I add.", tool_calls=(ToolCall("add", {"a": 1, "b": 2}, "1"),))
    answer = [ContentDelta("It "), ContentDelta(""), ContentDelta("is 3."), Finish(FinishReason.STOP)]
    return Agent(ScriptedBackend([call, answer]), [add])


async def pieces(agent: Agent[str]) -> list[str]:
    return [piece async for piece in agent.stream_text("Add.")]


def test_text_of_all_rounds_arrives_in_pieces() -> None:
    expected = ["I add.", "\n\nIt ", "is 3."]
    assert asyncio.run(pieces(agent())) == expected
    assert list(agent().stream_text_sync("Add.")) == expected


def test_a_team_streams_the_text_of_its_coordinator() -> None:
    assert list(AgentTeam(agent()).stream_text_sync("Add.")) == ["I add.", "\n\nIt ", "is 3."]


def test_a_run_without_an_answer_raises_at_the_end() -> None:
    failing = Agent(ScriptedBackend([[ContentDelta("I am"), Finish(FinishReason.LENGTH)]]))
    stream = failing.stream_text_sync("?")
    assert next(stream) == "I am"
    with pytest.raises(RunFailed, match="length"):
        next(stream)


def test_a_stream_that_is_closed_stops_the_run() -> None:
    async def first() -> str:
        stream = agent().stream_text("Add.")
        piece = await anext(stream)
        await stream.aclose()
        return piece

    assert asyncio.run(first()) == "I add."
