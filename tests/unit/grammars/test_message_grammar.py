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
