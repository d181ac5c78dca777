"""Members of a call beside its name: those that are its arguments, and those that may be."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import parse
from toolwire.wire.call_members import arguments_among, lost_argument

TOOL = {"name": "f", "parameters": {"properties": {"i": {"type": "integer"}, "s": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("members", "arguments", "keys", "repair"),
    [
        ({"i": 1, "why": "a"}, {"i": 1}, ["i"], "flat_arguments"),
        ({"i": 1, "input": {"s": "a"}}, {"i": 1}, ["i"], "flat_arguments"),
        ({"input": {"i": 1}, "why": "a"}, {"i": 1}, ["input"], "argument_key"),
        ({"Tool_Input": {}}, {}, ["Tool_Input"], "argument_key"),
    ],
)
def test_members_are_arguments(
    members: dict[str, Any], arguments: dict[str, Any], keys: list[str], repair: str
) -> None:
    read = arguments_among(members, ["i", "s"])
    assert read is not None
    assert (read[0], list(read[1]), read[2]) == (arguments, keys, repair)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"input": {"town": "a"}},
        {"input": {"i": 1}, "params": {"s": "a"}},
        {"input": ["i"]},
        {"input": "s"},
        {"input": None},
        {"why": {"i": 1}},
    ],
)
def test_these_are_not(members: dict[str, Any]) -> None:
    assert arguments_among(members, ["i", "s"]) is None


def test_a_tool_without_parameters_has_no_arguments_among_the_members() -> None:
    assert arguments_among({"input": {}}, []) is None


def test_the_first_member_that_says_something_may_be_lost() -> None:
    nothing: dict[str, Any] = {"a": None, "b": "", "c": [], "d": {}, "thought": "x", "Call_Id": "1", "type": "function"}
    assert lost_argument(nothing) == ""
    assert [lost_argument({**nothing, "e": value, "g": 1}) for value in (0, False, "x", [0])] == ["e"] * 4


def test_without_repairs_members_are_not_taken_as_arguments() -> None:
    text = '<tool_call>{"name": "f", "i": 1}</tool_call>'
    read_whole = parse(text, format="hermes", tools=[TOOL], repair="none")
    assert (read_whole.tool_calls, [problem.kind for problem in read_whole.problems]) == ((), ["malformed"])
    assert parse(text, format="hermes", tools=[TOOL]).tool_calls[0].arguments == {"i": 1}


def test_objects_in_a_list_are_calls_only_under_a_key_for_calls() -> None:
    text = '<tool_call>{{"name": "f", "arguments": {{"i": 1}}, "{}": [{{"a": 1}}]}}</tool_call>'
    noted, listed = (parse(text.format(key), format="hermes", tools=[TOOL]) for key in ("notes", "calls"))
    assert ([call.arguments for call in noted.tool_calls], noted.problems[0].kind) == ([{"i": 1}], "unread_members")
    assert (listed.tool_calls, listed.problems[0].kind) == ((), "malformed")
