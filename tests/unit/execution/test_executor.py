"""Running calls: what was validated is what was approved and what ran; every call gets one result."""

import asyncio
import logging
import threading
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext, suppress
from datetime import date
from enum import Enum
from functools import partial
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from pydantic import BaseModel
from tests.simulated_time import run_simulated

import toolwire
from toolwire import ConfigurationError, ImagePart, Problem, Tier, ToolCall, ToolDefinition, ToolError, ToolResult
from toolwire.errors import PolicyWarning
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Issue, Outcome
from toolwire.execution.registry import Registered, ToolRegistry
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.policy import Allow, Ask, Deny, Limit, Policy, Rule
from toolwire.policy.session import Session
from toolwire.tools import Preview


class Ran:
    """Tools that write down what they were called with."""

    def __init__(self, preview: Preview | None = None) -> None:
        self.calls: list[Any] = []
        self.registry = ToolRegistry()
        self.registry.register(self.add)
        self.registry.register(self.slow)
        self.registry.register(self.fail)
        self.registry.register(self.write, tier=Tier.RUN, requires_confirmation=True, preview=preview)

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


@pytest.mark.mission("D51", "D52")
def test_results_come_in_the_order_of_the_calls() -> None:
    ran = Ran()
    calls = [ToolCall("slow", {"seconds": 0.05}, "1"), ToolCall("add", {"a": 1}, "2"), ToolCall("nope", {}, "3")]
    results = execute(ToolExecutor(ran.registry), *calls)
    assert [(result.call_id, result.success) for result in results] == [("1", True), ("2", True), ("3", False)]
    assert results[1].result == 2
    assert "MainThread" not in results[0].text


@pytest.mark.mission("F39")
@pytest.mark.need(5, 31, 37)
def test_arguments_are_repaired_by_the_schema_before_anything_else() -> None:
    ran = Ran()
    assert one(ToolExecutor(ran.registry), "add", {"a": "4"}).result == 5
    assert ran.calls == [(4, 1)]


@pytest.mark.mission("C27", "B43", "E23", "F35", "F39", "G7")
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("addd", {}, "There is no tool 'addd'; did you mean add?"),
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


def test_log_has_the_traceback_of_a_tool_that_fails_by_mistake(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "toolwire.execution")
    executor = ToolExecutor(Ran().registry)
    one(executor, "fail", {"how": "tool"})  # meant for the model
    one(executor, "fail", {"how": "a slip"})
    (record,) = caplog.records
    assert record.exc_info is not None
    assert (record.getMessage(), str(record.exc_info[1])) == ("the tool fail failed", "a slip")
    assert record.exc_info[2] is not None


@pytest.mark.mission("F38")
def test_a_tier_is_named() -> None:
    ran = Ran()
    result = one(ToolExecutor(ran.registry), "write", {"path": "a", "lines": []}, session=Session())
    assert result.error == "write needs the tier RUN, and this session is at CRAWL."
    assert not ran.calls


@pytest.mark.mission("C34", "G5")
@pytest.mark.need(31)
def test_what_was_approved_is_exactly_what_runs() -> None:
    ran, seen = Ran(lambda given: f"writes {given['path']}"), list[Approval]()

    async def confirm(approval: Approval) -> bool:
        seen.append(approval)
        approval.call.arguments["lines"].append("sneaked in")
        call.arguments["lines"].append("afterwards")
        return True

    executor = ToolExecutor(ran.registry, confirm=confirm)
    call = ToolCall("write", {"path": "a", "lines": ["x"]}, "c1")
    assert execute(executor, call)[0].success
    assert ran.calls == [("a", ["x"])]
    assert seen[0].preview == "writes a"


@pytest.mark.mission("C34", "G5")
@pytest.mark.parametrize("answer", [False, ApprovalAnswer(False, reason="not today"), None])
def test_without_agreement_nothing_runs(answer: Any) -> None:
    ran = Ran()

    async def confirm(_: Approval) -> Any:
        if answer is None:
            await asyncio.sleep(60)
        return answer

    executor = ToolExecutor(ran.registry, confirm=confirm, confirm_timeout=10)
    call = ToolCall("write", {"path": "a", "lines": []}, "c1")
    (result,) = run_simulated(executor.execute([call], Session(tier=Tier.RUN)))
    assert not result.success
    assert not ran.calls
    assert "Nobody is there" in (one(ToolExecutor(ran.registry), "write", {"path": "a", "lines": []}).error or "")


@pytest.mark.mission("C35")
def test_what_cannot_be_shown_does_not_run() -> None:
    ran = Ran(lambda given: str(given["none"]))

    async def confirm(_: Approval) -> bool:
        raise AssertionError("nobody is asked")

    executor = ToolExecutor(ran.registry, confirm=confirm)
    assert "cannot be shown" in (one(executor, "write", {"path": "a", "lines": []}).error or "")
    assert not ran.calls


