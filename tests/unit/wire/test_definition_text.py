"""Tool definitions as text other than JSON."""

from typing import Any

import pytest

from toolwire import ToolDefinition
from toolwire.text.limits import MAX_DEPTH
from toolwire.wire.definition_text import declaration, definition_elements, is_definition, tokens, typescript


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "integer"]}, "string | number"),
        ({"type": ["number", "boolean", "null"]}, "number | boolean | null"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "integer"]}}, "(string | number)[]"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": "array", "items": {"enum": ["a | b"]}}, '"a | b"[]'),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": ["array", "null"], "items": {"type": "string"}}, "string[] | null"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"enum": []}}, "any[]"),
        ({"type": "array", "items": True}, "any[]"),
        ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, "string | boolean"),
        (_object({"a": {"type": "string"}, "b": {}}, "a"), "{ a: string, b?: any }"),
        (_object({"a-b": {}, "1": {}, "$c": {}}, "a-b"), '{ "a-b": any, "1"?: any, $c?: any }'),
        ({"type": "object"}, "object"),
        (True, "any"),
    ],
)
def test_schemas_become_typescript_types(schema: Any, written: str) -> None:
    text = typescript(ToolDefinition("f", "", _object({"p": schema}, "p")))
    assert text.splitlines()[1] == f"p: {written},"


def test_parameters_that_are_not_identifiers_are_quoted() -> None:
    text = typescript(ToolDefinition("f", "", _object({"the city": {"type": "string"}})))
    assert '"the city"?: string,' in text


def test_declarations_keep_property_names_that_look_like_keywords() -> None:
    schema = _object({"type": {"$ref": "#/$defs/type"}}) | {"$defs": {"type": {"type": "string"}}}
    text = declaration(ToolDefinition("f", "", schema), "'")
    assert "$defs" in text
    assert "{type:{type:'STRING'}}" in text
    assert "properties:{type:{'$ref':'#/$defs/type'}}" in text


def _nested(levels: int, around: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a string, with so many others around it, each of which contains the next as "*"."""
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {key: _filled(value, schema) for key, value in around.items()}
    return schema


def _filled(value: Any, schema: Any) -> Any:
    match value:
        case "*":
            return schema
        case list():
            return [_filled(item, schema) for item in value]
        case dict():
            return {key: _filled(item, schema) for key, item in value.items()}
        case _:
            return value


@pytest.mark.parametrize(
    ("around", "levels"),
    [
        ({"anyOf": ["*"]}, MAX_DEPTH),
        ({"type": "array", "items": "*"}, MAX_DEPTH),
        ({"type": "object", "properties": {"a": "*"}, "required": ["a"]}, MAX_DEPTH * 2 // 3),
    ],
)
def test_schemas_are_written_down_to_the_limit_of_depth(around: dict[str, Any], levels: int) -> None:
    text = typescript(ToolDefinition("f", "", _object({"p": _nested(levels, around)}, "p"))).splitlines()[1]
    assert text.strip("p:[]{}a ,") == "string"


@pytest.mark.parametrize(
    "around",
    [{"anyOf": ["*"]}, {"type": "array", "items": "*"}, {"type": ["array"], "items": "*"}, {"oneOf": ["*", True]}],
)
def test_deeper_schemas_are_any(around: dict[str, Any]) -> None:
    text = typescript(ToolDefinition("f", "", _object({"p": _nested(MAX_DEPTH + 50, around)}, "p"))).splitlines()[1]
    assert text.startswith("p: any")
    assert "string" not in text


def test_descriptions_and_defaults_are_comments() -> None:
    properties = {"days": {"type": "integer", "description": "How many\ndays.", "default": 3}, "city": {}}
    assert typescript(ToolDefinition("weather", "The weather.\nIn a city.", _object(properties, "city"))) == (
        "// The weather.\n// In a city.\ntype weather = (_: {\n// How many\n// days.\n"
        "days?: number, // default: 3\ncity: any,\n}) => any;"
    )
    assert typescript(ToolDefinition("now", "", _object({}))) == "type now = () => any;"


def test_values_are_written_with_tokens_around_strings_and_unusual_keys() -> None:
    value = {"a": ["x", 1, None, [], {"b": True}], "c:d": {}, "1": "y"}
    assert tokens(value, "|") == "{a:[|x|,1,null,[],{b:true}],|c:d|:{},|1|:|y|}"


def test_types_are_in_capitals_in_all_schemas_that_a_declaration_contains() -> None:
    inner = {"type": "string"}
    schema = {
        "type": ["object", "null"],
        "patternProperties": {"^x": inner},
        "definitions": {"d": inner},
        "additionalProperties": inner,
        "properties": {
            "a": {"type": "array", "items": inner},
            "b": {"anyOf": [inner, True]},
            "c": {"oneOf": [inner]},
            "d": {"allOf": [inner]},
        },
    }
    text = declaration(ToolDefinition("f", "Do it.", schema), "'")
    assert text.startswith("declaration:f{description:'Do it.',parameters:{additionalProperties:{type:'STRING'},")
    assert text.count("'STRING'") == 7
    assert "'string'" not in text
    assert "type:['OBJECT','NULL']" in text


def test_values_in_a_declaration_keep_their_case_and_order() -> None:
    value = {"type": "string", "a": {"type": "x"}}
    text = declaration(ToolDefinition("f", "", _object({"p": {"default": value, "enum": ["type"], "type": 1}})), "'")
    assert "{default:{type:'string',a:{type:'x'}},enum:['type'],type:1}" in text
    assert "description" not in text


def test_definitions_as_elements_have_one_for_each_fact() -> None:
    properties = {"city": {"type": "string", "description": " A city. ", "enum": ["Rome"]}, "n": {"type": ["null"]}}
    schema = _object({**properties, "anything": True}, "city")
    assert definition_elements(ToolDefinition("weather", " The weather. ", schema)).splitlines() == [
        "<function>", "<name>weather</name>", "<description>The weather.</description>",
        "<parameters>",
        "<parameter>", "<name>city</name>", "<type>string</type>", "<description>A city.</description>",
        '<enum>["Rome"]</enum>', "</parameter>",
        "<parameter>", "<name>n</name>", '<type>["null"]</type>', "</parameter>",
        "<parameter>", "<name>anything</name>", "</parameter>",
        '<required>["city"]</required>',
        "</parameters>", "</function>",
    ]  # fmt: skip
    assert "<description>" not in definition_elements(ToolDefinition("weather", "", _object({})))


@pytest.mark.parametrize(
    ("arguments", "repeated"),
    [
        ({"type": "object", "properties": {}}, True),
        ({"type": "OBJECT"}, True),
        ({"type": "string"}, False),
        ({"type": 1}, False),
        ({"city": "Rome"}, False),
        ({}, False),
    ],
)
def test_a_schema_in_place_of_arguments_is_a_definition(arguments: dict[str, Any], repeated: bool) -> None:
    assert is_definition(ToolDefinition("f", "", _object({"city": {}})), arguments) is repeated


def test_a_parameter_called_type_may_have_any_value() -> None:
    tool = ToolDefinition("f", "", _object({"type": {"type": "string"}}))
    assert not is_definition(tool, {"type": "object"})
    assert is_definition(tool, _object({"type": {"type": "string"}}))
