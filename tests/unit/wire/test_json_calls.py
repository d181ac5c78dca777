"""Calls that are JSON objects: members in any order, members that are not a call's, and objects that are broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.property.laws import check_chunking

from toolwire import StreamParser, ToolCall, collect, formats, get_format, parse, render_calls
from toolwire.wire.syntax import JsonCall, Lit, WireFormat

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]

_MORE = "\n" + "More text. " * 40


def read(members: str) -> tuple[list[Any], list[str], list[str]]:
    """Return the arguments and repairs of complete calls, the names of incomplete ones, and the kinds of problems.

    They are the same in pieces, and behind them in a longer text, which is read in one go where it can be.
    """
    text = "<tool_call>{" + members + "}</tool_call>"
    response = check_chunking(text, format="hermes", tools=TOOLS).response
    longer = check_chunking(f"{text}{_MORE}", format="hermes", tools=TOOLS).response
    for short, long in zip(response.tool_calls, longer.tool_calls, strict=True):
        assert (long.arguments, long.repairs, long.raw) == (short.arguments, short.repairs, short.raw)
    assert [problem.kind for problem in longer.problems] == [problem.kind for problem in response.problems]
    assert {call.name for call in response.tool_calls} <= {"f"}
    calls: list[Any] = [(call.arguments, *call.repairs) for call in response.tool_calls]
    return calls, [call.name for call in response.incomplete], [problem.kind for problem in response.problems]


@pytest.mark.parametrize(
    ("members", "calls"),
    [
        ('"name": "f", "arguments": {"a": 1}', [({"a": 1},)]),
        ('"arguments": {"a": 1}, "name": "f"', [({"a": 1},)]),
        ('"name": "f", "arguments": "{\\"a\\": 1}"', [({"a": 1},)]),
        ('"name": "f", "arguments": ""', [({},)]),
        ('"name": "f", "arguments": null', [({},)]),
        ('"name": "f"', [({},)]),
        ('"name": "f", "arguments": {}, "id": "c9"', [({},)]),
        ('"name": "f", "arguments": {"a": 1},', [({"a": 1}, "trailing_comma")]),
        ("'name': 'f', 'arguments': {'a': 1}", [({"a": 1}, "single_quotes")]),
        ('"name": \'f\', "arguments": {}', [({}, "single_quotes")]),
        ('{"name": "f", "arguments": {}}', [({}, "doubled_braces")]),
        *(
            (f'"type": "{kind}", "name": "f", "arguments": {{"a": 1}}', [({"a": 1},)])
            for kind in ("function", "function_call", "tool_call", "tool_use")
        ),
    ],
)
def test_an_object_with_a_name_is_a_call(members: str, calls: list[Any]) -> None:
    assert read(members) == (calls, [], [])


@pytest.mark.parametrize("kind", ['"other"', '""', "5", "null", "{}"])
def test_a_member_that_says_something_else_is_reported(kind: str) -> None:
    assert read(f'"type": {kind}, "name": "f", "arguments": {{}}') == ([({},)], [], ["unread_members"])
    assert read(f'"name": "f", "other": {kind}, "arguments": {{}}') == ([({},)], [], ["unread_members"])
    assert read(f'"other": {kind}, "name": "f", "arguments": {{}}') == ([({},)], [], ["unread_members"])


@pytest.mark.parametrize(
    "members",
    [
        '"name": 5, "arguments": {"a": 1}',
        '"name": "", "arguments": {}',
        '"name": null, "arguments": {}',
        '"name": ["f"], "arguments": {}',
        '"arguments": {"a": 1}',
        "",
    ],
)
def test_an_object_without_a_name_is_not_a_call(members: str) -> None:
    assert read(members) == ([], [], ["missing_name"])


@pytest.mark.parametrize(
    ("members", "incomplete"),
    [
        ('"name": "f", "arguments": [1]', ["f"]),
        ('"name": "f", "arguments": "x"', ["f"]),
        ('"name": "f",, "arguments": {}', ["f"]),
        ('"name": "f" "arguments": {}', ["f"]),
        ('"name": "f", "name": "g", "arguments": {}', ["f"]),
        ('"name": "f", "arguments": {}, "arguments": {}', ["f"]),
        (', "name": "f"', []),
        (' {"name": "f", "arguments": {}} ', []),
    ],
)
def test_a_broken_object_is_a_problem(members: str, incomplete: list[str]) -> None:
    assert read(members) == ([], incomplete, ["malformed"])


def test_arguments_in_a_string_that_is_not_json_are_named_in_the_problem() -> None:
    (problem,) = parse('<tool_call>{"name": "f", "arguments": "{oops"}</tool_call>', format="hermes").problems
    assert "the arguments are a string that is not JSON" in problem.message


_CALL = '{"name": "f", "arguments": {"a": 1}}'


@pytest.mark.parametrize("text", ["<tool_call>[", "<tool_call>[ 5]</tool_call>", "<tool_call>[</tool_call>"])
def test_a_list_without_a_call_is_a_problem(text: str) -> None:
    response = check_chunking(text, format="hermes", tools=TOOLS).response
    assert (response.tool_calls, response.content) == ((), text)
    assert len(response.problems) == 1


@pytest.mark.parametrize("end", ["", "</tool_call>", " and then"])
def test_a_list_that_is_not_closed_is_a_repair(end: str) -> None:
    response = check_chunking(f"<tool_call>[{_CALL}{end}", format="hermes", tools=TOOLS).response
    assert [(call.arguments, call.repairs) for call in response.tool_calls] == [({"a": 1}, ("missing_close",))]


@pytest.mark.parametrize("rest", ["{}]</tool_call>", " 5]</tool_call>", '{"name": "f"}]</tool_call>'])
@pytest.mark.parametrize("comma", ["", ", "])
def test_a_list_that_is_broken_behind_a_call_keeps_the_call(rest: str, comma: str) -> None:
    rest = comma * 2 + rest
    response = check_chunking(f"<tool_call>[{_CALL}{rest}", format="hermes", tools=TOOLS).response
    assert [call.arguments for call in response.tool_calls] == [{"a": 1}]
    assert response.content.strip() == rest.removeprefix(",").strip()


@pytest.mark.parametrize("members", ['"name": "f"', '"arguments": {"a": 2}', '"name": "f", "arguments": {"a": 2}'])
def test_members_of_a_call_beside_a_list_of_calls_start_no_call(members: str) -> None:
    text = f'{{"tool_calls": [{_CALL}], {members}}}'
    response = check_chunking(text, format="openai_json", tools=TOOLS).response
    assert ([call.arguments for call in response.tool_calls], response.incomplete) == ([{"a": 1}], ())
    assert response.content == ""
    assert [(problem.kind, problem.raw) for problem in response.problems] == [("unread_members", text)]


@pytest.mark.parametrize("key", ["tool_calls", "calls", "functionCalls"])
@pytest.mark.parametrize("format", ["auto", "hermes", "qwen3_coder"])
def test_a_name_with_a_list_of_calls_beside_it_is_no_call(key: str, format: str) -> None:
    calls = f'"{key}": [{_CALL}]'
    for members in (f'{calls}, "name": "f"', f'"name": "f", {calls}', f'"name": "f", "arguments": {{}}, {calls}'):
        text = f"<tool_call>{{{members}}}</tool_call>"
        response = check_chunking(text, format=format, tools=TOOLS).response
        assert (response.tool_calls, response.content) == ((), text)
        assert [problem.kind for problem in response.problems] == ["malformed"]


@pytest.mark.parametrize("value", ['["a"]', "[]", "{}", '"a"'])
def test_other_members_under_the_key_of_a_list_of_calls_are_only_reported(value: str) -> None:
    text = f'<tool_call>{{"name": "f", "arguments": {{"a": 1}}, "functions": {value}}}</tool_call>'
    response = check_chunking(text, format="hermes", tools=TOOLS).response
    assert [call.arguments for call in response.tool_calls] == [{"a": 1}]
    assert [problem.kind for problem in response.problems] == ["unread_members"]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"arguments": {"a": 1}, "name": "f"}', [{"a": 1}]),
        ('{"arguments": {"type": "object", "properties": {"a": {"type": "integer"}}}, "name": "f"}', []),
        (f'{{"tool_calls": [{_CALL}]}}', [{"a": 1}]),
        (f'{{"tool_calls": [[{_CALL}]]}}', []),
        (f'{{"tool_calls": {_CALL}}}', []),
        (f'{{"name": "f", "tool_calls": [{_CALL}]}}', []),
    ],
)
def test_only_the_object_of_a_call_is_read_without_markers(text: str, calls: list[Any]) -> None:
    response = check_chunking(text, format="openai_json", tools=TOOLS).response
    assert [call.arguments for call in response.tool_calls] == calls
    assert response.content == ("" if calls else text)


@pytest.mark.parametrize("more", ["", _MORE])
@pytest.mark.parametrize(
    ("format", "text", "count"),
    [
        ("hermes", f"<tool_call>{_CALL}\n{_CALL}{_CALL}</tool_call>", 3),
        ("hermes", f"<tool_call>{_CALL}, {_CALL}</tool_call>", 1),
        ("hermes", f"<tool_call>[{_CALL}]{_CALL}</tool_call>", 1),
        ("hermes", f"<tool_call>[{_CALL}, {_CALL}]</tool_call>", 2),
        ("bare_json", f"{_CALL}{_CALL}", 2),
        ("bare_json", f"{_CALL}; [{_CALL}], {_CALL}", 3),
        ("bare_json", f"{_CALL}; 5", 1),
        ("openai_json", f"{_CALL}; {_CALL}", 1),
    ],
)
def test_calls_in_a_row_are_read_with_the_separators_of_their_format(
    format: str, text: str, count: int, more: str
) -> None:
    response = check_chunking(text + more, format=format, tools=TOOLS, fallback="none").response
    assert [call.arguments for call in response.tool_calls] == [{"a": 1}] * count


def test_a_member_beside_a_list_of_calls_is_no_argument_of_them() -> None:
    text = f'{{"a": 5, "tool_calls": [{_CALL}]}}'
    response = check_chunking(text, format="openai_json", tools=TOOLS).response
    assert [(call.arguments, call.repairs) for call in response.tool_calls] == [({"a": 1}, ())]
    assert [problem.kind for problem in response.problems] == ["unread_members"]


@pytest.mark.parametrize("key", ["type", "properties", "x"])
def test_a_parameter_named_like_a_member_of_a_schema_does_not_make_a_definition_a_call(key: str) -> None:
    parameters = {"type": "object", "properties": {key: {"type": "object"}}}
    tools = [{"name": "f", "parameters": parameters}]
    text = json.dumps({"name": "f", "parameters": parameters})
    response = check_chunking(text, format="bare_json", tools=tools, fallback="none").response
    assert (response.tool_calls, response.incomplete, response.content) == ((), (), text)
    call = json.dumps({"name": "f", "parameters": {key: {"type": "object"}}})
    (made,) = check_chunking(call, format="bare_json", tools=tools, fallback="none").response.tool_calls
    assert made.arguments == {key: {"type": "object"}}


def test_arguments_that_begin_with_a_parameter_are_no_definition() -> None:
    text = '{"name": "f", "arguments": {"a": 1, "type": "object"}}'
    (call,) = check_chunking(text, format="bare_json", tools=TOOLS, fallback="none").response.tool_calls
    assert call.arguments == {"a": 1, "type": "object"}
    text = '{"name": "f", "arguments": {"type": "object", "a": 1}}'
    assert check_chunking(text, format="bare_json", tools=TOOLS, fallback="none").response.tool_calls == ()


@pytest.mark.parametrize("more", ["", _MORE])
def test_members_around_a_list_of_calls_between_markers_are_not_their_arguments(more: str) -> None:
    wire = WireFormat("own", blocks=((Lit("<c>"), JsonCall(lists=("calls",)), Lit("</c>")),))
    text = f'<c>{{"a": 5, "calls": [{_CALL}, {{"name": "f"}}]}}</c>{more}'
    response = check_chunking(text, format=wire, tools=TOOLS).response
    assert [call.arguments for call in response.tool_calls] == [{"a": 1}, {}]
    assert [problem.kind for problem in response.problems] == ["unread_members"]


@pytest.mark.parametrize("more", ["", _MORE])
@pytest.mark.parametrize(
    ("body", "repairs"),
    [
        (_CALL, ()),
        (f"{_CALL}}}", ("extra_close",)),
        (f"{_CALL}]", ("extra_close",)),
        (f"[{_CALL}}}]", ("extra_close",)),
    ],
)
def test_a_bracket_too_many_is_a_repair(body: str, repairs: tuple[str, ...], more: str) -> None:
    response = check_chunking(f"<tool_call>{body}</tool_call>{more}", format="hermes", tools=TOOLS).response
    assert [(call.arguments, call.repairs) for call in response.tool_calls] == [({"a": 1}, repairs)]
    assert response.content == more


@pytest.mark.parametrize("name", ["g<parameter>h", "...", "g(a=1)", "g,"])
@pytest.mark.parametrize("format", ["hermes", "longcat", "minimax_json", "auto"])
def test_what_is_not_a_name_is_refused_at_its_place_however_the_text_arrives(name: str, format: str) -> None:
    text = '<tool_call>{"name": "NAME", "arguments": {"a": 1}}</tool_call>'.replace("NAME", name)
    if format in ("longcat", "minimax_json"):
        opener = {"longcat": "longcat_tool_call", "minimax_json": "tool_calls"}[format]
        text = text.replace("tool_call>", f"{opener}>")
    response = check_chunking(text, format=format, tools=TOOLS, fallback="none").response
    assert response.tool_calls == ()
    assert [problem.kind for problem in response.problems] == ["malformed"]


_RENDERED = {
    name: render_calls([ToolCall("f", {"a": 1})], format=name, tools=TOOLS)
    for name in formats()
    if get_format(name).blocks
}
_KEYS = [
    (format, key)
    for format, text in _RENDERED.items()
    for key in ("arguments", "parameters", "args", "name", "tool_name")
    if f'"{key}"' in text
]


@pytest.mark.parametrize(("format", "key"), _KEYS)
def test_an_object_with_a_misspelled_key_is_a_call_in_no_format(format: str, key: str) -> None:
    wrong = _RENDERED[format].replace(f'"{key}"', f'"{key[:3]}x{key[3:]}"')
    for written in (wrong, wrong + _MORE):  # all of an object is read in one go if enough text follows
        parser = StreamParser(format=format, tools=TOOLS)
        in_pieces = collect([*(event for character in written for event in parser.feed(character)), *parser.finish()])
        assert parse(written, format=format, tools=TOOLS).tool_calls == in_pieces.tool_calls == ()