@pytest.mark.need(27)
@pytest.mark.mission("C36")
def test_a_decision_is_remembered_for_these_arguments_alone() -> None:
    ran, asked = Ran(), list[str]()

    async def confirm(approval: Approval) -> ApprovalAnswer:
        asked.append(approval.call.arguments["path"])
        return ApprovalAnswer(approval.call.arguments["path"] != "no", remember=True)

    executor, session = ToolExecutor(ran.registry, confirm=confirm), Session(tier=Tier.RUN)
    for path in ("a", "a", "b", "no", "no"):
        execute(executor, ToolCall("write", {"path": path, "lines": []}), session=session)
    assert asked == ["a", "b", "no"]
    assert [path for path, _ in ran.calls] == ["a", "a", "b"]


@pytest.mark.mission("H9")
def test_calls_that_were_not_read_whole_do_not_run() -> None:
    ran = Ran()
    parsed = toolwire.parse('<tool_call>{"name": "add", "arguments": {"a": 1, "a": 2}}</tool_call>', format="hermes")
    assert not parsed.tool_calls
    problem = Problem("malformed", 0, "", "", index=0)
    results = execute(ToolExecutor(ran.registry), ToolCall("add", {"a": 1}), problems=[problem])
    assert "could not be read whole" in (results[0].error or "")
    assert not ran.calls


@pytest.mark.mission("F49")
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
    (issue,) = executor.preflight_check(ToolCall("only_told"), session)
    assert (issue.kind, issue.message.partition("has ")[2]) == (
        "not_runnable",
        "a definition here, and no function that runs it.",
    )
    assert not ran.calls


def test_limits_count_what_ran() -> None:
    executor = ToolExecutor(Ran().registry, policy=Policy(limits=(Limit(2),)), clock=lambda: 5.0)
    results = execute(executor, *(ToolCall("add", {"a": number}, str(number)) for number in range(4)))
    assert [result.success for result in results] == [True, True, False, False]


def test_time_is_limited() -> None:
    result = one(ToolExecutor(Ran().registry, timeout=0.02), "slow", {"seconds": 0.2})
    assert result.error == "slow took longer than 0.02 seconds. It may still be at work."


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
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_simulated(main())
    assert ended == ["ended", "ended"]


def test_no_more_run_at_a_time_than_may() -> None:
    registry, running, most = ToolRegistry(), [0], [0]

    @registry.register
    async def work() -> None:
        """Counts."""
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(1)
        running[0] -= 1

    run_simulated(ToolExecutor(registry, concurrency=3).execute([ToolCall("work")] * 20, Session(tier=Tier.RUN)))
    assert most == [3]


@pytest.mark.mission("D54")
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
    assert "cannot be written as JSON: it is of the type object." in (results[4].error or "")


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Order(BaseModel):
    item: str
    when: date
    size: Size = Size.SMALL


def test_functions_get_what_their_signatures_ask_for() -> None:
    got = list[Any]()
    registry = ToolRegistry()

    @registry.register
    def order(first: Order, tags: set[str], more: list[Order] | None = None) -> str:
        got.extend([first, tags, more])
        return "done"

    given = {"item": "tea", "when": "2026-03-01", "size": "large"}
    result = one(ToolExecutor(registry), "order", {"first": given, "tags": ["a"], "more": [given]})
    assert result.success, result.error
    assert got == [(made := Order(item="tea", when=date(2026, 3, 1), size=Size.LARGE)), {"a"}, [made]]
    given["when"] = "2026-02-31"
    result = one(ToolExecutor(registry), "order", {"first": given, "tags": []})
    assert (result.error or "").startswith("The arguments of 'order' are not valid: /first/when: "), result.error
    assert len(got) == 3


@pytest.mark.mission("F39")
@pytest.mark.parametrize("refusal", ["say", "raise"])
def test_a_check_of_ones_own_refuses_what_the_schema_admits(refusal: str) -> None:
    def check(arguments: dict[str, Any]) -> str | None:
        if arguments["n"] % 2 == 0:
            return None
        if refusal == "raise":
            raise ValueError("/n: is odd")
        return "/n: is odd"

    @toolwire.tool(check=check)
    def half(n: int) -> int:
        return n // 2

    executor = ToolExecutor(ToolRegistry([half]))
    assert one(executor, "half", {"n": 4}).result == 2
    assert one(executor, "half", {"n": 5}).error == "The arguments of 'half' are not valid: /n: is odd"
    assert executor.preflight_check(ToolCall("half", {"n": 5}), Session())[0].kind == "invalid_arguments"


@pytest.mark.mission("D52")
@pytest.mark.parametrize("together", [1, 3])
def test_a_lost_result_is_an_error_of_its_own(together: int) -> None:
    registry = ToolRegistry()

    @registry.register
    async def gone() -> str:
        raise asyncio.CancelledError

    calls = [ToolCall("gone", {}, str(at)) for at in range(together)]
    results = execute(ToolExecutor(registry), *calls)
    assert [result.call_id for result in results] == [call.id for call in calls]
    lost = "The call ran, and its result was lost; it may or may not have done its work."
    assert [result.error for result in results] == [lost] * together


