"""Tests of the schema normaliser: what a schema says as values, what has no effect, and what nothing fits."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.errors import DefinitionError
from toolwire.grammars.schema_values import MAX_COMBINATIONS, ValueReader
from toolwire.grammars.value_types import (
    ANY,
    IMPOSSIBLE,
    Alternatives,
    Constants,
    Items,
    Members,
    Named,
    NumberValue,
    StringValue,
    Values,
    flat_values,
)


def read(schema: Any, **options: Any) -> tuple[Values, ValueReader]:
    """Return the values of a schema, of which the outermost name is replaced by what it names."""
    reader = ValueReader(schema, **options)
    values = reader.read()
    return (reader.named[values.name] if isinstance(values, Named) and values != ANY else values), reader


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(True, ANY, id="true"),
        pytest.param({}, ANY, id="empty"),
        pytest.param({"title": "T", "description": "d", "default": 1}, ANY, id="annotations"),
        pytest.param({"type": "string"}, StringValue(), id="string"),
        pytest.param({"type": "string", "minLength": 1, "maxLength": 3}, StringValue(1, 3), id="lengths"),
        pytest.param({"type": "string", "pattern": "^a"}, StringValue(pattern="^a"), id="pattern"),
        pytest.param({"type": "integer"}, NumberValue(integral=True), id="integer"),
        pytest.param({"type": "number", "minimum": 0.5}, NumberValue(low=0.5), id="number"),
        pytest.param(
            {"type": "integer", "minimum": 0.5, "maximum": 2.5}, NumberValue(True, 1, 2), id="bounds between integers"
        ),
        pytest.param(
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
            NumberValue(True, 1, 9),
            id="exclusive bounds of integers",
        ),
        pytest.param({"type": "boolean"}, Constants((True, False)), id="boolean"),
        pytest.param({"type": "null"}, Constants((None,)), id="null"),
        pytest.param({"const": {"a": 1}}, Constants(({"a": 1},)), id="constant object"),
        pytest.param({"enum": [1, "1", None]}, Constants((1, "1", None)), id="enum"),
        pytest.param({"enum": [1, 1.0]}, Constants((1, 1.0)), id="equal numbers in both spellings"),
        pytest.param({"enum": ["a", 1], "type": "string"}, Constants(("a",)), id="enum and type"),
        pytest.param({"enum": [1, 2, 3], "minimum": 2}, Constants((2, 3)), id="enum and bound"),
        pytest.param({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}, Constants(("b",)), id="two enums"),
        pytest.param(
            {"type": "string", "nullable": True}, Alternatives((StringValue(), Constants((None,)))), id="nullable"
        ),
        pytest.param(
            {"type": ["integer", "string"]},
            Alternatives((StringValue(), NumberValue(integral=True))),
            id="list of types",
        ),
        pytest.param({"type": ["integer", "number"]}, NumberValue(), id="integer or number"),
        pytest.param({"type": "array"}, Items(additional=ANY), id="list"),
        pytest.param(
            {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2},
            Items((), Constants((None,)), 1, 2),
            id="bounded list",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [{"type": "null"}], "items": False},
            Items((Constants((None,)),), None, 0, 1),
            id="tuple",
        ),
        pytest.param(
            {"type": "array", "items": [{"type": "null"}], "additionalItems": False},
            Items((Constants((None,)),), None, 0, 1),
            id="tuple of older drafts",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [{"type": "null"}, False], "minItems": 1},
            Items((Constants((None,)),), None, 1, 1),
            id="tuple that ends where nothing fits",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [{"type": "null"}] * 3, "maxItems": 1},
            Items((Constants((None,)),), None, 0, 1),
            id="tuple longer than its maximum",
        ),
        pytest.param({"type": "object"}, Members(additional=ANY), id="object"),
        pytest.param({"enum": [True, 1, 1.5, "1"], "type": "integer"}, Constants((1,)), id="enum and integer"),
        pytest.param(
            {"enum": ["a", "ab", 5], "type": "string", "minLength": 2}, Constants(("ab",)), id="enum and length"
        ),
        pytest.param({"enum": [1], "pattern": "a"}, Constants((1,)), id="enum without text and pattern"),
        pytest.param({"oneOf": [{"type": "string"}]}, StringValue(pointer="/oneOf/0"), id="one alternative"),
        pytest.param({"type": "string", "nullable": "no"}, StringValue(), id="nullable is not a truth value"),
    ],
)
def test_values_of_a_schema(schema: Any, expected: Values) -> None:
    values, reader = read(schema)
    assert values == expected
    assert not reader.widened


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": ["a", "b"]},
        {"type": "string", "enum": ["a"]},
        {"const": "a"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"oneOf": [{"type": "string"}]},
        {"$ref": "#/$defs/text"},
        {"allOf": [{"$ref": "#/$defs/text"}]},
        {"allOf": [{"$ref": "#/$defs/text", "nullable": True}]},
    ],
)
def test_nullable_admits_null_beside_every_keyword(schema: dict[str, Any]) -> None:
    definitions = {"$defs": {"text": {"type": "string"}}}
    values, reader = read({**definitions, **schema, "nullable": True})
    kinds = list(flat_values(values, reader.named))
    assert kinds[-1] == Constants((None,))
    assert kinds[:-1] == list(flat_values(read({**definitions, **schema})[0], reader.named))[: len(kinds) - 1]
    # Another schema for the same value may exclude null.
    values, reader = read({**definitions, "allOf": [{**schema, "nullable": True}, {"type": "string"}]})
    assert Constants((None,)) not in flat_values(values, reader.named)


def test_a_recursive_schema_that_may_be_null_refers_to_itself() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#", "nullable": True}}}
    values, reader = read(node)
    assert isinstance(values, Members)
    assert list(flat_values(values.properties[0][1], reader.named)) == [values, Constants((None,))]


def test_members_are_in_the_order_of_the_schema_and_required_ones_without_a_schema_come_last() -> None:
    values, _ = read({"type": "object", "properties": {"b": {"type": "null"}, "a": True}, "required": ["z", "a"]})
    assert values == Members((("b", Constants((None,)), False), ("a", ANY, True), ("z", ANY, True)))


@pytest.mark.parametrize(
    ("extra", "closed", "additional"),
    [
        pytest.param({}, True, None, id="closed"),
        pytest.param({}, False, ANY, id="open"),
        pytest.param({"additionalProperties": True}, True, ANY, id="declared open"),
        pytest.param({"additionalProperties": False}, False, None, id="declared closed"),
        pytest.param({"additionalProperties": {"type": "null"}}, True, Constants((None,)), id="typed"),
        pytest.param({"unevaluatedProperties": False}, True, None, id="no others"),
        pytest.param({"unevaluatedProperties": {"type": "null"}}, True, ANY, id="others by a keyword without effect"),
        pytest.param({"$ref": "#elsewhere"}, True, ANY, id="others behind an unknown reference"),
    ],
)
def test_additional_members(extra: dict[str, Any], closed: bool, additional: Values | None) -> None:
    values, _ = read({"type": "object", "properties": {"a": True}, **extra}, closed=closed)
    assert values == Members((("a", ANY, False),), additional)


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param({"if": {}, "then": {"required": ["b"]}}, id="required"),
        pytest.param({"if": {}, "else": {"properties": {"b": True}}}, id="property"),
        pytest.param({"if": {}, "then": {"$ref": "#"}, "else": {"required": ["b"]}}, id="the schema itself"),
        pytest.param({"anyOf": [{"required": ["b"]}] * (MAX_COMBINATIONS + 1)}, id="too many alternatives"),
    ],
)
def test_a_member_that_a_condition_names_is_possible(condition: dict[str, Any]) -> None:
    values, _ = read({"type": "object", "properties": {"a": True}, **condition})
    assert values == Members((("a", ANY, False), ("b", ANY, False)))


def test_every_schema_of_all_of_holds() -> None:
    values, _ = read(
        {
            "allOf": [
                {"properties": {"a": {"type": "integer", "minimum": 1}}},
                {"type": "object", "properties": {"a": {"maximum": 5}, "b": {"type": "null"}}, "required": ["b"]},
            ]
        }
    )
    assert isinstance(values, Members)
    (first, number, needed), second = values.properties
    assert (first, needed) == ("a", False)
    assert isinstance(number, NumberValue)
    assert (number.integral, number.low, number.high) == (True, 1, 5)
    assert second == ("b", Constants((None,)), True)


def test_each_alternative_holds_together_with_what_stands_beside_it() -> None:
    values, _ = read({"minLength": 2, "anyOf": [{"type": "string", "maxLength": 4}, {"type": "null"}]})
    assert isinstance(values, Alternatives)
    string, null = values.options
    assert isinstance(string, StringValue)
    assert (string.least, string.most) == (2, 4)
    assert null == Constants((None,))


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"anyOf": [{"type": "null"}, {"const": 1}]}]},
        {"$ref": "#/$defs/u", "$defs": {"u": {"anyOf": [{"type": "null"}, {"const": 1}]}}},
        {
            "allOf": [{"$ref": "#/$defs/u"}, {"type": ["null", "integer"]}],
            "$defs": {"u": {"anyOf": [{"type": "null"}, {"const": 1}]}},
        },
    ],
    ids=["all of", "reference", "both"],
)
def test_alternatives_behind_references_and_all_of(schema: dict[str, Any]) -> None:
    values, _ = read(schema)
    assert values == Alternatives((Constants((None,)), Constants((1,))))


def test_a_choice_that_two_schemas_make_is_made_once() -> None:
    both = {"anyOf": [{"$ref": "#/$defs/u"}, {"const": 2}]}
    values, reader = read({"allOf": [both, dict(both)], "$defs": {"u": {"anyOf": [{"type": "null"}, {"const": 1}]}}})
    options = list(flat_values(values, reader.named))
    assert {constant for inner in options if isinstance(inner, Constants) for constant in inner.values} == {None, 1, 2}


def test_a_choice_that_is_an_alternative_of_itself_adds_nothing() -> None:
    values, reader = read({"anyOf": [{"$ref": "#"}, {"type": "null"}]})
    assert list(flat_values(values, reader.named)) == [Constants((None,))]


def test_a_recursive_schema_refers_to_itself_by_name() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    reader = ValueReader(tree, prefix="tool ")
    values = reader.read()
    assert isinstance(values, Named)
    assert values.name.startswith("tool ")
    assert reader.named[values.name] == Members((("next", values, False),))


@pytest.mark.parametrize(
    ("schema", "places"),
    [
        ({"type": "string", "format": "date"}, ["/format"]),
        ({"type": "number", "multipleOf": 5}, ["/multipleOf"]),
        ({"type": "number", "exclusiveMinimum": 0}, ["/exclusiveMinimum"]),
        ({"type": "array", "uniqueItems": True}, ["/uniqueItems"]),
        ({"type": "array", "uniqueItems": False}, []),
        ({"type": "array", "contains": {"type": "null"}}, ["/contains"]),
        ({"type": "array", "contains": True}, ["/contains"]),
        ({"type": "object", "propertyNames": True}, []),
        ({"type": "string", "contentEncoding": "base64"}, ["/contentEncoding"]),
        ({"type": "object", "minProperties": 1}, ["/minProperties"]),
        ({"type": "object", "patternProperties": {"^x": {"type": "null"}}}, ["/patternProperties"]),
        ({"type": "string", "not": {"const": "a"}}, ["/not"]),
        ({"type": "string", "multipleOf": 5}, []),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, ["/oneOf"]),
        ({"type": "string", "$ref": "#/nowhere"}, ["/$ref"]),
        ({"type": "object", "properties": {"a/b": {"type": "string", "format": "date"}}}, ["/properties/a~1b/format"]),
        ({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]}, ["/allOf/1/pattern"]),
    ],
    ids=str,
)
def test_keywords_without_effect_are_listed(schema: dict[str, Any], places: list[str]) -> None:
    _, reader = read(schema)
    assert list(reader.widened) == places


def test_too_many_combinations_have_no_effect_and_are_listed() -> None:
    choice = {"anyOf": [{"minLength": 1}] * (MAX_COMBINATIONS // 2)}
    values, reader = read({"type": "string", "allOf": [choice, {"anyOf": [{"maxLength": 5}] * 3}]})
    assert list(reader.widened) == ["/allOf/1/anyOf"]
    assert isinstance(values, (Alternatives, StringValue))
    assert not read({"type": "string", "anyOf": [{"minLength": 1}] * MAX_COMBINATIONS})[1].widened


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (False, ""),
        ({"type": "string", "enum": [1]}, ""),
        ({"type": "string", "minLength": 3, "maxLength": 2}, ""),
        ({"type": "integer", "minimum": 0.2, "maximum": 0.8}, ""),
        ({"type": "array", "minItems": 2, "maxItems": 1}, ""),
        ({"type": "array", "minItems": 1, "items": False}, "/items"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "/allOf/1"),
        ({"type": "object", "properties": {"a": {"type": "null", "const": 1}}, "required": ["a"]}, "/properties/a"),
        ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, ""),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/N"}},
                "required": ["a"],
                "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]}},
            },
            "/$defs/N",
        ),
    ],
    ids=str,
)
def test_a_schema_that_no_value_fits_is_an_error_with_its_place(schema: Any, pointer: str) -> None:
    with pytest.raises(DefinitionError, match="no value fits this schema") as caught:
        ValueReader(schema).read()
    assert caught.value.pointer == pointer


def test_an_optional_member_that_no_value_fits_is_left_out() -> None:
    values, _ = read({"type": "object", "properties": {"a": False, "b": {"type": "null"}}})
    assert values == Members((("b", Constants((None,)), False),))


def test_a_member_that_no_value_fits_is_none_of_the_additional() -> None:
    values, _ = read({"type": "object", "properties": {"a": False}, "additionalProperties": True})
    assert values == Members((("a", IMPOSSIBLE, False),), ANY)


def test_a_long_name_has_no_effect_where_other_members_are_possible() -> None:
    name = "n" * 65
    schema = {"type": "object", "properties": {name: {"type": "null"}, name[1:]: True}}
    assert list(read({**schema, "additionalProperties": True})[1].widened) == [f"/properties/{name}"]
    assert not read(schema)[1].widened


def test_a_further_schema_narrows() -> None:
    values = ValueReader({"type": ["string", "null"]}).read({"type": "null"})
    assert values == Constants((None,))
