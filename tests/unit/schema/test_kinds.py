"""Kinds of JSON values, and how the facts of several schema nodes combine."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.schema.kinds import KINDS, LOOP, admits, conclude, declared_kinds, join, kinds_of, meet, own_facts


def test_there_are_seven_kinds() -> None:
    assert {"string", "integer", "number", "boolean", "null", "object", "array"} == KINDS


@pytest.mark.parametrize(
    ("declared", "kinds"),
    [
        *(("dict", ["object"]), ("list", ["array"]), ("tuple", ["array"]), ("int", ["integer"])),
        *(("float", ["number"]), ("double", ["number"]), ("str", ["string"]), ("bool", ["boolean"])),
        *(("none", ["null"]), ("NULL", ["null"]), ("String", ["string"]), ("any", []), (None, []), (5, [])),
        (["string", "none", 5, "any"], ["string", "null"]),
        (("integer", "float"), ["integer", "number"]),
        *((kind, [kind]) for kind in sorted(KINDS)),
    ],
)
def test_types_are_named_in_several_spellings(declared: Any, kinds: list[str]) -> None:
    assert declared_kinds({"type": declared}) == kinds


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        *((None, ("null",)), (True, ("boolean",)), ("", ("string",)), (5, ("integer",)), ([], ("array",))),
        *(((), ("array",)), ({}, ("object",)), (1.0, ("number", "integer")), (1.5, ("number",)), ({1}, ())),
    ],
)
def test_a_value_has_its_most_exact_kind_first(value: Any, kinds: tuple[str, ...]) -> None:
    assert kinds_of(value) == kinds


def test_a_schema_that_admits_numbers_admits_integers() -> None:
    assert own_facts({"type": "number"}) == {"number": None, "integer": None}
    assert own_facts({}) is None


def test_listed_values_are_facts_by_kind() -> None:
    assert own_facts({"enum": ["a", "b", 1]}) == {"string": frozenset("ab"), "integer": frozenset({1})}
    assert own_facts({"const": "a"}) == {"string": frozenset("a")}
    assert own_facts({"enum": [], "const": "a"}) == {"string": frozenset("a")}
    assert own_facts({"enum": [[1], {}, None]}) == {"array": None, "object": None, "null": frozenset({None})}
    assert own_facts({"type": "string", "enum": ["a", 1]}) == {"string": frozenset("a")}


@pytest.mark.parametrize(
    ("node", "facts"),
    [
        ({"properties": {}}, {"object": None}),
        ({"items": {}}, {"array": None}),
        ({"items": []}, {"array": None}),
        ({"prefixItems": []}, {"array": None}),
        ({"items": True, "properties": [], "prefixItems": {}}, None),
    ],
)
def test_keywords_of_a_node_without_a_type_imply_its_kind(node: Any, facts: Any) -> None:
    assert conclude(node, [None]) == facts


def test_nullable_adds_null_only_if_it_is_true() -> None:
    assert conclude({"nullable": True}, [{"string": None}]) == {"string": None, "null": None}
    assert conclude({"nullable": "yes"}, [{"string": None}]) == {"string": None}
    assert conclude({"nullable": True}, [None]) is None
    assert conclude({}, [LOOP, None]) is LOOP
    assert conclude({}, [LOOP, {"string": None}]) == {"string": None}


def test_both_facts_are_met_by_what_they_share() -> None:
    some, other = frozenset("ab"), frozenset("bc")
    assert meet({"string": some, "null": None}, {"string": other, "integer": None}) == {"string": frozenset("b")}
    assert meet({"string": None}, {"string": some}) == meet({"string": some}, {"string": None}) == {"string": some}
    assert meet({"string": None}, {"string": None}) == {"string": None}
    assert meet({"string": frozenset("a")}, {"string": frozenset("b")}) == {}


def test_either_of_two_facts_admits_the_values_of_both() -> None:
    some, other = frozenset("ab"), frozenset("bc")
    assert join({"string": some}, {"string": other, "null": None}) == {"string": frozenset("abc"), "null": None}
    assert join({"string": None}, {"string": some}) == join({"string": some}, {"string": None}) == {"string": None}
    assert join(None, {"string": None}) is None
    assert join({"string": None}, None) is None
    assert join(LOOP, {"null": None}) == join({"null": None}, LOOP) == {"null": None}


def test_a_value_is_admitted_if_its_kind_is_and_its_value_is_listed() -> None:
    facts = {"string": frozenset("a"), "integer": None}
    assert [admits(facts, kind, value) for kind, value in (("string", "a"), ("string", "b"), ("integer", 7))] == [
        *(True, False, True),
    ]
    assert not admits(facts, "null", None)
