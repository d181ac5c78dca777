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


@pytest.mark.parametrize(
    "members",
    [
        *('"input": {"query": "a"}, "params": {}', '"input": "a"', '"input": {"query": "a", "limit": 1}'),
        *('"argumentz": {"query": "a"}', '"qery": "a"', '"limit": 0', '"thought": "I look.", "qery": "a"'),
    ],
)
@pytest.mark.parametrize("format", ["hermes", "auto"])
def test_call_does_not_run_without_what_may_be_its_arguments(members: str, format: str) -> None:
    text = CALL % f'{{"name": "search", {members}}}'
    for size in (1, 7, 1000):
        read = parsed(text, size, format=format, tools=TOOLS)
        assert (read.tool_calls, read.content) == ((), text)
        assert [problem.kind for problem in read.problems] == ["malformed"]
        assert "is not a parameter of 'search'" in read.problems[0].message


@pytest.mark.parametrize(
    "members",
    ['"arguments": {}, "query": "a"', '"query": "a", "arguments": {}', '"arguments": null, "query": "a"'],
)
@pytest.mark.parametrize("repair", ["safe", "none"])
def test_call_with_its_arguments_beside_an_empty_object_does_not_run(members: str, repair: Any) -> None:
    for text in (CALL % f'{{"name": "search", {members}}}', CALL % f'{{{members}, "name": "search"}}'):
        for size in (1, 7, 1000):
            read = parsed(text, size, format="hermes", tools=TOOLS, repair=repair)
            assert (read.tool_calls, read.content) == ((), text)
            assert "'query' is beside the arguments of 'search', which are empty" in read.problems[0].message


@pytest.mark.parametrize(
    "members",
    ['"thought": "I look."', '"why": ""', '"why": null', '"why": {}', '"type": "other"', '"a": 1, "arguments": {}'],
)
def test_members_that_cannot_be_arguments_are_only_reported(members: str) -> None:
    read = parsed(CALL % f'{{"name": "search", {members}}}', 7, format="hermes", tools=TOOLS)
    assert [call.arguments for call in read.tool_calls] == [{}]
    assert [problem.kind for problem in read.problems] == ["unread_members"]


@pytest.mark.parametrize("parameters", [{}, {"type": "object", "properties": {}}])
def test_members_of_a_call_of_a_tool_without_parameters_are_only_reported(parameters: dict[str, Any]) -> None:
    tools = [{"name": "search", "parameters": parameters}]
    read = parsed(CALL % '{"name": "search", "a": 1}', 7, format="hermes", tools=tools)
    assert ([call.arguments for call in read.tool_calls], len(read.problems)) == ([{}], 1)


ATTRIBUTES = [
    *('<invoke name="search" {}></invoke>', '<invoke name="search" {}/>', '<tool name="search" {}/>'),
    *('<tool name="search" {}><arguments></arguments></tool>', '<function name="search" {}/>'),
]
"""Calls whose arguments are attributes of the tag with the tool's name."""


@pytest.mark.parametrize("call", ATTRIBUTES)
def test_attributes_are_arguments_where_the_schema_has_them(call: str) -> None:
    properties = {"query": {"type": "string"}, "limit": {"type": "integer"}}
    tools = [{"name": "search", "parameters": {"type": "object", "properties": properties}}]
    for size in (1, 7, 1000):
        read = parsed(call.format('query="a" limit="5"'), size, format="auto", tools=tools)
        assert [call.arguments for call in read.tool_calls] == [{"query": "a", "limit": 5}]
        assert (read.tool_calls[0].repairs, read.problems) == (("coerced", "flat_arguments"), ())
        read = parsed(text := call.format('qery="a"'), size, format="auto", tools=tools)
        assert (read.tool_calls, read.content, len(read.problems)) == ((), text, 1)


def test_attributes_beside_parameters_are_only_reported() -> None:
    text = '<invoke name="search" query="b"><parameter name="query">a</parameter></invoke>'
    read = parsed(text, 7, format="anthropic_xml", tools=TOOLS)
    assert [(call.arguments, call.repairs) for call in read.tool_calls] == [({"query": "a"}, ())]
    assert [problem.kind for problem in read.problems] == ["unread_members"]


def test_no_key_is_taken_for_another_without_repairs() -> None:
    read = parsed(CALL % '{"name": "search", "input": {"query": "a"}}', format="hermes", tools=TOOLS, repair="none")
    assert (read.tool_calls, [problem.kind for problem in read.problems]) == ((), ["malformed"])
