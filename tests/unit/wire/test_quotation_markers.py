"""Openers of text that only shows calls, as a format's description tells them."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.wire.quotation_markers import quotation_markers, quoting_tags
from toolwire.wire.syntax import (
    Args,
    Call,
    Elements,
    JsonCall,
    Key,
    KeywordArgs,
    Lit,
    Many,
    Name,
    Node,
    OneOf,
    Params,
    PyCalls,
    TokenArgs,
    ToolBody,
    ToolTag,
    Value,
    WireFormat,
)

OPEN, CLOSE = Lit("<a>", also=("<A>",)), Lit("</a>", also=("</A>",))
CDATA = {"<![CDATA[": {"]]>"}}
BETWEEN = {"<a>": {"</a>", "</A>"}, "<A>": {"</a>", "</A>"}}


def wire(*nodes: Node, **options: Any) -> WireFormat:
    """Return a format with one block of these nodes, in which results have no tags unless they are given."""
    return WireFormat("own", blocks=((Lit("<c>"), *nodes, Lit("</c>")),), **{"result": ("", ""), **options})


def params(value: Value) -> Node:
    """Return parameters between `<p>` and the closing marker of the value."""
    return Params((Lit("<p>", also=("<q>",)), Key(), Lit(":"), value))


@pytest.mark.parametrize(
    ("node", "brackets"), [(JsonCall(), "{"), (PyCalls(), "{("), (Call((Name(), KeywordArgs())), "{(")]
)
def test_fences_and_strings_in_brackets_quote_unless_the_format_leaves_them(node: Node, brackets: str) -> None:
    fences = dict.fromkeys(("```", "~~~", ">"), frozenset[str]())
    assert quotation_markers(wire(node), frozenset(), frozenset()) == fences | dict.fromkeys(brackets, frozenset())
    other = dict.fromkeys(brackets.replace("{", ""), frozenset[str]())
    assert quotation_markers(wire(node), frozenset("{"), frozenset("{")) == fences | other
    assert quotation_markers(wire(node, fences=False), frozenset(), frozenset()) == {}


@pytest.mark.parametrize(
    ("node", "quotes"),
    [
        (params(Value("</p>", cdata=True)), True),
        (params(Value("</p>")), False),
        (Elements(), True),
        (Elements(literal=True), False),
        (Elements(token="#"), False),
        (Args(element="arguments"), True),
        (Args(), False),
        (Call((ToolTag(), ToolBody())), True),
        (Many((OneOf(((JsonCall(),), (Call((Elements(),)),))),)), True),
        (JsonCall(), False),
    ],
)
def test_a_section_of_literal_text_quotes_where_values_are_written_so(node: Node, quotes: bool) -> None:
    found = quotation_markers(wire(node, fences=False), frozenset(), frozenset())
    assert {opener: closers for opener, closers in found.items() if opener in CDATA} == (CDATA if quotes else {})


@pytest.mark.parametrize(
    ("nodes", "tags"),
    [
        ((params(Value("</p>")),), {"<p>": {"</p>"}, "<q>": {"</p>"}}),
        ((Params((Lit("<k>"), Key(), Lit("</k>"), Lit("<v>"), Value("</v>"))),), {"<k>": {"</v>"}, "<v>": {"</v>"}}),
        ((Call((Name(), TokenArgs("<|q|>"))),), {"<|q|>": {"<|q|>"}}),
        ((Elements(token="#"),), {"#<": {"#</"}}),
        ((OPEN, Elements(), CLOSE), BETWEEN),
        ((OPEN, Args(element="a"), CLOSE), BETWEEN),
        ((Lit("<a/>"), Args(), CLOSE), {}),
        ((OPEN, Args(), Name()), {}),
        ((Name(), Args(), CLOSE), {}),
        ((OPEN, JsonCall(), CLOSE), {}),
        ((Lit(":"), Value("</v>")), {"<c>": {"</v>"}}),
        ((Many((OPEN, Args(), CLOSE)), Lit("<z>"), Args(), Lit("</z>")), {**BETWEEN, "<z>": {"</z>"}}),
        ((Many((OPEN, Args(), CLOSE)), Lit("<a>"), Args(), Lit("</z>")), {**BETWEEN, "<a>": {"</a>", "</A>", "</z>"}}),
    ],
)
def test_tags_of_values_and_arguments_quote(nodes: tuple[Node, ...], tags: dict[str, set[str]]) -> None:
    assert quoting_tags(wire(*nodes)) == tags
    opener = next(iter(tags), "<x>")
    rest = quotation_markers(wire(*nodes, fences=False), frozenset({opener}), frozenset())
    assert rest.keys() - CDATA.keys() == tags.keys() - {opener}


@pytest.mark.parametrize(
    ("result", "tags"),
    [
        (("[FUNCTION_RESULT]", "[/FUNCTION_RESULT]"), {"[FUNCTION_RESULT]": {"[/FUNCTION_RESULT]"}}),
        # Elements and tokens that begin with "<" quote in every format.
        (("<|tool_response|>\n", "\n<|/tool_response|>"), {}),
        (("<tool_response>\n", "\n</tool_response>"), {}),
        (('<tool_output name="{name}">', "</tool_output>"), {}),
        (("<result>", "</result>"), {}),
        (("<tool_response>", "\n"), {}),
        (("", "</tool_response>"), {}),
    ],
)
def test_tags_around_results_of_tools_quote(result: tuple[str, str], tags: dict[str, set[str]]) -> None:
    assert quoting_tags(wire(JsonCall(), result=result)) == tags
