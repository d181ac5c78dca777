"""What observers hear of a run."""

import asyncio
import logging
from typing import Any

import pytest
from tests.unit.telemetry.scripts import ADD, Heard, add, fail, go, source, wipe

import toolwire
from toolwire import FinishReason, ParsedResponse, ProviderError, ToolCall, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member, RunEnded
from toolwire.agent.hooks import Hooks, TurnInfo
from toolwire.models.backends import TextBackend
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.telemetry import NATIVE, TurnRecord
from toolwire.testing import ScriptedBackend

WIPE = '<tool_call>{"name": "wipe", "arguments": {"path": "/x"}}</tool_call>'


@pytest.mark.mission("D46", "E21")
def test_a_run_is_told_from_beginning_to_end() -> None:
    heard = Heard()
    go(["Let me add. " + ADD % 1, "It is 3."], heard, run_id="mine", task="What is 1 + 2?")
    (run,), (first, second), (end,) = heard.runs, heard.turns, heard.ends
    assert (run.id, run.agent, run.model, run.format, run.task, run.parent) == (
        "mine",
        "agent",
        "tiny",
        "hermes",
        "What is 1 + 2?",
        "",
    )
    assert (first.run, first.round, first.attempt, first.format, first.formats) == ("mine", 1, 1, "hermes", ("hermes",))
    assert first.raw == "Let me add. " + ADD % 1
    assert first.offered == ("add", "fail", "wipe")
    assert first.time_to_first_event is not None
    assert 0 <= first.time_to_first_event <= first.seconds
    assert run.started_at <= first.started_at <= second.started_at
    (call,) = first.calls
    assert (call.call.arguments, call.result.result, call.issue, call.decision) == (
        {"a": 1, "b": 2},
        3,
        None,
        "allowed",
    )
    assert (first.good, second.good) == (True, None)
    assert (end.run, end.reason, end.good, end.rounds, end.calls) == ("mine", "answered", True, 2, 1)


@pytest.mark.mission("F37", "F46")
@pytest.mark.parametrize(
    ("text", "good", "found", "repairs", "problems"),
    [
        (ADD % 1, True, ("hermes",), {}, {}),
        (ADD % '"1"', True, ("hermes",), {"coerced": 1}, {}),
        ("Just prose about adding.", None, (), {}, {}),
        ("To add, I would add.", None, (), {}, {}),
        ("<tool_call>{]", False, ("hermes",), {}, {"missing_name": 1}),
        ('<tool_call>{"name": "add", "arguments": {"a": 1', False, ("hermes",), {}, {"truncated": 1}),
        ("[add(a=1, b=2)]", False, ("call_list",), {"fallback": 1}, {}),
        (
            "<tool><tool_name>add</tool_name><arguments><a>1</a></arguments></tool>",
            False,
            ("forge_xml",),
            {},
            {"call_in_prose": 1},
        ),
        (ADD.replace("add", "subtract") % 1, False, ("hermes",), {}, {}),
        (ADD % '"one"', False, ("hermes",), {}, {}),
        ('<tool_call>{"name": "fail", "arguments": {}}</tool_call>', True, ("hermes",), {}, {}),
    ],
)  # fmt: skip
def test_what_counts_as_a_good_answer(
    text: str, good: bool | None, found: tuple[str, ...], repairs: dict[str, int], problems: dict[str, int]
) -> None:
    heard = Heard()
    go([text], heard)
    turn = heard.turns[0]
    if problems:
        assert sum(turn.problems.values()) == 1
    assert (turn.good, dict(turn.repairs), bool(turn.problems)) == (good, repairs, bool(problems))
    assert turn.formats in (found, ()) if problems else turn.formats == found


def test_a_call_that_had_to_come_and_did_not_is_no_good_answer() -> None:
    heard = Heard()
    go(["prose"] * 9, heard, config=AgentConfig(require_tool_call=True, budget=Budget(rounds=2)))
    assert heard.turns[0].faults == ("no_call",)
    assert heard.turns[0].good is False
    assert "called no tool" in heard.turns[0].correction
    assert heard.turns[1].offered == ("add", "fail", "wipe")  # told, and forbidden to be called
    assert heard.turns[1].good is None