def test_a_tool_that_ends_the_program_only_fails() -> None:
    registry = ToolRegistry()

    @registry.register
    def leave() -> str:
        raise SystemExit(3)

    assert one(ToolExecutor(registry), "leave", {}).error == "SystemExit: 3"


def test_whoever_waits_can_stop_waiting() -> None:
    async def main() -> None:
        registry, begun, ended = ToolRegistry(), asyncio.Event(), list[str]()

        @registry.register
        async def forever() -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("stopped")
            return ""

        task = asyncio.create_task(ToolExecutor(registry).execute([ToolCall("forever")] * 2, Session()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["stopped"] * 2

    asyncio.run(main())


def test_threads_that_never_come_back_take_nobodys_place() -> None:
    registry, stop = ToolRegistry(), threading.Event()
    registry.register(lambda: stop.wait() and "", name="hang")
    registry.register(lambda: "here", name="answer")
    executor = ToolExecutor(registry, timeout=0.05)
    try:
        hung = execute(executor, *[ToolCall("hang")] * 40)
        assert all("took longer" in (result.error or "") for result in hung)
        assert one(executor, "answer", {}).result == "here"
    finally:
        stop.set()


def test_untrusted_result_marks_the_session() -> None:
    registry = ToolRegistry()
    registry.register(lambda: "buy now", name="fetch", untrusted=True)
    registry.register(lambda: 1, name="count")
    executor, session = ToolExecutor(registry), Session(tier=Tier.RUN)
    execute(executor, ToolCall("count"), session=session)
    assert not session.untrusted
    execute(executor, ToolCall("fetch"), session=session)
    assert session.untrusted


def test_results_are_shaped_once_the_call_ran() -> None:
    registry = ToolRegistry()
    registry.register(lambda: "a long text", name="read")

    def shape(call: ToolCall, result: ToolResult) -> ToolResult:
        return ToolResult(result.call_id, result.tool_name, f"{call.name}: {result.text[:6]}")

    assert one(ToolExecutor(registry, shape=shape), "read", {}).result == "read: a long"


def test_whoever_notes_calls_is_told_right_before_one_runs() -> None:
    ran = Ran()
    ran.registry.register(lambda: "same", name="look", description="Looks.", idempotent=True)
    told: list[Any] = []

    async def noted(call: ToolCall, tool: Registered, key: str) -> None:
        told.append((call.name, call.arguments, tool.behavior.idempotent, list(ran.calls)))
        keys.append(key)

    async def run(name: str, arguments: dict[str, Any], session: Session, permitted: str = "") -> Outcome:
        return await executor.run(ToolCall(name, arguments, "1"), session, before_run=noted, approved_key=permitted)

    keys: list[str] = []
    executor = ToolExecutor(ran.registry, policy=Policy(limits=(Limit(2, tool="add"),)))
    session = Session()
    assert asyncio.run(run("add", {"a": "1"}, session)).result.result == 2
    assert asyncio.run(run("look", {}, session)).result.result == "same"
    assert asyncio.run(run("write", {"path": "a", "lines": []}, session)).issue is not None
    assert asyncio.run(run("add", {"a": "x"}, session)).issue is not None
    assert told == [("add", {"a": 1}, False, []), ("look", {}, True, [(1, 1)])]
    # The same call once more is neither asked about nor counted; another one is.
    assert asyncio.run(run("add", {"a": 1}, session, keys[0])).issue is None
    assert asyncio.run(run("add", {"a": 2}, session, keys[0])).issue is None
    assert asyncio.run(run("add", {"a": 2}, session, keys[0])).issue is not None


def test_a_call_that_cannot_be_noted_does_not_run() -> None:
    ran = Ran()

    async def noted(call: ToolCall, tool: Registered, key: str) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        asyncio.run(ToolExecutor(ran.registry).run(ToolCall("add", {"a": 1}, "1"), Session(), before_run=noted))
    assert ran.calls == []


class Panic(BaseException):
    """What the bindings of other languages raise."""


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(error: BaseException) -> Any:
    def fail() -> str:
        raise error

    return fail


async def panic() -> str:
    raise Panic("broken")


@pytest.mark.need(34)
@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda r: r.register(raising(Speechless()), name="odd"), "Speechless"),
        (lambda r: r.register(raising(Panic("broken")), name="odd"), "Panic"),
        (lambda r: r.register(raising(asyncio.CancelledError()), name="odd"), "CancelledError"),
        (lambda r: r.register(panic, name="odd"), "Panic: broken"),
        (lambda r: r.register(lambda: "", name="odd", description=lambda: str(1 / 0)), "could not be run"),
        (
            lambda r: r.register(lambda: 10**5000, name="odd"),
            "cannot be written as JSON: it is a number of too many digits",
        ),
        (
            lambda r: r.register(lambda: ToolResult("", "", object()), name="odd"),
            "cannot be written as JSON: it is of the type object.",
        ),
    ],
)
def test_whatever_one_call_does_the_others_keep_their_results(prepare: Any, said: str) -> None:
    registry = ToolRegistry()
    registry.register(lambda: "paid", name="pay")
    prepare(registry)
    paid, odd = execute(ToolExecutor(registry), ToolCall("pay", {}, "1"), ToolCall("odd", {}, "2"))
    assert paid.result == "paid"
    assert said in (odd.error or "")


