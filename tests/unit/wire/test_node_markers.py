"""Which markers each kind of node begins with, and whether it may be empty."""

from __future__ import annotations

import pytest

from toolwire.wire.node_markers import ANY_TAG, TEXT, first, first_of, leaves, sequences
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Header,
    Ident,
    JsonCall,
    Key,
    KeywordArgs,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    OneOf,
    Params,
    PyCalls,
    Server,
    Tag,
    TokenArgs,
    ToolBody,
    ToolTag,
    Value,
)

A, B, MAYBE = Lit("<a>", also=("<A>",)), Lit("<b>"), Lit("<m>", need="optional")
INNER = Call((B, Name()))


@pytest.mark.parametrize(
    ("node", "markers", "may_be_empty"),
    [
        (A, {"<a>", "<A>"}, False),
        (MAYBE, {"<m>"}, True),
        (Lit("</a>", need="forgiven"), {"</a>"}, True),
        (Tag("invoke", "name"), {"<invoke ", "<invoke\n", "<invoke\t", "<invoke\r"}, False),
        (Tag("x", "key", open="[", close="]"), {"[x ", "[x\n", "[x\t", "[x\r"}, False),
        *((node, {TEXT}, False) for node in (Name(), Header(), Ident(), Server(), Key(), Mark(), Value("</v>"))),
        (ToolBody(), {TEXT}, False),
        (ToolTag(), {ANY_TAG}, False),
        (Params((A, Value("</a>"))), {"<a>", "<A>"}, True),
        (Elements(token="#"), {"#<"}, True),
        (Args(), {"{", '"', "null"}, False),
        (Args(element="arguments"), {TEXT}, False),
        (Args(lone=True, until="</a>"), {TEXT}, False),
        (JsonCall(), {"{", "["}, False),
        (TokenArgs("#"), {"{"}, False),
        (KeywordArgs(), {"("}, False),
        (PyCalls(), {"["}, False),
        (PyCalls(open="", close=""), {TEXT}, False),
        (PyCalls(bare=True, json=JsonCall()), {"[", TEXT, "{"}, False),
        (Many((MAYBE, A)), {"<m>", "<a>", "<A>"}, False),
        (Call((MAYBE,)), {"<m>"}, True),
        (OneOf(((A,), (B,))), {"<a>", "<A>", "<b>"}, False),
        (OneOf(((A,), (MAYBE,))), {"<a>", "<A>", "<m>"}, True),
        (AnyOrder(((A, B), (B, A))), {"<a>", "<A>", "<b>"}, True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_node_begins_with_its_markers(node: Node, markers: set[str], may_be_empty: bool) -> None:
    assert first_of(node) == (markers, may_be_empty)


def test_elements_begin_with_a_letter_and_closing_tags_do_not() -> None:
    markers, may_be_empty = first_of(Elements())
    assert may_be_empty
    assert {"<a", "<Z", "<_", "<!"} <= markers
    assert not {"</", "<1", "<"} & markers


@pytest.mark.parametrize(
    ("nodes", "markers", "may_be_empty"),
    [
        ((), set(), True),
        ((MAYBE,), {"<m>"}, True),
        ((MAYBE, B, A), {"<m>", "<b>"}, False),
        ((MAYBE, Lit("</a>", need="forgiven")), {"<m>", "</a>"}, True),
    ],
)
def test_a_sequence_begins_with_its_nodes_up_to_one_that_is_required(
    nodes: tuple[Node, ...], markers: set[str], may_be_empty: bool
) -> None:
    assert first(nodes) == (markers, may_be_empty)


@pytest.mark.parametrize(
    ("node", "inside"),
    [(A, [A]), (OneOf(((A,), (INNER,))), [A, B, Name()]), (AnyOrder(((INNER,), (A,))), [B, Name(), A]),
     (Many((INNER, A)), [B, Name(), A]), (Params((A, Value("</a>"))), [A, Value("</a>")])],
)  # fmt: skip
def test_leaves_contain_no_other_nodes(node: Node, inside: list[Node]) -> None:
    assert list(leaves(node)) == inside


@pytest.mark.parametrize(
    ("node", "inside"),
    [(A, []), (INNER, [INNER.nodes]), (OneOf(((A,), (INNER,))), [(A,), (INNER,), INNER.nodes]),
     (AnyOrder(((INNER,), (A,))), [(INNER,), INNER.nodes, (A,)]), (Many((A,)), [(A,)]), (Params((B,)), [(B,)])],
)  # fmt: skip
def test_sequences_are_yielded_with_those_inside_them(node: Node, inside: list[tuple[Node, ...]]) -> None:
    assert list(sequences((node,))) == [(node,), *inside]
