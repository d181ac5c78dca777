"""Agents over models that take text and write text: what is read of what they write, what they hear, when it ends."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire import FinishReason, ParsedResponse, TextPart, ToolCall, ToolError
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.loop import LAST_ROUND
from toolwire.agent.recovery import ECHO, EMPTY, REPEATED
from toolwire.agent.run_events import CorrectionAdded, RunEnded, ToolFinished
from toolwire.builtin.toolsets import reading_tools
from toolwire.events import Finish
from toolwire.models.backends import TextBackend, text_messages
from toolwire.models.process_sources import local_source
from toolwire.testing import ScriptedBackend
from toolwire.tools import Tier, tool

FORMATS = ("forge_xml", "anthropic_xml", "hermes", "bare_json")
NUDGE = "The question was: {task} Go on."
FAILED = "It failed. The question was: {task}"

ran: list[tuple[int, int]] = []


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    ran.append((a, b))
    return a + b


@tool
def fail(why: str) -> str:
    """Always fails."""
    raise ToolError(f"no: {why}")


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
        self.options: list[dict[str, Any]] = []
        self.reason = reason
        self.size = size
        self.finished = 0

    def stream(self, messages: Sequence[Mapping[str, str]], /, **options: Any) -> Generator[str | Finish]:
        self.told.append([dict(message) for message in messages])
        self.options.append(options)
        answer = self.answers.pop(0)
        yield from (answer[at : at + self.size] for at in range(0, len(answer), self.size))
        self.finished += 1
        yield Finish(self.reason)

    def last(self, at: int) -> str:
        """The end of what it was told the nth time."""
        return self.told[at][-1]["content"]


def call(name: str, format: str = "forge_xml", /, **arguments: Any) -> str:
    return toolwire.render_calls([ToolCall(name, arguments)], format=format, tools=DEFINITIONS)


def agent(model: Scripted, format: str = "forge_xml", tools: Sequence[Any] = TOOLS, **config: Any) -> Agent:
    backend = TextBackend(local_source(model), format=format, model="scripted")
    return Agent(backend, tools, AgentConfig(**{"system": "Be brief.", **config}))


def run(one: Agent, task: str = "How much?") -> tuple[list[Any], RunEnded]:
    async def main() -> list[Any]:
        return [event async for event in one.run(task)]

    events = asyncio.run(main())
    return events, events[-1]


def results(events: Sequence[Any]) -> list[Any]:
    return [event.outcome.result for event in events if isinstance(event, ToolFinished)]


def test_reminder_that_the_model_repeats_is_not_its_answer() -> None:
    model = Scripted(call("add", a=2, b=3), NUDGE.format(task="How much?"), "It is 5.")
    _, end = run(agent(model, after_results=NUDGE))
    assert (end.reason, end.answer) == ("answered", "It is 5.")
    assert ECHO in model.last(2)


@pytest.mark.mission("A6", "A19", "C33", "F3", "F45")
@pytest.mark.parametrize("format", FORMATS)
def test_call_in_text_is_parsed_run_and_answered(format: str) -> None:
    model = Scripted(call("add", format, a=2, b=3), "It is 5.")
    _, end = run(agent(model, format))
    assert ran == [(2, 3)]
    assert (end.reason, end.answer, end.calls) == ("answered", "It is 5.", 1)
    system, user, said, result = model.told[1]
    assert system["content"] == toolwire.prompt(DEFINITIONS, format=format, system="Be brief.")
    assert user == {"role": "user", "content": "How much?"}
    assert said == {"role": "assistant", "content": call("add", format, a=2, b=3)}
    assert result["role"] == "user"
    assert "5" in result["content"]


@pytest.mark.mission("D50")
def test_several_calls_in_one_message_all_run() -> None:
    both = toolwire.render_calls(
        [ToolCall("add", {"a": 1, "b": 2}), ToolCall("add", {"a": 3, "b": 4})], format="hermes"
    )
    _, end = run(agent(Scripted(both, "Done."), "hermes"))
    assert sorted(ran) == [(1, 2), (3, 4)]
    assert end.calls == 2


@pytest.mark.need(1, 2)
def test_calls_without_the_expected_markers_are_parsed() -> None:
    _, end = run(agent(Scripted('{"name": "add", "arguments": {"a": 1, "b": 2}}', "3"), "hermes"))
    assert ran == [(1, 2)]
    assert end.answer == "3"


@pytest.mark.need(10, 34, 40)
@pytest.mark.mission("C23", "C26", "C27")
@pytest.mark.parametrize(
    ("made", "told"),
    [
        (call("subtract", a=1, b=2), "There is no tool 'subtract'"),
        (call("add", a="two", b=3), "/a: is the string"),
        (call("fail", why="tired"), "no: tired"),
    ],
)
def test_fault_is_explained_to_the_model(made: str, told: str) -> None:
    model = Scripted(made, "Sorry.")
    events, end = run(agent(model))
    assert ran == []
    assert told in results(events)[0].error
    assert told in model.last(1)
    assert end.answer == "Sorry."


@pytest.mark.mission("D46", "E6")
@pytest.mark.need(15)
@pytest.mark.parametrize("format", ["hermes", "forge_xml", "anthropic_xml"])
def test_truncated_call_never_runs_and_is_corrected_once(format: str) -> None:
    whole = call("add", format, a=2, b=3)
    cut = whole[: whole.rindex("3") + 1]
    model = Scripted(cut, whole, "5")
    events, end = run(agent(model, format))
    assert sum(isinstance(event, CorrectionAdded) for event in events) == 1
    assert ran == [(2, 3)]
    assert end.answer == "5"
    assert "A call of add is written like this:" in model.last(1)
    assert call("add", format, a=1, b=1) in model.last(1)
    assert not any("written like this" in one["content"] for one in model.told[2][1:])


def test_call_in_a_code_fence_is_pointed_out_once() -> None:
    fenced = 'I call it:\n\n```json\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n```\n\nIt will give 5.'
    model = Scripted(fenced, call("add", "hermes", a=2, b=3), "5")
    events, end = run(agent(model, "hermes"))
    assert ran == [(2, 3)]
    assert end.answer == "5"
    (told,) = [event.text for event in events if isinstance(event, CorrectionAdded)]
    assert "only shown and does not run" in told
    assert call("add", "hermes", a=2, b=3) in told
    assert run(agent(Scripted(fenced, fenced), "hermes"))[1].answer == fenced, "it was meant to be looked at"
    other = fenced.replace('"add"', '"other"')
    assert run(agent(Scripted(other), "hermes"))[1].answer == other


@pytest.mark.mission("F36")
def test_repeated_call_leads_to_a_warning_and_then_to_a_last_answer() -> None:
    again = call("add", a=1, b=1)
    model = Scripted(again, again, again, "It is 2.", "never said")
    _, end = run(agent(model))
    assert (end.reason, end.answer) == ("repeats", "It is 2.")
    assert REPEATED in model.last(2)
    assert LAST_ROUND in model.last(3)
    assert [one[0] for one in model.told] == [model.told[0][0]] * 4, "the prompt stays what it was, for the cache"


def test_rounds_are_limited_and_the_last_is_announced() -> None:
    model = Scripted(*(call("add", a=number, b=0) for number in range(9)))
    _, end = run(agent(model, budget=Budget(rounds=3)))
    assert (end.reason, end.answer, len(model.told), len(ran)) == ("budget", "", 3, 2)
    assert LAST_ROUND in model.last(2)
    assert LAST_ROUND not in model.last(1)


def test_empty_answer_is_asked_for_again() -> None:
    model = Scripted("  \n", "Yes.")
    assert run(agent(model))[1].answer == "Yes."
    assert EMPTY in model.last(1)


def test_answer_that_is_cut_off_ends_the_run_with_length() -> None:
    assert run(agent(Scripted("It is and", reason=FinishReason.LENGTH)))[1].reason == "length"


@pytest.mark.need(3)
def test_result_markers_are_removed_from_the_answer() -> None:
    model = Scripted(call("add", a=1, b=1), "<tool_result>\n2\n</tool_result>\nIt is 2.")
    assert run(agent(model))[1].answer == "2\n\nIt is 2."


class Endless(Scripted):
    """Never stops of itself after its first answer."""

    def stream(self, messages: Sequence[Mapping[str, str]], /, **options: Any) -> Generator[str | Finish]:
        for piece in super().stream(messages, **options):
            while isinstance(piece, Finish) and len(self.told) == 1:
                yield "blah "
            yield piece


def test_model_that_continues_after_its_call_is_stopped() -> None:
    model = Endless(call("add", a=1, b=1) + "\nThe result is ", "2")
    _, end = run(agent(model))
    assert end.answer == "2"
    assert model.told[1][2]["content"] == call("add", a=1, b=1)


@pytest.mark.mission("E7")
def test_agent_without_tools_is_a_plain_conversation() -> None:
    model = Scripted("Hello " + call("add", a=1, b=1))
    assert run(agent(model, tools=()))[1].answer == "Hello " + call("add", a=1, b=1)
    assert "add" not in model.told[0][0]["content"]


@pytest.mark.mission("C27")
def test_reminder_follows_results_in_one_prompt_only() -> None:
    model = Scripted(call("add", a=1, b=1), call("fail", why="x"), call("add", a=2, b=2), "4")
    run(agent(model, after_results=NUDGE, after_failures=FAILED))
    assert [one[-1]["content"].splitlines()[-1] for one in model.told] == [
        "How much?",
        "The question was: How much? Go on.",
        "It failed. The question was: How much?",
        "The question was: How much? Go on.",
    ]
    assert sum("Go on." in message["content"] for message in model.told[3]) == 1


def test_denied_call_does_not_lead_to_the_reminder_for_failures() -> None:
    @tool(requires_confirmation=True)
    def wipe() -> str:
        """Wipe the disk."""
        ran.append((0, 0))
        return "gone"

    model = Scripted(toolwire.render_calls([ToolCall("wipe", {})], format="hermes"), "I did not.")
    events, _ = run(agent(model, "hermes", [wipe], after_results=NUDGE, after_failures=FAILED))
    assert ran == []
    assert "wipe" in results(events)[0].error
    model = Scripted(toolwire.render_calls([ToolCall("wipe", {})], format="hermes"), "I did not.")

    async def no(approval: Any) -> bool:
        return False

    backend = TextBackend(local_source(model), format="hermes")
    run(Agent(backend, [wipe], AgentConfig(after_results=NUDGE, after_failures=FAILED), confirm=no))
    assert model.last(1).endswith("Go on.")


def test_sampling_options_reach_the_model() -> None:
    model = Scripted("1")
    run(agent(model, settings={"max_tokens": 9, "temperature": 0.5}))
    assert model.options == [{"max_tokens": 9, "temperature": 0.5}]


def test_calls_and_results_can_have_different_formats() -> None:
    model = Scripted(call("add", "hermes", a=1, b=2), "3")
    backend = TextBackend(local_source(model), format="forge_xml", reads="hermes", results="anthropic_xml")
    run(Agent(backend, TOOLS))
    assert ran == [(1, 2)]
    assert "<tool_name>" in model.told[0][0]["content"]
    assert model.last(1) == toolwire.render_results([toolwire.ToolResult("", "add", 3)], format="anthropic_xml")


def test_file_tools_work_under_a_root(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The </tool> key is <tool> under the mat.\n")
    model = Scripted(
        call("list_dir", path="."),
        call("search_files", pattern="k.y", path="."),
        call("read_file", path="notes.txt"),
        call("read_file", path="../../etc/passwd"),
        "Under the mat.",
    )
    events, end = run(agent(model, tools=reading_tools(tmp_path), tier=Tier.WALK), "Where is the key?")
    found = results(events)
    assert [one.success for one in found] == [True, True, True, False]
    assert found[1].text == "notes.txt:1: The </tool> key is <tool> under the mat."
    assert end.answer == "Under the mat."


@pytest.mark.parametrize("name", ["read file", "a\nb", "x" * 300, "\u2039add\u203a", "<add>"])
@pytest.mark.parametrize("format", ["hermes", "forge_xml", "deepseek_v3_1"])
def test_impossible_tool_name_is_an_unknown_tool(name: str, format: str) -> None:
    call = ToolCall(name, {"a": 1}, "1", raw="what the model wrote")
    backend = ScriptedBackend([ParsedResponse(tool_calls=(call,)), "Then not."], format=format)
    assert asyncio.run(Agent(backend, [add]).ask("Go.")) == "Then not."
    again = backend.requests[1]
    told = [part for one in text_messages(again.messages, format=format, tools=again.tools) for part in one.parts]
    assert any("There is no tool" in part.text for part in told if isinstance(part, TextPart))


@pytest.mark.parametrize(
    "written", ["[sum_up(a=2, b=3)]", '{"name": "sum_up", "arguments": {"a": 2, "b": 3}}', "ad(a=2, b=3)"]
)
def test_a_whole_message_that_calls_an_unknown_tool_is_corrected_and_no_answer(written: str) -> None:
    model = Scripted(written, "[add(a=2, b=3)]", "It is 5.")
    events, end = run(agent(model, "pythonic"))
    assert end.answer == "It is 5."
    assert ran == [(2, 3)]
    (correction,) = [event for event in events if isinstance(event, CorrectionAdded)]
    assert "There is no tool" in correction.text
    assert "There are: add, fail." in correction.text
