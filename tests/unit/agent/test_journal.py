"""Runs that are recorded: cut after any record and gone on with, they come to the same."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from toolwire import FinishReason, Message, ParsedResponse, ProviderError, Tier, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member, Prices
from toolwire.agent.journal import UNKNOWN, MemoryJournal, recorded_events
from toolwire.agent.run_events import (
    ApprovalRequested,
    MemberEvent,
    ReplayEnded,
    RunEnded,
    RunResumed,
    TaskStarted,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from toolwire.errors import JournalError
from toolwire.events import CallEnd, ContentDelta, Event, replay
from toolwire.execution.registry import ToolRegistry
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.policy import Limit, Policy
from toolwire.policy.session import Session
from toolwire.providers.request import ChatRequest
from toolwire.telemetry import Archive, Recorder

Plan = Callable[[ChatRequest], ParsedResponse]


class PlannedBackend:
    """A model that answers by what it is asked, so that it does not matter which process asks."""

    model, api, format = "planned", "", ""

    def __init__(self, plan: Plan) -> None:
        self.asked: list[ChatRequest] = []
        self._plan = plan

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        self.asked.append(request)
        for event in replay(self._plan(request)):
            yield event


def results(request: ChatRequest) -> list[ToolResult]:
    return [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]


def calling(*calls: ToolCall, content: str = "") -> ParsedResponse:
    return ParsedResponse(content, tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS, usage=Usage(100, 10))


def answering(content: str) -> ParsedResponse:
    return ParsedResponse(content, usage=Usage(1, 1))


class Killed(GeneratorExit):
    """The process is gone: nothing behind it happens."""


class CutJournal(MemoryJournal):
    """A journal whose process is killed when it has written so many records, or right before it writes one."""

    def __init__(self, records: dict[str, str], after: int, *, before: bool = False) -> None:
        super().__init__(records)
        self.left = after
        self._before = before

    async def write(self, name: str, text: str) -> None:
        self.left -= 1
        if self.left < 0 and self._before:
            raise Killed
        await super().write(name, text)
        if self.left < 0:
            raise Killed


class World:
    """Tools that change something, and what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.asked: list[str] = []
        self.registry = ToolRegistry()
        self.registry.register(self.add, tier=Tier.RUN, requires_confirmation=True)
        self.registry.register(self.look, idempotent=True)
        self.registry.register(self.page, untrusted=True)

    async def add(self, item: str) -> str:
        """Adds an item."""
        self.done.append(item)
        return f"{item} is added"

    def look(self, item: str) -> bool:
        """Whether an item is there."""
        return item in self.done

    async def page(self) -> str:
        """Return untrusted content."""
        return "hello"

    async def confirm(self, approval: Approval) -> ApprovalAnswer:
        self.asked.append(approval.call.arguments["item"])
        return ApprovalAnswer(approved=approval.call.arguments["item"] != "bomb", remember=True, reason="no")


def plan(request: ChatRequest) -> ParsedResponse:
    """Two items at once, a page, a bomb, one item more; what may or may not have been done is looked at first."""
    seen = results(request)
    last = seen[-1] if seen else None
    if last is not None and last.error == UNKNOWN and last.tool_name == "add":
        return calling(ToolCall("look", {"item": last.call_id[1:]}, f"l{last.call_id[1:]}"))
    if last is not None and last.tool_name == "look" and last.call_id != "l0" and last.result is False:
        return calling(ToolCall("add", {"item": last.call_id[1:]}, f"2{last.call_id[1:]}"))
    answered = {one.call_id for one in seen}
    if "1tea" not in answered:
        return calling(
            ToolCall("look", {"item": "sugar"}, "l0"),
            ToolCall("add", {"item": "tea"}, "1tea"),
            content="First tea.",
        )
    if "p" not in answered:
        return calling(ToolCall("page", {}, "p"))
    if "1bomb" not in answered:
        return calling(ToolCall("add", {"item": "bomb"}, "1bomb"))
    if "1milk" not in answered:
        return calling(ToolCall("add", {"item": "milk"}, "1milk"))
    return ParsedResponse("All is there.", usage=Usage(50, 5))


def agent_of(world: World) -> Agent:
    return Agent(
        PlannedBackend(plan),
        world.registry,
        AgentConfig(tier=Tier.RUN, budget=Budget(prices=Prices(1.0, 2.0))),
        policy=Policy(limits=(Limit(6),)),
        confirm=world.confirm,
    )


async def life(agent: Agent, journal: MemoryJournal | None, session: Session) -> list[Any]:
    """The events of one life; it ends where it is killed."""
    events: list[Any] = []
    try:
        async for event in agent.run("Buy.", session=session, journal=journal):
            events.append(event)  # noqa: PERF401  what came before it was killed counts
    except* Killed:
        pass
    return events