def test_native_calls_and_those_in_the_text_are_told_apart() -> None:
    heard = Heard()
    native = ToolCall("add", {"a": 1, "b": 2}, "1", format="openai_chat")
    strayed = ToolCall("add", {"a": 3, "b": 2}, "2", format="hermes")
    backend = ScriptedBackend([ParsedResponse(tool_calls=(native,)), ParsedResponse(tool_calls=(strayed,)), "done"])
    asyncio.run(Agent(backend, [add], observers=[heard], telemetry=False).ask("?"))
    assert [turn.format for turn in heard.turns] == [NATIVE] * 3
    assert [turn.formats for turn in heard.turns] == [(NATIVE,), ("hermes",), ()]
    assert [turn.good for turn in heard.turns] == [True, False, None]


class _Boss:
    name = "the boss"

    def answer(self, approval: Approval) -> ApprovalAnswer:
        return ApprovalAnswer(approval.call.arguments["path"] == "/yes")


class _AsyncBoss(_Boss):
    async def __call__(self, approval: Approval) -> ApprovalAnswer:
        return self.answer(approval)


class _PlainBoss(_Boss):
    def __call__(self, approval: Approval) -> ApprovalAnswer:
        return self.answer(approval)


@pytest.mark.mission("E21")
@pytest.mark.parametrize("boss", [_AsyncBoss(), _PlainBoss()])
def test_who_agreed_is_told(boss: Any) -> None:
    heard = Heard()
    texts = [WIPE.replace("/x", "/yes") + WIPE, "done"]
    go(texts, heard, confirm=boss)
    yes, no = heard.turns[0].calls
    assert [one.decision for one in (yes, no)] == ["approved by the boss", "refused by the boss"]
    assert yes.result.success
    assert no.issue is not None
    assert no.approval is not None
    assert no.approval.seconds >= 0
    assert "confirmation" in no.approval.reason or no.approval.reason
    heard = Heard()
    go([WIPE], heard)
    assert heard.turns[0].calls[0].decision == "confirmation"


def test_no_answer_is_told_as_none() -> None:
    async def never(approval: Approval) -> bool:
        await asyncio.Event().wait()
        return True

    def executor(registry: Any, confirm: Any) -> Any:
        return toolwire.execution.executor.ToolExecutor(registry, confirm=confirm, confirm_timeout=0.01)

    heard = Heard()
    go([WIPE], heard, confirm=never, executor=executor)
    assert heard.turns[0].calls[0].decision == "no answer"


def test_a_step_that_answers_a_call_is_told_as_such() -> None:
    def answer(call: ToolCall, turn: TurnInfo) -> ToolCall | ToolResult:
        return ToolResult("", "", "mocked")

    heard = Heard()
    go([ADD % 1], heard, config=AgentConfig(hooks=Hooks(invocation=(answer,))))
    assert [one.decision for one in heard.turns[0].calls] == ["answered by a hook"]


def test_answers_that_break_off_are_told_with_their_attempts() -> None:
    heard = Heard()
    backend = ScriptedBackend([ParsedResponse("half", finish_reason=FinishReason.ERROR), ProviderError("no route")])
    agent = Agent(backend, [add], observers=[heard], telemetry=False)
    with pytest.raises(toolwire.ToolwireError):
        asyncio.run(agent.ask("?"))
    assert [(turn.attempt, turn.error, turn.answered) for turn in heard.turns] == [
        (1, "the answer broke off", False),
        (2, "no route", False),
    ]
    assert [turn.good for turn in heard.turns] == [None, None]
    (end,) = heard.ends
    assert (end.reason, end.good, end.detail) == ("error", False, "no route")


def test_a_run_that_nobody_waits_for_is_told_as_stopped() -> None:
    heard = Heard()

    async def forever() -> str:
        await asyncio.Event().wait()
        return ""

    async def main() -> None:
        agent = Agent(
            ScriptedBackend([ParsedResponse(tool_calls=(ToolCall("forever", {}, "1"),), usage=Usage(3, 4)), "done"]),
            [forever],
            observers=[heard],
            telemetry=False,
        )
        events = agent.run("go")
        async for event in events:
            if type(event).__name__ == "ToolStarted":
                break
        await events.aclose()

    asyncio.run(main())
    (turn,), (end,) = heard.turns, heard.ends
    assert turn.response.usage == Usage(3, 4)
    assert turn.calls == ()
    assert (end.reason, end.good) == ("stopped", False)


