"""Tools that end a turn give back what they were given, and say that they do."""

from pathlib import Path

import pytest

import toolwire
from toolwire.builtin.toolsets import answer_tool, builtin_tools, ending_tools
from toolwire.execution.registry import ToolRegistry
from toolwire.providers.output_request import FINAL_ANSWER
from toolwire.tools import Tier


def test_turn_tools_return_their_arguments() -> None:
    done, ask, say = (tool.function for tool in ending_tools())
    assert done(result="it works") == "it works"
    assert ask(question="which?", choices=["a", "b"]) == {"question": "which?", "choices": ["a", "b"]}
    assert ask(question="why?") == {"question": "why?", "choices": []}
    assert say(message="hello") == "hello"


def test_answer_tool_has_the_name_of_the_tool_for_structured_outputs() -> None:
    answer = answer_tool()
    assert (answer.definition.name, answer.behavior.ends_turn) == (FINAL_ANSWER, True)
    assert answer(text="It is 5.") == answer(text="\n    It is 5.\n  ") == "It is 5."
    with pytest.raises(toolwire.ToolError, match="the answer is empty"):
        answer(text=" \n")


def test_tool_that_gives_the_answer_ends_the_turn() -> None:
    done = toolwire.tool(ending_tools()[0].function)
    for answering in (answer_tool(), done.replace(gives_answer=True), toolwire.tool(gives_answer=True)(done.function)):
        assert (answering.behavior.ends_turn, answering.behavior.gives_answer) == (True, True)
        assert not answering.replace(gives_answer=False, ends_turn=False).behavior.ends_turn


def test_tool_that_gives_the_answer_cannot_leave_the_turn_open() -> None:
    done = ending_tools()[0].function
    for make in (
        lambda: answer_tool().replace(ends_turn=False),
        lambda: toolwire.tool(gives_answer=True, ends_turn=False)(done),
    ):
        with pytest.raises(toolwire.DefinitionError, match="gives the answer ends the turn"):
            make()


@pytest.mark.mission("C31")
def test_turn_tools_are_marked_as_ending_a_turn(tmp_path: Path) -> None:
    registry = ToolRegistry(builtin_tools(tmp_path))
    ending = {one.name for one in registry if registry.lookup(one.name).behavior.ends_turn}
    assert ending == {"task_completion", "ask_question", "converse"}
    registry.register(lambda: "bye", name="leave", ends_turn=True)
    assert registry.lookup("leave").behavior.ends_turn


def test_builtin_tools_are_limited_by_tier(tmp_path: Path) -> None:
    names = {tier: [one.definition.name for one in builtin_tools(tmp_path, tier=tier)] for tier in Tier}
    assert names[Tier.CRAWL] == ["search_files", "task_completion", "ask_question", "converse"]
    assert names[Tier.WALK] == ["list_dir", "read_file", *names[Tier.CRAWL]]
    assert set(names[Tier.RUN]) == {"write_file", "apply_diff", "execute_command", *names[Tier.WALK]}
    assert [one.definition.name for one in builtin_tools()] == ["task_completion", "ask_question", "converse"]
    asking = {one.definition.name for one in builtin_tools(tmp_path) if one.definition.requires_confirmation}
    assert asking == {"write_file", "apply_diff", "execute_command"}
    untrusted = {one.definition.name for one in builtin_tools(tmp_path) if one.definition.untrusted}
    assert untrusted == {"list_dir", "read_file", "search_files", "apply_diff", "execute_command"}


def test_every_format_renders_the_builtin_tools(tmp_path: Path) -> None:
    for format in toolwire.formats()[::6]:
        if format != "plain":
            assert "apply_diff" in toolwire.prompt(builtin_tools(tmp_path), format=format)
