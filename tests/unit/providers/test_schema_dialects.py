"""Schemas in each dialect, and notes of the losses."""

from typing import Any

import pytest

from toolwire import DefinitionError, Message, Notes, TextPart, ToolDefinition, get_api
from toolwire.providers.schema_dialects import JSON_SCHEMA, OPENAPI, PLAIN_ROOT, SEALED, STRICT, Dialect, lower


def lowered(schema: dict[str, Any], dialect: Dialect) -> tuple[dict[str, Any], Notes]:
    notes = Notes()
    return lower(ToolDefinition("f", parameters=schema), dialect, notes), notes


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_json_schema_is_unchanged() -> None:
    schema = {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "string"}}, "additionalProperties": False}
    assert lowered(schema, JSON_SCHEMA) == (schema, [])
    assert lowered({"properties": {}}, JSON_SCHEMA)[0] == of()


@pytest.mark.need(22)
@pytest.mark.parametrize(
    ("inner", "expected", "notes"),
    [
        ({"const": "x"}, {"enum": ["x"], "type": "string"}, 0),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}, 0),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "integer", "nullable": True}, 0),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, 1),
        ({"type": ["null"]}, {"type": "null"}, 0),
        ({"anyOf": [{"type": "null"}]}, {"type": "null"}, 0),
        ({"anyOf": [{"const": "x"}, {"type": "null"}]}, {"enum": ["x"], "type": "string", "nullable": True}, 0),
        (
            {"anyOf": [{"allOf": [{"$ref": "#/$defs/A"}]}, {"type": "null"}]},
            {"type": "string", "description": "a", "nullable": True},
            1,
        ),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, 1),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}, 1),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}, 1),
        ({"type": "string", "$comment": "x", "title": "T"}, {"type": "string", "title": "T"}, 0),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, {"type": "string", "minLength": 2}, 1),
        ({"$ref": "#/$defs/A"}, {"type": "string", "description": "a"}, 0),
        ({"$ref": "#/$defs/A", "description": "mine"}, {"type": "string", "description": "mine"}, 0),
        (
            {"type": "array", "items": {"$ref": "#/$defs/A"}},
            {"type": "array", "items": {"type": "string", "description": "a"}},
            0,
        ),
        (
            {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
            {"type": "string", "description": "a", "nullable": True},
            0,
        ),
    ],
)
def test_schema_is_translated_to_the_openapi_subset(
    inner: dict[str, Any], expected: dict[str, Any], notes: int
) -> None:
    schema = {**of(a=inner), "$defs": {"A": {"type": "string", "description": "a"}}}
    translated, instructions = lowered(schema, OPENAPI)
    assert translated == of(a=expected)
    assert len(instructions) == notes
    assert all(note.where.startswith("f/properties/a") for note in instructions)


def test_recursive_schema_is_cut_at_the_cycle() -> None:
    schema = {**of(tree={"$ref": "#/$defs/T"}), "$defs": {"T": of(child={"$ref": "#/$defs/T"})}}
    translated, notes = lowered(schema, OPENAPI)
    assert translated == of(tree=of(child={"type": "object"}))
    assert len(notes) == 1


def test_inlining_is_limited() -> None:
    levels = {f"L{n}": of(a={"$ref": f"#/$defs/L{n + 1}"}, b={"$ref": f"#/$defs/L{n + 1}"}) for n in range(30)}
    with pytest.raises(DefinitionError, match="too large"):
        lowered({**of(a={"$ref": "#/$defs/L0"}), "$defs": {**levels, "L30": of()}}, OPENAPI)


