"""Arguments below a key that the format does not have."""

from __future__ import annotations

from typing import Any

import pytest
from tests.streams import parsed

TOOLS = [{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]
INPUT = [{"name": "search", "parameters": {"type": "object", "properties": {"input": {"type": "object"}}}}]
CALL = "<tool_call>%s</tool_call>"


@pytest.mark.parametrize("key", ["input", "params", "args", "kwargs", "tool_input"])
@pytest.mark.parametrize(
    "members", ['"name": "search", "%s": {"query": "a"}', '"%s": {"query": "a"}, "name": "search"']
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_object_below_the_key_of_another_format_is_the_arguments(key: str, members: str, size: int) -> None:
    read = parsed(CALL % ("{" + members % key + "}"), size, format="hermes", tools=TOOLS)
    (call,) = read.tool_calls
    assert (call.arguments, call.repairs, read.problems) == ({"query": "a"}, ("argument_key",), ())


@pytest.mark.parametrize(
    ("tools", "members", "arguments", "problems"),
    [
        (TOOLS, '"input": {"query": "a"}, "params": {}', {}, ["unread_members"]),
        (TOOLS, '"input": "a"', {}, ["unread_members"]),
        (TOOLS, '"input": {"query": "a", "limit": 1}', {}, ["unread_members"]),
        ([], '"input": {"query": "a"}', {}, ["unread_members"]),
        (TOOLS, '"arguments": {"query": "a"}, "input": {"query": "b"}', {"query": "a"}, ["unread_members"]),
        (TOOLS, '"query": "a", "input": {"query": "b"}', {"query": "a"}, ["unread_members"]),
        (INPUT, '"input": {"query": "a"}', {"input": {"query": "a"}}, []),
        (TOOLS, '"input": {}', {}, []),
    ],
)
def test_key_is_no_holder_of_arguments_where_another_reading_is_certain(
    tools: list[dict[str, Any]], members: str, arguments: dict[str, Any], problems: list[str]
) -> None:
    read = parsed(CALL % f'{{"name": "search", {members}}}', format="hermes", tools=tools)
    (call,) = read.tool_calls
    assert (call.arguments, [problem.kind for problem in read.problems]) == (arguments, problems)


def test_no_key_is_taken_for_another_without_repairs() -> None:
    read = parsed(CALL % '{"name": "search", "input": {"query": "a"}}', format="hermes", tools=TOOLS, repair="none")
    assert ([call.arguments for call in read.tool_calls], [problem.kind for problem in read.problems]) == (
        [{}],
        ["unread_members"],
    )