def test_a_result_that_cannot_be_shaped_is_lost_and_says_so() -> None:
    def shape(call: ToolCall, result: ToolResult) -> ToolResult:
        raise ValueError("no shape")

    registry = ToolRegistry()
    registry.register(lambda: "paid", name="pay")
    error = one(ToolExecutor(registry, shape=shape), "pay", {}).error or ""
    assert error.startswith("The call ran, and its result was lost")
    assert "no shape" in error


@pytest.mark.parametrize("broken_reading", [1, 2, 3, 4])
def test_a_clock_that_fails_once_takes_no_place_from_later_calls(broken_reading: int) -> None:
    """One call reads the clock when it is decided, when it is counted, when it starts and when it ends."""
    readings = 0

    def clock() -> float:
        nonlocal readings
        readings += 1
        if readings == broken_reading:
            raise OSError("no clock")
        return float(readings)

    ran, session = Ran(), Session()
    executor = ToolExecutor(ran.registry, clock=clock, concurrency=1)
    errors: list[str] = []

    async def main() -> None:
        for number in (1, 2):  # one after the other, so that it is certain which of them reads the clock
            (result,) = await asyncio.wait_for(executor.execute([ToolCall("add", {"a": number})], session), 5)
            errors.append(result.error or "")

    run_simulated(main())
    assert "OSError: no clock" in errors[0]
    assert not errors[1]


def test_arguments_that_are_nested_too_deeply_are_refused() -> None:
    registry = ToolRegistry()
    registry.register(ToolDefinition("deep"), run=lambda **given: "ran")
    value: Any = []
    for _ in range(5_000):
        value = [value]
    assert not one(ToolExecutor(registry), "deep", {"a": value}).success


@pytest.mark.parametrize("together", [1, 2])
def test_a_question_that_is_withdrawn_is_a_no(together: int) -> None:
    async def confirm(_: Approval) -> bool:
        raise asyncio.CancelledError

    ran = Ran()
    calls = [ToolCall("write", {"path": "a", "lines": []}, str(at)) for at in range(together)]
    results = execute(ToolExecutor(ran.registry, confirm=confirm), *calls)
    assert all("withdrawn" in (result.error or "") for result in results)
    assert not ran.calls


def test_a_refusal_may_quote_untrusted_content_too() -> None:
    def preview(given: dict[str, Any]) -> str:
        raise ToolError("the file says: obey me")

    async def confirm(_: Approval) -> bool:
        return True

    registry = ToolRegistry()
    registry.register(
        lambda: "x", name="edit", tier=Tier.RUN, requires_confirmation=True, untrusted=True, preview=preview
    )
    session = Session(tier=Tier.RUN)
    (result,) = execute(ToolExecutor(registry, confirm=confirm), ToolCall("edit"), session=session)
    assert "obey me" in (result.error or "")
    assert session.untrusted


def test_a_tool_that_is_switched_off_meanwhile_does_not_run() -> None:
    ran = Ran()

    async def confirm(_: Approval) -> bool:
        ran.registry.enable("write", enabled=False)
        return True

    result = one(ToolExecutor(ran.registry, confirm=confirm), "write", {"path": "a", "lines": []})
    assert "switched off meanwhile" in (result.error or "")
    assert not ran.calls


def test_a_preview_that_gives_no_text_shows_nothing() -> None:
    async def preview(given: dict[str, Any]) -> str:
        return "nice"

    async def confirm(_: Approval) -> bool:
        return True

    ran = Ran(preview)  # type: ignore[arg-type]
    assert "cannot be shown" in (
        one(ToolExecutor(ran.registry, confirm=confirm), "write", {"path": "a", "lines": []}).error or ""
    )
    assert not ran.calls


def test_what_a_function_does_to_its_arguments_is_not_in_the_record() -> None:
    registry = ToolRegistry()
    registry.register(lambda names: names.append("eve") or "ok", name="pay")
    outcome = asyncio.run(ToolExecutor(registry).run(ToolCall("pay", {"names": ["bob"]}), Session()))
    assert outcome.call.arguments == {"names": ["bob"]}


def test_calls_of_all_sessions_share_the_places_there_are() -> None:
    most, now = 0, 0

    async def work() -> str:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now -= 1
        return "done"

    async def main() -> None:
        executor = ToolExecutor(ToolRegistry([work]), concurrency=2)
        await asyncio.gather(*(executor.execute([ToolCall("work")] * 3, Session()) for _ in range(5)))

    asyncio.run(main())
    assert most == 2