def facts(session: Session) -> tuple[Any, ...]:
    return (
        session.tier,
        session.untrusted,
        session._approved,
        session._refused,
        session._counts,
        sorted((name, len(times)) for name, times in session._call_times.items()),
    )


def test_every_answer_and_every_call_is_recorded() -> None:
    journal = MemoryJournal()
    events = asyncio.run(life(agent_of(World()), journal, Session()))
    assert isinstance(events[-1], RunEnded)
    names = list(journal.records)
    assert sorted(names[:5]) == ["answer.1", "begun.1.0", "begun.1.1", "done.1.0", "done.1.1"]
    assert names[5:] == [
        *("answer.2", "begun.2.0", "done.2.0", "answer.3", "done.3.0", "answer.4", "begun.4.0", "done.4.0", "answer.5")
    ]
    assert [
        event
        for event in recorded_events(MemoryJournal(journal.records))
        if not isinstance(event, ToolFinished | ToolStarted)
    ] == [
        event
        for event in events
        if not isinstance(event, ToolFinished | ToolStarted | RunEnded | TaskStarted | ApprovalRequested)
    ]


@pytest.mark.need(34)
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("cut", range(14))
def test_run_that_is_interrupted_anywhere_ends_in_the_same_way(cut: int, before: bool) -> None:
    whole, reference, world, session = World(), Session(), World(), Session()
    end = asyncio.run(life(agent_of(whole), None, reference))[-1]
    records: dict[str, str] = {}
    asyncio.run(life(agent_of(world), CutJournal(records, cut, before=before), Session()))
    answered, did = len([name for name in records if name.startswith("answer")]), list(world.done)
    second = agent_of(world)
    events = asyncio.run(life(second, MemoryJournal(records), session))
    again = events[-1]
    assert isinstance(again, RunEnded)
    assert (again.reason, again.answer) == (end.reason, end.answer)
    assert sorted(world.done) == ["milk", "tea"], "each was done, and once"
    assert world.done[: len(did)] == did
    unknown = [event for event in events if isinstance(event, ToolFinished) and event.outcome.result.error == UNKNOWN]
    asked = second.backend.asked  # type: ignore[attr-defined]
    extra = sum(len(event.outcome.call.name) == 3 for event in unknown) and again.rounds - end.rounds
    assert len(asked) == end.rounds - answered + extra, "nothing is asked again that was answered"
    if not unknown:
        assert again.messages == end.messages
        assert facts(session) == facts(reference)
        assert set(world.asked) == set(whole.asked)
        assert (again.rounds, again.calls, again.usage, again.money) == (end.rounds, end.calls, end.usage, end.money)


def test_recorded_events_are_replayed_between_two_marks() -> None:
    world = World()
    records: dict[str, str] = {}
    first = asyncio.run(life(agent_of(world), CutJournal(records, 8), Session()))
    events = asyncio.run(life(agent_of(world), MemoryJournal(records), Session()))
    begin, caught_up = events.index(RunResumed()), events.index(ReplayEnded())
    assert begin == 1, "right behind what the task unlocked"
    kinds = (TurnStarted, ContentDelta, CallEnd)
    again = [event for event in events[begin:caught_up] if isinstance(event, kinds)]
    assert again == [event for event in first if isinstance(event, kinds)][: len(again)]
    assert not any(isinstance(event, ApprovalRequested) for event in events[:caught_up]), "nobody is asked again"
    assert ReplayEnded() not in events[caught_up + 1 :]


@pytest.mark.parametrize("told_before", [False, True])
def test_calls_after_a_resumption_are_recorded(told_before: bool, tmp_path: Path) -> None:
    """The first life is cut between two calls; it told its answer, or was killed before it could."""
    recorder, records, made = Recorder(tmp_path / "turns.db"), dict[str, str](), 0
    begun = asyncio.Event()

    async def add(item: str) -> str:
        """Adds."""
        nonlocal made
        made += 1
        if item == "b" and made == 2:
            begun.set()
            await asyncio.Event().wait()
        return item

    def planned(request: ChatRequest) -> ParsedResponse:
        asked = [ToolCall("add", {"item": item}, item) for item in "ab"]
        return ParsedResponse("Done.") if results(request) else calling(*asked)

    async def lives() -> None:
        registry = ToolRegistry()
        registry.register(add, idempotent=True)
        observers = [recorder] if told_before else []
        journal = MemoryJournal(records)
        async with aclosing(
            Agent(PlannedBackend(planned), registry, observers=observers, telemetry=False).run(
                "Add.", run_id="r", journal=journal
            )
        ) as events:
            async for event in events:
                if isinstance(event, ToolFinished):
                    await begun.wait()
                    break
        agent = Agent(PlannedBackend(planned), registry, observers=[recorder], telemetry=False)
        async for _ in agent.run("Add.", run_id="r", journal=MemoryJournal(records)):
            pass

    asyncio.run(lives())
    recorder.close()
    turns = Archive(tmp_path / "turns.db").run("r").turns
    assert [turn["round"] for turn in turns] == [1, 2]
    assert [call["id"] for call in turns[0]["calls"]] == (["a", "b"] if told_before else ["b"])


