"""Running calls: what was validated is what was agreed to and what ran; every call gets one result."""

import asyncio
import threading
import time
from typing import Any

import pytest

import toolwire
from toolwire import ImagePart, Problem, Tier, ToolCall, ToolDefinition, ToolError, ToolResult
from toolwire.executor import Agreement, Approval, Session, ToolExecutor
from toolwire.policy import Limit, Policy, Rule
from toolwire.registry import ToolRegistry


class Ran:
    """Tools that write down what they were called with."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.registry = ToolRegistry()
        self.registry.register(self.add)
        self.registry.register(self.slow)
        self.registry.register(self.fail)
        self.registry.register(self.write, tier=Tier.RUN, requires_confirmation=True)

    async def add(self, a: int, b: int = 1) -> int:
        """Adds."""
        self.calls.append((a, b))
        return a + b

    def slow(self, seconds: float) -> str:
        """Sleeps in a thread."""
        time.sleep(seconds)
        return threading.current_thread().name

    def fail(self, how: str) -> str:
        """Fails."""
        raise {"tool": ToolError("not so"), "value": ValueError("bad")}.get(how, RuntimeError(how))

    def write(self, path: str, lines: list[str]) -> str:
        """Writes."""
        self.calls.append((path, lines))
        return "done"


def execute(
    executor: ToolExecutor, *calls: ToolCall, session: Session | None = None, **options: Any
) -> list[ToolResult]:
    return asyncio.run(executor.execute(calls, session or Session(tier=Tier.RUN), **options))


def one(executor: ToolExecutor, name: str, arguments: dict[str, Any], **options: Any) -> ToolResult:
    (result,) = execute(executor, ToolCall(name, arguments, "c1"), **options)
    assert (result.call_id, result.tool_name) == ("c1", name)
    return result


def test_results_come_in_the_order_of_the_calls() -> None:
    ran = Ran()
    calls = [ToolCall("slow", {"seconds": 0.05}, "1"), ToolCall("add", {"a": 1}, "2"), ToolCall("nope", {}, "3")]
    results = execute(ToolExecutor(ran.registry), *calls)
    assert [(result.call_id, result.success) for result in results] == [("1", True), ("2", True), ("3", False)]
    assert results[1].result == 2
    assert "MainThread" not in results[0].text


def test_arguments_are_repaired_by_the_schema_before_anything_else() -> None:
    ran = Ran()
    assert one(ToolExecutor(ran.registry), "add", {"a": "4"}).result == 5
    assert ran.calls == [(4, 1)]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("addd", {}, "There is no tool 'addd'. Did you mean add?"),
        ("add", {}, "The arguments of 'add' are not valid"),
        ("add", {"a": "x"}, "/a"),
        ("add", {"a": 1, "c": 2}, "not valid"),
        ("fail", {"how": "tool"}, "not so"),
        ("fail", {"how": "value"}, "ValueError: bad"),
        ("fail", {"how": "odd"}, "RuntimeError: odd"),
    ],
)
def test_what_goes_wrong_answers_the_model(name: str, arguments: dict[str, Any], message: str) -> None:
    result = one(ToolExecutor(Ran().registry), name, arguments)
    assert message in (result.error or "")
    assert "Traceback" not in (result.error or "")


def test_a_tier_is_named() -> None:
    ran = Ran()
    result = one(ToolExecutor(ran.registry), "write", {"path": "a", "lines": []}, session=Session())
    assert result.error == "write needs the tier RUN, and this session is at CRAWL."
    assert not ran.calls


def test_what_was_agreed_to_is_exactly_what_runs() -> None:
    ran, seen = Ran(), list[Approval]()

    async def confirm(approval: Approval) -> bool:
        seen.append(approval)
        approval.call.arguments["lines"].append("sneaked in")
        call.arguments["lines"].append("afterwards")
        return True

    executor = ToolExecutor(ran.registry, confirm=confirm, previews={"write": lambda given: f"writes {given['path']}"})
    call = ToolCall("write", {"path": "a", "lines": ["x"]}, "c1")
    assert execute(executor, call)[0].success
    assert ran.calls == [("a", ["x"])]
    assert seen[0].preview == "writes a"


@pytest.mark.parametrize("answer", [False, Agreement(False, reason="not today"), None])
def test_without_agreement_nothing_runs(answer: Any) -> None:
    ran = Ran()

    async def confirm(_: Approval) -> Any:
        if answer is None:
            await asyncio.sleep(60)
        return answer

    executor = ToolExecutor(ran.registry, confirm=confirm, confirm_timeout=0.01)
    result = one(executor, "write", {"path": "a", "lines": []})
    assert not result.success
    assert not ran.calls
    assert "Nobody is there" in (one(ToolExecutor(ran.registry), "write", {"path": "a", "lines": []}).error or "")


def test_what_cannot_be_shown_does_not_run() -> None:
    ran = Ran()

    async def confirm(_: Approval) -> bool:
        raise AssertionError("nobody is asked")

    executor = ToolExecutor(ran.registry, confirm=confirm, previews={"write": lambda given: given["none"]})
    assert "cannot be shown" in (one(executor, "write", {"path": "a", "lines": []}).error or "")
    assert not ran.calls


def test_a_decision_is_remembered_for_these_arguments_alone() -> None:
    ran, asked = Ran(), list[str]()

    async def confirm(approval: Approval) -> Agreement:
        asked.append(approval.call.arguments["path"])
        return Agreement(approval.call.arguments["path"] != "no", remember=True)

    executor, session = ToolExecutor(ran.registry, confirm=confirm), Session(tier=Tier.RUN)
    for path in ("a", "a", "b", "no", "no"):
        execute(executor, ToolCall("write", {"path": path, "lines": []}), session=session)
    assert asked == ["a", "b", "no"]
    assert [path for path, _ in ran.calls] == ["a", "a", "b"]


def test_calls_that_were_not_read_whole_do_not_run() -> None:
    ran = Ran()
    parsed = toolwire.parse('<tool_call>{"name": "add", "arguments": {"a": 1, "a": 2}}</tool_call>', format="hermes")
    assert not parsed.tool_calls
    problem = Problem("malformed", 0, "", "", index=0)
    results = execute(ToolExecutor(ran.registry), ToolCall("add", {"a": 1}), problems=[problem])
    assert "could not be read whole" in (results[0].error or "")
    assert not ran.calls


def test_preflight_runs_nothing() -> None:
    ran = Ran()
    executor, session = ToolExecutor(ran.registry, policy=Policy((Rule("deny", "add"),))), Session(tier=Tier.RUN)
    cases = {
        "unknown_tool": ToolCall("x"),
        "invalid_arguments": ToolCall("slow"),
        "denied": ToolCall("add", {"a": 1}),
        "confirmation": ToolCall("write", {"path": "a", "lines": []}),
    }
    for kind, call in cases.items():
        assert [issue.kind for issue in executor.preflight_check(call, session)] == [kind]
    assert executor.preflight_check(ToolCall("slow", {"seconds": 0}), session) == []
    ran.registry.register(ToolDefinition("only_told"))
    assert executor.preflight_check(ToolCall("only_told"), session)[0].kind == "not_runnable"
    assert not ran.calls


def test_limits_count_what_ran() -> None:
    executor = ToolExecutor(Ran().registry, policy=Policy(limits=(Limit(2),)), clock=lambda: 5.0)
    results = execute(executor, *(ToolCall("add", {"a": number}, str(number)) for number in range(4)))
    assert [result.success for result in results] == [True, True, False, False]


def test_time_is_limited() -> None:
    result = one(ToolExecutor(Ran().registry, timeout=0.02), "slow", {"seconds": 0.2})
    assert result.error == "slow took longer than 0.02 seconds."


def test_cancelling_cancels_the_calls() -> None:
    registry, ended = ToolRegistry(), list[str]()

    @registry.register
    async def forever() -> None:
        """Never ends."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("ended")

    async def main() -> None:
        task = asyncio.create_task(ToolExecutor(registry).execute([ToolCall("forever")] * 2, Session()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["ended", "ended"]


def test_no_more_run_at_a_time_than_may() -> None:
    registry, running, most = ToolRegistry(), [0], [0]

    @registry.register
    async def work() -> None:
        """Counts."""
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.001)
        running[0] -= 1

    execute(ToolExecutor(registry, concurrency=3), *[ToolCall("work")] * 20)
    assert most == [3]


def test_what_tools_give_back() -> None:
    registry = ToolRegistry()
    given: list[Any] = [
        {"a": [1]},
        None,
        ImagePart("aGk=", "image/png"),
        ToolResult("x", "y", error="own"),
        object(),
        float("nan"),
    ]

    @registry.register
    def give(at: int) -> Any:
        """Gives."""
        return given[at]

    results = execute(ToolExecutor(registry), *(ToolCall("give", {"at": at}, f"c{at}") for at in range(len(given))))
    assert [result.success for result in results] == [True, True, True, False, False, False]
    assert results[0].result == {"a": [1]}
    assert results[2].images == (given[2],)
    assert (results[3].call_id, results[3].error) == ("c3", "own")
    assert "no JSON: object" in (results[4].error or "")
