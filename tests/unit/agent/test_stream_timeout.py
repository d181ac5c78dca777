"""Answers that do not come, do not end or call without end: none of them holds a run."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.unit.agent.test_loop import add, calling, run

from toolwire import ParsedResponse, ProviderError, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.run_events import CallDone
from toolwire.agent.tool_calls import OVER
from toolwire.events import ContentDelta, Event, UsageCounted
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedBackend


class Slow:
    """A model that says so much and then waits; for ever, the last time."""

    model, api, format = "slow", "", ""

    def __init__(self, *answers: list[Event], pause: float | None = None) -> None:
        self.closed = 0
        self._answers = iter(answers)
        self._pause = pause

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        try:
            for event in next(self._answers):
                yield event
                if self._pause is not None:
                    await asyncio.sleep(self._pause)
            await asyncio.Event().wait()
        finally:
            self.closed += 1


@pytest.mark.need(13)
def test_a_model_that_falls_silent_is_asked_once_more_and_does_not_hold_the_run() -> None:
    half: list[Event] = [ContentDelta("half"), UsageCounted(Usage(5, 1))]
    backend = Slow(half, half)
    _, end = run(Agent(backend, config=AgentConfig(silence=0.02)))
    assert (end.reason, end.detail) == ("error", "the model sent nothing for 0.02 seconds")
    assert end.usage == Usage(10, 2), "what it cost counts"
    assert backend.closed == 2
    backend = Slow([])
    assert run(Agent(backend, config=AgentConfig(silence=0.02)))[1].reason == "error"
    assert backend.closed == 1


def test_an_answer_that_does_not_end_does_not_hold_the_run() -> None:
    endless: list[Event] = [ContentDelta("word ")] * 10_000
    backend = Slow(endless, endless, pause=0.001)
    _, end = run(Agent(backend, config=AgentConfig(silence=1.0, answer_seconds=0.05)))
    assert (end.reason, end.detail) == ("error", "the answer took longer than 0.05 seconds")


@pytest.mark.mission("C22")
def test_whoever_stops_a_run_is_not_told_that_the_model_was_slow() -> None:
    async def main() -> None:
        agent = Agent(Slow([ContentDelta("a")]), config=AgentConfig(silence=60.0))
        asking = asyncio.create_task(agent.ask("?"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(main())


def test_an_answer_that_raises_in_its_middle_is_asked_for_again() -> None:
    class Cut(ScriptedBackend):
        async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
            async for event in super().stream(request, options):
                yield event
                if len(self.requests) == 1:
                    raise ProviderError("the connection was lost")

    assert run(Agent(Cut([ParsedResponse("half"), ParsedResponse("whole")])))[1].answer == "whole"


def test_one_turn_cannot_make_more_calls_than_there_are_left() -> None:
    calls = [ToolCall("add", {"a": at, "b": 0}, str(at)) for at in range(5)]
    backend = ScriptedBackend([calling(*calls[:2]), calling(*calls[2:]), ParsedResponse("enough")])
    events, end = run(Agent(backend, [add], AgentConfig(budget=Budget(calls=3))))
    assert sum(isinstance(event, CallDone) for event in events) == 5
    (results,) = [message.parts for message in backend.requests[2].messages[3:] if message.role == "tool"][-1:]
    assert [part.error for part in results if isinstance(part, ToolResult)] == [None, OVER, OVER]
    assert (end.reason, end.calls) == ("budget", 5)