def test_whoever_waits_for_one_call_can_stop_waiting() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def forever() -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(ToolExecutor(ToolRegistry([forever])).execute([ToolCall("forever")], Session()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_tools_own_timeout_is_its_own() -> None:
    registry = ToolRegistry()
    registry.register(raising(TimeoutError("the database is slow")), name="query")
    assert one(ToolExecutor(registry, timeout=60), "query", {}).error == "TimeoutError: the database is slow"


async def agrees(_: Approval) -> bool:
    return True


def agrees_at_once(_: Approval) -> bool:
    return True


def later(approval: Approval) -> Awaitable[bool]:
    return agrees(approval)


class Hook:
    async def __call__(self, _: Approval) -> bool:
        return True

    def ask(self, _: Approval) -> ApprovalAnswer:
        return ApprovalAnswer(True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ToolExecutor(ToolRegistry(), policy={}), "policy must be a Policy or None (PolicyTable"),  # type: ignore[arg-type]
        (
            lambda: ToolExecutor(ToolRegistry(), confirm=True),
            "confirm must be a function of an Approval that returns True or False, not True",
        ),  # type: ignore[arg-type]
        (lambda: Session(tier="RUN"), "tier must be a Tier, such as Tier.RUN, not 'RUN'"),  # type: ignore[arg-type]
        (lambda: ToolCall("a", '{"b": 1}'), "arguments must be a dict of JSON values (json.loads"),  # type: ignore[arg-type]
    ],
)
def test_what_is_of_another_kind_is_told_at_once(make: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "confirm",
    [
        *(
            agrees,
            agrees_at_once,
            later,
            lambda one: agrees(one),
            lambda _: True,
            partial(agrees),
            partial(agrees_at_once),
        ),
        *(Hook(), Hook().ask, AsyncMock(return_value=True), Mock(return_value=ApprovalAnswer(True))),
    ],
)
def test_an_approver_may_be_any_function(confirm: Any) -> None:
    ran = Ran()
    assert one(ToolExecutor(ran.registry, confirm=confirm), "write", {"path": "a", "lines": []}).success


@pytest.mark.parametrize("confirm", [lambda _: 1, lambda _: "yes", lambda _: None, lambda _: later])
def test_only_true_of_a_plain_approver_is_an_approval(confirm: Any) -> None:
    ran = Ran()
    result = one(ToolExecutor(ran.registry, confirm=confirm), "write", {"path": "a", "lines": []})
    assert not result.success
    assert "confirm returned " in (result.error or "")
    assert ", and not True, False or an ApprovalAnswer." in (result.error or "")


def test_a_refusal_holds_until_the_user_asks_something_else() -> None:
    asked: list[str] = []

    async def no(approval: Approval) -> bool:
        asked.append(approval.call.name)
        return False

    @toolwire.tool(requires_confirmation=True)
    def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    async def main() -> list[str]:
        executor, session = ToolExecutor(ToolRegistry([pay]), confirm=no), Session(tier=Tier.RUN)
        said = []
        for amount in (1, 1, 2):
            (result,) = await executor.execute([ToolCall("pay", {"amount": amount}, "1")], session)
            said.append(result.text)
        session.record_question("Then pay it.")
        await executor.execute([ToolCall("pay", {"amount": 1}, "1")], session)
        return said

    said = asyncio.run(main())
    assert len(asked) == 3
    assert "refused this call" in said[0]
    assert "refused before" in said[1]


def test_what_a_tool_gave_back_stays_as_it_was() -> None:
    kept: list[str] = []

    @toolwire.tool
    def grow() -> list[str]:
        """Gives back its own list."""
        kept.append("x")
        return kept

    async def main() -> list[Any]:
        executor, session = ToolExecutor(ToolRegistry([grow])), Session()
        return [(await executor.execute([ToolCall("grow", {}, "1")], session))[0].result for _ in range(2)]

    assert asyncio.run(main()) == [["x"], ["x", "x"]]


def test_one_refusal_answers_equal_calls_that_wait() -> None:
    asked: list[str] = []

    async def no(approval: Approval) -> bool:
        asked.append(approval.call.name)
        await asyncio.sleep(0)
        return False

    @toolwire.tool(requires_confirmation=True)
    def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    async def main() -> list[str]:
        executor = ToolExecutor(ToolRegistry([pay]), confirm=no)
        calls = [ToolCall("pay", {"amount": amount}, str(at)) for at, amount in enumerate((1, 1, 2))]
        return [result.text for result in await executor.execute(calls, Session(tier=Tier.RUN))]

    said = asyncio.run(main())
    assert len(asked) == 2
    assert ["refused" in one for one in said] == [True, True, True]


@toolwire.tool(requires_confirmation=True)
def spend(amount: int) -> str:
    """Spends."""
    return "spent"