def test_run_that_was_not_interrupted_has_no_marks() -> None:
    events = asyncio.run(life(agent_of(World()), MemoryJournal(), Session()))
    assert RunResumed() not in events
    assert ReplayEnded() not in events


@pytest.mark.parametrize("idempotent", [False, True])
def test_interrupted_call_runs_again_only_if_it_is_idempotent(idempotent: bool) -> None:
    ran: list[str] = []
    asked: list[str] = []

    async def confirm(approval: Approval) -> bool:
        asked.append(approval.call.name)
        return True

    async def tool() -> str:
        """Works."""
        ran.append("ran")
        if len(ran) == 1:
            raise Killed
        return "done"

    def agent() -> Agent:
        registry = ToolRegistry()
        registry.register(tool, requires_confirmation=True, idempotent=idempotent)
        answer = calling(ToolCall("tool", {}, "1"))
        limited = Policy(limits=(Limit(1),))
        made = PlannedBackend(lambda request: answer if not results(request) else ParsedResponse("end"))
        return Agent(made, registry, policy=limited, confirm=confirm)

    records: dict[str, str] = {}
    asyncio.run(life(agent(), MemoryJournal(records), Session()))
    assert list(records) == ["answer.1", "begun.1.0"]
    session = Session()
    events = asyncio.run(life(agent(), MemoryJournal(records), session))
    (done,) = [event.outcome.result for event in events if isinstance(event, ToolFinished)]
    assert done == ToolResult("1", "tool", "done") if idempotent else ToolResult("1", "tool", error=UNKNOWN)
    assert len(ran) == 1 + idempotent
    assert asked == ["tool"], "what was approved is not asked about again"
    assert session._counts == {"tool": 1}, "it was counted when it began"


def test_spending_of_earlier_processes_counts() -> None:
    def agent(rounds: int) -> Agent:
        always = PlannedBackend(
            lambda request: (
                calling(ToolCall("look", {"item": str(len(results(request)))}, str(len(results(request)))))
                if request.tool_choice.mode != "none"
                else ParsedResponse("enough")
            )
        )
        budget = Budget(rounds=rounds, tokens=400)
        return Agent(always, World().registry, AgentConfig(tier=Tier.RUN, budget=budget))

    records: dict[str, str] = {}
    asyncio.run(life(agent(9), CutJournal(records, 9), Session()))
    end = asyncio.run(life(agent(9), MemoryJournal(records), Session()))[-1]
    assert (end.reason, end.detail, end.rounds) == ("budget", "the budget of 400 tokens is used up", 5)
    # What was asked for as the last answer stays the last one, though this budget would allow more.
    end = asyncio.run(life(agent(50), MemoryJournal(records), Session()))[-1]
    assert (end.reason, end.rounds, end.answer) == ("budget", 5, "enough")


def test_seconds_of_earlier_processes_count() -> None:
    record = '{"answer":{"response":{"content":"","tool_calls":[{"name":"look","arguments":{"item":"a"},"id":"1"}]}},'
    records = {"answer.1": record + '"at":1,"seconds":3600.0,"usage":{},"session":{}}'}
    made = PlannedBackend(lambda request: ParsedResponse("end"))
    agent = Agent(made, World().registry, AgentConfig(budget=Budget(seconds=600)))
    end = asyncio.run(life(agent, MemoryJournal(records), Session()))[-1]
    assert end.reason == "budget"
    assert 3600 <= end.seconds < 3700


def test_result_that_cannot_be_recorded_is_an_error_for_the_model() -> None:
    def odd() -> ToolResult:
        """Gives back something odd."""
        return ToolResult("", "", object())

    registry = ToolRegistry([odd])
    made = PlannedBackend(
        lambda request: calling(ToolCall("odd", {}, "1")) if not results(request) else ParsedResponse("end")
    )
    events = asyncio.run(life(Agent(made, registry), MemoryJournal(), Session()))
    (done,) = [event.outcome.result for event in events if isinstance(event, ToolFinished)]
    assert "cannot be written as JSON" in (done.error or "")


