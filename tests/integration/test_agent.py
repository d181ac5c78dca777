"""The loop over a scripted model: what is run, what is refused, when it ends."""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire import textloop as agent
from toolwire.builtin import reading_tools
from toolwire.errors import DefinitionError, ToolError
from toolwire.events import Finish
from toolwire.messages import FinishReason, ToolCall
from toolwire.textloop import Step
from toolwire.tools import tool

FORMATS = ("forge_xml", "anthropic_xml", "hermes", "bare_json")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    ran.append((a, b))
    return a + b


@tool
def fail(why: str) -> str:
    """Always fails."""
    raise ToolError(f"no: {why}")


ran: list[tuple[int, int]] = []
TOOLS = (add, fail)
DEFINITIONS = tuple(one.definition for one in TOOLS)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


class Scripted:
    """Says the next of its lines, in small pieces, and keeps what it was told."""

    def __init__(self, *answers: str, reason: FinishReason = FinishReason.STOP, size: int = 5) -> None:
        self.answers = list(answers)
        self.told: list[list[dict[str, str]]] = []
        self.reason = reason
        self.size = size
        self.finished = 0

    def stream(self, messages: Sequence[Mapping[str, str]]) -> Generator[str | Finish]:
        self.told.append([dict(message) for message in messages])
        answer = self.answers.pop(0)
        yield from (answer[at : at + self.size] for at in range(0, len(answer), self.size))
        self.finished += 1
        yield Finish(self.reason)


def call(name: str, format: str = "forge_xml", /, **arguments: Any) -> str:
    return toolwire.render_calls([ToolCall(name, arguments)], format=format, tools=DEFINITIONS)


def steps(model: Scripted, **options: Any) -> list[Step]:
    return list(agent.run("How much?", model=model, tools=TOOLS, **options))


def kinds(found: list[Step]) -> list[str]:
    return [step.kind for step in found if step.kind != "text"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_is_read_run_and_answered(format: str) -> None:
    model = Scripted(call("add", format, a=2, b=3), "It is 5.")
    found = steps(model, format=format)
    assert kinds(found) == ["call", "result", "answer"]
    assert ran == [(2, 3)]
    assert found[-1].text == "It is 5."
    assert found[-1].reason == "answered"
    assert "".join(step.text for step in found if step.round == 1) == call("add", format, a=2, b=3)
    system, user, said, result = model.told[1]
    assert system["content"] == toolwire.prompt(DEFINITIONS, format=format, system=agent.SYSTEM)
    assert user == {"role": "user", "content": "How much?"}
    assert said == {"role": "assistant", "content": call("add", format, a=2, b=3)}
    assert result["role"] == "user"
    assert "5" in result["content"]


def test_several_calls_in_one_message_all_run() -> None:
    both = toolwire.render_calls(
        [ToolCall("add", {"a": 1, "b": 2}), ToolCall("add", {"a": 3, "b": 4})], format="hermes"
    )
    found = steps(Scripted(both, "Done."), format="hermes")
    assert ran == [(1, 2), (3, 4)]
    assert kinds(found) == ["call", "call", "result", "result", "answer"]


def test_calls_without_the_markers_that_were_asked_for_are_read() -> None:
    found = steps(Scripted('{"name": "add", "arguments": {"a": 1, "b": 2}}', "3"), format="hermes")
    assert ran == [(1, 2)]
    assert found[-1].text == "3"


def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    model = Scripted(call("subtract", a=1, b=2), "Never mind.")
    found = steps(model)
    (result,) = (step.result for step in found if step.result)
    assert result.error == "There is no tool 'subtract'. Available: add, fail."
    assert "Available: add, fail." in model.told[1][-1]["content"]


def test_wrong_arguments_are_not_run() -> None:
    model = Scripted(call("add", a="two", b=3), "Sorry.")
    found = steps(model)
    assert ran == []
    (result,) = (step.result for step in found if step.result)
    assert result.error is not None
    assert result.error.startswith("Wrong arguments: /a")


def test_a_tool_that_fails_tells_the_model() -> None:
    model = Scripted(call("fail", why="tired"), "Pity.")
    found = steps(model)
    assert [step.result.error for step in found if step.result] == ["no: tired"]
    assert "no: tired" in model.told[1][-1]["content"]


def told_by(function: Callable[..., Any], **options: Any) -> str:
    """The error of a call to a tool made of this function; the model goes on and answers."""
    odd = tool(name="odd", **options)(function)
    model = Scripted(toolwire.render_calls([ToolCall("odd", {})], format="hermes"), "Pity.")
    found = list(agent.run("How?", model=model, tools=[odd], format="hermes"))
    assert found[-1].text == "Pity."
    (result,) = (step.result for step in found if step.result)
    assert result.error is not None
    assert result.error in model.told[1][-1]["content"]
    return result.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("a"), "KeyError: 'a'"),
        (TypeError(), "TypeError"),
        (AttributeError("none"), "AttributeError: none"),
        (ZeroDivisionError("by 0"), "ZeroDivisionError: by 0"),
        (FileNotFoundError(2, "gone"), "FileNotFoundError: [Errno 2] gone"),
        (NotImplementedError("later"), "NotImplementedError: later"),
        (AssertionError("no"), "AssertionError: no"),
        (ValueError("x" * 5000), "ValueError: " + "x" * (agent.MAX_ERROR - 12)),
    ],
)
def test_what_a_tool_raises_is_told_with_its_type(error: BaseException, said: str) -> None:
    def function() -> None:
        raise error

    assert told_by(function) == said


