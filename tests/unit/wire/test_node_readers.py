"""Readers of nodes: each kind has one, and small formats of one's own show what markers may be missing."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.property.laws import check_chunking

import toolwire
from toolwire.messages import ParsedResponse
from toolwire.wire.node_readers import READERS
from toolwire.wire.syntax import AnyOrder, Args, Call, Lit, Many, Name, Node, Value, WireFormat

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {}}}]


def test_every_kind_of_node_has_a_reader() -> None:
    assert set(READERS) == set(get_args(Node)) - {Value}


def read(text: str, *nodes: Node) -> ParsedResponse:
    """Return the reading of a text in a format of one block with these nodes between `<c>` and `</c>`."""
    wire = WireFormat("own", blocks=((Lit("<c>"), *nodes, Lit("</c>", need="forgiven")),))
    return check_chunking(text, format=wire, tools=TOOLS).response


def names(response: ParsedResponse) -> list[tuple[str, ...]]:
    """Return the names of complete calls, each with its repairs."""
    return [(call.name, *call.repairs) for call in response.tool_calls]


@pytest.mark.parametrize("need", ["required", "forgiven"])
def test_the_closer_of_a_call_may_be_missing_where_the_end_of_its_wrapper_follows(need: str) -> None:
    call = Call((Name(), Lit("|", need=need)))  # type: ignore[arg-type]
    assert names(read("<c>f|</c>", call)) == [("f",)]
    assert names(read("<c>f</c>", call)) == [("f", "missing_close")]
    assert names(read("<c>f|", call)) == [("f", "missing_close")]
    response = read("<c>f x</c>", call)
    assert ([problem.kind for problem in response.problems], response.content) == (["malformed"], "<c>f x</c>")
    for cut in ("<c>f ", "<c>f </"):
        response = read(cut, call)
        assert ([call.name for call in response.incomplete], names(response)) == (["f"], [])
        assert [problem.kind for problem in response.problems] == ["truncated"]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("<c>f</c>", ["f"]),
        ("<c>g</c>", []),
        ("<c>g{}</c>", ["g"]),
        ("<c>f{}</c>", ["f"]),
        ("<c>f<c>f|</c>", ["f", "f"]),
    ],
)
def test_without_its_closer_a_call_needs_arguments_or_the_name_of_a_tool(text: str, calls: list[str]) -> None:
    call = Call((Name(), *((Args(),) if "{" in text else ()), Lit("|")))
    response = read(text, call)
    assert [call.name for call in response.tool_calls] == calls
    assert [problem.kind for problem in response.problems] == ([] if calls else ["malformed"])


def test_groups_in_any_order_are_read_once_and_may_be_missing() -> None:
    groups = AnyOrder(((Lit("<n>"), Name(), Lit("</n>")), (Lit("<a>"), Args(), Lit("</a>"))))
    call = Call((groups, Lit(";")))
    for text in ("<c><n>f</n><a>{}</a>;</c>", "<c><a>{}</a><n>f</n>;</c>", "<c><n>f</n>;</c>"):
        assert names(read(text, call)) == [("f",)]
    for text, kind, reason in (
        ("<c>;</c>", "missing_name", "the name of the tool is missing"),
        ("<c><a>{}</a>;</c>", "missing_name", "the name of the tool is missing"),
        ("<c>x</c>", "malformed", "<a> or <n> should begin here"),
        ("<c><n>f</n>x;</c>", "malformed", "; is missing"),
    ):
        response = read(text, call)
        assert [problem.kind for problem in response.problems] == [kind]
        assert reason in response.problems[0].message
        assert (response.tool_calls, response.content) == ((), text)
    response = read("<c><n>f</n><n>g</n>;</c>", call)
    assert (names(response), response.content) == ([("f", "missing_close")], "<n>g</n>;</c>")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_calls_in_a_row_are_read_up_to_the_end_of_their_wrapper(count: int) -> None:
    calls = Many((Call((Lit("["), Name(), Lit("]"))),))
    assert names(read(f"<c>{'[f]' * count}</c>", calls)) == [("f",)] * count
    response = read(f"<c>{'[f]' * count} x", calls)
    assert names(response) == [("f",)] * (count - 1) + [("f", "missing_close")]
    assert response.content.strip() == "x"


def test_a_wrapper_without_calls_is_markup() -> None:
    calls = Many((Call((Lit("["), Name(), Lit("]"))),))
    assert read("a <c> </c>b", calls).content == "a b"
    response = read("<c>x</c>", calls)
    assert ([problem.kind for problem in response.problems], response.content) == (["malformed"], "<c>x</c>")


@pytest.mark.parametrize("opener", ["```x", "~~~x"])
@pytest.mark.parametrize(("end", "calls"), [("```", 1), ("", 2)])
def test_a_fence_behind_a_call_closes_the_one_that_its_format_opened(opener: str, end: str, calls: int) -> None:
    mark = opener[:3]
    call = f"{opener}[f]{mark if end else ''}"
    block = (Lit(opener), Call((Lit("["), Name(), Lit("]"))), Lit(mark, need="forgiven"))
    text = f"{call} Done.\n{mark}\n{call}"
    response = check_chunking(text, format=WireFormat("own", blocks=(block,)), tools=TOOLS).response
    assert names(response) == [("f",) if end else ("f", "missing_close")] * calls


@pytest.mark.parametrize("attributes", ['name="f" id="c9"', "id='c9' name='f'"])
def test_a_tag_may_have_the_id_of_its_call(attributes: str) -> None:
    text = f"<function_calls><invoke {attributes}></invoke></function_calls>"
    response = check_chunking(text, format="anthropic_xml", tools=TOOLS).response
    assert [(call.name, call.id) for call in response.tool_calls] == [("f", "c9")]
    assert response.problems == ()


def test_the_name_of_a_parameter_may_be_in_quotes() -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "s": {}}}}
    text = '<function="f"><parameter="a">1</parameter><parameter=\'s\'>b</parameter><parameter="c">d</parameter>'
    (call,) = toolwire.parse(f"{text}</function>", format="qwen3_coder", tools=[tool]).tool_calls
    assert (call.name, call.arguments) == ("f", {"a": 1, "s": "b", '"c"': "d"})
