"""Schemas of the OpenAPI subset as JSON Schema."""

from typing import Any

import pytest

from toolwire import DefinitionError
from toolwire.providers.openapi_schemas import read_openapi_schema
from toolwire.text.limits import MAX_DEPTH


@pytest.mark.parametrize(
    ("schema", "read"),
    [
        *(({"type": word.upper()}, {"type": word}) for word in ("string", "number", "boolean", "object")),
        *(
            ({"type": number}, {"type": word})
            for number, word in enumerate(("string", "number", "integer", "boolean", "array", "object"), start=1)
        ),
        ({"type": 0}, {"type": 0}),
        ({"type": 7}, {"type": 7}),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "STRING", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"type": "STRING", "nullable": True, "enum": [None, "a"]},
            {"type": ["string", "null"], "enum": [None, "a"]},
        ),
        ({"type": "STRING", "nullable": False}, {"type": "string", "nullable": False}),
        ({"nullable": True}, {"nullable": True}),
        ({"properties": {"a_b": {"type": "INTEGER"}}}, {"properties": {"a_b": {"type": "integer"}}}),
        ({"any_of": [{"type": "STRING"}, True]}, {"anyOf": [{"type": "string"}, True]}),
        ({"items": {"type": "NUMBER"}, "min_items": "2"}, {"items": {"type": "number"}, "minItems": 2}),
        ({"additionalProperties": {"type": "NUMBER"}}, {"additionalProperties": {"type": "number"}}),
        *(
            ({name: "12"}, {name: 12})
            for name in ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
        ),
        ({"maxLength": "many"}, {"maxLength": "many"}),
        ({"maxLength": "1" * 19}, {"maxLength": "1" * 19}),
        (True, True),
    ],
)
def test_a_schema_is_read_as_json_schema(schema: Any, read: Any) -> None:
    assert read_openapi_schema(schema) == read


def nested(depth: int) -> Any:
    schema: Any = {"type": "STRING"}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def test_a_schema_is_read_to_a_depth() -> None:
    assert read_openapi_schema(nested(MAX_DEPTH))
    with pytest.raises(DefinitionError, match="nested too deeply"):
        read_openapi_schema(nested(MAX_DEPTH + 1))
