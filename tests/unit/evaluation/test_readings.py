from __future__ import annotations

from typing import Any

import pytest

import toolwire
from toolwire.evaluation.naive_reader import naive_calls
from toolwire.evaluation.readings import READINGS, Reading, read_answer
from toolwire.messages import ToolCall
from toolwire.tools import definitions

TOOLS = tuple(
    definitions(
        [
            {
                "name": "get_weather",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                    "required": ["city"],
                },
            }
        ]
    ).values()
)
ARGUMENTS = {"city": "Paris", "days": 3}
JSON = '{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}'
FORMATS = ("hermes", "forge_xml", "anthropic_xml", "bare_json", "pythonic", "llama3_json", "qwen3_coder", "glm4")


def naive(text: str, format: str = "hermes") -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in naive_calls(text, format, TOOLS)]


@pytest.mark.parametrize("format", ["hermes", "forge_xml", "anthropic_xml", "bare_json", "pythonic", "llama3_json"])
@pytest.mark.parametrize("reading", READINGS)
def test_every_reading_reads_what_the_format_writes(format: str, reading: Reading) -> None:
    calls = [ToolCall("get_weather", ARGUMENTS)]
    text = toolwire.render_calls(calls, format=format, tools=TOOLS)
    response = read_answer(text, format, TOOLS, reading)
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("get_weather", ARGUMENTS)]


@pytest.mark.parametrize(
    ("reading", "whole", "amid_prose"),
    [("strict", 0, 0), ("whole_message", 1, 0), ("embedded", 1, 1), ("naive", 1, 0)],
)
def test_levels_differ_in_calls_without_markers(reading: Reading, whole: int, amid_prose: int) -> None:
    assert len(read_answer(JSON, "hermes", TOOLS, reading).tool_calls) == whole
    prose = f"I look it up now.\n\n{JSON}"
    assert len(read_answer(prose, "hermes", TOOLS, reading).tool_calls) == amid_prose


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (f"<tool_call>{JSON}</tool_call>", "hermes"),
        (f"Sure:\n```json\n{JSON}\n```", "hermes"),
        (f"[{JSON}]", "bare_json"),
        ("get_weather(city='Paris', days=3)", "pythonic"),
        ("[get_weather(city='Paris', days=3)]", "pythonic"),
        ('<invoke name="get_weather"><parameter name="city">Paris</parameter>'
         '<parameter name="days">3</parameter></invoke>', "anthropic_xml"),
        ("<tool><tool_name>get_weather</tool_name><arguments>{\"city\": \"Paris\", \"days\": 3}</arguments></tool>",
         "forge_xml"),
    ],
)  # fmt: skip
def test_the_naive_reader_reads_well_formed_calls(text: str, format: str) -> None:
    assert naive(text, format) == [("get_weather", ARGUMENTS)]


@pytest.mark.parametrize(
    "text",
    [
        "It rains.",
        f"<tool_call>{JSON[:-1]}</tool_call>",
        "get_weather('Paris')",
        "get_weather(city=open('x'))",
        "<tool>" * 50_000,
        "<tool_call>" * 50_000,
        "[" * 10_000,
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x name="get_weather"><city>&b;</city></x>',
        '<parameter name="get_weather">',
        '<!DOCTYPE x [<!ENTITY b "Paris">]><x name="get_weather"/>',
        '<invoke name="get_weather">\ud800</invoke>',
        *(f"get_weather(city={value})" for value in ("{'Paris'}", "b'Paris'", "1j", "...", "{(1, 2): 3}")),
        "get_weather(**{})",
        "f()(x=1)",
    ],
)
def test_the_naive_reader_repairs_nothing_and_raises_nothing(text: str) -> None:
    for format in FORMATS:
        assert naive(text, format) == []


def test_the_naive_reader_reads_names_of_any_length() -> None:
    name = "a" + ".b" * 900
    assert naive(f"{name}(x=1)", "pythonic") == [(name, {"x": 1})]