@pytest.mark.parametrize("limits", [(), (Limit(calls=1),)])
def test_one_answer_for_the_session_answers_equal_calls_that_wait(limits: tuple[Limit, ...]) -> None:
    asked: list[str] = []

    async def always(approval: Approval) -> ApprovalAnswer:
        asked.append(approval.call.name)
        await asyncio.sleep(0)
        return ApprovalAnswer(True, remember=True)

    async def main() -> list[bool]:
        executor = ToolExecutor(ToolRegistry([spend]), confirm=always, policy=Policy(limits=limits))
        calls = [ToolCall("spend", {"amount": 1}, str(at)) for at in range(4)]
        return [result.success for result in await executor.execute(calls, Session(tier=Tier.RUN))]

    done = asyncio.run(main())
    assert len(asked) == 1
    assert done == [True] * 4 if not limits else sum(done) == 1


def test_equal_questions_in_two_loops_do_not_wait_for_each_other() -> None:
    both = threading.Barrier(2, timeout=20)

    async def yes(approval: Approval) -> bool:
        await asyncio.to_thread(both.wait)  # each is asked while the other is
        return True

    executor, session = ToolExecutor(ToolRegistry([spend]), confirm=yes), Session(tier=Tier.RUN)
    results: list[bool] = []

    def work() -> None:
        call = ToolCall("spend", {"amount": 1}, "1")
        results.extend(one.success for one in asyncio.run(executor.execute([call], session)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True, True]


def test_halves_of_surrogate_pairs_are_no_text() -> None:
    @toolwire.tool
    def names(how: str) -> Any:
        """File names that are no UTF-8."""
        if how == "raise":
            raise ToolError("no file \udcff")
        return "a \udcff" if how == "text" else {"\udcff": ["\udcff", "\U0001f600"], "n": ("x", [1])}

    async def main() -> list[ToolResult]:
        executor, session = ToolExecutor(ToolRegistry([names])), Session()
        calls = [ToolCall("names", {"how": how}, how) for how in ("text", "deep", "raise")]
        return await executor.execute(calls, session)

    text, deep, raised = asyncio.run(main())
    assert (text.result, raised.error) == ("a \ufffd", "no file \ufffd")
    assert deep.result == {"\ufffd": ["\ufffd", "\U0001f600"], "n": ["x", [1]]}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ToolExecutor([]), "registry must be a ToolRegistry"),
        (lambda: ToolExecutor(ToolRegistry(), policy={}), "policy must be a Policy or None"),
        (lambda: ToolExecutor(ToolRegistry(), policy=[]), "policy must be a Policy or None, not list$"),
        (lambda: ToolExecutor(ToolRegistry(), timeout="3"), "timeout must be a number of seconds or None, not '3'"),
        (lambda: ToolExecutor(ToolRegistry(), concurrency=None), "concurrency must be a number of calls, not None"),
        (
            lambda: ToolExecutor(ToolRegistry(), timeuot=3),
            r"ToolExecutor\(\) has no argument 'timeuot'; did you mean time",
        ),
    ],
)
def test_an_executor_refuses_other_types_by_name(build: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()


@pytest.mark.parametrize(
    ("calls", "session", "message"),
    [
        (ToolCall("add"), Session(), "calls must be a sequence of ToolCall"),
        ([{"name": "add"}], Session(), "calls must be a sequence of ToolCall"),
        ([ToolCall("add", {"a": 1})], None, "session must be a Session, not None"),
    ],
)
def test_execute_refuses_other_types_by_name(calls: Any, session: Any, message: str) -> None:
    ran = Ran()
    with pytest.raises(TypeError, match=message):
        asyncio.run(ToolExecutor(ran.registry).execute(calls, session))
    assert not ran.calls


def test_an_executor_shows_the_sizes_of_its_registry_and_policy() -> None:
    policy = Policy((Rule("deny", "add"), Rule("ask", "slow")), (Limit(3),))
    assert repr(ToolExecutor(Ran().registry, policy=policy)) == "<ToolExecutor: 4 tools, 2 rules, 1 limits>"
    assert repr(ToolExecutor(ToolRegistry())) == "<ToolExecutor: 0 tools, 0 rules, 0 limits>"


def test_an_executor_counts_seconds_by_its_clock() -> None:
    now = [100.0]

    def clock() -> float:
        return now[0]

    executor = ToolExecutor(Ran().registry, policy=Policy(limits=(Limit(1, 10.0),)), clock=clock)
    assert executor.clock is clock
    assert ToolExecutor(ToolRegistry()).clock is time.monotonic
    session, call = Session(), ToolCall("add", {"a": 1})
    allowed = []
    for now[0] in (100.0, 109.0, 110.5):
        allowed += [result.success for result in execute(executor, call, session=session)]
    assert allowed == [True, False, True]


def test_a_decision_runs_nothing_and_names_what_is_in_the_way() -> None:
    ran = Ran(lambda given: f"writes {given['path']}")
    executor, session = ToolExecutor(ran.registry, policy=Policy((Rule("deny", "slow"),))), Session(tier=Tier.RUN)
    unknown = executor.decide(ToolCall("addd"), session)
    assert unknown == Deny("There is no tool 'addd'; did you mean add? There are: add, slow, fail, write.")
    assert executor.decide(ToolCall("slow", {"seconds": 1}), session) == Deny("A rule forbids this call of slow.")
    question = Ask("write needs an approval each time.", "writes a")
    assert executor.decide(ToolCall("write", {"path": "a", "lines": []}), session) == question
    assert executor.decide(ToolCall("add", {"a": "1"}), session) == Allow()
    assert not ran.calls


def test_a_plan_names_each_call_that_cannot_be_planned() -> None:
    ran = Ran()
    executor, session = ToolExecutor(ran.registry), Session(tier=Tier.RUN)
    wrong, right = ToolCall("slow", {"seconds": "soon"}), ToolCall("add", {"a": 1})
    issues = executor.plan([ToolCall("addd"), right, wrong], session)
    assert [issue.kind for issue in issues] == ["unknown_tool", "invalid_arguments"]
    assert list(session.context(now=0.0).planned.values()) == [1]
    session.untrusted = True
    (refused,) = executor.plan([right], session)
    assert (refused.kind, refused.message) == (
        "denied",
        "add cannot be planned: untrusted content was read already.",
    )
    assert list(session.context(now=0.0).planned.values()) == [1]
    assert not ran.calls


def test_calls_without_a_problem_of_their_own_run() -> None:
    """A problem without an index is about the text between calls."""
    ran = Ran()
    problems = [Problem("malformed", 0, "", ""), Problem("malformed", 0, "", "", index=1)]
    calls = [ToolCall("add", {"a": number}, str(number)) for number in range(3)]
    results = execute(ToolExecutor(ran.registry), *calls, problems=problems)
    assert [(result.call_id, result.success) for result in results] == [("0", True), ("1", False), ("2", True)]
    assert ran.calls == [(0, 1), (2, 1)]


def test_a_call_is_recorded_as_started_only_if_it_runs() -> None:
    ran, started, session = Ran(), list[ToolCall](), Session()
    executor = ToolExecutor(ran.registry, policy=Policy((Rule("deny", "slow"),)))
    for call in (ToolCall("slow", {"seconds": 0}), ToolCall("addd"), ToolCall("add", {"a": "2"}, "c")):
        asyncio.run(executor.run(call, session, started=started))
    assert [(call.name, call.arguments) for call in started] == [("add", {"a": 2})]


@pytest.mark.parametrize(("options", "together"), [({}, 16), ({"concurrency": 1}, 1)])
def test_sixteen_calls_run_at_the_same_time_unless_the_program_says_otherwise(
    options: dict[str, Any], together: int
) -> None:
    registry, running, most = ToolRegistry(), [0], [0]

    @registry.register
    async def work() -> None:
        """Works."""
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(1)
        running[0] -= 1

    run_simulated(ToolExecutor(registry, **options).execute([ToolCall("work")] * 20, Session()))
    assert most == [together]


def test_calls_of_one_event_loop_are_bounded_together_when_two_loops_take_turns() -> None:
    registry, running, most = ToolRegistry(), Counter[object](), Counter[object]()

    @registry.register
    async def work() -> None:
        """Works."""
        loop = asyncio.get_running_loop()
        running[loop] += 1
        most[loop] = max(most[loop], running[loop])
        await may_end[loop].wait()
        running[loop] -= 1

    executor, session = ToolExecutor(registry, concurrency=1), Session()
    loops = [asyncio.new_event_loop() for _ in range(2)]
    may_end: dict[object, asyncio.Event] = {loop: asyncio.Event() for loop in loops}
    tasks: list[asyncio.Task[Outcome]] = []
    for loop in loops * 2:  # so the second call of a loop starts after the first call of the other loop
        tasks.append(loop.create_task(executor.run(ToolCall("work"), session)))
        loop.run_until_complete(asyncio.sleep(0.001))
    for event in may_end.values():
        event.set()
    for task in tasks:
        assert task.get_loop().run_until_complete(task).result.success
    for loop in loops:
        loop.close()
    assert most == dict.fromkeys(loops, 1)


@pytest.mark.parametrize(
    "policy", [Policy((Rule("deny", "launch"),)), Policy(limits=(Limit(3, tool="web.*arch"), Limit(3, tool="launch")))]
)
def test_names_in_rules_or_limits_are_compared_with_the_tools_unless_that_is_off(policy: Policy) -> None:
    def run(check: Any) -> list[str]:
        executor = ToolExecutor(ToolRegistry([sum_up]), policy=policy, check=check)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for _ in range(2):
                asyncio.run(executor.run(ToolCall("sum_up", {"a": 1}), Session()))
        return [str(warning.message) for warning in heard]

    assert ["'launch'" in message for message in run(True)] == [True]
    assert run(False) == []


@pytest.mark.parametrize(
    ("options", "refused", "warned"), [({}, True, 0), ({"check": "warn"}, False, 1), ({"check": False}, False, 0)]
)
def test_a_rule_that_denies_nothing_is_an_error_a_warning_or_ignored(
    options: dict[str, Any], refused: bool, warned: int
) -> None:
    misspelled = Policy((Rule("deny", "sum_upp"),))
    with pytest.raises(ConfigurationError, match="did you mean sum_up") if refused else nullcontext():
        executor = ToolExecutor(ToolRegistry([sum_up]), policy=misspelled, **options)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for _ in range(2):
                assert one(executor, "sum_up", {"a": 1}).success
        assert [warning.category for warning in heard] == [PolicyWarning] * warned


def test_a_call_that_the_program_s_own_code_prevents_says_so() -> None:
    registry = ToolRegistry()
    registry.register(lambda: "", name="odd", description=lambda: str(1 / 0))
    outcome = asyncio.run(ToolExecutor(registry).run(ToolCall("odd"), Session()))
    assert outcome.issue is not None
    assert outcome.issue.kind == "not_runnable"
    assert outcome.result.error == "odd could not be run: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("policy", "change", "message"),
    [
        (Policy((Rule("deny", "add"),)), None, "A rule forbids this call of add."),
        (Policy((Rule("ask", "add"),)), "tools", "add was changed or switched off meanwhile, so it did not run."),
        (Policy((Rule("ask", "add"),), (Limit(1),)), "limit", "* may run 1 times in this session, and did."),
    ],
)
def test_a_denial_is_an_issue_also_when_its_cause_came_while_a_person_was_asked(
    policy: Policy, change: str | None, message: str
) -> None:
    ran, session = Ran(), Session()

    async def confirm(_: Approval) -> bool:
        if change == "tools":
            ran.registry.enable("add", enabled=False)
        if change == "limit":
            session.record_call("add", 0.0)
        return True

    executor = ToolExecutor(ran.registry, policy=policy, confirm=confirm)
    outcome = asyncio.run(executor.run(ToolCall("add", {"a": 1}), session))
    assert outcome.issue == Issue("denied", message)
    assert outcome.result.error == message
    assert not ran.calls


