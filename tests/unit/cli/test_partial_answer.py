"""What a chat keeps of an answer that broke off or was stopped."""

import asyncio
from collections.abc import Sequence

import pytest

import toolwire
from toolwire import FinishReason, Message, ParsedResponse, Problem, TextPart, ToolCall, ToolResult
from toolwire.agent import Agent
from toolwire.agent.run_events import RunEnded, ToolFinished, ToolStarted, TurnStarted
from toolwire.agent.task import task_message
from toolwire.cli.partial_answer import STOPPED, PartialAnswer
from toolwire.events import CallEnd, CallStart, ContentDelta, Event, Finish, ProblemFound
from toolwire.execution.outcomes import Outcome
from toolwire.testing import ScriptedBackend

BROKEN: Sequence[Event] = (
    ContentDelta("Let me see. "),
    CallStart(0, "add", "call_1"),
    CallEnd(0, ToolCall("add", {"a": 1}, "call_1"), True),
    ProblemFound(Problem("provider_error", 0, "", "cut")),
    Finish(FinishReason.ERROR),
)


@toolwire.tool
def add(a: int) -> int:
    """Adds."""
    return a


def shown(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    return [
        (one.role, [part.text if isinstance(part, TextPart | ToolResult) else part.name for part in one.parts])  # type: ignore[union-attr]
        for one in messages
    ]


@pytest.mark.parametrize(
    ("answers", "kept"),
    [
        ((BROKEN, BROKEN), [("user", ["x"]), ("assistant", ["Let me see. "])]),
        ((BROKEN, ParsedResponse("Done.")), [("user", ["x"]), ("assistant", ["Done."])]),
    ],
)
def test_an_answer_that_broke_off_is_kept_once_and_without_calls_that_never_ran(
    answers: tuple[Sequence[Event] | ParsedResponse, ...], kept: list[tuple[str, list[str]]]
) -> None:
    made = PartialAnswer(task_message("x"))

    async def main() -> None:
        backend = ScriptedBackend([one if isinstance(one, ParsedResponse) else list(one) for one in answers])
        async for event in Agent(backend, [add], telemetry=False).run("x"):
            made.add(event)
            ended = isinstance(event, RunEnded)
        assert ended

    asyncio.run(main())
    assert shown(made.messages(())) == kept


def test_calls_that_began_have_a_result_each() -> None:
    made = PartialAnswer(task_message("x"))
    first, second, third = (ToolCall("add", {"a": a}, id) for a, id in ((1, "same"), (2, "same"), (3, "other")))
    made.add(TurnStarted(1))
    for at, call in enumerate((first, second, third)):
        made.add(CallStart(at, call.name, call.id))
        made.add(CallEnd(at, call, True))
    made.add(ToolStarted(first))
    made.add(ToolStarted(second))
    made.add(ToolFinished(Outcome(second, ToolResult("same", "add", 2)), 0.1))
    assert shown(made.messages(())) == [("user", ["x"]), ("assistant", ["add", "add"]), ("tool", [STOPPED, "2"])]
    made.add(TurnStarted(2))
    made.add(CallStart(0, "add", "same"))
    made.add(CallEnd(0, first, True))
    made.add(ToolStarted(first))
    assert shown(made.messages(()))[-1] == ("tool", [STOPPED]), "results are of their own round"
