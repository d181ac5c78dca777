"""Calls that are written as Python: in brackets or without, with arguments by name or by position, none evaluated."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.laws import check_chunking

from toolwire.messages import ParsedResponse
from toolwire.wire.syntax import JsonCall, Lit, PyCalls, WireFormat

TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}},
    {"name": "g"},
]
ONE, G = ("f", {"a": 1}), ("g", {})


def read(text: str, node: PyCalls, **options: Any) -> ParsedResponse:
    """Return the reading of calls between `<c>` and `</c>`, in a format that writes them as this node."""
    wire = WireFormat("own", blocks=((Lit("<c>"), node, Lit("</c>", need="forgiven")),))
    options = {"format": wire, "tools": TOOLS, "fallback": "none", **options}
    return check_chunking(f"<c>{text}", **options).response


def calls(response: ParsedResponse) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and arguments of complete calls."""
    return [(call.name, call.arguments) for call in response.tool_calls]


BRACKETS, BARE, LINES = PyCalls(), PyCalls(bare=True), PyCalls(open="", close="", method="call")


@pytest.mark.parametrize(
    ("node", "text", "expected"),
    [
        *((node, "[f(a=1)]", [ONE]) for node in (BRACKETS, BARE)),
        *((node, "[f(a=1), g()]", [ONE, G]) for node in (BRACKETS, BARE)),
        *((node, "[f(a=1), g(), ]", [ONE, G]) for node in (BRACKETS, BARE)),
        *((node, f"f(a=1){between}g()", [ONE, G]) for node in (BARE, LINES) for between in ("\n", ", ", ";", " ")),
        *((node, "f(a=1),", [ONE]) for node in (BARE, LINES)),
        *((node, "", []) for node in (BARE, LINES)),
        (BRACKETS, "[]", []),
        (LINES, "f.call(a=1)\ng.call()", [ONE, G]),
        (PyCalls(json=JsonCall()), '{"name": "g"}', [G]),
        (PyCalls(json=JsonCall()), '[{"name": "g"}, {"name": "g"}]', [G, G]),
        (PyCalls(json=JsonCall()), "[f(a=1), g()]", [ONE, G]),
    ],
)
def test_calls_are_read_as_their_node_describes_them(
    node: PyCalls, text: str, expected: list[tuple[str, dict[str, Any]]]
) -> None:
    response = read(f"{text}</c> Done.", node)
    assert (calls(response), response.content.strip(), response.problems) == (expected, "Done.", ())
    assert "".join(call.raw for call in response.tool_calls) == (f"<c>{text}</c>" if expected else "")
    assert not any(call.repairs for call in response.tool_calls)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (BRACKETS, "f(a=1)"),
        (BRACKETS, "[f a=1]"),
        (BRACKETS, "[, f(a=1)]"),
        (BRACKETS, "[f(x)]"),
        (BRACKETS, "[h(1)]"),
        (BRACKETS, "[print(f(a=1))]"),
        (BRACKETS, "[f(b='x' + 'y')]"),
        (BRACKETS, '[{"name": "g"}]'),
        (BARE, "x"),
        (LINES, "[f(a=1)]"),
    ],
)
def test_what_is_no_call_in_python_is_a_problem(node: PyCalls, text: str) -> None:
    response = read(f"{text}</c>", node)
    assert (response.tool_calls, response.content) == ((), f"<c>{text}</c>")
    assert [problem.kind for problem in response.problems] == ["malformed"]


@pytest.mark.parametrize(
    ("text", "arguments", "repairs"),
    [
        ("1, 'x'", {"a": 1, "b": "x"}, ("positional",)),
        ('{"a": 1}', {"a": 1}, ("positional",)),
        ("a='1'", {"a": 1}, ("coerced",)),
        ("a=1", {"a": 1}, ()),
    ],
)
def test_arguments_by_position_are_those_that_only_one_order_fits(
    text: str, arguments: dict[str, Any], repairs: tuple[str, ...]
) -> None:
    (call,) = read(f"[f({text})]</c>", BRACKETS).tool_calls
    assert (call.arguments, call.repairs) == (arguments, repairs)
    assert len(read(f"[f({text})]</c>", BRACKETS, repair="none").tool_calls) == (not repairs)


@pytest.mark.parametrize("text", ["1", "-1", "[1]", '"5"', "1, 2, 3", "1, x", "1 + 2", "1, 'x' + 'y'", "1, f(2)"])
def test_arguments_by_position_that_are_not_certain_make_no_call(text: str) -> None:
    response = read(f"[f({text})]</c>", BRACKETS)
    assert (response.tool_calls, response.incomplete, response.content) == ((), (), f"<c>[f({text})]</c>")
    assert "it is not certain which parameters the arguments are for" in response.problems[0].message


def test_a_call_is_announced_at_its_name_only_if_it_cannot_be_a_function_around_a_call() -> None:
    for tools, name, announced in ((TOOLS, "f", True), (TOOLS, "print", False), ([], "print", True)):
        response = read(f"[{name}(x", BRACKETS, tools=tools)
        assert [call.name for call in response.incomplete] == [name]
        response = read(f"[{name}(x)]</c>", BRACKETS, tools=tools)
        assert [call.name for call in response.incomplete] == [name] * announced


@pytest.mark.parametrize("rest", ["", " x</c>", " g()]</c>", "; g()]</c>", "</c>"])
def test_a_call_in_a_list_without_its_bracket_is_read(rest: str) -> None:
    response = read(f"[f(a=1){rest}", BRACKETS)
    assert [(*call, *made.repairs) for call, made in zip(calls(response), response.tool_calls, strict=True)] == [
        (*ONE, "missing_close")
    ]
    assert response.content == ("" if rest == "</c>" else rest)


@pytest.mark.parametrize("text", ["[", "[f", "[f(", "[f(a=1", "[f(1", "f"])
def test_a_call_that_is_cut_is_not_complete(text: str) -> None:
    response = read(text, BARE)
    assert response.tool_calls == ()
    assert [problem.kind for problem in response.problems] == ["truncated"]
    assert [call.name for call in response.incomplete] == ["f"] * ("(" in text)


@pytest.mark.parametrize(
    ("text", "expected", "content"),
    [
        ("[f(a=1)]", [ONE], ""),
        ("[f(a=1), g()]", [ONE, G], ""),
        ("[f(a=1), g(), ]", [ONE, G], ""),
        ("[f(a=1),,]", [], "[f(a=1),,]"),
        ("[f(a=1)], [g()]", [ONE, G], ""),
        ("[f(a=1)],[g()],[g()] x", [ONE, G, G], " x"),
        ("[f(a=1)], g", [ONE], ", g"),
        ("[f(a=1)],", [ONE], ","),
        ("[f(a=1)], [x](y)", [ONE], ", [x](y)"),
        ("[f(a=1)], [g()", [ONE], ", [g()"),
        *((text, [], text) for text in ("[f(a=1), h()]", "[f(a=1), g()", "[f(a=1) g()]", "[f(1)]", "[, f(a=1)]", "[]")),
    ],
)
def test_without_markers_a_list_is_read_as_a_whole(
    text: str, expected: list[tuple[str, dict[str, Any]]], content: str
) -> None:
    response = check_chunking(text, format="pythonic", tools=TOOLS).response
    assert (calls(response), response.content, response.problems) == (expected, content, ())
    assert "".join(call.raw for call in response.tool_calls) == text.removesuffix(content)