@pytest.mark.need(22)
def test_strict_mode_requires_every_property() -> None:
    translated, notes = lowered(
        {**of(a={"type": "string"}, b={"type": "integer", "default": 1}), "required": ["a"]}, STRICT
    )
    assert translated == {
        **of(a={"type": "string"}, b={"type": ["integer", "null"]}),
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert [note.where for note in notes] == ["f/properties/b/default"]
    for free in ({"type": "object"}, {"type": "object", "additionalProperties": {"type": "string"}}):
        with pytest.raises(DefinitionError, match="free keys"):
            lowered(of(a=free), STRICT)


def test_strict_mode_closes_an_object_that_has_only_properties() -> None:
    translated, _ = lowered(of(a={"properties": {"b": {"type": "string"}}}), STRICT)
    inner = translated["properties"]["a"]
    assert (inner["additionalProperties"], inner["required"]) == (False, ["b"])


@pytest.mark.parametrize("name", ["anthropic_messages", "bedrock_converse"])
def test_strict_tools_are_closed_and_keep_optional_properties(name: str) -> None:
    """Claude's strict mode refuses open objects, and keywords that it does not know."""
    inner = {"type": "object", "properties": {"x": {"type": "string", "minLength": 2}}}
    schema = {**of(city={"type": "string"}, inner=inner), "required": ["city"]}
    tool = ToolDefinition("w", "", schema, annotations={"strict": True})
    notes = Notes()
    body = get_api(name).encode_request([Message("user", (TextPart("Hi"),))], tools=[tool], notes=notes)
    written = body["tools"][0] if name == "anthropic_messages" else body["toolConfig"]["tools"][0]["toolSpec"]
    assert written["strict"] is True
    parameters = written["input_schema"] if name == "anthropic_messages" else written["inputSchema"]["json"]
    assert parameters["additionalProperties"] is parameters["properties"]["inner"]["additionalProperties"] is False
    assert parameters["required"] == ["city"]
    assert "w/properties/inner/properties/x/minLength" in [note.where for note in notes]


def test_alternatives_at_the_root_are_dropped() -> None:
    translated, notes = lowered({**of(a={}), "anyOf": [{"required": ["a"]}]}, PLAIN_ROOT)
    assert translated == of(a={})
    assert len(notes) == 1


def test_invalid_schema_is_refused() -> None:
    for schema in ({"type": "string"}, {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}):
        with pytest.raises(DefinitionError):
            lowered(schema, OPENAPI)


@pytest.mark.parametrize(
    "again",
    [
        {"$ref": "#/$defs/Node"},
        {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        {"allOf": [{"$ref": "#/$defs/Node"}]},
        {"anyOf": [{"allOf": [{"$ref": "#/$defs/Node"}]}, {"type": "null"}]},
        {"oneOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        {"allOf": [{"$ref": "#/$defs/Node"}, {"$ref": "#/$defs/Node"}]},
    ],
)
@pytest.mark.parametrize("dialect", [JSON_SCHEMA, OPENAPI])
def test_recursive_schema_behind_alternatives_is_cut(again: dict[str, Any], dialect: Dialect) -> None:
    node = {"type": "object", "properties": {"value": {"type": "integer"}, "next": again}}
    translated, _ = lowered({**of(list={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}, dialect)
    if dialect is OPENAPI:
        nested = translated["properties"]["list"]["properties"]
        assert nested["value"] == {"type": "integer"}
        assert nested["next"]["type"] == "object"
        assert "$ref" not in str(translated)


def argument(schema: Any, dialect: Dialect) -> tuple[Any, list[str]]:
    """Return the schema of one required argument in a dialect, and the notes."""
    notes = Notes()
    parameters = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return lower(ToolDefinition("f", "", parameters), dialect, notes)["properties"]["a"], [str(note) for note in notes]


TAKEN: dict[str, tuple[Dialect, dict[str, Any]]] = {
    "openapi": (
        OPENAPI,
        {
            **{"title": "T", "description": "D", "example": 1, "default": 1, "minimum": 1, "maximum": 9},
            **{"minItems": 1, "maxItems": 9, "minLength": 1, "maxLength": 9, "minProperties": 1, "maxProperties": 9},
            **{"pattern": "x", "format": "int32", "nullable": True, "propertyOrdering": ["b"], "enum": ["x"]},
        },
    ),
    "strict": (
        STRICT,
        {
            **{"title": "T", "description": "D", "enum": [1], "const": 1, "pattern": "x", "multipleOf": 2},
            **{"minimum": 1, "maximum": 9, "exclusiveMinimum": 1, "exclusiveMaximum": 9, "minItems": 1, "maxItems": 9},
        },
    ),
    "sealed": (SEALED, {"title": "T", "description": "D", "enum": [1], "const": 1, "default": 1}),
}
LEFT_OUT = {
    "openapi": {"multipleOf": 2, "exclusiveMinimum": 1, "uniqueItems": True, "not": {}},
    "strict": {"minLength": 1, "maxLength": 9, "uniqueItems": True, "minProperties": 1},
    "sealed": {"minimum": 1, "pattern": "x", "maxItems": 9, "multipleOf": 2},
}
FORMATS = {
    "strict": ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
    "sealed": ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, (_, members) in TAKEN.items() for key in members])
def test_a_keyword_that_a_dialect_takes_stays(name: str, key: str) -> None:
    dialect, members = TAKEN[name]
    schema = {"type": "string", key: members[key]}
    assert argument(schema, dialect) == (schema, [])


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, members in LEFT_OUT.items() for key in members])
def test_a_keyword_that_a_dialect_does_not_take_is_noted(name: str, key: str) -> None:
    dialect = TAKEN[name][0]
    schema, notes = argument({"type": "string", key: LEFT_OUT[name][key]}, dialect)
    assert schema == {"type": "string"}
    assert notes == [f"dropped f/properties/a/{key}: {key!r} is not taken ({dialect.name})"]


@pytest.mark.parametrize("name", FORMATS)
def test_formats_that_a_dialect_takes_stay(name: str) -> None:
    dialect = TAKEN[name][0]
    for form in FORMATS[name]:
        assert argument({"type": "string", "format": form}, dialect) == ({"type": "string", "format": form}, [])
    schema, notes = argument({"type": "string", "format": "iri"}, dialect)
    assert (schema, notes) == (
        {"type": "string"},
        [f"dropped f/properties/a/format: the format 'iri' is not taken ({dialect.name})"],
    )


@pytest.mark.parametrize(
    ("schema", "optional"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "null"}, {"type": "null"}),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"$ref": "#/$defs/x"}, {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}),
        ({"type": "string", "enum": ["x"]}, {"type": ["string", "null"], "enum": ["x", None]}),
        ({"type": "string", "const": "x"}, {"type": ["string", "null"], "enum": ["x", None]}),
        ({"const": "x"}, {"enum": ["x", None]}),
    ],
)
def test_an_optional_argument_may_be_null_in_strict_mode(schema: Any, optional: Any) -> None:
    parameters = {"type": "object", "properties": {"a": schema}, "$defs": {"x": {"type": "string"}}}
    result = lower(ToolDefinition("f", "", parameters), STRICT, Notes())
    assert (result["properties"]["a"], result["required"]) == (optional, ["a"])


def test_parts_of_one_schema_are_merged() -> None:
    parts = [
        True,
        {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}},
        {"required": ["x", "y"], "properties": {"y": {"type": "string"}}},
    ]
    schema, notes = argument({"allOf": parts, "required": ["z"], "properties": {"z": {"type": "integer"}}}, OPENAPI)
    assert schema["required"] == ["z", "x", "y"]
    assert set(schema["properties"]) == {"x", "y", "z"}
    assert notes == ["changed f/properties/a: 'allOf' becomes one schema (the OpenAPI subset)"]
    inner = [{"allOf": [{"minLength": 1}]}, {"allOf": [{"maxLength": 9}]}]
    assert argument({"type": "string", "allOf": inner}, OPENAPI)[0] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 9,
    }


@pytest.mark.parametrize("dialect", [OPENAPI, STRICT])
def test_a_schema_without_values_is_noted(dialect: Dialect) -> None:
    assert argument(False, dialect) == (
        {},
        [f"dropped f/properties/a: a schema that allows no value is left out ({dialect.name})"],
    )
    assert argument(True, dialect) == ({}, [])
