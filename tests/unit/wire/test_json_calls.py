"""Calls that are JSON objects: members in any order, members that are not a call's, and objects that are broken."""

from __future__ import annotations

from typing import Any

import pytest
from tests.streams import parsed

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


def read(members: str, size: int) -> tuple[list[Any], list[str], list[str]]:
    """Return the arguments and repairs of complete calls, the names of incomplete ones, and the kinds of problems."""
    response = parsed("<tool_call>{" + members + "}</tool_call>", size, format="hermes", tools=TOOLS)
    assert {call.name for call in response.tool_calls} <= {"f"}
    calls: list[Any] = [(call.arguments, *call.repairs) for call in response.tool_calls]
    return calls, [call.name for call in response.incomplete], [problem.kind for problem in response.problems]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    ("members", "calls"),
    [
        ('"name": "f", "arguments": {"a": 1}', [({"a": 1},)]),
        ('"arguments": {"a": 1}, "name": "f"', [({"a": 1},)]),
        ('"name": "f", "arguments": "{\\"a\\": 1}"', [({"a": 1},)]),
        ('"name": "f", "arguments": ""', [({},)]),
        ('"name": "f", "arguments": null', [({},)]),
        ('"name": "f"', [({},)]),
        ('"name": "f", "arguments": {}, "id": "c9"', [({},)]),
        ('"name": "f", "arguments": {"a": 1},', [({"a": 1}, "trailing_comma")]),
        *(
            (f'"type": "{kind}", "name": "f", "arguments": {{"a": 1}}', [({"a": 1},)])
            for kind in ("function", "function_call", "tool_call", "tool_use")
        ),
    ],
)
def test_an_object_with_a_name_is_a_call(members: str, calls: list[Any], size: int) -> None:
    assert read(members, size) == (calls, [], [])


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("kind", ['"other"', '""', "5", "null", "{}"])
def test_a_member_that_says_something_else_is_reported(kind: str, size: int) -> None:
    assert read(f'"type": {kind}, "name": "f", "arguments": {{}}', size) == ([({},)], [], ["unread_members"])


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    "members",
    [
        '"name": 5, "arguments": {"a": 1}',
        '"name": "", "arguments": {}',
        '"name": null, "arguments": {}',
        '"name": ["f"], "arguments": {}',
        '"arguments": {"a": 1}',
        "",
    ],
)
def test_an_object_without_a_name_is_not_a_call(members: str, size: int) -> None:
    assert read(members, size) == ([], [], ["missing_name"])


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    ("members", "incomplete"),
    [
        ('"name": "f", "arguments": [1]', ["f"]),
        ('"name": "f", "arguments": "x"', ["f"]),
        ('"name": "f",, "arguments": {}', ["f"]),
        ('"name": "f" "arguments": {}', ["f"]),
        ('"name": "f", "name": "g", "arguments": {}', ["f"]),
        ('"name": "f", "arguments": {}, "arguments": {}', ["f"]),
        (', "name": "f"', []),
    ],
)
def test_a_broken_object_is_a_problem(members: str, incomplete: list[str], size: int) -> None:
    assert read(members, size) == ([], incomplete, ["malformed"])
