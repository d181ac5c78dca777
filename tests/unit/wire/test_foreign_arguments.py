"""Arguments that models write in another way than their format does, and in the order of the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests import streams

from toolwire import StreamParser, ToolCall, render_calls
from toolwire.events import ArgumentsDelta

STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}
TOOLS: list[dict[str, Any]] = [
    {"name": "search", "parameters": {"type": "object", "properties": {"query": STRING}}},
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": STRING, "days": {}}}},
    {"name": "label", "parameters": {"type": "object", "properties": {"tags": STRINGS, "note": STRING}}},
    {"name": "ship", "parameters": {"type": "object", "properties": {"my box": STRING}}},
    {
        "name": "send",
        "parameters": {
            "type": "object",
            "properties": {
                "to": {"type": "object", "properties": {"zip": STRING, "floor": {"type": "integer"}}},
                "codes": STRINGS,
                "sizes": {"type": "array", "items": {"type": "integer"}},
            },
        },
    },
]


@pytest.mark.parametrize("format", ["hermes", "glm4", "qwen3_coder", "auto"])
@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    ("inside", "expected", "repair"),
    [
        ("search('x')", ("search", {"query": "x"}), "positional"),
        ('search({"query": "x"})', ("search", {"query": "x"}), "positional"),
        ('get_weather("Paris", 3)', ("get_weather", {"city": "Paris", "days": 3}), "positional"),
        ('search(query: "x")', ("search", {"query": "x"}), "bare_key"),
    ],
)
def test_a_call_in_a_wrapper_may_be_written_like_a_function(
    format: str, size: int, inside: str, expected: Any, repair: str
) -> None:
    response = streams.parsed(f"<tool_call>{inside}</tool_call>", size, format=format, tools=TOOLS)
    assert streams.called(response) == [expected]
    assert response.tool_calls[0].repairs == (repair,)


@pytest.mark.parametrize(
    "inside",
    ["get_weather('Paris')", "search(x)", "search('x', y)", "search('x', 'y')", "unknown('x')", "search('x' + 'y')"],
)
@pytest.mark.parametrize("format", ["hermes", "glm4"])
def test_arguments_without_names_are_refused_where_it_is_not_certain_which_they_are(format: str, inside: str) -> None:
    response = streams.parsed(f"<tool_call>{inside}</tool_call>", format=format, tools=TOOLS)
    assert response.tool_calls == ()
    assert [problem.kind for problem in response.problems] == ["malformed"]


def test_arguments_without_names_are_refused_without_repairs() -> None:
    for inside in ("search('x')", 'search(query: "x")'):
        assert not streams.parsed(
            f"<tool_call>{inside}</tool_call>", format="glm4", tools=TOOLS, repair="none"
        ).tool_calls


def test_a_function_around_a_call_in_a_wrapper_is_not_a_call_of_its_own() -> None:
    response = streams.parsed('<tool_call>print(search(query="x"))</tool_call>', format="auto", tools=TOOLS)
    assert streams.called(response) == [("search", {"query": "x"})]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ('{"a", "b"}', ["a", "b"]),
        ("{'a',}", ["a"]),
        ('{ "a, b" , "}" }', ["a, b", "}"]),
        ("{1, 2}", [1, 2]),
        ("{('a', 1)}", [["a", 1]]),
        ('[{"a"}, {"b": {"c"}}, {}]', [["a"], {"b": ["c"]}, {}]),
    ],
)
def test_a_set_in_python_is_a_list(size: int, written: str, tags: list[Any]) -> None:
    for text in (f"[label(tags={written})]", f'[label(note="n", tags={written}, x={{"k": 1}})]'):
        marked = f"<|tool_call_start|>{text}<|tool_call_end|>"
        for format, message in (("pythonic", text), ("lfm2", marked), ("auto", marked)):
            (call,) = streams.parsed(message, size, format=format, tools=TOOLS).tool_calls
            assert (call.arguments["tags"], call.format != "call_list") == (tags, True)


@pytest.mark.parametrize("written", ['{"a"', '{"a" "b"}', '{"a", "b": 1}', "{,}", "{{}}", '{"a": 1, "b"}'])
def test_a_broken_set_is_not_a_list(written: str) -> None:
    assert not streams.parsed(f"[label(tags={written})]", format="pythonic", tools=TOOLS).tool_calls


@pytest.mark.parametrize("size", [0, 1])
def test_a_number_without_tokens_is_text_where_the_schema_says_so(size: int) -> None:
    text = "<|tool_call>call:send{to:{zip:01234,floor:3},codes:[7,1e5],sizes:[1,2]}<tool_call|>"
    response = streams.parsed(text, size, format="gemma4", tools=TOOLS)
    assert streams.called(response) == [
        ("send", {"to": {"zip": "01234", "floor": 3}, "codes": ["7", "1e5"], "sizes": [1, 2]})
    ]


@pytest.mark.parametrize("size", [0, 1])
def test_a_key_without_tokens_may_have_blanks(size: int) -> None:
    response = streams.parsed(
        '<|tool_call>call:ship{my box :<|"|>x<|"|>}<tool_call|>', size, format="gemma4", tools=TOOLS
    )
    assert streams.called(response) == [("ship", {"my box": "x"})]


def test_a_list_keeps_its_place_among_the_parameters() -> None:
    text = (
        '<tool_call><function=label><parameter=tags>["a", "b"]</parameter>'
        "<parameter=note>n</parameter></function></tool_call>"
    )
    parser = StreamParser(format="qwen3_coder", tools=TOOLS)
    deltas = [event.text for event in parser.feed(text) if isinstance(event, ArgumentsDelta)]
    assert "".join(deltas) == '{"tags": ["a", "b"], "note": "n"}'


def test_a_list_whose_items_are_apart_is_still_one() -> None:
    items = "<parameter=tags>a</parameter><parameter=note>n</parameter><parameter=tags>b</parameter>"
    text = f"<tool_call><function=label>{items}</function></tool_call>"
    response = streams.parsed(text, format="qwen3_coder", tools=TOOLS)
    assert streams.called(response) == [("label", {"tags": ["a", "b"], "note": "n"})]


@pytest.mark.parametrize("format", ["functiongemma", "gemma4", "gemma_tool_code", "lfm2", "olmo3", "pythonic"])
@pytest.mark.parametrize("size", [1, 1000])
def test_deltas_have_the_spacing_of_json_whatever_the_text_has(format: str, size: int) -> None:
    arguments = {"city": "a:b, c", "days": {"from": 1, "to": [2, 3]}}
    text = render_calls([ToolCall("get_weather", arguments)], format=format, tools=TOOLS)
    parser = StreamParser(format=format, tools=TOOLS)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events = [event for piece in pieces for event in parser.feed(piece)]
    assert "".join(event.text for event in events if isinstance(event, ArgumentsDelta)) == json.dumps(arguments)


@pytest.mark.parametrize("format", ["pythonic", "auto"])
@pytest.mark.parametrize("size", [0, 1])
def test_a_list_for_each_call_may_have_commas_between(format: str, size: int) -> None:
    lists = '[search(query="a")],\n[search(query="b"), search(query="c")]'
    response = streams.parsed(f"{lists}, [x](y)", size, format=format, tools=TOOLS)
    assert [arguments["query"] for _, arguments in streams.called(response)] == ["a", "b", "c"]
    assert response.content == ", [x](y)"


def test_calls_of_deepseek_v3_are_on_lines_of_their_own() -> None:
    text = render_calls([ToolCall("search", {"query": "a"}), ToolCall("search", {"query": "b"})], format="deepseek_v3")
    assert "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>" in text
    assert len(streams.parsed(text, format="deepseek_v3").tool_calls) == 2


def test_the_token_that_ends_a_turn_of_plamo_is_markup_at_the_end() -> None:
    assert streams.parsed("Done.<|plamo:tag|>", format="plamo3").content == "Done."
