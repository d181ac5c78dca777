"""Response templates of transformers: written from formats, and read as formats."""

from __future__ import annotations

import re
from typing import Any

import pytest

import toolwire
from toolwire import DefinitionError, ToolCall, UnknownFormat
from toolwire.wire import FORMATS, format_of_response_template, response_template
from toolwire.wire.pattern_parts import pattern_parts

TOOL = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
}
CALLS = [ToolCall("get_weather", {"city": "Paris", "days": 3}), ToolCall("get_weather", {"city": "Rome"})]
# From the documentation of transformers.
SMOLLM = {
    "open": "<tool_call>",
    "close": "</tool_call>",
    "repeats": True,
    "content": "json",
    "transform": {"type": "function", "function": "{content}"},
}
QWEN3 = {
    "open_pattern": r"<tool_call>\s*<function=(?P<name>\w+)>",
    "close": "</tool_call>",
    "repeats": True,
    "content": "xml-inline",
    "content_args": {
        "tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>",
        "value_parser": {"name": "json", "args": {"allow_non_json": True}},
    },
    "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
}
COHERE = {
    "open": "<|START_ACTION|>",
    "close": "<|END_ACTION|>",
    "content": "json",
    "transform_each": True,
    "transform": {"type": "function", "function": {"name": "{tool_name}", "arguments": "{parameters}"}},
}


def template(calls: Any, **fields: Any) -> dict[str, Any]:
    return {"version": 1, "start_anchor": "x", "fields": {"tool_calls": calls, **fields}}


def read(text: str, declared: dict[str, Any]) -> Any:
    return toolwire.parse(text, format=format_of_response_template(declared), tools=[TOOL])


def arguments(response: Any) -> list[Any]:
    assert not response.problems, response.problems
    return [call.arguments for call in response.tool_calls]


def written() -> dict[str, dict[str, Any]]:
    templates: dict[str, dict[str, Any]] = {}
    for wire in FORMATS:
        try:
            templates[wire.name] = response_template(wire)
        except DefinitionError:
            continue
    return templates


def test_most_formats_can_be_written_and_read_again() -> None:
    templates = written()
    assert len(templates) >= 60
    read_again = []
    for name, declared in templates.items():
        try:
            wire = format_of_response_template(declared)
        except DefinitionError:
            continue
        response = toolwire.parse(toolwire.render_calls(CALLS, format=name, tools=[TOOL]), format=wire, tools=[TOOL])
        if [call.arguments for call in response.tool_calls] == [call.arguments for call in CALLS]:
            read_again.append(name)
    assert len(read_again) >= 50


def test_patterns_of_templates_have_the_groups_that_the_transform_names() -> None:
    for name, declared in written().items():
        field = declared["fields"]["tool_calls"]
        for placeholder in re.findall(r"\{(\w+)\}", str(field["transform"])):
            alone = placeholder != "content" and not field.get("transform_each")
            assert not alone or f"(?P<{placeholder}>" in field["open_pattern"], name


