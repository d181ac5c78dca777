"""Tool definitions as text other than JSON."""

from typing import Any

import pytest

from toolwire import ToolDefinition
from toolwire.wire.definition_text import declaration, typescript


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "integer"]}, "string | number"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "integer"]}}, "(string | number)[]"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": "array", "items": {"enum": ["a | b"]}}, '"a | b"[]'),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": ["array", "null"], "items": {"type": "string"}}, "string[] | null"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"enum": []}}, "any[]"),
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
