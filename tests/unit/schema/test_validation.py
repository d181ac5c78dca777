"""Validation of arguments, and checks of the schemas of tools."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.errors import DefinitionError
from toolwire.schema.validation import check_schema, validate

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
STRING = {"type": "string"}
NULLABLE = {"type": ["string", "null"]}
TREE = {
    "type": "object",
    "properties": {"n": INTEGER, "kids": {"type": "array", "items": {"$ref": "#"}}},
}


def nest(levels: int, keyword: str) -> Any:
    schema: Any = INTEGER
    for _ in range(levels):
        schema = {keyword: [schema, {}]} if keyword.endswith("Of") else {keyword: {"a": schema}}
    return schema


BOOKING = {
    "type": "object",
    "properties": {
        "days": INTEGER,
        "unit": {"enum": ["c", "f"]},
        "note": {"type": "string", "nullable": True, "maxLength": 3, "pattern": "^[a-z]+$"},
        "tags": {"type": "array", "items": STRING, "minItems": 1},
        "level": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
        "when": {"anyOf": [INTEGER, {"type": "null"}]},
        "who": {"oneOf": [INTEGER, {"type": "object", "required": ["id"], "properties": {"id": INTEGER}}]},
        "pair": {"type": "array", "items": [INTEGER, STRING]},
        "data": {"type": "dict"},
        "ref": {"$ref": "#/properties/days", "nullable": True},
    },
    "required": ["days"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "issues"),
    [
        ({"days": 1, "note": None, "pair": [1, "a"], "data": {}, "ref": None, "who": {"id": 1}, "when": None}, []),
        ({"days": "x"}, ['/days: is the string "x", the schema wants an integer']),
        ({"days": None}, ["/days: is null, the schema wants an integer"]),
        ({}, ['the arguments: lacks the required property "days"']),
        ({"days": 1, "unit": "k"}, ['/unit: is the string "k", the schema wants one of "c", "f"']),
        ({"days": 1, "note": "abcd"}, ["/note: has 4 characters, the schema wants at most 3"]),
        ({"days": 1, "note": "A"}, ['/note: is the string "A", the schema wants text that matches ^[a-z]+$']),
        ({"days": 1, "tags": []}, ["/tags: has 0 elements, the schema wants at least 1"]),
        ({"days": 1, "tags": ["a", 5]}, ["/tags/1: is the integer 5, the schema wants a string"]),
        ({"days": 1, "level": 0}, ["/level: is 0, the schema wants at least 1"]),
        ({"days": 1, "level": 9}, ["/level: is 9, the schema wants less than 9"]),
        ({"days": 1, "when": "x"}, ['/when: is the string "x", the schema wants an integer or null']),
        ({"days": 1, "who": {}}, ['/who: lacks the required property "id"']),
        ({"days": 1, "who": {"id": []}}, ["/who: /id is an array, the schema wants an integer"]),
        ({"days": 1, "pair": ["a"]}, ['/pair/0: is the string "a", the schema wants an integer']),
        ({"days": 1, "data": 1.5}, ["/data: is the number 1.5, the schema wants an object"]),
        ([], ["the arguments: is an array, the schema wants an object"]),
    ],
)
def test_issues_name_the_place_and_what_the_schema_wants(arguments: Any, issues: list[str]) -> None:
    assert [str(issue) for issue in validate(arguments, BOOKING)] == issues


@pytest.mark.need(40)
def test_an_unknown_property_is_reported_with_the_declared_ones() -> None:
    schema = {"type": "object", "properties": {"city": STRING}, "additionalProperties": False}
    assert [str(issue) for issue in validate({"town": "x"}, schema)] == [
        'the arguments: has "town", which the schema does not know; it knows "city"'
    ]


def test_values_that_are_not_json_are_issues() -> None:
    loop: dict[str, Any] = {}
    loop["kids"] = [loop]
    deep: Any = {}
    for _ in range(100_000):
        deep = {"kids": [deep]}
    for value in (loop, deep, {"kids": {1}}, object(), "\ud800", b"x", {1: 2}):
        assert validate(value, TREE)
    assert validate({"n": "a" * 100_000}, TREE)[0].message.count("a") < 200


@pytest.mark.parametrize(
    "schema", [{"$ref": "https://example.com/x"}, {"properties": []}, {"$ref": "#/nope"}, nest(10_000, "properties")]
)
def test_an_unusable_schema_admits_no_value(schema: Any) -> None:
    assert [issue.keyword for issue in validate({}, schema)] == ["$schema"]


@pytest.mark.need(32)
def test_a_backtracking_pattern_does_not_hang() -> None:
    assert validate({"a": "a" * 50_000 + "!"}, {"properties": {"a": {"pattern": "^(a+)+$"}}})


OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({}, "/type"),
        ({"type": "array"}, "/type"),
        ({"type": ["object", "null"]}, "/type"),
        ({"type": "dict"}, "/type"),
        ({**OBJECT, "properties": {"a": {"type": "float"}}}, "/properties/a/type"),
        ({**OBJECT, "properties": {"a/b": {"minimum": "x"}}}, "/properties/a~1b/minimum"),
        ({**OBJECT, "required": "a"}, "/required"),
        ({**OBJECT, "properties": {"a": {"pattern": "("}}}, "/properties/a/pattern"),
        ({**OBJECT, "properties": {"a": {"$ref": "#/$defs/b"}}}, "/properties/a/$ref"),
        ({**OBJECT, "$defs": {"unused": {"$ref": "#/nope"}}}, "/$defs/unused/$ref"),
        ({**OBJECT, "properties": {"a": {"$ref": "https://example.com/x"}}}, "/properties/a/$ref"),
        ({**OBJECT, "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "/properties/a/$ref"),
        ({**OBJECT, "$schema": "https://example.com/meta"}, ""),
        ({**OBJECT, "default": {1, 2}}, ""),
        ({**OBJECT, "default": float("nan")}, ""),
        ({**OBJECT, "properties": {"a": nest(250, "anyOf")}}, ""),
        ({**OBJECT, "properties": {"a": nest(10_000, "anyOf")}}, ""),
    ],
)
def test_check_schema_refuses_unusable_schemas(schema: Any, pointer: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        check_schema(schema, "book")
    assert caught.value.tool == "book"
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    "schema",
    [
        OBJECT,
        TREE,
        {"properties": {"a": STRING}},
        {"$ref": "#/$defs/a", "$defs": {"a": OBJECT}},
        {**OBJECT, "properties": {"a": {"type": "string", "nullable": True}, "b": {"items": [INTEGER]}}},
        {**OBJECT, "properties": {"a": nest(90, "anyOf")}},
        {**OBJECT, "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"items": [{}]}}},
        {**OBJECT, "x-unknown": 1, "properties": {"$ref": STRING}},
    ],
)
def test_check_schema_accepts_usable_schemas(schema: Any) -> None:
    check_schema(schema)
