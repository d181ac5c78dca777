"""Shapes: the kinds that a place of a schema admits, and text and values coerced to fit it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.schema.kinds import KINDS
from toolwire.schema.shape import ANY, Shape
from toolwire.schema.validation import validate

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
STRING = {"type": "string"}
NULLABLE = {"type": ["string", "null"]}
WORDS_OR_OBJECT = {"oneOf": [{"type": "string", "enum": ["add", "set"]}, {"type": "object"}]}
TREE = {
    "type": "object",
    "properties": {"n": INTEGER, "kids": {"type": "array", "items": {"$ref": "#"}}},
}


def fit(schema: Any, value: Any) -> Any:
    return Shape.of(schema).coerce(value, json.loads)


def read(schema: Any, text: str) -> Any:
    return Shape.of(schema).from_text(text, json.loads)


def same(one: Any, other: Any) -> bool:
    """Equal, with 1, 1.0 and True told apart."""
    return json.dumps(one) == json.dumps(other)


# --- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "kinds"),
    [
        ({}, None),
        (True, None),
        ({"description": "anything"}, None),
        ({"type": "whatever"}, None),
        ({"type": 5}, None),
        (False, ""),
        (STRING, "string"),
        (INTEGER, "integer"),
        (NUMBER, "number integer"),
        ({"type": ["string", "null"]}, "string null"),
        ({"type": "STRING"}, "string"),
        ({"type": "dict"}, "object"),
        ({"type": "string", "nullable": True}, "string null"),
        ({"nullable": True}, None),
        ({"enum": [1, 2, 3]}, "integer"),
        ({"enum": ["a", 1, None]}, "string integer null"),
        ({"enum": [True]}, "boolean"),
        ({"enum": []}, None),
        ({"type": "integer", "enum": ["a", 1]}, "integer"),
        ({"const": 1.5}, "number"),
        ({"const": {"a": 1}}, "object"),
        ({"properties": {}}, "object"),
        ({"items": {}}, "array"),
        ({"prefixItems": [{}]}, "array"),
        ({"anyOf": [STRING, INTEGER]}, "string integer"),
        ({"anyOf": [STRING, {}]}, None),
        ({"anyOf": []}, None),
        ({"oneOf": [{"type": "null"}, {"properties": {}}]}, "null object"),
        ({"allOf": [{"type": ["string", "integer"]}, NUMBER]}, "integer"),
        ({"allOf": [STRING, INTEGER]}, ""),
        ({"allOf": [{}, INTEGER, {"description": "x"}]}, "integer"),
        ({"$ref": "#/$defs/a", "$defs": {"a": INTEGER}}, "integer"),
        ({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": INTEGER}}, "integer"),
        ({"$ref": "#/oneOf/1/x", "oneOf": [{}, {"x": INTEGER}]}, "integer"),
        ({"$ref": "#/$defs/missing"}, None),
        ({"$ref": "https://example.com/schema"}, None),
        ({"$ref": 5}, None),
        ({"$ref": "#"}, None),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, None),
        ({"anyOf": [INTEGER, {"$ref": "#"}]}, "integer"),
        ({"anyOf": [{"$ref": "#/$defs/a"}, INTEGER], "$defs": {"a": {"$ref": "#"}}}, "integer"),
        ({"$ref": "#/$defs/a", "nullable": True, "$defs": {"a": INTEGER}}, "integer null"),
        ([1, 2], None),
        (None, None),
    ],
)
def test_kinds_of_a_schema(schema: Any, kinds: str | None) -> None:
    shape = Shape.of(schema)
    assert shape.typed == (kinds is not None)
    assert shape.kinds == (KINDS if kinds is None else frozenset(kinds.split()))


@pytest.mark.parametrize(
    ("schema", "keeps"),
    [
        ({}, True),
        (False, True),
        (STRING, True),
        ({"type": ["string", "integer"]}, True),
        ({"type": "string", "enum": ["a"]}, True),
        (INTEGER, False),
        (NULLABLE, False),
        (WORDS_OR_OBJECT, False),
        ({"anyOf": [STRING, {"type": "object"}]}, True),
    ],
)
def test_keeps_text_where_any_text_stays_a_string(schema: Any, keeps: bool) -> None:
    assert Shape.of(schema).keeps_text is keeps


def test_shapes_of_properties() -> None:
    schema = {
        "type": "object",
        "properties": {"a": INTEGER, "odd": 5},
        "patternProperties": {"^x-": NUMBER, "_id$": STRING, "^none$": {"type": "null"}},
        "additionalProperties": {"type": "boolean"},
        "required": ["a", 5],
    }
    shape = Shape.of(schema)
    got = {name: shape.property(name).kinds for name in ("a", "odd", "x-1", "user_id", "none", "nonesuch")}
    assert got["a"] == {"integer"}
    assert got["odd"] == KINDS
    assert got["x-1"] == {"number", "integer"}
    assert got["user_id"] == {"string"}
    assert got["none"] == {"null"}
    assert got["nonesuch"] == {"boolean"}
    assert shape.property_names == ("a", "odd")
    assert shape.required == ("a",)


def test_a_pattern_that_is_not_plain_text_is_not_run() -> None:
    shape = Shape.of({"patternProperties": {"^(a+)+$": INTEGER}, "additionalProperties": STRING})
    assert shape.property("a" * 1000) is ANY


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"properties": {"a": INTEGER, "odd": 5}},
        {"properties": {"a": INTEGER}, "additionalProperties": {"type": ["boolean"]}},
        {"properties": {"a": INTEGER}, "patternProperties": {"^n": NUMBER}},
        {"allOf": [{"properties": {"a": INTEGER}}, {"additionalProperties": STRING}]},
    ],
)
def test_names_that_a_model_invents_are_not_cached(schema: Any) -> None:
    shape = ANY if schema is True else Shape.of(schema)
    children = {id(shape.property(f"n{number}")) for number in range(50)}
    assert len(children) == 1
    known = set(shape.property_names)
    assert {key for key in shape._children if isinstance(key, str)} <= known
    for name in known:
        assert shape.property(name) is shape.property(name)
    assert {key for key in shape._children if isinstance(key, str)} == known


def test_properties_through_references_and_branches() -> None:
    schema = {
        "$ref": "#/$defs/base",
        "allOf": [{"properties": {"b": STRING}, "required": ["b"]}],
        "oneOf": [
            {"properties": {"kind": {"const": "n"}, "v": INTEGER}, "required": ["v"]},
            {"properties": {"kind": {"const": "s"}, "v": {"type": "null"}}},
            {"properties": {"only": NUMBER}},
        ],
        "$defs": {"base": {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]}},
    }
    shape = Shape.of(schema)
    assert shape.property_names == ("a", "b", "kind", "v", "only")
    assert shape.required == ("a", "b")
    assert shape.property("a").kinds == {"integer"}
    assert shape.property("v").kinds == {"integer", "null"}
    assert shape.property("only").kinds == {"number", "integer"}
    assert shape.property("unknown") is ANY
    assert shape.property("v") is shape.property("v")


@pytest.mark.parametrize("keyword", ["prefixItems", "items"])
def test_shapes_of_items(keyword: str) -> None:
    rest = "items" if keyword == "prefixItems" else "additionalItems"
    shape = Shape.of({"type": "array", keyword: [INTEGER, STRING], rest: {"type": "null"}})
    assert [shape.item(index).kinds for index in range(3)] == [{"integer"}, {"string"}, {"null"}]
    assert shape.items.kinds == {"null"}
    assert Shape.of({"type": "array"}).items is ANY


def test_a_recursive_schema_has_finitely_many_shapes() -> None:
    shape = Shape.of(TREE)
    assert shape.property("kids").items is shape
    loop = Shape.of({"$ref": "#", "properties": {"a": {"$ref": "#"}}})
    assert loop.property("a").property("a").property("a") is loop.property("a")


def nest(levels: int, keyword: str) -> Any:
    schema: Any = INTEGER
    for _ in range(levels):
        schema = {keyword: [schema, {}]} if keyword.endswith("Of") else {keyword: {"a": schema}}
    return schema


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf", "properties", "items", "$ref"])
def test_deeply_nested_schemas_are_bounded(keyword: str) -> None:
    shape = Shape.of({"type": "object", "properties": {"a": nest(10_000, keyword)}})
    assert shape.property("a").kinds
    assert shape.coerce({"a": "5"}, json.loads)


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_hundred_nested_branches_are_followed(keyword: str) -> None:
    schema: Any = {"type": "object", "properties": {"a": INTEGER}}
    for _ in range(100):
        schema = {keyword: [schema]}
    shape = Shape.of(schema)
    assert shape.kinds == {"object"}
    assert shape.property("a").kinds == {"integer"}
    assert shape.coerce({"a": "5"}, json.loads) == {"a": 5}


def test_a_chain_of_a_hundred_references_is_followed() -> None:
    names: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}", "title": "x"} for i in range(100)}
    names["d100"] = {"type": "object", "properties": {"a": INTEGER}}
    shape = Shape.of({"$ref": "#/$defs/d0", "title": "x", "$defs": names})
    assert shape.kinds == {"object"}
    assert shape.property("a").kinds == {"integer"}


def test_values_are_coerced_down_to_the_depth_limit() -> None:
    value: Any = {"n": "1"}
    for _ in range(90):
        value = {"kids": [value]}
    fitted = fit(TREE, value)
    for _ in range(90):
        fitted = fitted["kids"][0]
    assert fitted == {"n": 1}


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        *(("", "x", True), ("^", "x", True), (".*", "x", True), ("^.*", "x", True), ("^.*$", "x", True)),
        *(("ab", "xabx", True), ("ab", "xa", False), ("^ab", "abc", True), ("^ab", "xab", False)),
        *(("ab$", "xab", True), ("ab$", "abx", False), ("^ab$", "ab", True), ("^ab$", "abc", False)),
        *(("^x-", "x-1", True), ("a:b/c d", "a:b/c d", True), ("^$", "", True), ("^$", "x", False)),
    ],
)
def test_names_fit_patterns_of_plain_text(pattern: str, name: str, matches: bool) -> None:
    shape = Shape.of({"patternProperties": {pattern: INTEGER}, "additionalProperties": STRING})
    assert shape.property(name).kinds == ({"integer"} if matches else {"string"})


def test_references_that_fan_out_take_linear_time() -> None:
    """Each of 300 definitions refers to the next one twice: as a tree that would be 2 ** 300 nodes."""
    names = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(300)}
    shape = Shape.of({"$ref": "#/$defs/d0", "$defs": names, "allOf": [INTEGER] * 3000})
    assert shape.kinds == {"integer"}
    assert shape.property("x") is ANY


def test_a_mesh_of_references_is_bounded() -> None:
    """Every definition refers to thirty others, as alternatives and as properties."""
    names = {
        f"d{i}": {
            "anyOf": [{"$ref": f"#/$defs/d{(7 * i + k) % 300}"} for k in range(30)],
            "properties": {f"p{k}": {"$ref": f"#/$defs/d{(i + k) % 300}"} for k in range(30)},
        }
        for i in range(300)
    }
    shape = Shape.of({"$ref": "#/$defs/d0", "$defs": names})
    value: Any = {}
    for _ in range(20):
        value = {"p1": value, "p2": "x"}
    assert shape.coerce(value, json.loads) is value


def test_a_copied_shape_is_rebuilt_from_its_schema() -> None:
    shape = Shape.of(TREE)
    shape.property("kids").item(0)
    assert copy.deepcopy(shape).property("kids").items.property("n").kinds == {"integer"}


# --- text and values made to fit ------------------------------------------------------------------------------------

SAME = object()


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({}, "5", SAME),
        (STRING, "5", SAME),
        (STRING, " null ", SAME),
        (STRING, "\nline\n", SAME),
        (NULLABLE, " null ", None),
        (NULLABLE, "None", None),
        (NULLABLE, "NULL", SAME),
        (NULLABLE, "x", SAME),
        (INTEGER, "5", 5),
        (INTEGER, " -5\n", -5),
        (INTEGER, "007", SAME),
        (INTEGER, "+5", SAME),
        (INTEGER, "5.0", SAME),
        (INTEGER, "1e3", SAME),
        (INTEGER, "٥", SAME),
        (INTEGER, "5_0", SAME),
        (INTEGER, "true", SAME),
        (INTEGER, "", SAME),
        (INTEGER, "9" * 4300, int("9" * 4300)),
        (INTEGER, "9" * 4301, SAME),
        (NUMBER, "5", 5),
        (NUMBER, "5.0", 5.0),
        (NUMBER, "-1.5e-3", -0.0015),
        (NUMBER, "1e999", SAME),
        (NUMBER, "NaN", SAME),
        (NUMBER, ".5", SAME),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, " False ", False),
        ({"type": "boolean"}, "TRUE", SAME),
        ({"type": "boolean"}, "yes", SAME),
        ({"type": "boolean"}, "1", SAME),
        ({"type": "null"}, "null", None),
        ({"type": ["integer", "null"]}, "None", None),
        ({"type": ["integer", "boolean"]}, "true", True),
        ({"type": "array"}, " [1, 2] ", [1, 2]),
        ({"type": "array", "items": INTEGER}, '["1"]', [1]),
        ({"type": "array"}, "[1, 2", SAME),
        ({"type": "array"}, "[1] [2]", SAME),
        ({"type": "array"}, '{"a": 1}', SAME),
        ({"type": "object"}, '{"a": "1"}', {"a": "1"}),
        ({"type": "object", "properties": {"a": INTEGER}}, '{"a": "1"}', {"a": 1}),
        ({"anyOf": [STRING, {"type": "object"}]}, '{"a": 1}', SAME),
        ({"enum": [1, 2, 3]}, "2", 2),
        ({"enum": [1, 2, 3]}, "7", SAME),
        ({"enum": ["1", "2"]}, "1", SAME),
        ({"enum": ["auto", 1]}, "auto", SAME),
        ({"enum": ["auto", 1]}, "1", 1),
        ({"enum": ["null", None]}, "null", SAME),
        ({"enum": ["a", None]}, "null", None),
        (WORDS_OR_OBJECT, '{"a": 1}', {"a": 1}),
        (WORDS_OR_OBJECT, "add", SAME),
        (WORDS_OR_OBJECT, "other", SAME),
        (False, "5", SAME),
    ],
)
def test_text_is_read_by_the_schema(schema: Any, text: str, value: Any) -> None:
    got = read(schema, text)
    if value is SAME:
        assert got is text
    else:
        assert type(got) is type(value) and got == value


@pytest.mark.need(5)
@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INTEGER, "5", 5),
        (INTEGER, 5.0, 5),
        (INTEGER, 5.5, SAME),
        (INTEGER, float("inf"), SAME),
        (INTEGER, float("nan"), SAME),
        (INTEGER, True, SAME),
        (INTEGER, "5.0", SAME),
        (INTEGER, "yes", SAME),
        (INTEGER, '"5"', SAME),
        (NUMBER, 5.0, SAME),
        (NUMBER, "4", 4),
        (NUMBER, "4.0", 4.0),
        (STRING, 5, SAME),
        (STRING, True, SAME),
        (STRING, "null", SAME),
        (NULLABLE, "null", SAME),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, 1, SAME),
        ({}, "5", SAME),
        ({"anyOf": [INTEGER, STRING]}, "5", SAME),
        ({"anyOf": [STRING, {"type": "object"}]}, '{"a": 1}', SAME),
        (WORDS_OR_OBJECT, '{"a": 1}', {"a": 1}),
        (WORDS_OR_OBJECT, "set", SAME),
        (WORDS_OR_OBJECT, "nonsense", SAME),
        ({"oneOf": [{"type": "object"}, {"properties": {"n": INTEGER}}]}, '{"n": "1"}', {"n": 1}),
        ({"type": "array", "items": INTEGER}, ["1", 2, "x"], [1, 2, "x"]),
        ({"type": "array", "items": INTEGER}, '["1"]', [1]),
        ({"type": "array", "items": INTEGER}, "1", SAME),
        # Long lists, which are looked at by the types of their items first.
        ({"type": "array", "items": INTEGER}, [*range(20)], SAME),
        ({"type": "array", "items": {"type": "string"}}, ["a"] * 20, SAME),
        ({"type": "array", "items": INTEGER}, [*range(19), "19"], [*range(20)]),
        ({"type": "array", "items": INTEGER}, [*range(19), 19.0], [*range(20)]),
        ({"type": "array", "items": {"type": "array", "items": INTEGER}}, [[1]] * 19 + [["2"]], [[1]] * 19 + [[2]]),
        ({"type": "array", "prefixItems": [INTEGER]}, ["1", *"a" * 19], [1, *"a" * 19]),
        ({"type": "array"}, "[" * 100_000, SAME),
        (
            {"type": "object", "properties": {"c": {"type": "object", "properties": {"tags": {"type": "array"}}}}},
            {"c": '{"tags": "[\\"a\\"]"}'},
            {"c": {"tags": ["a"]}},
        ),
        (TREE, {"kids": [{"n": "1", "kids": '[{"n": "2"}]'}]}, {"kids": [{"n": 1, "kids": [{"n": 2}]}]}),
        (TREE, {"n": 1, "kids": [{"n": 2}], "other": "3"}, SAME),
        ({"type": "object", "additionalProperties": INTEGER}, {"a": "1", 5: "2"}, {"a": 1, 5: 2}),
    ],
)
def test_values_are_coerced_to_the_schema(schema: Any, value: Any, expected: Any) -> None:
    before = copy.deepcopy(value)
    got = fit(schema, value)
    if expected is SAME:
        assert got is value
    else:
        assert got is not value and same({"": got}, {"": expected})
    assert repr(value) == repr(before), "the value itself is not touched"


def test_only_changed_containers_are_copied() -> None:
    value = {"a": {"deep": [1]}, "n": "1"}
    assert fit({"properties": {"n": INTEGER}}, value)["a"] is value["a"]


def test_values_deeper_than_the_limit_are_unchanged() -> None:
    value: Any = {"n": "1"}
    for _ in range(5000):
        value = {"kids": [value]}
    assert fit(TREE, value) is value


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["5", "-1", "1.5", "true", "null", "None", '{"a": "1"}', '["1", {"b": "2"}]', "{", "[1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
types = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array", "dict", "?"])
names = st.sampled_from("abc")


def schema_nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    mapping = st.dictionaries(names, inner, max_size=3)
    several = st.lists(inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": types | st.lists(types, max_size=3) | st.integers(),
            "enum": st.lists(json_values, max_size=3) | st.text(),
            "const": json_values,
            "nullable": st.booleans(),
            "properties": mapping | several,
            "required": st.lists(names) | st.integers(),
            "additionalProperties": inner,
            "patternProperties": mapping,
            "items": inner | several,
            "prefixItems": several | inner,
            "anyOf": several,
            "oneOf": several,
            "allOf": several | mapping,
            "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#/anyOf/0", "#/nope", "x"]),
            "$defs": mapping,
        },
    )


odd_schemas = st.recursive(st.booleans() | st.none() | st.just({}) | st.integers(), schema_nodes, max_leaves=12)


@given(odd_schemas, json_values)
def test_coerce_is_total_and_idempotent(schema: Any, value: Any) -> None:
    shape = Shape.of(schema)
    once = shape.coerce(value, json.loads)
    assert shape.coerce(once, json.loads) is once
    assert repr(Shape.of(schema).coerce(value, json.loads)) == repr(once)


@pytest.mark.need(5)
@given(odd_schemas, st.text() | st.sampled_from(["5", "null", '{"a": "1"}', "[1]"]))
def test_text_of_a_place_that_keeps_text_stays_the_same_object(schema: Any, text: str) -> None:
    shape = Shape.of(schema)
    value = shape.from_text(text, json.loads)
    if shape.keeps_text:
        assert value is text
    if shape.kinds == {"string"}:
        assert shape.coerce(text, json.loads) is text


@given(odd_schemas, json_values)
def test_validate_never_raises(schema: Any, value: Any) -> None:
    for issue in validate(value, schema):
        assert issue.message and issue.keyword


plain_schemas = st.recursive(
    st.sampled_from([STRING, INTEGER, NUMBER, NULLABLE, {"type": "boolean"}, {"type": "null"}, {}, {"enum": ["5", 1]}]),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda known: {"type": "object", "properties": known}, st.dictionaries(names, inner, max_size=3))
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(plain_schemas, json_values)
def test_valid_values_are_unchanged(schema: Any, value: Any) -> None:
    text = repr(value)
    if ".0" not in text and "e" not in text and not validate(value, schema):
        assert fit(schema, value) is value


@pytest.mark.parametrize(
    ("properties", "required", "expected"),
    [
        ({"a": STRING}, [], "a"),
        ({"a": INTEGER}, [], "a"),
        ({"a": STRING, "b": INTEGER}, ["b"], "b"),
        ({"a": STRING, "b": INTEGER}, [], "a"),
        ({"a": STRING, "b": STRING}, ["b"], "b"),
        ({"a": STRING, "b": STRING}, [], ""),
        ({"a": STRING, "b": INTEGER}, ["a", "b"], ""),
        ({"a": INTEGER, "b": INTEGER}, [], ""),
        ({}, [], ""),
    ],
)
def test_a_value_without_a_name_is_meant_for_one_property_or_for_none(
    properties: dict[str, Any], required: list[str], expected: str
) -> None:
    assert Shape.of({"type": "object", "properties": properties, "required": required}).lone_property == expected
