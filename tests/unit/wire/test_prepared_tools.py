"""Tools that are prepared once: the same tools are recognized, and changed ones are not mistaken for them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel

import toolwire
from toolwire.errors import DefinitionError
from toolwire.tools import Tier, ToolDefinition
from toolwire.wire.prepared_tools import prepared_tools, usable_definitions

CALL = '<tool_call>\n{"name": "f", "arguments": {"x": "1"}}\n</tool_call>'


def tool(kind: str) -> dict[str, Any]:
    return {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": kind}}}}


def argument(tools: list[Any]) -> Any:
    return toolwire.parse(CALL, format="hermes", tools=tools).tool_calls[0].arguments["x"]


def test_equal_dicts_are_prepared_once() -> None:
    assert prepared_tools([tool("integer")]) is prepared_tools([copy.deepcopy(tool("integer"))])


def test_the_same_definitions_are_prepared_once() -> None:
    definition = ToolDefinition("f")
    assert prepared_tools([definition]) is prepared_tools((definition,))
    assert prepared_tools([definition]) is not prepared_tools([ToolDefinition("f")])


def test_a_schema_that_is_changed_in_place_counts_from_then_on() -> None:
    tools = [tool("integer")]
    assert argument(tools) == 1
    tools[0]["parameters"]["properties"]["x"]["type"] = "string"
    assert argument(tools) == "1"
    tools[0]["parameters"]["properties"]["x"]["type"] = "integer"
    assert argument(tools) == 1


def test_a_change_in_place_does_not_reach_what_was_prepared() -> None:
    tools = [tool("integer")]
    prepared_tools(tools)
    tools[0]["parameters"]["properties"]["x"]["type"] = "string"
    assert argument([tool("integer")]) == 1


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ("1", 1)])
def test_values_that_are_equal_only_in_python_are_told_apart(one: Any, other: Any) -> None:
    def definition(value: Any) -> ToolDefinition:
        tools = [{"name": "f", "parameters": {"properties": {"x": {"enum": [value]}}}}]
        return prepared_tools(tools).definitions["f"]

    for value in (one, other):
        (written,) = definition(value).parameters["properties"]["x"]["enum"]
        assert written == value
        assert type(written) is type(value)


def test_dicts_beside_tools_of_another_kind_are_read_too() -> None:
    def g(y: int) -> None:
        """Do nothing."""

    assert list(prepared_tools([tool("integer"), g]).definitions) == ["f", "g"]


def test_a_dict_that_contains_itself_is_read_as_far_as_it_is_a_tool() -> None:
    circular = tool("integer")
    circular["parameters"]["properties"]["y"] = circular["parameters"]
    assert argument([circular]) == 1


def test_a_dict_that_is_no_tool_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(DefinitionError, match="no tool"):
            prepared_tools([{"description": "nothing"}])


def test_the_example_in_a_problem_is_the_same_for_each_message() -> None:
    tools = [tool("integer"), {"name": "g", "parameters": {"properties": {"y": {"type": "string"}}}}]
    for _ in range(2):
        for name in ("f", "g"):
            text = f'<tool_call>\n{{"name": "{name}", "arguments": [1]}}\n</tool_call>'
            for format in ("hermes", "granite"):
                (problem,) = toolwire.parse(text, format=format, tools=tools).problems
                assert f"A call of {name} is written like this:" in problem.message
                assert ("<|tool_call|>" in problem.message) == (format == "granite")


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (None, []),
        ([], []),
        ((), []),
        ({}, []),
        (tool("integer"), ["f"]),
        ((tool("integer"),), ["f"]),
        ({"g": tool("integer")["parameters"]}, ["g"]),
        (iter([tool("integer"), ToolDefinition("g")]), ["f", "g"]),
        (ToolDefinition("g"), ["g"]),
    ],
)
def test_tools_come_in_any_shape(tools: Any, names: list[str]) -> None:
    assert list(prepared_tools(tools).definitions) == names


def test_characters_of_any_script_are_kept() -> None:
    tools = [{"name": "f", "description": "天気 \ud800 😀", "parameters": {"properties": {"città": {}}}}]
    definition = prepared_tools(tools).definitions["f"]
    assert definition.description == "天気 \ud800 😀"
    assert list(definition.parameters["properties"]) == ["città"]


def test_facts_about_the_parameters_of_tools() -> None:
    schema = {"properties": {"to": {}, "from": {}, "date": {}}, "required": ["date", "to"]}
    known = prepared_tools([{"name": "book", "parameters": schema}, {"name": "now"}, tool("string")])
    assert list(known.properties("book")) == ["to", "from", "date"]
    assert list(known.required("book")) == ["to", "date"]
    assert list(known.properties("now")) == list(known.required("now")) == []
    assert known.parameters == {"to", "from", "date", "x"}
    assert prepared_tools(None).parameters == frozenset()


def test_written_names_are_resolved_to_the_tools() -> None:
    known = prepared_tools([{"name": "get_weather"}])
    assert known.names.resolve("get-weather") == "get_weather"
    assert known.names.resolve("weather_report") == ""
    assert known.names is known.names


def test_usable_definitions_report_the_others() -> None:
    tools = [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
        {"type": "web_search"},
        {"name": "has a blank"},
        {"name": "f", "description": "another"},
        {"name": "g", "parameters": {"type": "objekt"}},
    ]
    usable, errors = usable_definitions(tools)
    assert list(usable) == ["f", "g"]
    assert usable["f"].description == ""
    assert ["web_search" in str(errors[0]) or "type" in str(errors[0]), "has a blank" in str(errors[1])] == [True, True]
    usable, errors = usable_definitions(tools, strict=True)
    assert list(usable) == ["f"] and len(errors) == 3


def test_usable_definitions_take_a_mapping() -> None:
    usable, errors = usable_definitions({"f": {"parameters": {}}, "a b": {"parameters": {}}})
    assert list(usable) == ["f"] and len(errors) == 1
    assert usable_definitions(None) == ({}, [])
    assert list(usable_definitions({"name": "f"})[0]) == ["f"]


def test_equal_tools_have_the_same_definitions() -> None:
    class Function(BaseModel):
        name: str

    class Described(BaseModel):
        type: str = "function"
        function: Function

    first, second = (usable_definitions([Described(function=Function(name="f"))])[0]["f"] for _ in range(2))
    assert first is second
    assert usable_definitions([{"type": "function", "function": {"name": "f"}}])[0]["f"] is first
    usable_definitions([{"name": "f"}])[0].clear()
    assert usable_definitions([{"name": "f"}])[0]


def test_no_two_callers_have_the_same_error() -> None:
    tools = [{"name": "g", "parameters": {"type": "objekt"}}]
    (error,), (another,) = (usable_definitions(tools, strict=True)[1] for _ in range(2))
    assert error is not another
    assert (str(error), error.tool, error.pointer) == (str(another), another.tool, another.pointer)
    assert (error.tool, error.pointer) == ("g", "/type")
    assert another.__traceback__ is None  # which would keep the tools of the first caller


def test_usable_definitions_of_functions() -> None:
    def f(a: int) -> None:
        """Do it."""

    usable, errors = usable_definitions([f, object()])
    assert list(usable) == ["f"] and len(errors) == 1
    definition = ToolDefinition("g", tier=Tier.RUN)
    assert usable_definitions([definition])[0]["g"] is definition
