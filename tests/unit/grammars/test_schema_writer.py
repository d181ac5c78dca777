"""Tests of messages of calls as JSON Schema, checked with the project's own validation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import ToolCall, render_calls
from toolwire.errors import DefinitionError
from toolwire.grammars.message_grammar import grammar
from toolwire.schema.validation import validate
from toolwire.tools import ToolDefinition
from toolwire.wire.formats import FORMATS

NUMBER = ToolDefinition(
    "number", parameters={"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
)
TREE = ToolDefinition(
    "tree",
    parameters={
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "label": {"type": "string", "maxLength": 3, "pattern": "^a"}},
    },
)


def schema(*tools: ToolDefinition, format: str = "bare_json", **options: Any) -> dict[str, Any]:
    text = grammar(tools, format=format, syntax="json_schema", **{"tool_choice": "required", **options}).text
    written: dict[str, Any] = json.loads(text)
    return written


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("message", "valid"),
    [
        ([call("number", n=1)], True),
        ([call("number", n=1), call("tree", left={"left": {}, "label": "a"})], True),
        ([], False),
        (call("number", n=1), False),
        ([call("number", n=0)], False),
        ([call("number", n="1")], False),
        ([call("number")], False),
        ([call("number", n=1, m=1)], False),
        ([call("nobody")], False),
        ([{**call("number", n=1), "thought": "x"}], False),
        ([call("tree", left={"label": 1})], False),
        ([call("tree", label="abcd")], False),
        ([call("tree", label="b")], False),
    ],
    ids=str,
)
def test_the_schema_admits_calls_and_nothing_else(message: Any, valid: bool) -> None:
    assert (not validate(message, schema(NUMBER, TREE))) is valid


def test_a_member_that_no_value_fits_is_none_of_the_additional() -> None:
    parameters = {"type": "object", "properties": {"a": False}, "additionalProperties": True}
    written = schema(ToolDefinition("open", parameters=parameters), parallel=False)
    assert not validate(call("open", b=1), written)
    assert validate(call("open", a=1), written)


def test_one_call_needs_no_list() -> None:
    alone = schema(NUMBER, TREE, parallel=False)
    assert not validate(call("number", n=1), alone)
    assert validate([call("number", n=1)], alone)
    named = schema(NUMBER, TREE, tool_choice="tree")
    assert not validate(call("tree"), named)
    assert validate(call("number", n=1), named)


def test_only_parts_that_contain_themselves_are_definitions() -> None:
    assert "$defs" not in schema(NUMBER)
    assert len(schema(TREE)["$defs"]) == 1


def test_parts_that_are_used_very_often_are_definitions() -> None:
    """Each level refers to the next one twice: copies of all would be 2**40 objects."""
    parts: dict[str, Any] = {"40": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    for at in range(40):
        inner = {"$ref": f"#/$defs/{at + 1}"}
        parts[str(at)] = {"type": "object", "properties": {"a": inner, "b": inner}}
    deep = ToolDefinition("deep", parameters={**parts["0"], "$defs": parts})
    written = schema(deep, parallel=False)
    assert 1 < len(written["$defs"]) < 40
    valid: Any = {"n": 1}
    wrong: Any = {"n": "x"}
    for at in range(40):
        valid, wrong = {"ab"[at % 2]: valid}, {"ba"[at % 2]: wrong}
    assert not validate(call("deep", **valid), written)
    assert validate(call("deep", **wrong), written)


def test_any_value_needs_no_definition() -> None:
    parameters = {"type": "object", "properties": {"a": True}}
    assert "$defs" not in schema(ToolDefinition("free", parameters=parameters))


def test_a_list_has_its_minimum() -> None:
    parameters = {"type": "object", "properties": {"l": {"type": "array", "minItems": 1}}}
    written = schema(ToolDefinition("list", parameters=parameters))
    assert not validate([call("list", l=[1])], written)
    assert validate([call("list", l=[])], written)


def has_schema(format: str) -> bool:
    try:
        return bool(schema(NUMBER, format=format))
    except DefinitionError:
        return False


@pytest.mark.parametrize("format", [wire.name for wire in FORMATS if wire.blocks and has_schema(wire.name)])
def test_the_schema_of_a_format_admits_rendered_calls(format: str) -> None:
    calls = [ToolCall("number", {"n": 1}), ToolCall("tree", {"label": "a"})]
    one, two = (render_calls(some, format=format, tools=[NUMBER, TREE]) for some in (calls[:1], calls))
    alone = schema(NUMBER, TREE, format=format, parallel=False)
    assert not validate(json.loads(one), alone)
    assert validate({"number": 1}, alone)
    if "}; {" not in two:  # two JSON texts, which no schema describes
        assert not validate(json.loads(two), schema(NUMBER, TREE, format=format))
        assert validate(json.loads(two), alone)


@pytest.mark.parametrize("tool_choice", ["auto", "none"])
def test_a_schema_has_no_place_for_text(tool_choice: str) -> None:
    with pytest.raises(DefinitionError, match="no place for text"):
        schema(NUMBER, tool_choice=tool_choice)


def test_a_schema_has_no_place_for_reasoning() -> None:
    with pytest.raises(DefinitionError, match="no place for text"):
        schema(NUMBER, reasoning="allowed")


def test_formats_that_write_more_than_json_have_no_schema() -> None:
    with pytest.raises(DefinitionError, match="'hermes' are not JSON alone"):
        schema(NUMBER, format="hermes")
    with pytest.raises(DefinitionError, match="arguments as text"):
        schema(NUMBER, format="openai_json")
