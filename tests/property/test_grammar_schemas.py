"""A grammar of any schema is loaded by every engine, and accepts all that the schema admits."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.grammar_engines import PAIRS, engine
from tests.property.schema_samples import SchemaSampler, grammars_of, spellings

from toolwire.errors import DefinitionError
from toolwire.text.json_text import json_text

ENGINES = [pytest.param(name, syntax, id=f"{name}-{syntax}") for name, syntax in PAIRS]


@pytest.mark.parametrize(("name", "syntax"), ENGINES)
def test_values_that_a_schema_admits_are_accepted(name: str, syntax: str) -> None:
    real = engine(name)

    @settings(max_examples=max(20, settings().max_examples))
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        schema, values = SchemaSampler(seed).sample()
        valid = [value for value in values if jsonschema_rs.is_valid(schema, value)]
        if not valid:
            return
        text = grammars_of(schema)[0][syntax]
        for value in valid:
            assert any(real.match(text, spelling, syntax).complete for spelling in spellings(value)), (schema, value)

    check()


LARGE = 10**2000
EXTREMES = [
    ({"type": "integer", "minimum": 5, "maximum": LARGE}, 6, 4),
    ({"type": "integer", "minimum": -LARGE, "maximum": -5}, -6, -4),
    ({"type": "integer", "maximum": 1e300}, 10**59, 0.5),
    ({"type": "integer", "minimum": LARGE}, LARGE, 0.5),
    ({"type": "integer", "maximum": -LARGE}, -LARGE, 0.5),
    ({"type": "number", "maximum": LARGE}, 1.5, "a"),
    ({"type": "object", "properties": {"n" * 3000: {"type": "null"}}, "additionalProperties": True}, {"a": 1}, []),
    (
        {"type": "object", "properties": {"n" * 3000: {"type": "null"}}, "required": ["n" * 3000]},
        {"n" * 3000: None},
        {},
    ),
    ({"type": "string", "minLength": LARGE}, None, 1),
    ({"type": "array", "minItems": LARGE}, None, 1),
    ({"enum": [f"value {at}" for at in range(10_000)]}, "value 9999", "value"),
    ({"allOf": [{"enum": [f"{at}" for at in range(start, start + 10_000)]} for start in (0, 5000)]}, "9999", "4999"),
]
"""Schemas of extreme size, each with a value that it admits and one that its grammar refuses; None for no value."""


@pytest.mark.parametrize(("schema", "value", "refused"), EXTREMES, ids=lambda part: str(part)[:40])
@pytest.mark.parametrize(("name", "syntax"), ENGINES)
def test_schemas_of_extreme_size_are_loaded(name: str, syntax: str, schema: Any, value: Any, refused: Any) -> None:
    real = engine(name)
    text = grammars_of(schema)[0][syntax]
    assert not real.match(text, json_text(refused), syntax).complete
    if value is not None and abs(value if isinstance(value, int) else 0) < LARGE:  # an engine stops after 60 digits
        assert real.match(text, json_text(value), syntax).complete


@pytest.mark.parametrize(
    ("bound", "is_exact"),
    [
        ({"maximum": LARGE}, True),
        ({"minimum": -LARGE}, True),
        ({"minimum": LARGE}, False),
        ({"maximum": -LARGE}, False),
    ],
    ids=["high", "low", "too high", "too low"],
)
def test_a_bound_that_excludes_all_integers_of_a_grammar_has_no_effect(bound: dict[str, Any], is_exact: bool) -> None:
    assert (not grammars_of({"type": "integer", **bound})[1]) is is_exact


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_value_that_a_schema_refuses_is_accepted_only_if_a_keyword_has_no_effect(seed: int, value_seed: int) -> None:
    real = engine("llama.cpp")
    schema, _ = SchemaSampler(seed).sample()
    _, values = SchemaSampler(value_seed).sample()
    try:
        texts, widened = grammars_of(schema)
    except DefinitionError:
        assert not any(jsonschema_rs.is_valid(schema, value) for value in values)
        return
    for value in values:
        if not jsonschema_rs.is_valid(schema, value) and not widened:
            for spelling in spellings(value):
                assert not real.match(texts["gbnf"], spelling, "gbnf").complete, (schema, value)