def test_reasoning_and_the_end_of_the_answer_are_fields() -> None:
    declared = response_template("hermes", start="<a>", end=["<end>"])
    assert declared["start_anchor"] == "<a>" and declared["version"] == 1
    thinking, content = declared["fields"]["thinking"], declared["fields"]["content"]
    assert (thinking["open"], thinking["close"], content["close"]) == ("<think>", "</think>", "<end>")
    assert content["repeats"] and thinking["repeats"]  # a field that does not repeat keeps only its last text
    response = read("<think>Hm.</think>Hi<end>", declared)
    assert (response.reasoning, response.content) == ("Hm.", "Hi")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plain", "has no calls"),
        ("xlam", "have no marker"),
        ("tool_tags", "no pattern for the calls"),
        ("apertus", "the name as the key"),
        ("cwm", "no parser for the arguments"),
    ],
)
def test_a_format_that_no_template_describes_is_an_error_that_says_why(name: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        response_template(name)
    with pytest.raises(UnknownFormat):
        response_template("hermess")


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        (SMOLLM, '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}</tool_call>'),
        (
            QWEN3,
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>"
            "\n</function>\n</tool_call>",
        ),
        (
            COHERE,
            '<|START_ACTION|>[{"tool_name": "get_weather", "parameters": {"city": "Paris", "days": 3}}]<|END_ACTION|>',
        ),
        (
            {"open": "<calls>", "close": "</calls>", "content": "python-call-list"},
            '<calls>[get_weather(city="Paris", days=3)]</calls>',
        ),
        (
            {
                "open_pattern": r"<call id=(?:\d+)?(?P<name>\w+)>",
                "close": "</call>",
                "content": "json",
            },
            "",
        ),
        (
            {
                "open_pattern": r"call:(?P<name>\w+)(?=\{)",
                "close": "<end>",
                "content": "json",
                "content_args": {"unquoted_keys": True, "string_delims": [["<'>", "<'>"]]},
            },
            "call:get_weather{city:<'>Paris<'>,days:3}<end>",
        ),
        (
            {
                "open_pattern": r'<invoke\s+name="(?P<name>[^"]+)"\s*>',
                "close": "</invoke>",
                "content": "xml-inline",
                "content_args": {"tag_pattern": r'<p\s[^<>]*?name="(?P<key>[^"]+)"[^<>]*>(?P<value>.*?)</p>'},
            },
            '<invoke name="get_weather"><p name="city">Paris</p><p name="days">3</p></invoke>',
        ),
    ],
)
def test_templates_of_checkpoints_are_read(calls: Any, text: str) -> None:
    if not text:
        with pytest.raises(DefinitionError, match="no description can express any text"):
            format_of_response_template(template(calls))
        return
    assert arguments(read(text, template(calls))) == [{"city": "Paris", "days": 3}]
    text = f"{text}\n{text}"
    assert len(arguments(read(text, template(calls)))) == 2


def test_a_call_without_its_last_marker_is_read_with_the_repair() -> None:
    (call,) = read('<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}', template(SMOLLM)).tool_calls
    assert call.arguments == {"city": "Rome"} and "missing_close" in call.repairs


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({}, "no field tool_calls"),
        ({"fields": {"content": {}}}, "no field tool_calls"),
        (template({"close": "x"}), "nothing opens the calls"),
        (template({"open_pattern": 1}), "open_pattern is not text"),
        (
            template({"open_pattern": "a.*b"}),
            r"tool_calls.open_pattern: no description can express any text of \[.\]",
        ),
        (template({"open_pattern": "(?P<tool>x)"}), "the group 'tool' is neither name, key nor value"),
        (template({"open_pattern": "(?:ab)+"}), "text that is repeated at character 7"),
        (template({"open_pattern": "(a"}), "the pattern ends too early"),
        (template({"open_pattern": "a)"}), "a closing bracket that nothing opens"),
        (template({"open_pattern": "*a"}), "a quantifier '\\*' behind nothing"),
        (template({"open_pattern": r"\p{L}"}), "an escape .p of an unknown kind"),
        (template({"open_pattern": "(?i:a)"}), "a group of an unknown kind"),
        (template({"open_pattern": "[a"}), "the pattern ends too early"),
        (template({"open_pattern": "(" * 30 + ")" * 30}), "too many brackets"),
        (template({"open": "a", "content": "kv-lines"}), "no description can express 'kv-lines'"),
        (template({"open": "a", "content": "json", "transform": {"function": 1}}), "neither the content nor an object"),
        (template({"open": "a", "content": "json", "transform": {"function": {}}}), "are not members of the content"),
        (template({"open": "a", "content": "xml-inline"}), "tag_pattern is missing"),
        (
            template({"open": "a", "content": "xml-inline", "content_args": {"tag_pattern": "a(?P<key>b)"}}),
            "the value is not the last group",
        ),
        (template({"open_pattern": "(?:a(?P<name>b))?", "content": "json"}), "alternatives that may all be missing"),
    ],
)
def test_a_template_that_cannot_be_read_names_the_place(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        format_of_response_template(declared)


def test_patterns_are_taken_apart_without_what_looks_around() -> None:
    assert pattern_parts(r"^a(?=b|c)(?<!d)\n?b$", "p") == pattern_parts(r"a\s*b", "p")
    with pytest.raises(TypeError, match="a response template as a dict"):
        format_of_response_template("{}")  # type: ignore[arg-type]
