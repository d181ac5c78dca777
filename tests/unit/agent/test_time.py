"""Budgets of seconds: what does not end in time is stopped, and the model is asked for a last answer."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.simulated_time import SimulatedTimeLoop

import toolwire
from toolwire import Finish, FinishReason, ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.hooks import Hooks
from toolwire.agent.journal import MemoryJournal
from toolwire.agent.run_events import RunEnded, ToolFinished
from toolwire.errors import RunFailed
from toolwire.events import ContentDelta, Event
from toolwire.execution.registry import ToolRegistry
from toolwire.models.backends import NO_OPTIONS, StreamOptions, TextBackend
from toolwire.models.process_sources import local_source
from toolwire.policy.session import Session
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedBackend

SHORT = Budget(seconds=30.0, last_seconds=5.0)


@toolwire.tool
async def forever() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return ""


class Silent(ScriptedBackend):
    """Says nothing, until it is asked for its last answer; or not even then."""

    def __init__(self, *, last: bool) -> None:
        super().__init__([])
        self._last = last

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        self.requests.append(request)
        yield ContentDelta("I think")
        if not self._last or len(self.requests) == 1:
            await asyncio.Event().wait()
        yield Finish(FinishReason.STOP)


def run_agent(agent: Agent, *, threads: bool = False, **options: Any) -> tuple[list[Any], RunEnded]:
    """Run an agent in simulated time, or in real time if it works in threads."""

    async def main() -> list[Any]:
        return [event async for event in agent.run("Go.", **options)]

    with asyncio.Runner(loop_factory=None if threads else SimulatedTimeLoop) as runner:
        events = runner.run(main())
    return events, events[-1]


def calling(name: str) -> ParsedResponse:
    return ParsedResponse(tool_calls=(ToolCall(name, {}, "1"),), finish_reason=FinishReason.TOOL_CALLS)


def test_tool_that_never_ends_is_stopped() -> None:
    backend = ScriptedBackend([calling("forever"), ParsedResponse("So far.")])
    events, end = run_agent(Agent(backend, [forever], AgentConfig(budget=SHORT)))
    (done,) = [event.outcome for event in events if isinstance(event, ToolFinished)]
    assert "was stopped" in done.result.text
    assert (end.reason, end.answer, end.detail) == ("budget", "So far.", "the budget of 30 seconds is used up")


def test_model_that_never_ends_is_asked_for_a_last_answer() -> None:
    backend = Silent(last=True)
    _, end = run_agent(Agent(backend, [forever], AgentConfig(budget=SHORT)))
    assert (end.reason, end.answer, end.rounds) == ("budget", "I think", 1)
    assert backend.requests[1].tool_choice.mode == "none"


def test_last_answer_has_a_time_limit_of_its_own() -> None:
    config = AgentConfig(budget=Budget(seconds=30.0, last_seconds=5.0))
    _, end = run_agent(Agent(Silent(last=False), [forever], config))
    assert (end.reason, end.answer) == ("budget", "")
    assert "no last answer came" in end.detail
    assert end.seconds == pytest.approx(40.0), "thirty, and five for each attempt at the last answer"


def test_answer_that_ran_out_of_time_is_not_recorded() -> None:
    records: dict[str, str] = {}
    _, end = run_agent(Agent(Silent(last=True), [forever], AgentConfig(budget=SHORT)), journal=MemoryJournal(records))
    assert list(records) == ["answer.1"]
    other = Agent(Silent(last=False), [forever], AgentConfig(budget=SHORT))
    _, again = run_agent(other, journal=MemoryJournal(records))
    assert (again.reason, again.answer) == (end.reason, end.answer)


def test_usage_is_estimated_if_the_model_is_stopped_before_it_reports_any() -> None:
    async def babbling(messages: Any, **options: Any) -> AsyncGenerator[Event]:
        yield ContentDelta('<tool_call>{"name": "forever", "arguments": {}}</tool_call>' + "and so on " * 30)
        yield Finish(FinishReason.STOP)

    backend = TextBackend(babbling, format="hermes")
    config = AgentConfig(budget=Budget(rounds=1))
    _, end = run_agent(Agent(backend, [forever], config))
    assert end.usage.output_tokens > 80
    assert end.usage.input_tokens > 100


def test_usage_that_the_model_reports_is_not_estimated() -> None:
    async def counting(messages: Any, **options: Any) -> AsyncGenerator[Event]:
        yield ContentDelta("Hello")
        yield toolwire.UsageCounted(Usage(3, 2))
        yield Finish(FinishReason.STOP)

    _, end = run_agent(Agent(TextBackend(counting, format="hermes")))
    assert end.usage == Usage(3, 2)


def test_error_of_a_model_in_this_process_ends_the_run_with_its_message() -> None:
    class Broken:
        def stream(self, messages: Any, /, **options: Any) -> Any:
            yield "Hel"
            raise RuntimeError("llama_decode failed")

    _, end = run_agent(Agent(TextBackend(local_source(Broken()), format="hermes")), threads=True)
    assert end.reason == "error"
    assert "llama_decode failed" in end.detail


def test_result_hook_that_fails_loses_no_result() -> None:
    made: list[str] = []

    @toolwire.tool
    def once() -> str:
        """Does something that is not done twice."""
        made.append("x")
        return "made"

    mended = False

    def step(call: ToolCall, result: ToolResult, turn: Any) -> ToolResult:
        if not mended:
            raise KeyError("a bug")
        return ToolResult(result.call_id, result.tool_name, f"[{result.text}]")

    records: dict[str, str] = {}
    config = AgentConfig(hooks=Hooks(result=(step,)))
    with pytest.raises(KeyError, match="a bug"):
        run_agent(
            Agent(ScriptedBackend([calling("once")]), [once], config), threads=True, journal=MemoryJournal(records)
        )
    mended = True
    backend = ScriptedBackend([ParsedResponse("end")])
    run_agent(Agent(backend, [once], config), threads=True, journal=MemoryJournal(records))
    assert made == ["x"]
    assert [part.text for part in backend.requests[0].messages[-1].parts if isinstance(part, ToolResult)] == ["[made]"]


def test_result_hook_that_fails_does_not_cancel_other_calls() -> None:
    ran: list[str] = []

    @toolwire.tool
    async def slow() -> str:
        """Takes a few turns of the event loop."""
        for _ in range(20):
            await asyncio.sleep(0)
        ran.append("slow")
        return "slow"

    @toolwire.tool
    async def quick() -> str:
        """Takes none."""
        return "quick"

    def step(call: ToolCall, result: ToolResult, turn: Any) -> ToolResult:
        if call.name == "quick":
            raise KeyError("a bug")
        return result

    both = ParsedResponse(tool_calls=(ToolCall("quick", {}, "1"), ToolCall("slow", {}, "2")))
    config = AgentConfig(hooks=Hooks(result=(step,)))
    with pytest.raises(KeyError):
        run_agent(Agent(ScriptedBackend([both]), [slow, quick], config))
    assert ran == ["slow"]


def test_failed_run_quotes_the_last_answer() -> None:
    agent = Agent(ScriptedBackend([ParsedResponse("Half of it.")]), config=AgentConfig(budget=Budget(rounds=1)))
    with pytest.raises(RunFailed, match="said last: Half of it"):
        asyncio.run(agent.ask("Go."))


def test_call_that_waits_for_approval_when_time_is_up_did_not_run() -> None:
    async def nobody(approval: Any) -> bool:
        await asyncio.Event().wait()
        return True

    asking = ToolRegistry()
    asking.register(forever, requires_confirmation=True)
    backend = ScriptedBackend([calling("forever"), ParsedResponse("So far.")])
    events, _ = run_agent(Agent(backend, asking, AgentConfig(budget=SHORT), confirm=nobody))
    (done,) = [event.outcome for event in events if isinstance(event, ToolFinished)]
    assert "did not run" in done.result.text
    assert done.issue is not None


def test_answer_that_is_stopped_counts_in_the_usage() -> None:
    class Telling(Silent):
        async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
            yield toolwire.UsageCounted(Usage(5_000, 1))
            async for event in super().stream(request, options):
                yield event

    for kind, tokens in ((Telling, 10_000), (Silent, 1)):
        _, end = run_agent(Agent(kind(last=True), [forever], AgentConfig(budget=SHORT)))
        assert end.usage.input_tokens >= tokens


def test_session_changes_of_a_record_that_failed_are_in_the_next_one() -> None:
    """A time limit that comes while a record is written: the next record tells what that one should have."""

    class Slow(MemoryJournal):
        async def write(self, name: str, text: str) -> None:
            if name.startswith("begun"):
                await asyncio.Event().wait()
            await super().write(name, text)

    records: dict[str, str] = {}
    backend = ScriptedBackend([calling("forever"), ParsedResponse("So far.")])
    session = Session()
    run_agent(Agent(backend, [forever], AgentConfig(budget=SHORT)), journal=Slow(records), session=session)
    later = Session()
    del records["answer.2"]
    run_agent(Agent(ScriptedBackend([ParsedResponse("end")]), [forever]), journal=MemoryJournal(records), session=later)
    now = 0.0
    assert later.context(now=now).counts == session.context(now=now).counts != {}