def test_a_planned_call_runs_as_often_as_it_was_planned() -> None:
    ran = Ran()
    ran.registry.register(lambda to: f"sent to {to}", name="send", tier=Tier.RUN, description="Sends.")
    executor, session = ToolExecutor(ran.registry), Session(tier=Tier.RUN)
    bob, eve = (ToolCall("send", {"to": name}) for name in ("Bob", "Eve"))
    assert executor.plan([bob, bob], session) == []
    # Calls that no permission for once allows do not use up the plan.
    assert [result.success for result in execute(executor, bob, session=session)] == [True]
    session.untrusted = True
    allowed = [execute(executor, call, session=session)[0].success for call in (bob, eve, bob, bob)]
    assert allowed == [True, False, True, False]


def test_names_are_compared_again_after_the_tools_changed() -> None:
    registry = ToolRegistry([sum_up])
    executor = ToolExecutor(registry, policy=Policy((Rule("deny", "sum_up"), Rule("deny", "launch"))))
    with pytest.warns(PolicyWarning, match="'launch'"):
        one(executor, "sum_up", {"a": 1})
    registry.remove("sum_up")
    registry.register(lambda: "", name="sum_ups", description="Sums.")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(2):
            one(executor, "sum_ups", {})
    assert ["did you mean sum_ups" in str(warning.message) for warning in heard] == [True]


