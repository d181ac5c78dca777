"""What the dialects of calls without markers have in common and where they end: names, arguments, lists, wrappers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import parse
from toolwire.tools import definitions
from toolwire.wire import FORMATS
from toolwire.wire.dialects import DIALECTS, NamedObject, read_expression
from toolwire.wire.prepared_tools import KnownTools

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def definition(name: str, parameters: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"name": name, "parameters": {"type": "object", "properties": parameters, "required": list(required)}}


TOOLS = [
    definition("search", {"query": TEXT, "limit": NUMBER}, "query"),
    definition("get_time", {}),
    definition("move", {"x": NUMBER, "y": NUMBER}),
    definition("note", {"input": TEXT, "type": TEXT}),
    definition("store", {"key": TEXT, "value": NUMBER}, "value"),
    definition("plan", {"steps": {"type": "array"}, "more": {"type": "object"}}),
]
TIME: tuple[str, dict[str, Any]] = ("get_time", {})
MOVE = ("move", {"x": 1})
SEARCH = ("search", {"query": "a"})


def read(text: str, tools: Any = TOOLS) -> list[tuple[str, dict[str, Any]]]:
    response = parse(text, format="hermes", tools=tools, fallback="whole_message")
    return [(call.name, call.arguments) for call in response.tool_calls]


def repairs(text: str) -> list[str]:
    (call,) = parse(text, format="hermes", tools=TOOLS, fallback="whole_message").tool_calls
    return [repair for repair in call.repairs if repair != "fallback"]


NAME_KEYS = [
    "name", "function", "tool", "tool_name", "function_name", "action", "func", "toolName", "Tool Name", "functionName",
    "api_name", "recipient_name",
]  # fmt: skip
ARGUMENT_KEYS = [
    "arguments", "parameters", "params", "args", "input", "action_input", "tool_input", "kwargs", "Action Input",
    "toolInput", "function_args",
]  # fmt: skip
LIST_KEYS = ["tool_calls", "calls", "tools", "function_calls", "functions", "actions", "tool_uses"]


@pytest.mark.parametrize("key", NAME_KEYS)
def test_the_name_may_be_under_any_of_these_keys(key: str) -> None:
    assert read(json.dumps({key: "move", "arguments": {"x": 1}})) == [MOVE]
    assert read(json.dumps({key: {"name": "move", "arguments": {"x": 1}}})) == [MOVE]
    assert read(json.dumps({key: "remove", "arguments": {"x": 1}})) == []


@pytest.mark.parametrize("key", ARGUMENT_KEYS)
def test_the_arguments_may_be_under_any_of_these_keys(key: str) -> None:
    assert read(json.dumps({"name": "move", key: {"x": 1}})) == [MOVE]
    assert read(f"move({key.replace(' ', '_')}={{'x': 1}})") == [MOVE]
    assert read(json.dumps({"name": "get_time", key: 5})) == []


@pytest.mark.parametrize("key", ["id", "call_id", "tool_call_id", "type", "index"])
def test_a_key_that_says_nothing_about_a_call_may_be_beside_it(key: str) -> None:
    assert read(json.dumps({key: "7", "name": "move", "arguments": {"x": 1}})) == [MOVE]
    assert read(json.dumps({key: "7", "name": "move", "x": 1})) == [MOVE]
    assert read(json.dumps({key: "7", "function": {"name": "move", "arguments": {"x": 1}}})) == [MOVE]


@pytest.mark.parametrize("key", LIST_KEYS)
def test_a_list_of_calls_may_be_under_any_of_these_keys(key: str) -> None:
    calls = [{"name": "get_time", "arguments": {}}, {"name": "move", "arguments": {"x": 1}}]
    assert read(json.dumps({key: calls})) == [TIME, MOVE]
    assert read(json.dumps({key: calls, "mood": 1})) == []
    assert read(json.dumps({key: [calls]})) == read(json.dumps({key: calls[0]})) == read(json.dumps({key: []})) == []
    assert read(json.dumps({key: [calls[0], {"name": "nothing"}]})) == []


READ: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    # No arguments, and arguments in a text.
    ('{"name": "get_time", "arguments": null}', [TIME]),
    ('{"name": "get_time", "arguments": []}', [TIME]),
    ('{"name": "get_time", "arguments": "[]"}', [TIME]),
    ('{"name": "get_time"}', [TIME]),
    ('{"get_time": null}', [TIME]),
    ('{"name": "move", "arguments": "{\'x\': 1,}"}', [MOVE]),
    # A text for the only parameter that it can be meant for.
    ('{"name": "search", "input": "a"}', [SEARCH]),
    # Arguments without names.
    ("search({'query': 'a'})", [SEARCH]),
    ("get_time({'zone': 'x'})", [("get_time", {"zone": "x"})]),
    ("search('a', limit=2)", [("search", {"query": "a", "limit": 2})]),
    ("store('a', 1)", [("store", {"key": "a", "value": 1})]),
    ("search(**{'query': 'a'}, limit=2)", [("search", {"query": "a", "limit": 2})]),
    ("note('a', 'b')", [("note", {"input": "a", "type": "b"})]),
    # Keys that are parameters of the tool itself.
    ("note(input={'a': 1})", [("note", {"input": {"a": 1}})]),
    ('{"name": "note", "input": {"input": "x"}}', [("note", {"input": "x"})]),
    ('{"name": "note", "input": "x"}', [("note", {"input": "x"})]),
    ('{"name": "note", "type": "x", "id": "7"}', [("note", {"type": "x"})]),
    ('note {"input": "x", "type": "y"}', [("note", {"input": "x", "type": "y"})]),
    # Lists, texts, wrappers.
    ("print(get_time(), move(x=1))", [TIME, MOVE]),
    ("[[get_time(), move(x=1)]]", [TIME, MOVE]),
    ("'get_time()'", [TIME]),
    ("'get_time(), move(x=1)'", [TIME, MOVE]),
    ("['get_time(); move(x=1),']", [TIME, MOVE]),
    ("['get_time()\\nmove(x=1)']", [TIME, MOVE]),
    ('[{"tool_calls": [{"name": "get_time"}]}, move(x=1)]', [TIME, MOVE]),
    ('{"function": {"function": {"function": {"function": {"name": "get_time"}}}}}', [TIME]),
    ('{"get_time": {}, "Move": {"x": 1}}', [TIME, MOVE]),
    # A name, and an object behind it.
    ('move {"arguments": {"x": 1}}', [MOVE]),
    ('move {"arguments": "x"}', [("move", {"arguments": "x"})]),
    # What is no literal is its own text.
    ("{'name': move, 'arguments': {'x': 1}}", [MOVE]),
    ("search(query=x + 1)", [("search", {"query": "x + 1"})]),
    ("plan(steps=[get_time(), {'a': y}], more={'b': [z]})",
     [("plan", {"steps": ["get_time()", {"a": "y"}], "more": {"b": ["z"]}})]),
    ("move(x=y, y=x)", [("move", {"x": "y", "y": "x"})]),
    ("search(Paris)", [("search", {"query": "Paris"})]),
]  # fmt: skip
NOT_READ = [
    # Arguments that are no object.
    '{"name": "get_time", "arguments": 5}',
    '{"name": "move", "arguments": "{\'x\': 1"}',
    '{"name": "note", "arguments": "later"}',
    '{"name": "move", "input": "a"}',
    '{"search": "a"}',
    '{"get_time": "{}"}',
    "search(**x)",
    # It is not certain which value belongs to which parameter.
    "store(1)",
    "store('a', 1, 2)",
    "search('a', query='b')",
    "search(**{'query': 'a'}, query='b')",
    "store('a', 1, more=2)",
    "move(1, 2, x=3)",
    # Parameters are named and not given.
    "move(x, 1)",
    "store(key)",
    "print(move(x=x))",
    # An object with something else in it, or with two names, two arguments or none.
    '{"name": "search"}',
    '{"name": "search", "arguments": {"query": "a"}, "mood": 1}',
    '{"name": "search", "arguments": {"query": "a"}, "parameters": {}}',
    '{"name": "search", "arguments": {"query": "a"}, "query": "b"}',
    '{"name": "search", "query": "a", "mood": 1}',
    '{"name": "search", "function": "search", "arguments": {"query": "a"}}',
    '{"function": {"name": "get_time"}, "mood": 1}',
    '{"function": {"name": "get_time"}, "tool": {"name": "get_time"}}',
    '{"function": {"function": {"function": {"function": {"function": {"name": "get_time"}}}}}}',
    "{'name': search(), 'arguments': {'query': 'a'}}",
    '{"get_time": {}, "mood": {}}',
    'move {"arguments": {"x": 1}, "mood": 1}',
    "{}",
    # Lists and wrappers of something else.
    "[]",
    "[get_time(), 5]",
    "[[get_time()], [move(x=1)]]",
    "[[[get_time()]]]",
    "['get_time()', 'x']",
    "['get_time(), 5']",
    '["move(x=1", "y=2)"]',
    '["get_time"]',
    "''",
    "print(get_time(), sep='')",
    "print(**{'a': get_time()})",
    "print(get_time(), 5)",
    "print()",
]


@pytest.mark.parametrize(("text", "calls"), READ)
def test_calls_are_read(text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert read(text) == calls


@pytest.mark.parametrize("text", NOT_READ)
def test_nothing_is_read_where_something_else_may_be_meant(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_time()", []),
        ("Get_Time()", ["name_resolved"]),
        ('{"name": "move", "arguments": {"x": 1}}', []),
        ('{"name": "Move", "arguments": {"x": 1}}', ["name_resolved"]),
        ('{"move": {"x": 1}}', []),
        ('{"Move": {"x": 1}}', ["name_resolved"]),
        ('move {"x": 1}', []),
        ('functions.move {"x": 1}', ["name_resolved"]),
        ('{"name": "move", "x": 1}', ["flat_arguments"]),
        ('{"name": "search", "input": "a"}', ["positional"]),
        ('{"name": "move", "arguments": "{\'x\': 1,}"}', ["double_encoded", "single_quotes", "trailing_comma"]),
        ("move(1, 2)", ["positional"]),
        ("search({'query': 'a'})", ["positional"]),
        ("search(**{'query': 'a'})", []),
        ("search(query=x + 1)", ["source_text"]),
        ("{'name': move, 'arguments': {'x': y, 'y': z}}", ["name_resolved", "source_text"]),
        ("functions.search(x + 1)", ["name_resolved", "positional", "source_text"]),
    ],
)
def test_what_was_repaired_is_recorded_once(text: str, expected: list[str]) -> None:
    assert repairs(text) == expected


def test_a_tool_that_is_called_print_is_called() -> None:
    tools = [definition("print", {"text": TEXT}, "text"), definition("get_time", {})]
    assert read("print('a')", tools) == [("print", {"text": "a"})]
    assert read("print(get_time())", tools) == [("print", {"text": "get_time()"})]


def test_arguments_that_are_the_tool_s_own_definition_are_no_call() -> None:
    (tool,) = [tool for tool in TOOLS if tool["name"] == "move"]
    assert read(json.dumps({"name": "move", "arguments": tool["parameters"]})) == []
    assert read(json.dumps([{"name": "get_time", "arguments": {}}, tool])) == []


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_dialect_reads_its_own_example_in_its_own_name(dialect: Any) -> None:
    tools = [definition("f", {"a": NUMBER}), definition("g", {"b": TEXT})]
    response = parse(dialect.example, format="hermes", tools=tools, fallback="whole_message")
    assert response.tool_calls[0].name == "f"
    assert {call.format for call in response.tool_calls} == {dialect.name}


def test_dialects_have_names_and_the_format_that_is_nearest() -> None:
    assert {dialect.name: dialect.nearest for dialect in DIALECTS} == {
        "python_calls": "pythonic",
        "call_strings": "pythonic",
        "call_list": "pythonic",
        "call_objects": "bare_json",
        "name_as_key": "bare_json",
        "name_then_json": "bare_json",
    }
    assert {dialect.nearest for dialect in DIALECTS} <= {format.name for format in FORMATS}


def test_no_dialect_reads_a_value_that_is_no_expression_of_a_call() -> None:
    tools = KnownTools({})
    for value in (None, 5, "", "x", [], {}, NamedObject("f", {})):
        assert read_expression(value, tools) == ("", None)


def test_a_text_is_meant_for_the_only_parameter_that_must_be_or_can_be_given() -> None:
    tools = KnownTools(definitions([*TOOLS, definition("say", {"text": TEXT}), definition("count", {"up_to": NUMBER})]))
    arguments = {}
    for name in tools.definitions:
        for call in read_expression({"action": name, "action_input": "now"}, tools)[1] or ():
            arguments[call.name] = call.arguments
    assert (arguments["search"], arguments["say"]) == ({"query": "now"}, {"text": "now"})
    assert not arguments.keys() & {"count", "move", "get_time"}


@pytest.mark.parametrize("key", ["tool_call", "function_call", "functionCall", "call", "toolUse"])
def test_a_call_may_be_the_only_member_of_an_object(key: str) -> None:
    assert read(json.dumps({key: {"name": "search", "arguments": {"query": "a"}}})) == [SEARCH]
    assert read(json.dumps({key: {"name": "search", "arguments": {"query": "a"}}, "size": 1})) == []


@pytest.mark.parametrize("key", ["thought", "reasoning", "Explanation"])
def test_text_beside_a_call_is_reported_and_may_be_against_it(key: str) -> None:
    def response(comment: Any, **members: Any) -> Any:
        text = json.dumps({key: comment, **members})
        return parse(text, format="hermes", tools=TOOLS, fallback="whole_message")

    for members in (
        {"tool": "search", "args": {"query": "a"}},
        {"tool": "search", "query": "a"},
        {"tool_call": {"name": "search", "arguments": {"query": "a"}}},
    ):
        answer = response("I look it up.", **members)
        assert [(call.name, call.arguments) for call in answer.tool_calls] == [SEARCH]
        (problem,) = answer.problems
        assert (problem.kind, problem.position) == ("unread_members", 0)
        assert repr(key) in problem.message
        assert response("I cannot do that.", **members).tool_calls == ()
        assert response(["I look it up."], **members).tool_calls == ()
    assert response("It is late.", tool="get_time").tool_calls == ()
    assert response("It is late.", tool="get_time", args={}).tool_calls != ()


@pytest.mark.parametrize(
    "text",
    [
        *("trio(1, 2, c=3)", "trio(**{'a': 1}, a=3, b=2)", "trio({'a': 1}, a=3)", "print(print(trio(a=1, b=2)))"),
        *("{'tool': 'trio', 'a': 1, 'args': {'b': 2}}", "{'trio': '{\"a\": 1, \"b\": 2}'}"),
        "{'call': {'tool': 'trio', 'args': {'a': 1}}, 'tool_call': {'tool': 'trio', 'args': {'a': 2}}}",
    ],
)
def test_what_could_mean_several_calls_is_not_one(text: str) -> None:
    trio = {"name": "trio", "parameters": {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["a", "b"]}}
    read_whole = parse(text, tools=[trio])
    assert (read_whole.tool_calls, read_whole.content) == ((), text)
