"""Limits of an answer: idle seconds, total seconds, attempts and calls."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.simulated_time import run_simulated
from tests.unit.agent.test_loop import add, calling, run

from toolwire import ParsedResponse, ProviderError, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.run_events import RunEnded, ToolFinished
from toolwire.agent.tool_calls import OVER
from toolwire.events import ContentDelta, Event, UsageCounted
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedBackend


class Slow:
    """A model that streams some events and then waits for ever, with a pause after each event if there is one."""

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


def run_in_simulated_time(agent: Agent) -> RunEnded:
    async def main() -> RunEnded:
        *_, end = [event async for event in agent.run("Go.")]
        assert isinstance(end, RunEnded)
        return end

    return run_simulated(main())


@pytest.mark.need(13)
def test_idle_model_is_asked_once_more_and_then_the_run_ends() -> None:
    half: list[Event] = [ContentDelta("half"), UsageCounted(Usage(5, 1))]
    backend = Slow(half, half)
    end = run_in_simulated_time(Agent(backend, config=AgentConfig(silence=20)))
    assert (end.reason, end.detail) == ("error", "the model sent nothing for 20 seconds")
    assert end.seconds == pytest.approx(40), "twenty for each attempt"
    assert end.usage == Usage(10, 2), "what it cost counts"
    assert backend.closed == 2
    backend = Slow([])
    assert run_in_simulated_time(Agent(backend, config=AgentConfig(silence=20))).reason == "error"
    assert backend.closed == 1


def test_endless_answer_is_stopped_after_its_seconds() -> None:
    endless: list[Event] = [ContentDelta("word ")] * 10_000
    backend = Slow(endless, endless, pause=1)
    end = run_in_simulated_time(Agent(backend, config=AgentConfig(silence=2, answer_seconds=60)))
    assert (end.reason, end.detail) == ("error", "the answer took longer than 60 seconds")
    assert end.seconds == pytest.approx(120), "sixty for each attempt"


@pytest.mark.mission("C22")
def test_cancelled_run_is_not_reported_as_a_slow_model() -> None:
    async def main() -> None:
        agent = Agent(Slow([ContentDelta("a")]), config=AgentConfig(silence=60.0))
        asking = asyncio.create_task(agent.ask("?"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(main())


def test_answer_that_breaks_off_is_asked_for_again() -> None:
    class Cut(ScriptedBackend):
        async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
            async for event in super().stream(request, options):
                yield event
                if len(self.requests) == 1:
                    raise ProviderError("the connection was lost")

    assert run(Agent(Cut([ParsedResponse("half"), ParsedResponse("whole")])))[1].answer == "whole"


def test_calls_of_one_turn_beyond_the_budget_do_not_run() -> None:
    calls = [ToolCall("add", {"a": at, "b": 0}, str(at)) for at in range(5)]
    backend = ScriptedBackend([calling(*calls[:2]), calling(*calls[2:]), ParsedResponse("enough")])
    events, end = run(Agent(backend, [add], AgentConfig(budget=Budget(calls=3))))
    assert sum(isinstance(event, ToolFinished) for event in events) == 5
    (results,) = [message.parts for message in backend.requests[2].messages[3:] if message.role == "tool"][-1:]
    assert [part.error for part in results if isinstance(part, ToolResult)] == [None, OVER, OVER]
    assert (end.reason, end.calls) == ("budget", 5)