def sum_up(a: int) -> int:
    """Sum up."""
    return a


async def stubborn() -> None:
    """Catch every cancellation."""
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1_000)


async def stubborn_stream() -> AsyncIterator[int]:
    """Catch every cancellation, in a generator."""
    yield 1
    await stubborn()


def stubborn_later() -> Awaitable[None]:
    """Return something that catches every cancellation."""
    return stubborn()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("tool", [stubborn, stubborn_stream])
def test_a_tool_that_does_not_stop_is_abandoned(tool: Callable[[], Any]) -> None:
    registry = ToolRegistry()
    registry.register(tool)
    reports: list[str] = []

    async def main() -> list[ToolResult]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["message"]))
        return await ToolExecutor(registry, timeout=5).execute([ToolCall(tool.__name__)], Session())

    (result,) = run_simulated(main())
    assert result.error == f"{tool.__name__} took longer than 5 seconds. It may still be at work."
    assert f"the tool {tool.__name__} did not stop" in reports[0]


def test_a_question_that_does_not_end_when_cancelled_is_a_refusal() -> None:
    ran = Ran()

    async def confirm(approval: Approval) -> bool:
        await stubborn()
        return True

    async def main() -> list[ToolResult]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        executor = ToolExecutor(ran.registry, confirm=confirm)
        return await executor.execute([ToolCall("write", {"path": "a", "lines": []})], Session(tier=Tier.RUN))

    (result,) = run_simulated(main())
    assert "Nobody approved write in time" in (result.error or "")
    assert not ran.calls