def test_runs_inside_a_run_are_told_with_it() -> None:
    heard = Heard()
    helper = Agent(
        TextBackend(source([ADD % 1, "three", ADD % 2, "four"]), format="hermes", model="small"),
        [add],
        AgentConfig(name="counter"),
        observers=[heard],
        telemetry=False,
    )
    calls = [ToolCall("counter", {"task": str(at)}, str(at)) for at in range(2)]
    lead = Agent(
        ScriptedBackend([*(ParsedResponse(tool_calls=(call,)) for call in calls), "done"]),
        observers=[heard],
        telemetry=False,
    )
    AgentTeam(lead, [Member(helper, "Adds.")])
    asyncio.run(lead.ask("?", run_id="top"))
    parents = {run.id: run.parent for run in heard.runs}
    assert parents.pop("top") == ""
    assert len(parents) == 2
    assert all(id.startswith("top/") and parent == "top" for id, parent in parents.items())
    assert {turn.run for turn in heard.turns if turn.model == "small"} == set(parents)


@pytest.mark.mission("E8")
def test_an_observer_that_fails_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Heard):
        def turn(self, turn: TurnRecord, /) -> None:
            raise SystemExit("out")

    broken, heard = Broken(), Heard()
    with caplog.at_level(logging.WARNING, "toolwire.telemetry"):
        go([ADD % 1, "3"], broken, heard)
    assert len(heard.turns) == 2
    assert (len(broken.runs), broken.ends) == (1, [])
    assert [record.name for record in caplog.records] == ["toolwire.telemetry"]


def test_each_run_has_an_id_of_its_own() -> None:
    heard = Heard()
    for _ in range(3):
        go(["hi"], heard)
    assert len({run.id for run in heard.runs}) == 3


def test_tools_that_fail_are_the_models_doing_or_not() -> None:
    heard = Heard()
    backend = ScriptedBackend([ParsedResponse(tool_calls=(ToolCall("fail", {}, "1"),)), "done"])
    asyncio.run(Agent(backend, [fail], observers=[heard], telemetry=False).ask("?"))
    assert not heard.turns[0].calls[0].result.success
    assert heard.turns[0].good is True


@pytest.mark.parametrize("observed", [True, False])
def test_calls_of_one_id_are_approved_each_by_itself(*, observed: bool) -> None:
    heard, both = Heard(), asyncio.Event()
    asked: list[str] = []

    async def confirm(approval: Approval) -> bool:
        asked.append(approval.call.arguments["path"])
        if len(asked) == 2:
            both.set()
        await both.wait()
        if approval.call.arguments["path"] == "/one":  # answered last
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return approval.call.arguments["path"] == "/one"

    calls = tuple(ToolCall("wipe", {"path": path}, "same") for path in ("/one", "/two"))
    backend = ScriptedBackend([ParsedResponse(tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS), "done"])
    config = AgentConfig(tier=toolwire.Tier.RUN)
    observers = [heard] if observed else []
    agent = Agent(backend, [wipe], config, confirm=confirm, observers=observers, telemetry=False)
    asyncio.run(agent.ask("?"))
    results = [part.text for part in backend.requests[1].messages[-1].parts if isinstance(part, ToolResult)]
    assert "gone" in results[0]
    assert "KeyError" not in results[1]
    if observed:
        told = [(one.call.arguments["path"], one.decision) for one in heard.turns[0].calls]
        assert told == [("/one", "approved by user"), ("/two", "refused by user")]


def test_an_answer_that_cannot_be_told_breaks_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise RecursionError("deep")

    monkeypatch.setattr("toolwire.telemetry.run_observer.found_in", broken)
    heard = Heard()
    with caplog.at_level(logging.WARNING, "toolwire.telemetry"):
        go([ADD % 1, "3"], heard)
    assert (len(heard.turns), heard.ends[0].reason) == (1, "answered")
    assert "an answer cannot be reported" in caplog.text


@pytest.mark.parametrize(("observed", "counted"), [(True, True), (False, False)])
def test_an_observed_run_costs_what_the_provider_publishes(observed: bool, counted: bool) -> None:
    backend = ScriptedBackend([ParsedResponse("hi", usage=Usage(1_000_000, 0))])
    backend.api, backend.model = "openai_chat", "gpt-4o"
    heard = Heard()
    agent = Agent(backend, observers=[heard] if observed else [], telemetry=False)

    async def end() -> float:
        (end,) = [event async for event in agent.run("?") if isinstance(event, RunEnded)]
        return end.money

    money = asyncio.run(end())
    assert (money > 0) == counted
