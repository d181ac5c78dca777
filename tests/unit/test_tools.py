"""Definitions by hand, from functions and from providers' dicts."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel

import toolwire
from toolwire.errors import DefinitionError
from toolwire.execution.registry import ToolRegistry
from toolwire.tools import Tier, Tool, ToolDefinition, as_definition, definitions, tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition("weather", "Get it.", CITY)


@tool
def weather(city: str) -> str:
    """Get it.

    Args:
        city: the city.
    """
    return f"sunny in {city}"


@tool(name="remove.file", description="Remove.", tier=Tier.RUN, requires_confirmation=True)
async def remove(path: str) -> None:
    """Overridden."""


class Search(BaseModel):
    """Search the web."""

    query: str


class Dumped:
    """As the official MCP client's tools are."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        assert options == {"by_alias": True}
        return {"name": "weather", "description": "Get it.", "inputSchema": CITY, "annotations": None, "title": None}


def test_bare_decorator() -> None:
    assert isinstance(weather, Tool)
    assert weather("Oslo") == "sunny in Oslo"
    assert weather.__name__ == "weather" and weather.__doc__ and weather.__wrapped__ is weather.function  # type: ignore[attr-defined]
    assert weather.definition.name == "weather"
    assert weather.definition.description == "Get it."
    assert weather.definition.tier is Tier.CRAWL
    assert weather.definition.parameters["properties"] == {"city": {"type": "string", "description": "the city."}}
    assert repr(weather) == "<Tool weather>"


def test_annotations_of_the_decorator_are_added_to_those_of_the_tool() -> None:
    @tool(annotations={"strict": True})
    def ping(host: str) -> str:
        return host

    assert ping.definition.annotations == {"strict": True}
    assert ping.replace(annotations={"hint": 1}).definition.annotations == {"strict": True, "hint": 1}
    with pytest.raises(TypeError, match=r'annotations must be a dict, such as \{"strict": True\}, not'):
        tool(annotations="strict")  # type: ignore[call-overload]


@pytest.mark.mission("F4")
def test_decorator_with_options() -> None:
    definition = remove.definition
    assert (definition.name, definition.description) == ("remove.file", "Remove.")
    assert definition.tier == 2 and definition.requires_confirmation


def test_a_function_that_no_model_can_call() -> None:
    with pytest.raises(DefinitionError, match="positional-only"):

        @tool
        def bad(a: int, /) -> None: ...


@pytest.mark.parametrize(
    "obj",
    [
        WEATHER,
        {"type": "function", "function": {"name": "weather", "description": "Get it.", "parameters": CITY}},
        {"function": {"name": "weather", "description": "Get it.", "parameters": CITY}},
        {"type": "function", "name": "weather", "description": "Get it.", "parameters": CITY},
        {"name": "weather", "description": "Get it.", "parameters": CITY},
        {"name": "weather", "description": "Get it.", "input_schema": CITY},
        {"name": "weather", "description": "Get it.", "inputSchema": CITY, "annotations": {}},
        Dumped(),
    ],
)
def test_known_shapes(obj: Any) -> None:
    assert as_definition(obj) == as_definition(obj, strict=True) == WEATHER


def test_functions_and_models() -> None:
    assert as_definition(weather) is weather.definition
    assert as_definition(weather.function) == weather.definition
    search = as_definition(Search, strict=True)
    assert (search.name, search.description) == ("Search", "Search the web.")
    assert search.shape.property("query").kinds == {"string"}


def test_hints_are_kept() -> None:
    mcp = {"name": "rm", "inputSchema": CITY, "annotations": {"destructiveHint": True}}
    assert as_definition(mcp).annotations == {"destructiveHint": True}
    strict = {"type": "function", "function": {"name": "f", "parameters": CITY, "strict": True}}
    assert as_definition(strict).annotations == {"strict": True}


@pytest.mark.parametrize("parameters", [None, {}, []])
@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_no_parameters(parameters: Any, key: str) -> None:
    assert as_definition({"name": "f", key: parameters}, strict=True).parameters == {"type": "object", "properties": {}}
    assert as_definition({"name": "f"}).parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize("parameters", [5, "x", True, [1], {"type": "object"}.items()])
@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_a_schema_that_is_no_object_is_not_taken_for_none(parameters: Any, key: str) -> None:
    with pytest.raises(DefinitionError, match="the parameters schema must be a dict") as caught:
        as_definition({"name": "f", key: parameters})
    assert (caught.value.tool, caught.value.pointer) == ("f", f"/{key}")
    with pytest.raises(DefinitionError, match=f"tool 'f' at /{key}: "):
        toolwire.parse("", tools=[{"type": "function", "function": {"name": "f", key: parameters}}])


@pytest.mark.parametrize("obj", [{}, {"tool": "x"}, {"type": "function"}, {"function": {}}, {"name": 5}, 5, None, "x"])
def test_unknown_shapes(obj: Any) -> None:
    with pytest.raises(DefinitionError, match=r"(?s)known.*OpenAI.*Anthropic.*MCP"):
        as_definition(obj)


