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


@pytest.mark.parametrize(
    ("keyword", "place"),
    [
        *((keyword, f"/{keyword}") for keyword in (
            "items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains",
            "propertyNames", "not", "if", "then", "else", "contentSchema",
        )),
        *((keyword, f"/{keyword}/1") for keyword in ("allOf", "anyOf", "oneOf", "prefixItems", "items")),
        *((keyword, f"/{keyword}/a~1b") for keyword in (
            "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
        )),
    ],
)  # fmt: skip
def test_a_dangling_reference_is_found_in_every_place_of_a_schema(keyword: str, place: str) -> None:
    dangling = {"$ref": "#/nope"}
    inner = {"1": [{}, dangling], "a~1b": {"a/b": dangling}}.get(place.rpartition("/")[2], dangling)
    with pytest.raises(DefinitionError, match='"#/nope" does not resolve') as caught:
        check_schema({**OBJECT, keyword: inner})
    assert caught.value.pointer == f"{place}/$ref"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({}, "the root type must be object, it is missing"),
        ({"type": "array"}, 'the root type must be object, it is "array"'),
        ({"type": "object", "nullable": True}, 'the root type must be object, it is "object", and nullable'),
        ([], "the parameters schema must be a dict, not list"),
        ({**OBJECT, "$ref": "other.json"}, 'the reference "other.json" leads outside the schema'),
        ({**OBJECT, "default": float("nan")}, "the schema is not JSON"),
        ({**OBJECT, "required": "a"}, "not a valid JSON Schema"),
        ({**OBJECT, "properties": {"a": nest(250, "anyOf")}}, "nested deeper than"),
    ],
)
def test_a_refused_schema_is_explained(schema: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        check_schema(schema)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "null"}, 1, "is the integer 1, the schema wants null"),
        (NUMBER, None, "is null, the schema wants a number"),
        (OBJECT, "x", 'is the string "x", the schema wants an object'),
        ({"type": "array"}, 1.5, "is the number 1.5, the schema wants an array"),
        ({"type": "boolean"}, {}, "is an object, the schema wants true or false"),
        (STRING, [], "is an array, the schema wants a string"),
        ({"type": ["integer", "string"]}, True, "is true, the schema wants an integer or a string"),
        ({"type": "float"}, "x", 'is the string "x", the schema wants a number'),
        ({"const": "ü"}, "é", 'is the string "é", the schema wants "ü"'),
        ({"enum": ["a"]}, ["a"], 'is an array, the schema wants one of "a"'),
        ({"minItems": 2}, [1], "has 1 elements, the schema wants at least 2"),
        ({"maxItems": 1}, [1, 2], "has 2 elements, the schema wants at most 1"),
        ({"minLength": 2}, "a", "has 1 characters, the schema wants at least 2"),
        ({"maxLength": 2}, "abc", "has 3 characters, the schema wants at most 2"),
        ({"minProperties": 2}, {"a": 1}, "has 1 properties, the schema wants at least 2"),
        ({"maxProperties": 1}, {"a": 1, "b": 2}, "has 2 properties, the schema wants at most 1"),
        ({"uniqueItems": True}, [1, 1], "has equal elements, the schema wants all different"),
        ({"multipleOf": 2}, 7, "is 7, the schema wants a multiple of 2"),
        ({"minimum": 2}, 1, "is 1, the schema wants at least 2"),
        ({"maximum": 8}, 9, "is 9, the schema wants at most 8"),
        ({"exclusiveMinimum": 1}, 1, "is 1, the schema wants more than 1"),
        ({"exclusiveMaximum": 1}, 1, "is 1, the schema wants less than 1"),
        ({"pattern": "^b"}, "a", 'is the string "a", the schema wants text that matches ^b'),
        ({"required": ["a"]}, {}, 'lacks the required property "a"'),
        (
            {"oneOf": [INTEGER, {"minimum": 0}]}, 1,
            "is the integer 1, which fits several alternatives of the schema; it wants exactly one",
        ),
        ({"anyOf": [INTEGER, OBJECT]}, "x", 'is the string "x", the schema wants an integer or an object'),
        ({"anyOf": [INTEGER, {"minimum": 6}]}, 5.5, "is 5.5, the schema wants at least 6"),
        (
            {"anyOf": [{"minimum": 6}, {"maximum": 4}]}, 5,
            "fits none of the alternatives: is 5, the schema wants at least 6; or is 5, the schema wants at most 4",
        ),
        ({"const": "y" * 200}, "x", f'is the string "x", the schema wants "{"y" * 78}…'),
    ],
)  # fmt: skip
def test_each_violation_is_explained(schema: Any, value: Any, message: str) -> None:
    assert [issue.message for issue in validate(value, schema)] == [message]


@pytest.mark.parametrize(
    "schema",
    [
        STRING,
        {"type": ["string"]},
        {"type": "str"},
        {"enum": ["a", "bc"]},
        {"enum": ["a", None]},
        {"type": "string", "enum": ["a"]},
        {"const": "a"},
        {"anyOf": [STRING]},
        {"oneOf": [STRING]},
        {"oneOf": [STRING, {"type": "null"}]},
        {"anyOf": [STRING, {"type": "null"}]},
        {"allOf": [STRING]},
        {"$ref": "#/$defs/a", "$defs": {"a": STRING}},
        {"allOf": [STRING], "anyOf": [{"maxLength": 1}]},
    ],
)
def test_nullable_admits_null_and_what_the_schema_admits_and_nothing_else(schema: Any) -> None:
    nullable = {**schema, "nullable": True}
    for value, valid in ((None, True), ("a", True), (5, False), ([], False)):
        assert (not validate(value, nullable)) is valid, value


def test_null_is_listed_once_among_the_values_of_a_nullable_enum() -> None:
    for values in (["a"], ["a", None]):
        issue = validate("k", {"enum": values, "nullable": True})[0]
        assert issue.message == 'is the string "k", the schema wants one of "a", null'


def test_elements_beyond_an_older_tuple_follow_additional_items() -> None:
    schema = {"items": [INTEGER], "additionalItems": STRING}
    assert validate([1, "a"], schema) == []
    assert [issue.pointer for issue in validate([1, "a", 3], schema)] == ["/2"]


def test_an_unknown_type_restricts_nothing_and_aliases_name_types() -> None:
    assert validate("x", {"type": "nonsense"}) == []
    for alias, value in (
        ("dict", {}), ("list", []), ("tuple", []), ("int", 1), ("float", 1.5), ("double", 1.5), ("str", "x"),
        ("bool", True), ("none", None), ("None", None), ("Integer", 1),
    ):  # fmt: skip
        assert validate(value, {"type": alias}) == [], alias
        assert validate({} if alias != "dict" else [], {"type": alias}), alias


def test_at_most_twenty_issues_are_reported() -> None:
    assert len(validate(list(range(30)), {"items": STRING})) == 20


def test_unknown_properties_are_reported_for_the_place_where_they_are() -> None:
    schema = {"items": {"properties": {"q": {}}, "additionalProperties": False}}
    assert [str(issue) for issue in validate([{"q": 1}, {"z": 1}], schema)] == [
        '/1: has "z", which the schema does not know; it knows "q"'
    ]
