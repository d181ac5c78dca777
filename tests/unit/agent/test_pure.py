"""Budgets, recovery and trimming: values in, values out."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import FinishReason, Message, ParsedResponse, Problem, ToolCall, ToolResult, parse
from toolwire.agent.budget import Budget, RunLimits
from toolwire.agent.history import LEFT_OUT, trim
from toolwire.agent.recovery import ECHO, HIDDEN, NO_CALL, SPLIT, Breaker, Fault, Repeats, advice, faults_of


def problem(kind: str, index: int | None = 0, message: str = "It is wrong.") -> Problem:
    return Problem(kind, 0, "raw", message, index)  # type: ignore[arg-type]


@pytest.mark.mission("C23")
@pytest.mark.parametrize(
    ("response", "require", "kinds"),
    [
        (ParsedResponse("prose"), False, []),
        (ParsedResponse("prose"), True, ["no_call"]),
        (ParsedResponse(" "), False, ["no_call"]),
        (ParsedResponse("", tool_calls=(ToolCall("a"),)), True, []),
        (ParsedResponse("x", problems=(problem("malformed", None),)), False, ["malformed"]),
        (ParsedResponse("", incomplete=(ToolCall("a"),), problems=(problem("truncated"),)), False, ["malformed"]),
        (
            ParsedResponse("", problems=(problem("truncated"),), finish_reason=FinishReason.LENGTH),
            False,
            ["truncated"],
        ),
        (ParsedResponse("", incomplete=(ToolCall("a"),), finish_reason=FinishReason.LENGTH), False, ["truncated"]),
        (ParsedResponse("x", problems=(problem("missing_name", None),)), False, ["missing_name"]),
        (ParsedResponse("x", problems=(problem("hidden_by_fence", None),)), False, ["malformed"]),
        (ParsedResponse("x", problems=(problem("provider_error", None),)), False, []),
    ],
)
def test_faults_of_answers(response: ParsedResponse, require: bool, kinds: list[str]) -> None:
    assert [fault.kind for fault in faults_of(response, require_call=require)] == kinds


@pytest.mark.parametrize(
    ("opener", "is_fence"),
    [("```xml\n", True), ("~~~\n", True), ("<|im_start|>user\n", False), ("<tool_response>\n", False)],
)
def test_only_a_call_in_a_fence_is_asked_for_without_it(opener: str, is_fence: bool) -> None:
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    (fault,) = faults_of(parse(f"Done.\n{opener}{call}", format="hermes", tools=[{"name": "add"}]))
    assert (fault.message == HIDDEN) == is_fence
    assert is_fence or "a turn that is not yours" in fault.message


MORE = "(1 more of your calls are wrong in the same way.)"


@pytest.mark.mission("C25")
def test_advice_explains_each_fault_once_with_a_correct_call() -> None:
    faults = [
        Fault("malformed", "add", "It could not be read."),
        Fault("malformed", "add", "It could not be read either."),
        Fault("truncated", "write", SPLIT),
        Fault("tool_failed", "add", "in the result", reported=True),
        Fault("no_call", "", NO_CALL),
    ]
    text = advice(faults, lambda name: f"EXAMPLE {name or 'any'}")
    assert (
        text
        == f"It could not be read.\n\nEXAMPLE add\n\n{SPLIT}\n\nEXAMPLE write\n\n{NO_CALL}\n\nEXAMPLE any\n\n{MORE}"
    )
    assert len(advice([Fault("malformed", "", "x" * 10_000)], lambda _: "")) < 1_000


@pytest.mark.mission("C29")
def test_five_failures_of_one_kind_and_tool_are_too_many() -> None:
    breaker = Breaker()
    failing = [Fault("tool_failed", "read", f"no file {at}") for at in range(5)]
    assert [breaker.turn([fault], []) for fault in failing] == [None] * 4 + [failing[-1]]


@pytest.mark.mission("C29")
def test_success_resets_the_counts() -> None:
    breaker = Breaker(patience=2)
    fault = Fault("tool_failed", "read", "no file")
    assert breaker.turn([fault], []) is None
    assert breaker.turn([], ["read"]) is None
    assert breaker.turn([fault], []) is None
    assert breaker.turn([fault], ["other"]) is None, "whichever tool it was"
    assert breaker.turn([fault], []) is None
    assert breaker.turn([Fault("no_call", "", "")], []) is None
    assert breaker.turn([fault], []) is fault


def test_cycles_of_eight_turns_are_noticed() -> None:
    repeats = Repeats()
    said = [repeats.turn(*turn(name, 1)) for name in "abcdefgh" * 3]
    assert (said.index("warn"), said.index("end")) == (15, 16)


def turn(name: str, result: object) -> tuple[list[ToolCall], list[ToolResult]]:
    return [ToolCall(name, {}, "id")], [ToolResult("id", name, result)]


@pytest.mark.mission("F36")
@pytest.mark.need(33)
@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ("aaa", ["", "warn", "end"]),
        ("abab ab", ["", "", "", "warn", "end", "end"]),
        ("abcabc abc", ["", "", "", "", "", "warn", "end", "end", "end"]),
        ("aabb", ["", "warn", "", "end"]),
        ("abcd", ["", "", "", ""]),
    ],
)
def test_cycles_are_warned_of_and_then_end_the_run(turns: str, said: list[str]) -> None:
    repeats = Repeats()
    assert [repeats.turn(*turn(name, 1)) for name in turns.replace(" ", "")] == said


def test_same_calls_with_other_results_are_not_a_cycle() -> None:
    repeats = Repeats()
    assert [repeats.turn(*turn("poll", at)) for at in range(9)] == [""] * 9


def conversations() -> st.SearchStrategy[list[Message]]:
    texts = st.text("abc ", max_size=60)

    @st.composite
    def made(draw: st.DrawFn) -> list[Message]:
        found = [Message("system", draw(texts))] if draw(st.booleans()) else []
        found.append(Message("user", draw(texts)))
        number = iter(range(10_000))
        for kind in draw(st.lists(st.sampled_from(["user", "say", "call"]), max_size=12)):
            if kind == "user":
                found.append(Message("user", draw(texts)))
            elif kind == "say":
                found.append(Message("assistant", draw(texts)))
            else:
                calls = tuple(ToolCall("t", {}, str(next(number))) for _ in range(draw(st.integers(1, 3))))
                found.append(Message("assistant", calls))
                found.append(Message("tool", tuple(ToolResult(call.id, "t", draw(texts)) for call in calls)))
        return found

    return made()


def size(message: Message) -> int:
    return sum(len(getattr(part, "text", "")) + 5 for part in message.parts)


def pairs(messages: list[Message]) -> Iterator[tuple[set[str], set[str]]]:
    for at, message in enumerate(messages):
        calls = {part.id for part in message.parts if isinstance(part, ToolCall)}
        if calls:
            after = messages[at + 1].parts if at + 1 < len(messages) else ()
            yield calls, {part.call_id for part in after if isinstance(part, ToolResult)}


@pytest.mark.mission("C42", "G7")
@given(conversations(), st.integers(0, 500))
def test_trimming_never_parts_calls_from_their_results(messages: list[Message], limit: int) -> None:
    kept = trim(messages, limit, size).messages
    assert all(calls == results for calls, results in pairs(kept))
    results = {part.call_id for message in kept for part in message.parts if isinstance(part, ToolResult)}
    assert results == set().union(*(calls for calls, _ in pairs(kept)))
    assert [message for message in kept if message in messages] == [
        message for message in messages if any(message is one for one in kept)
    ] or len(set(map(repr, messages))) < len(messages)


@pytest.mark.mission("C42")
@given(conversations(), st.integers(0, 500))
def test_trimming_keeps_the_ends_of_the_conversation(messages: list[Message], limit: int) -> None:
    kept = trim(messages, limit, size).messages
    if sum(map(size, messages)) <= limit:
        assert kept == messages
        return
    users = [message for message in messages if message.role == "user"]
    assert users[0] in kept
    assert users[-1] in kept
    assert all(message in kept for message in messages if message.role == "system")
    assert kept[-1].role == messages[-1].role, "the newest step stays"
    assert sum(message == Message("user", LEFT_OUT) for message in kept) <= 1


def test_long_result_of_the_newest_step_is_truncated() -> None:
    messages = [
        Message("user", "read it"),
        Message("assistant", (ToolCall("read", {}, "1"),)),
        Message("tool", (ToolResult("1", "read", "x" * 10_000),)),
    ]
    kept = trim(messages, 1_000, size).messages
    assert sum(map(size, kept)) <= 1_000
    assert "characters left out)" in kept[-1].parts[0].text  # type: ignore[union-attr]


def test_each_of_many_results_is_truncated_at_most_once() -> None:
    counted: list[int] = []

    def count(message: Message) -> int:
        counted.append(len(message.parts))
        return sum(len(part.text) for part in message.parts if isinstance(part, ToolResult))

    calls = tuple(ToolCall("f", {}, str(at)) for at in range(300))
    results = tuple(ToolResult(str(at), "f", "x" * (500 if at < 10 else 5)) for at in range(300))
    messages = [Message("user", "?"), Message("assistant", calls), Message("tool", results)]
    (*_, told) = trim(messages, 3_000, count).messages
    texts = [part.text for part in told.parts if isinstance(part, ToolResult)]
    assert sum(map(len, texts)) <= 3_000
    assert texts[10:] == ["xxxxx"] * 290
    assert sum(counted) < 10 * 600, "a message is not counted anew for each of its results"


@pytest.mark.parametrize(
    ("own", "of_parent", "left"),
    [(None, None, None), (10.0, None, 7.0), (None, 5.0, 2.0), (10.0, 5.0, 2.0), (5.0, 10.0, 2.0), (1.0, 10.0, 0.0)],
)
def test_nested_run_has_no_more_time_than_its_parent(
    own: float | None, of_parent: float | None, left: float | None
) -> None:
    now = 100.0
    parent = RunLimits(Budget(seconds=of_parent), None, lambda: now)
    nested = RunLimits(Budget(seconds=own), parent, lambda: now)
    now += 3.0
    assert nested.seconds_left() == left
    assert nested.out_of_time is (left == 0)


def test_budget_of_the_parent_run_ends_nested_runs() -> None:
    now = 100.0
    parent = RunLimits(Budget(seconds=5.0), None, lambda: now)
    nested = RunLimits(Budget(seconds=10.0), parent, lambda: now)
    assert nested.exceeded() == ""
    now += 6.0
    assert nested.exceeded() == nested.shared_exceeded() == "the budget of 5 seconds"


def test_answer_that_is_the_hint_alone_is_no_answer() -> None:
    """A model of 1.5 billion parameters gave the reminder behind the results as its answer."""
    hint = "If these results tell the answer, give it now."
    assert faults_of(ParsedResponse(f"{hint}\n"), hint=hint) == [Fault("no_call", "", ECHO)]
    assert faults_of(ParsedResponse(f"{hint} It is 7."), hint=hint) == []
    assert faults_of(ParsedResponse(hint)) == []
