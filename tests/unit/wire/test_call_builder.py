"""Calls under construction: the types of nested values without quotes, and members that are arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.property.laws import check_chunking

import toolwire

TEXT = {"type": "string"}
ROW = {"type": "object", "properties": {"n": TEXT, "i": {"type": "integer"}}}
PROPERTIES = {
    "a": {"type": "integer"},
    "b": TEXT,
    "rows": {"type": "array", "items": ROW},
    "lists": {"type": "array", "items": {"type": "array", "items": TEXT}},
    "row": ROW,
}
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": PROPERTIES}}]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("{a:1,b:2}", {"a": 1, "b": "2"}),
        ("{b:true,a:1}", {"b": "true", "a": 1}),
        ("{rows:[{n:1,i:2},{n:3,i:4}]}", {"rows": [{"n": "1", "i": 2}, {"n": "3", "i": 4}]}),
        ("{lists:[[1,2],[],[3]],b:4}", {"lists": [["1", "2"], [], ["3"]], "b": "4"}),
        ("{row:{n:1},b:2}", {"row": {"n": "1"}, "b": "2"}),
        ("{row:{more:{n:1}},rows:[{n:2}]}", {"row": {"more": {"n": 1}}, "rows": [{"n": "2"}]}),
        ("{other:1}", {"other": 1}),
    ],
)
def test_words_without_quotes_have_the_types_of_the_schema_at_their_place(text: str, arguments: dict[str, Any]) -> None:
    for format, call in (
        ("gemma4", f"<|tool_call>call:f{text}<tool_call|>"),
        ("functiongemma", f"<start_function_call>call:f{text}<end_function_call>"),
    ):
        (made,) = check_chunking(call, format=format, tools=TOOLS, fallback="none").response.tool_calls
        assert made.arguments == arguments, format


@pytest.mark.parametrize(
    ("members", "arguments", "repair"),
    [
        ('"a": 1', {"a": 1}, "flat_arguments"),
        ('"a": 1, "b": "x"', {"a": 1, "b": "x"}, "flat_arguments"),
        ('"input": {"a": 1}', {"a": 1}, "argument_key"),
        ('"input": {"a": 1, "other": 2}', {}, ""),
        ('"input": {"a": 1}, "args": {"b": "x"}', {}, ""),
        ('"input": [1]', {}, ""),
        ('"other": {"a": 1}', {}, ""),
        ('"arguments": {}, "a": 1', {}, ""),
    ],
)
def test_members_are_arguments_where_the_schema_has_them(members: str, arguments: dict[str, Any], repair: str) -> None:
    text = f'<tool_call>{{"name": "f", {members}}}</tool_call>'
    response = check_chunking(text, format="hermes", tools=TOOLS).response
    read = [(call.arguments, "".join(call.repairs)) for call in response.tool_calls]
    assert read == ([(arguments, repair)] if repair else [])
    assert [problem.kind for problem in response.problems] == ([] if repair else ["malformed"])
    response = check_chunking(text, format="hermes", tools=TOOLS, repair="none").response
    assert response.tool_calls == ()


@pytest.mark.parametrize("format", ["qwen3_coder", "hermes", "forge_xml", "gemma4", "pythonic"])
def test_a_call_that_is_cut_shows_only_values_that_were_read_to_their_end(format: str) -> None:
    call = {
        "qwen3_coder": "<tool_call><function=f><parameter=a>1</parameter><parameter=b>x",
        "hermes": '<tool_call>{"name": "f", "arguments": {"a": 1, "b": "x',
        "forge_xml": "<tool><tool_name>f</tool_name><arguments><a>1</a><b>x",
        "gemma4": '<|tool_call>call:f{a:1,b:<|"|>x',
        "pythonic": "",
    }[format]
    response = check_chunking(call or "[f(a=1, b='x", format=format, tools=TOOLS, fallback="none").response
    assert response.tool_calls == ()
    assert [made.arguments for made in response.incomplete] == ([{"a": 1}] if call else [])


@pytest.mark.parametrize("value", ["x\ud800", "\udfff"])
def test_half_of_a_surrogate_pair_in_a_value_of_any_type_makes_no_call(value: str) -> None:
    for key in ("b", "other", "lists", "row"):
        for format, text in (
            ("qwen3_coder", f"<tool_call><function=f><parameter={key}>{value}</parameter></function></tool_call>"),
            ("forge_xml", f"<tool><tool_name>f</tool_name><arguments><{key}>{value}</{key}></arguments></tool>"),
            ("gemma4", f'<|tool_call>call:f{{{key}:<|"|>{value}<|"|>}}<tool_call|>'),
        ):
            response = check_chunking(text, format=format, tools=TOOLS, fallback="none").response
            assert (response.tool_calls, response.content) == ((), text), format
            assert [problem.kind for problem in response.problems] == ["malformed"]


def test_a_name_that_is_missing_is_a_problem_at_its_place() -> None:
    for format, text, raw in (
        ("hermes", '<tool_call>{"name": "", "arguments": {}}</tool_call>', '<tool_call>{"name": ""'),
        ("anthropic_xml", '<function_calls><invoke name="">', '<function_calls><invoke name="">'),
    ):
        (problem,) = check_chunking(f"{text} and more", format=format, tools=TOOLS).response.problems
        assert (problem.kind, problem.raw) == ("missing_name", raw)


@pytest.mark.parametrize(("key", "shown"), [("a", {"a": 1}), ("b", {"b": "1"})])
def test_a_call_that_gives_a_parameter_twice_shows_the_first_value(key: str, shown: dict[str, Any]) -> None:
    values = "".join(f"<parameter={key}>{value}</parameter>" for value in (1, 2))
    text = f"<tool_call><function=f>{values}</function></tool_call>"
    response = check_chunking(text, format="qwen3_coder", tools=TOOLS, fallback="none").response
    assert response.tool_calls == ()
    assert [call.arguments for call in response.incomplete] == [shown]


# -- what no call may contain ---------------------------------------------------------------------------------------

LOOK_UP = {"name": "look_up", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.mark.parametrize("format", [name for name in toolwire.formats() if toolwire.get_format(name).blocks])
def test_half_of_a_surrogate_pair_is_in_no_part_of_a_call(format: str) -> None:
    call = toolwire.ToolCall("look_up", {"city": "Paris"}, "functions.look_up:0")
    text = toolwire.render_calls([call], format=format, tools=[LOOK_UP])
    for part in ("look_up", "city", "Paris", ":0"):
        for place in range(text.count(part)):
            pieces = text.split(part)
            wrong = part.join(pieces[: place + 1]) + part + "\ud800" + part.join(pieces[place + 1 :])
            parser = toolwire.StreamParser(format=format, tools=[LOOK_UP])
            events = [*parser.feed(wrong[:-10]), *parser.feed(wrong[-10:]), *parser.finish()]
            response = toolwire.collect(events)
            written = [[call.name, call.id, call.server, call.arguments] for call in response.tool_calls]
            written += [[call.name, call.id, call.arguments] for call in response.incomplete]
            written += [[event.name, event.id] for event in events if isinstance(event, toolwire.CallStart)]
            assert json.dumps(written, ensure_ascii=False).encode(), (part, place)


@pytest.mark.parametrize(
    "members",
    [
        '"name": "look_up", "name": "look_up", "arguments": {"city": "a"}',
        '"name": "look_up", "arguments": {"city": "a"}, "arguments": {"city": "b"}',
        '"name": "look_up", "parameters": {"city": "a"}, "arguments": {"city": "b"}',
        '"arguments": {"city": "a"}, "name": "look_up", "arguments": {"city": "a"}',
        '"name": "look_up", "id": "1", "id": "2", "arguments": {"city": "a"}',
    ],
)
def test_a_call_of_which_a_member_is_given_twice_is_not_made(members: str) -> None:
    for format in ("hermes", "auto", "llama3_json", "mistral_json"):
        for text in (f"<tool_call>{{{members}}}</tool_call>", f"{{{members}}}", f"[TOOL_CALLS][{{{members}}}]"):
            response = toolwire.parse(text, format=format, tools=[LOOK_UP], fallback="whole_message")
            assert response.tool_calls == (), text


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("auto", "look_up(city='Paris\ud800')"),
        ("auto", "look_up('Paris\ud800')"),
        ("auto", '<look_up city="Paris\ud800"/>'),
        ("auto", "<look_up>\ncity: Paris\ud800\n</look_up>"),
        ("auto", "look_up\n<city>Paris\ud800</city>"),
        ("react", "Action: look_up\nAction Input: Paris\ud800"),
        ("anthropic_xml", '<function_calls><invoke name="look_up" city="Paris\ud800"></invoke></function_calls>'),
        ("hermes", '<tool_call>{"name": "look_up", "city": "Paris\ud800"}</tool_call>'),
        ("hermes", '<tool_call>{"name": "look_up", "arguments": "Paris\ud800"}</tool_call>'),
    ],
)
def test_half_of_a_surrogate_pair_is_in_no_call_without_members(format: str, text: str) -> None:
    for level in ("whole_message", "embedded"):
        response = toolwire.parse(text, format=format, tools=[LOOK_UP], fallback=level)
        assert response.tool_calls == ()


@pytest.mark.parametrize("format", ["llama3_json", "bare_json", "auto"])
def test_repairs_of_arguments_are_named_and_can_be_forbidden(format: str) -> None:
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"s": {"type": "string"}}}}]
    text = '{"name": "f", "parameters": {"s": "a\nb",}}'
    (call,) = toolwire.parse(text, format=format, tools=tools).tool_calls
    assert (call.arguments, call.repairs) == ({"s": "a\nb"}, ("raw_control", "trailing_comma"))
    assert toolwire.parse(text, format=format, tools=tools, repair="none").tool_calls == ()