def test_record_that_cannot_be_written_ends_the_run_before_the_call_runs() -> None:
    class Full(MemoryJournal):
        async def write(self, name: str, text: str) -> None:
            if name.startswith("begun"):
                raise JournalError("the disk is full")
            await super().write(name, text)

    world = World()
    with pytest.raises(JournalError, match="disk is full"):
        asyncio.run(life(agent_of(world), Full(), Session()))
    assert world.done == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"answer": 3}'])
def test_malformed_records_are_refused(text: str) -> None:
    with pytest.raises(JournalError):
        asyncio.run(life(agent_of(World()), MemoryJournal({"answer.1": text}), Session()))


def test_error_of_the_model_is_not_recorded_as_an_answer() -> None:
    def refuse(request: ChatRequest) -> ParsedResponse:
        raise ProviderError("no route")

    journal = MemoryJournal()
    end = asyncio.run(life(Agent(PlannedBackend(refuse)), journal, Session()))[-1]
    assert (end.reason, journal.records) == ("error", {})
    made = PlannedBackend(lambda request: ParsedResponse("end"))
    assert asyncio.run(life(Agent(made), MemoryJournal(journal.records), Session()))[-1].reason == "answered"


@pytest.mark.parametrize("cut", range(8))
def test_members_of_a_team_continue_where_they_were(cut: int) -> None:
    world = World()

    def lead_plan(request: ChatRequest) -> ParsedResponse:
        seen = results(request)
        bought = f"It said: {seen[0].text}" if seen else ""
        return answering(bought) if seen else calling(ToolCall("buyer", {"task": "tea"}, "b"))

    def buyer_plan(request: ChatRequest) -> ParsedResponse:
        return answering("bought") if results(request) else calling(ToolCall("add", {"item": "tea"}, "1tea"))

    def team() -> AgentTeam:
        buyer = Agent(
            PlannedBackend(buyer_plan),
            world.registry,
            AgentConfig(name="buyer", tier=Tier.RUN),
            confirm=world.confirm,
        )
        lead = Agent(PlannedBackend(lead_plan), config=AgentConfig(tier=Tier.RUN))
        return AgentTeam(lead, [Member(buyer, "Buys.")])

    records: dict[str, str] = {}
    asyncio.run(life(team().coordinator, CutJournal(records, cut), Session()))
    second = team()
    events = asyncio.run(life(second.coordinator, MemoryJournal(records), Session()))
    assert events[-1].answer == "It said: bought"
    assert len(world.done) == (cut != 3), "as the call began the process was killed, and nobody knows how far it came"
    asked = len(second.coordinator.backend.asked) + len(second.members[0].agent.backend.asked)  # type: ignore[attr-defined]
    assert asked == 4 - sum(name.rpartition("/")[2].startswith("answer") for name in list(records)[: cut + 1])
    assert sorted(records) == sorted(
        [
            *("answer.1", "begun.1.0", "1.0/answer.1", "1.0/begun.1.0", "1.0/done.1.0", "1.0/answer.2", "done.1.0"),
            "answer.2",
        ]
    )
    assert events[-1].usage == Usage(202, 22)
    if 1 < cut < 5:
        assert any(isinstance(event, MemberEvent) and event.event == RunResumed() for event in events)


def test_run_that_a_tool_begins_by_itself_is_not_recorded() -> None:
    made = iter(range(9))

    def two_calls(request: ChatRequest) -> ParsedResponse:
        seen = len(results(request))
        return ParsedResponse("both") if seen == 2 else calling(ToolCall("helper", {"task": "x"}, str(seen)))

    helper = Agent(PlannedBackend(lambda request: ParsedResponse(f"number {next(made)}")), config=AgentConfig("helper"))
    inner = Agent(PlannedBackend(two_calls))
    AgentTeam(inner, [Member(helper, "Helps.")])

    async def delegate() -> str:
        """Runs an agent of its own."""
        return await inner.ask("?")

    def planned(request: ChatRequest) -> ParsedResponse:
        return ParsedResponse("end") if results(request) else calling(ToolCall("delegate", {}, "1"))

    journal = MemoryJournal()
    assert asyncio.run(life(Agent(PlannedBackend(planned), [delegate]), journal, Session()))[-1].answer == "end"
    assert list(journal.records) == ["answer.1", "begun.1.0", "done.1.0", "answer.2"]
    assert next(made) == 2, "each call was answered for itself"


def test_messages_of_a_recorded_run_can_be_continued() -> None:
    world = World()
    end = asyncio.run(life(agent_of(world), MemoryJournal(), Session()))[-1]
    assert [message.role for message in end.messages][:3] == ["user", "assistant", "tool"]
    assert all(isinstance(message, Message) for message in end.messages)
