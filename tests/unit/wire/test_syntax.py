"""The nodes of descriptions: what they refuse, and how a sequence of them is written."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from scripts import check_public

from toolwire.errors import DefinitionError
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Key,
    Listing,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    OneOf,
    Params,
    Span,
    ToolBody,
    ToolTag,
    Value,
    WireFormat,
    as_written,
)

A, B = Lit("<a>"), Lit("<b>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": ""}, "cannot be empty or blank"),
        ({"text": " \n"}, "cannot be empty or blank"),
        ({"text": "<a>", "also": ("",)}, "cannot be empty or blank"),
        ({"text": " <a>"}, "' <a>' begins with white space"),
        ({"text": "<a>", "also": ("\n<a>",)}, "begins with white space"),
        ({"text": "<a>", "need": "maybe"}, "required, forgiven or optional, not 'maybe'"),
    ],
)
def test_a_marker_that_could_never_be_read_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Lit(**options)


def test_a_marker_is_read_in_all_its_spellings() -> None:
    assert Lit("<a>").spellings == {"<a>"}
    assert Lit("<a> ", also=("<A>", "[a]")).spellings == {"<a> ", "<A>", "[a]"}


@pytest.mark.parametrize(
    ("mark", "kind", "written"),
    [
        (Mark(), "string", "string"),
        (Mark(), "integer", "integer"),
        (Mark(flag=True), "string", "true"),
        (Mark(flag=True), "object", "false"),
    ],
)
def test_a_mark_tells_raw_text_from_json(mark: Mark, kind: str, written: str) -> None:
    assert mark.of(kind) == written


@pytest.mark.parametrize(
    ("node", "written"),
    [
        (A, [(A, True)]),
        (Many((A, Call((B, Name())))), [(A, True), (B, True), (Name(), True)]),
        (Params((A, Key(), Value("</a>"))), [(A, True), (Key(), True), (Value("</a>"), True)]),
        (OneOf(((B,), (A,))), [(B, True)]),
        (AnyOrder(((A,), (B, Many((Args(),))))), [(A, False), (B, False), (Args(), False)]),
        (ToolTag(), [(ToolTag(), True)]),
        (ToolBody(Elements(literal=True)), [(Elements(literal=True), True)]),
    ],
)
def test_a_sequence_is_written_without_the_nodes_that_contain_others(node: Node, written: list[Any]) -> None:
    assert list(as_written((node, B))) == [*written, (B, True)]
    assert list(as_written((node,), always=False)) == [(inner, False) for inner, _ in written]


def test_what_a_description_leaves_out_is_as_recorded() -> None:
    recorded = check_public.SNAPSHOT.read_text("utf-8")
    for part in (*get_args(Node), Span, Listing, WireFormat):
        package = "toolwire" if part is WireFormat else "toolwire.wire"
        lines = check_public.described(f"{package}.{part.__name__}", part)
        assert "\n".join(lines) + "\n" in recorded, part
    assert ToolBody() == ToolBody(Elements(infer=True, indent="\n", numbered=True, trimmed=True))
