"""The seconds of a run are its own: whatever does not come to an end is stopped, and a last answer asked for."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import toolwire
from toolwire import Finish, FinishReason, ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.hooks import Hooks
from toolwire.agent.journal import MemoryJournal
from toolwire.agent.run_events import CallDone, RunEnded
from toolwire.errors import RunFailed
from toolwire.events import ContentDelta, Event
from toolwire.execution.registry import ToolRegistry
from toolwire.models.backends import NO_OPTIONS, StreamOptions, TextBackend, local_source
from toolwire.policy.session import Session
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedBackend

SHORT = Budget(seconds=0.05, last_seconds=5.0)


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


def ended(agent: Agent, **options: Any) -> tuple[list[Any], RunEnded]:
    async def main() -> list[Any]:
        return [event async for event in agent.run("Go.", **options)]

    events = asyncio.run(main())
    return events, events[-1]


def calling(name: str) -> ParsedResponse:
    return ParsedResponse(tool_calls=(ToolCall(name, {}, "1"),), finish_reason=FinishReason.TOOL_CALLS)


def test_a_tool_that_never_ends_is_stopped() -> None:
    backend = ScriptedBackend([calling("forever"), ParsedResponse("So far.")])
    events, end = ended(Agent(backend, [forever], AgentConfig(budget=SHORT)))
    (done,) = [event.outcome for event in events if isinstance(event, CallDone)]
    assert "was stopped" in done.result.text
    assert (end.reason, end.answer, end.detail) == ("budget", "So far.", "the budget of 0.05 seconds is used up")


def test_a_model_that_never_ends_is_asked_for_its_last_answer() -> None:
    backend = Silent(last=True)
    _, end = ended(Agent(backend, [forever], AgentConfig(budget=SHORT)))
    assert (end.reason, end.answer, end.rounds) == ("budget", "I think", 1)
    assert backend.requests[1].tool_choice.mode == "none"


def test_no_last_answer_is_waited_for_for_ever() -> None:
    config = AgentConfig(budget=Budget(seconds=0.05, last_seconds=0.05))
    _, end = ended(Agent(Silent(last=False), [forever], config))
    assert (end.reason, end.answer) == ("budget", "")
    assert "no last answer came" in end.detail


def test_an_answer_that_the_time_broke_off_is_not_recorded() -> None:
    records: dict[str, str] = {}
    _, end = ended(Agent(Silent(last=True), [forever], AgentConfig(budget=SHORT)), journal=MemoryJournal(records))
    assert list(records) == ["answer.1"]
    _, again = ended(Agent(Silent(last=False), [forever], AgentConfig(budget=SHORT)), journal=MemoryJournal(records))
    assert (again.reason, again.answer) == (end.reason, end.answer)


def test_money_needs_prices() -> None:
    with pytest.raises(ValueError, match="counted by prices"):
        Budget(money=1.0)


def test_a_model_that_is_stopped_before_it_counts_is_estimated() -> None:
    async def babbling(messages: Any, **options: Any) -> AsyncGenerator[Event]:
        yield ContentDelta('<tool_call>{"name": "forever", "arguments": {}}</tool_call>' + "and so on " * 30)
        yield Finish(FinishReason.STOP)

    backend = TextBackend(babbling, format="hermes")
    config = AgentConfig(budget=Budget(rounds=1))
    _, end = ended(Agent(backend, [forever], config))
    assert end.usage.output_tokens > 80
    assert end.usage.input_tokens > 100


def test_a_model_that_counts_is_believed() -> None:
    async def counting(messages: Any, **options: Any) -> AsyncGenerator[Event]:
        yield ContentDelta("Hello")
        yield toolwire.UsageCounted(Usage(3, 2))
        yield Finish(FinishReason.STOP)

    _, end = ended(Agent(TextBackend(counting, format="hermes")))
    assert end.usage == Usage(3, 2)


def test_trouble_of_a_model_in_this_process_is_told() -> None:
    class Broken:
        def stream(self, messages: Any, /, **options: Any) -> Any:
            yield "Hel"
            raise RuntimeError("llama_decode failed")

    _, end = ended(Agent(TextBackend(local_source(Broken()), format="hermes")))
    assert end.reason == "error"
    assert "llama_decode failed" in end.detail


def test_a_step_that_fails_loses_no_result() -> None:
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
        ended(Agent(ScriptedBackend([calling("once")]), [once], config), journal=MemoryJournal(records))
    mended = True
    backend = ScriptedBackend([ParsedResponse("end")])
    ended(Agent(backend, [once], config), journal=MemoryJournal(records))
    assert made == ["x"]
    assert [part.text for part in backend.requests[0].messages[-1].parts if isinstance(part, ToolResult)] == ["[made]"]


def test_a_step_that_fails_stops_no_call_beside_it() -> None:
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
        ended(Agent(ScriptedBackend([both]), [slow, quick], config))
    assert ran == ["slow"]


def test_no_answer_is_told_with_what_was_said_last() -> None:
    agent = Agent(ScriptedBackend([ParsedResponse("Half of it.")]), config=AgentConfig(budget=Budget(rounds=1)))
    with pytest.raises(RunFailed, match="said last: Half of it"):
        asyncio.run(agent.ask("Go."))


def test_a_call_that_waits_for_somebody_did_not_run() -> None:
    async def nobody(approval: Any) -> bool:
        await asyncio.Event().wait()
        return True

    asking = ToolRegistry()
    asking.register(forever, requires_confirmation=True)
    backend = ScriptedBackend([calling("forever"), ParsedResponse("So far.")])
    events, _ = ended(Agent(backend, asking, AgentConfig(budget=SHORT), confirm=nobody))
    (done,) = [event.outcome for event in events if isinstance(event, CallDone)]
    assert "did not run" in done.result.text
    assert done.issue is not None


def test_an_answer_that_is_not_heard_to_its_end_is_paid_for() -> None:
    class Telling(Silent):
        async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
            yield toolwire.UsageCounted(Usage(5_000, 1))
            async for event in super().stream(request, options):
                yield event

    for kind, tokens in ((Telling, 10_000), (Silent, 1)):
        _, end = ended(Agent(kind(last=True), [forever], AgentConfig(budget=SHORT)))
        assert end.usage.input_tokens >= tokens


def test_what_a_session_has_come_to_is_kept_though_a_record_was_not() -> None:
    """A time limit that comes while a record is written: the next record tells what that one should have."""

    class Slow(MemoryJournal):
        async def write(self, name: str, text: str) -> None:
            if name.startswith("begun"):
                await asyncio.Event().wait()
            await super().write(name, text)

    records: dict[str, str] = {}
    backend = ScriptedBackend([calling("forever"), ParsedResponse("So far.")])
    session = Session()
    ended(Agent(backend, [forever], AgentConfig(budget=SHORT)), journal=Slow(records), session=session)
    later = Session()
    del records["answer.2"]
    ended(Agent(ScriptedBackend([ParsedResponse("end")]), [forever]), journal=MemoryJournal(records), session=later)
    now = 0.0
    assert later.context(now=now).counts == session.context(now=now).counts != {}