def test_what_no_tool_should_raise_ends_the_loop() -> None:
    def function() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        told_by(function)


@pytest.mark.parametrize("value", [datetime(2024, 1, 1), float("nan"), b"x", {1, 2}, {"a": object()}, {(1, 2): 3}])
def test_a_result_that_is_not_json_is_an_error(value: Any) -> None:
    assert told_by(lambda: value).startswith(f"odd returned a {type(value).__name__} that is not JSON: ")


def test_a_tool_that_needs_consent_never_runs() -> None:
    assert "needs somebody's consent" in told_by(lambda: ran.append((0, 0)), requires_confirmation=True)
    assert ran == []


def test_what_cannot_be_run_is_refused_up_front() -> None:
    async def later() -> int:
        return 1

    class Later:
        async def __call__(self) -> int:
            return 1

    for function in (later, partial(later), Later()):
        with pytest.raises(DefinitionError, match=r"odd.*async"):
            agent.run("Hi", model=Scripted(), tools=[tool(name="odd")(function)])
    for rounds in (0, -1):
        with pytest.raises(ValueError, match="max_rounds"):
            agent.run("Hi", model=Scripted(), tools=TOOLS, max_rounds=rounds)


@pytest.mark.parametrize("format", ["hermes", "forge_xml", "anthropic_xml"])
def test_a_cut_call_never_runs_and_is_corrected(format: str) -> None:
    whole = call("add", format, a=2, b=3)
    cut = whole[: whole.rindex("3") + 1]
    model = Scripted(cut, whole, "5")
    found = steps(model, format=format)
    assert kinds(found) == ["correction", "call", "result", "answer"]
    assert ran == [(2, 3)]
    told = model.told[1][-1]["content"]
    assert "A call of add is written like this:" in told
    assert call("add", format, a=1, b=1) in told


def test_a_repeated_call_is_reminded_once_and_then_ends_it() -> None:
    again = call("add", a=1, b=1)
    model = Scripted(again, again, again, "never said")
    found = steps(model)
    assert ran == [(1, 1)]
    assert [step.result.error for step in found if step.result] == [None, agent.REPEATED]
    assert found[-1].reason == "repeated_call"
    assert len(model.told) == 3


def test_rounds_are_bounded_and_the_last_is_announced() -> None:
    model = Scripted(*(call("add", a=number, b=0) for number in range(9)))
    found = steps(model, max_rounds=3)
    assert found[-1].reason == "max_rounds"
    assert len(model.told) == 3
    assert agent.LAST_ROUND in model.told[2][-1]["content"]
    assert agent.LAST_ROUND not in model.told[1][-1]["content"]


def test_an_empty_answer_is_asked_again() -> None:
    model = Scripted("  \n", "Yes.")
    assert steps(model)[-1].text == "Yes."
    assert model.told[1][-1]["content"] == agent.EMPTY


def test_an_answer_cut_by_its_length_says_so() -> None:
    assert steps(Scripted("It is and", reason=FinishReason.LENGTH))[-1].reason == "length"


def test_markers_of_results_are_no_part_of_the_answer() -> None:
    model = Scripted(call("add", a=1, b=1), "<tool_result>\n2\n</tool_result>\nIt is 2.")
    assert steps(model)[-1].text == "2\n\nIt is 2."


def test_a_model_that_goes_on_after_its_call_is_stopped() -> None:
    model = Scripted(call("add", a=1, b=1) + "\nThe result is " + "blah " * 500, "2")
    found = steps(model)
    assert model.finished == 1
    assert kinds(found) == ["call", "result", "answer"]
    assert model.told[1][2]["content"].rstrip() == call("add", a=1, b=1)


def test_no_tools_is_a_plain_conversation() -> None:
    model = Scripted("Hello " + call("add", a=1, b=1))
    (*_, last) = agent.run("Hi", model=model, tools=())
    assert last.text == "Hello " + call("add", a=1, b=1)
    assert "add" not in model.told[0][0]["content"]


def test_leaving_early_closes_the_model() -> None:
    model = Scripted("x" * 1000)
    running = agent.run("Hi", model=model, tools=TOOLS)
    next(running)
    running.close()
    assert model.finished == 0


def test_the_file_tools_under_a_root(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The </tool> key is <tool> under the mat.\n")
    model = Scripted(
        call("list_dir", path="."),
        call("search_files", pattern="k.y", path="."),
        call("read_file", path="notes.txt"),
        call("read_file", path="../../etc/passwd"),
        "Under the mat.",
    )
    found = list(agent.run("Where is the key?", model=model, tools=reading_tools(tmp_path)))
    results = [step.result for step in found if step.result]
    assert [one.success for one in results] == [True, True, True, False]
    assert results[1].text == "notes.txt:1: The </tool> key is <tool> under the mat."
    assert found[-1].text == "Under the mat."
