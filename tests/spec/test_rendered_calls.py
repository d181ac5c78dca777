"""Calls with values of many schemas, as Toolwire writes them: the second reader reads them as Toolwire does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.conformance.rows import plain
from tests.spec.rows import DOCUMENT, UNREAD
from tests.spec.second_reader import read

import toolwire
from toolwire.errors import RenderError

ITEM = {"type": "object", "properties": {"k": {"type": "string"}}}
SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": ["string", "null"]},
    {"type": ["integer", "null"]},
    {"type": ["integer", "string"]},
    {"enum": [1, "1", None]},
    {"const": 5},
    {"type": "array", "items": {"type": "string"}},
    {"type": "array", "items": ITEM},
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
    {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"$ref": "#/$defs/unit"},
]
TEXTS = ["Paris", " a b", "5", "5.0", "true", "null", "x\ny", "<b>x</b>", "a & b", '"q"', "it's", '{"a": 1}', "[1]", ""]


def _value(schema: dict[str, Any], source: random.Random) -> Any:
    if "$ref" in schema:
        return {"u": 2}
    if "enum" in schema:
        return source.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _value(source.choice(schema["anyOf"]), source)
    if "additionalProperties" in schema:
        return {name: 1 for name in ("m", "n") if source.random() < 0.5}
    types = schema.get("type", ["string", "number", "null", "array"])
    match source.choice(types) if isinstance(types, list) else types:
        case "string":
            return source.choice(TEXTS)
        case "integer":
            return source.choice([0, 3, -7, 1_000_000])
        case "number":
            return source.choice([1.5, -2, 3.0])
        case "boolean":
            return source.random() < 0.5
        case "array":
            return [_value(schema.get("items", {"type": "integer"}), source) for _ in range(source.randrange(3))]
        case "object":
            properties = schema["properties"].items()
            return {name: _value(inner, source) for name, inner in properties if source.random() < 0.7}
    return None


@pytest.mark.parametrize("name", sorted(wire["name"] for wire in DOCUMENT["formats"] if wire["name"] not in UNREAD))
def test_the_second_reader_reads_rendered_calls(name: str) -> None:
    source = random.Random(name)
    unit = {"unit": {"type": "object", "properties": {"u": {"type": "integer"}}}}
    for _ in range(40):
        properties = {f"p{index}": source.choice(SCHEMAS) for index in range(source.randrange(4))}
        tool = {"name": "f", "parameters": {"type": "object", "properties": properties, "$defs": unit}}
        calls = [
            toolwire.ToolCall("f", {key: _value(schema, source) for key, schema in properties.items()})
            for _ in range(source.choice([1, 1, 2]))
        ]
        try:
            text = toolwire.render_calls(calls, format=name, tools=[tool])
        except RenderError:
            continue  # the format has no way to write such a value
        first = toolwire.parse(text, format=name, tools=[tool]).tool_calls
        second = read(DOCUMENT, name, text, [tool]).calls
        if not any(call.repairs for call in first):
            assert [(call.name, plain(call.arguments)) for call in second] == [
                (call.name, plain(call.arguments)) for call in first
            ], text


WRITTEN = {
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
    "forge_xml": "<tool><tool_name>f</tool_name><arguments><a>{}</a></arguments></tool>",
    "gemma4": "<|tool_call>call:f{{a:{}}}<tool_call|>",
    "functiongemma": "<start_function_call>call:f{{a:<escape>{}<escape>}}<end_function_call>",
}
VALUES = [
    *("1", " 1 ", "[1]", "[1", "5.0", "5.", "1e2", "007", "+5", "null", "None", "True", "tRUE", "x", '"x"', '"1"', ""),
    *('{"k": 1}', '{"k": ', '["1"]', "<item>1</item>", "<item></item>", "<item>1</item><item>2</item>", "<k>x</k>"),
    *("<item><k>x</k></item>", "<x>1</x><x>2</x>", "a<b>c</b>", "<!-- c -->1", "&lt;1&gt;"),
]
MORE_SCHEMAS: list[dict[str, Any]] = [
    {"type": "array"},
    {"type": ["array", "string"]},
    {"type": ["object", "array"]},
    {"type": ["object", "null"]},
    {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    {"enum": ["a", 1]},
    {"const": None},
    {"type": "null"},
]


@pytest.mark.parametrize("schema", [*SCHEMAS[:-1], *MORE_SCHEMAS], ids=str)
@pytest.mark.parametrize("name", WRITTEN)
def test_the_second_reader_reads_values_of_any_schema(name: str, schema: dict[str, Any]) -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    for value in VALUES:
        text = WRITTEN[name].format(value)
        first = toolwire.parse(text, format=name, tools=[tool]).tool_calls
        second = read(DOCUMENT, name, text, [tool]).calls
        if not any(call.repairs for call in first):
            assert [plain(call.arguments) for call in second] == [plain(call.arguments) for call in first], text
