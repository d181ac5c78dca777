"""The arguments of `toolwire.grammar` that are no tools."""

from typing import Any

import pytest

import toolwire

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        ({"reasoning": "maybe"}, ValueError, "reasoning is 'maybe'; it can be 'none', 'allowed' or 'open'"),
        ({"parallel": "no"}, TypeError, "parallel must be True or False, not 'no'"),
        ({"text_after": 1}, TypeError, "text_after must be True or False, not 1"),
        ({"primed": 3}, TypeError, "primed must be text or None, not 3"),
    ],
)
def test_an_argument_of_another_kind_is_refused(argument: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        toolwire.grammar([TOOL], format="hermes", **argument)


def test_two_different_tools_of_one_name_are_refused() -> None:
    with pytest.raises(toolwire.DefinitionError, match="two different tools have this name"):
        toolwire.grammar([TOOL, {**TOOL, "description": "Another."}], format="hermes")


@pytest.mark.parametrize("syntax", ["gbnf", "lark", "structural_tag"])
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_a_tool_with_the_name_of_a_choice_changes_no_choice(choice: str, syntax: Any) -> None:
    named, other = ({"name": name, "parameters": TOOL["parameters"]} for name in (choice, "f_" + choice[2:]))
    texts = [
        toolwire.grammar([tool], format="hermes", tool_choice=choice, syntax=syntax).text for tool in (named, other)
    ]
    assert texts[0] == texts[1].replace(other["name"], choice)


def test_a_call_that_is_required_needs_a_tool() -> None:
    with pytest.raises(toolwire.DefinitionError, match="a call is required, and there is no tool"):
        toolwire.grammar([], format="hermes", tool_choice="required")


def test_markers_in_brackets_may_be_special_tokens() -> None:
    assert toolwire.grammar([TOOL], format="hermes").special_tokens == ("<tool_call>", "</tool_call>")
    assert toolwire.grammar([TOOL], format="react").special_tokens == ()