def endless() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"properties": {"a": schema}, "anyOf": [schema]}
    return schema


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "dict", "properties": {"a": {"type": "float"}}},
        {"description": "no type"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/"}}},
        {"$ref": "#"},
        endless(),
    ],
)
def test_odd_schemas_are_taken_for_reading_only(parameters: Any) -> None:
    obj = {"name": "f", "parameters": parameters}
    shape = as_definition(obj).shape
    assert shape.property("a").kinds
    with pytest.raises(DefinitionError):
        as_definition(obj, strict=True)


@pytest.mark.parametrize("name", ["f", "a-b_c.d:e/f", "functions.f:0", "日本語", "x" * 256, "$ok", "mcp__a__b"])
def test_good_names(name: str) -> None:
    assert ToolDefinition(name).name == name


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\u00a0", "x" * 257, "a\x00", "\ud800", *"<>{}()[]\"'=,", 5, None])
def test_bad_names(name: Any) -> None:
    with pytest.raises(DefinitionError):
        ToolDefinition(name)


@pytest.mark.mission("D1")
def test_the_shape_is_made_once() -> None:
    definition = ToolDefinition("f", parameters=CITY)
    assert definition.shape is definition.shape
    assert copy.deepcopy(definition) == definition == ToolDefinition("f", parameters=CITY)


def test_definitions() -> None:
    known = definitions([weather, Search, {"name": "f"}])
    assert list(known) == ["weather", "Search", "f"]
    assert definitions(known) == known
    assert definitions(iter(known.values()), strict=True) == known
    assert definitions(()) == definitions(None) == definitions({}) == {}


def test_one_tool_alone() -> None:
    for one in (WEATHER, weather, {"name": "weather"}, {"type": "function", "function": {"name": "weather"}}):
        assert list(definitions(one)) == ["weather"]


def test_one_function_model_or_dumping_object_alone() -> None:
    class Listed(BaseModel):
        name: str = "listed"

    assert list(definitions(weather.function)) == ["weather"]
    assert list(definitions(lambda_like := weather.function.__get__("Paris"), strict=True)) == [lambda_like.__name__]
    assert list(definitions(Search)) == ["Search"]
    assert list(definitions(Listed())) == ["listed"]
    assert toolwire.parse("hello", tools=weather.function).content == "hello"  # type: ignore[arg-type]
    for odd in (5, object(), "weather"):
        with pytest.raises(DefinitionError):
            definitions(odd)  # type: ignore[arg-type]


def test_a_mapping_names_its_tools() -> None:
    known = definitions({"w": weather, "s": Search, "f": {"description": "D", "parameters": CITY}, "weather": WEATHER})
    assert [definition.name for definition in known.values()] == list(known) == ["w", "s", "f", "weather"]
    assert known["f"].description == "D"
    assert known["weather"] is WEATHER


def test_names_that_come_twice() -> None:
    other = ToolDefinition("weather", "Another.")
    assert definitions([WEATHER, other]) == {"weather": WEATHER}
    assert definitions([WEATHER, copy.deepcopy(WEATHER)], strict=True) == {"weather": WEATHER}
    with pytest.raises(DefinitionError, match="two different"):
        definitions([WEATHER, other], strict=True)


def test_a_tool_says_whether_it_may_run_twice() -> None:
    @toolwire.tool(idempotent=True)
    def look() -> int:
        return 1

    registry = ToolRegistry([look])
    registry.register(lambda: 2, name="write")
    registry.register(look, name="careful", idempotent=False)
    registry.register({"name": "remote", "annotations": {"idempotentHint": True}}, server="strange", run=lambda: 3)
    said = {name: registry.lookup(name).behavior.idempotent for name in ("look", "write", "careful", "remote")}
    assert said == {"look": True, "write": False, "careful": False, "remote": False}


def test_models_see_the_chosen_parameters_alone() -> None:
    @tool(parameters=("path", "depth"))
    def find(path: str, depth: int = 3, hidden: bool = False) -> str:
        return f"{path} {depth} {hidden}"

    assert list(find.definition.parameters["properties"]) == ["path", "depth"]
    assert find.definition.parameters["required"] == ["path"]
    fewer = find.replace(parameters=["path"])
    assert list(fewer.definition.parameters["properties"]) == ["path"] and fewer("a") == "a 3 False"
    assert list(find.definition.parameters["properties"]) == ["path", "depth"], "the other tool stays as it is"
    with pytest.raises(DefinitionError, match="there is no parameter 'deph'; did you mean depth"):
        find.replace(parameters=("path", "deph"))
    with pytest.raises(DefinitionError, match="the parameter 'path' is required, so models have to see it"):
        find.replace(parameters=("depth",))
    with pytest.raises(TypeError, match="parameters must be a list of names of parameters, not"):
        find.replace(parameters="path")
