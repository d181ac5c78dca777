"""Formats compiled for reading: which markers can come where, and what ends a block, a call and a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from toolwire.errors import DefinitionError
from toolwire.wire.compiled_format import CompiledFormat, Step, contains_call
from toolwire.wire.raw_values import ValueEnd
from toolwire.wire.syntax import (
    AnyOrder,
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
    Span,
    Value,
    WireFormat,
)

CLOSE = Lit("</w>", need="forgiven")


def compiled(*nodes: Node, **options: Any) -> CompiledFormat:
    """Return a format with one block of these nodes, compiled."""
    return CompiledFormat(WireFormat("own", blocks=(nodes,), **options))


def params(value: Value, before: str = "") -> Params:
    """Return parameters that are written as `<p>KEY:VALUE</p>`."""
    return Params((Lit("<p>", also=("<q>",), before=before), Key(), Lit(":"), value))


def call(*nodes: Node, before: str = "") -> Call:
    """Return a call that is written as `<c>NAME>...</c>`."""
    return Call((Lit("<c>"), Name(), Lit(">"), *nodes, Lit("</c>", before=before)))


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps, and those inside them."""
    for step in steps:
        yield step
        for group in step.groups:
            yield from all_steps(group)


def value_end(format: CompiledFormat) -> ValueEnd:
    """Return the rules for the values of the only parameters of a format."""
    (block,) = format.blocks.values()
    (step,) = (step for step in all_steps(block.steps) if isinstance(step.node, Params))
    value = step.groups[0][-1].node
    assert isinstance(value, Value)
    rules = format.value_end(step, value)
    assert format.value_end(step, value) is rules
    return rules


def test_a_value_in_a_call_with_a_wrapper_ends_at_the_markers_of_both() -> None:
    rules = value_end(compiled(Lit("<w>"), Many((call(params(Value("</p>"))),)), CLOSE))
    assert (rules.last, rules.call_close, rules.openers) == ({"</p>"}, {"</c>"}, {"<p>", "<q>"})
    assert rules.calls == {"<c>", "<w>"}
    assert rules.stops.spelled.keys() == {"</p>", "</c>", "</w>", "<p>", "<q>", "<c>", "<w>"}
    assert {closer: after.spelled.keys() for closer, after in rules.follow.items()} == {
        "</p>": {"<p>", "<q>", "</c>", "</w>", "<c>", "<w>"},
        "</c>": {"</w>", "<c>", "<w>"},
        "</w>": {"<c>", "<w>"},
    }


def test_the_closer_of_a_call_without_a_wrapper_may_end_the_text() -> None:
    rules = value_end(compiled(call(params(Value("</p>")))))
    assert (rules.last, rules.call_close, rules.calls) == ({"</p>", "</c>"}, {"</c>"}, {"<c>"})
    assert rules.stops.spelled.keys() == {"</p>", "</c>", "<p>", "<q>", "<c>"}
    assert {closer: after.spelled.keys() for closer, after in rules.follow.items()} == {
        "</p>": {"<p>", "<q>", "</c>", "<c>"},
        "</c>": {"<c>"},
    }


@pytest.mark.parametrize(
    ("value", "before", "before_closer", "edge"),
    [
        (Value("</p>"), "", "", 0),
        (Value("</p>", newline=True), "", "", 1),
        (Value("</p>", newline=True, after="\n"), "", "", 2),
        (Value("</p>", after="\n"), "", "", 1),
        (Value("</p>"), "\n  ", "", 1),
        (Value("</p>", newline=True), "", "\n", 2),
        (Value("</p>", after=" "), " ", " ", 0),
    ],
)
def test_newlines_that_the_format_writes_are_counted(value: Value, before: str, before_closer: str, edge: int) -> None:
    rules = value_end(compiled(call(params(value, before), before=before_closer)))
    assert (rules.edge, rules.newline) == (edge, value.newline)


def test_sections_of_literal_text_stop_only_values_that_may_have_them() -> None:
    for cdata in (True, False):
        rules = value_end(compiled(call(params(Value("</p>", cdata=cdata)))))
        assert ("<![CDATA[" in rules.stops.spelled) is cdata


def test_the_last_nodes_of_a_block_and_the_closers_of_calls_are_marked() -> None:
    option = (call(), Lit("</v>"))
    (block,) = compiled(Lit("<w>"), OneOf((option, (JsonCall(),), (Call((Name(),)),)))).blocks.values()
    steps = list(all_steps(block.steps))
    assert [step.node for step in steps if step.ends_call] == [Lit("</c>")]
    assert [step.node for step in steps if step.ends_block] == [
        block.steps[-1].node,
        Lit("</v>"),
        JsonCall(),
        Call((Name(),)),
    ]
    assert block.closers.spelled.keys() == {"</c>", "</v>"}


def test_steps_know_what_they_begin_with_and_what_follows() -> None:
    maybe = Lit("<m>", need="optional")
    (block,) = compiled(Lit("<w>"), maybe, Many((call(),)), CLOSE).blocks.values()
    opener, optional, many, close = block.steps
    assert [step.follow for step in block.steps] == [{"<m>", "<c>"}, {"<c>"}, {"</w>"}, set()]
    assert many.either_set.spelled.keys() == {"<c>", "</w>"}
    (made,) = many.groups[0]
    assert made.follow == {"<c>", "</w>"}
    assert made.groups[0][-1].follow == {"<c>", "</w>"}
    assert (made.groups[0][0].around.closers, made.groups[0][0].around.openers) == ({"</w>"}, {"<c>", "<w>"})
    assert (opener.first_set.spelled.keys(), optional.first, close.first) == ({"<w>"}, {"<m>"}, {"</w>"})


def test_choices_know_the_option_that_may_be_empty_and_one_without_calls() -> None:
    (block,) = compiled(Lit("<w>"), OneOf(((JsonCall(),), (Lit("<m>", need="optional"),))), CLOSE).blocks.values()
    choice = block.steps[1]
    assert (choice.empty_group, choice.group_firsts) == (1, ({"{", "["}, {"<m>"}))
    (block,) = compiled(Lit("<w>"), OneOf(((Many((call(),)),), (JsonCall(),))), CLOSE).blocks.values()
    choice = block.steps[1]
    assert (choice.empty_group, choice.group_firsts) == (None, ({"<c>", "</w>"}, {"{", "["}))
    assert choice.first_set.spelled.keys() == {"<c>", "</w>", "{", "["}
    groups = AnyOrder(((Lit("<n>"), Name()), (Lit("<a>"), Args())))
    (block,) = compiled(Lit("<w>"), Call((groups, CLOSE))).blocks.values()
    order = block.steps[1].groups[0][0]
    assert order.group_firsts == ({"<n>"}, {"<a>"})
    assert order.groups[0][-1].follow == {"<n>", "<a>", "</w>"}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ((Lit("<w>"), JsonCall(), CLOSE), (True, True, True)),
        ((JsonCall(),), (False, False, True)),
        ((Lit("<w>", hint=True), PyCalls()), (True, False, True)),
        ((Lit("```json"), Call((Name(), KeywordArgs()))), (True, False, True)),
        ((call(Args()),), (True, True, True)),
        ((call(Args(element="a")),), (True, True, False)),
        ((call(Elements()),), (True, True, False)),
    ],
)
def test_a_block_knows_its_evidence_and_its_strings(nodes: tuple[Node, ...], expected: tuple[bool, bool, bool]) -> None:
    block = next(iter(compiled(*nodes).blocks.values()))
    assert (block.marked, block.heading, block.has_strings) == expected
    assert not next(iter(compiled(*nodes, markers=False).blocks.values())).marked


@pytest.mark.parametrize(
    ("at", "anywhere"),
    [("anywhere", {"<w>", "```", "{", "["}), ("start", set()), ("mixed", {"<w>", "```"}), ("markers", {"<w>"})],
)
def test_the_place_of_a_format_decides_which_openers_count_amid_content(at: Any, anywhere: set[str]) -> None:
    blocks = ((Lit("<w>"), JsonCall()), (Lit("```"), JsonCall()), (JsonCall(),))
    format = CompiledFormat(WireFormat("own", blocks=blocks, at=at))
    assert (format.anywhere, format.blocks.keys()) == (anywhere, {"<w>", "```", "{", "["})
    assert format.content.openers == {"<w>", "```", "{", "["}


def test_neither_a_fence_nor_a_bracket_ends_reasoning_and_words_are_not_detected() -> None:
    think = Span("<t>", "</t>")
    blocks = ((Lit("Act:", prose=True), JsonCall()), (Lit("```"), JsonCall()), (JsonCall(),), (call(),))
    blocks += ((Call((Lit("Do:", prose=True), Name(), Lit(";"))),),)
    eager = CompiledFormat(WireFormat("own", blocks=blocks, spans=(think,), ends_reasoning=True))
    assert (eager.ending, eager.detected) == ({"Act:", "Do:", "<c>"}, {"```", "{", "[", "<c>"})
    assert CompiledFormat(WireFormat("own", blocks=blocks, spans=(think,))).ending == set()


def test_closers_of_all_blocks_are_dropped_but_for_brackets_and_fences() -> None:
    blocks = ((Lit("<w>"), JsonCall(), CLOSE), (Lit("```"), JsonCall(), Lit("```"), Lit(")")), (call(), Lit("</z>")))
    format = CompiledFormat(WireFormat("own", blocks=blocks))
    assert format.closers.spelled.keys() == {"</w>", "</c>", "</z>"}
    assert format.blocks["```"].closers.spelled.keys() == {"```", ")"}


def test_elements_are_closed_by_what_is_around_them_where_something_fitting_follows() -> None:
    format = compiled(Lit("<w>"), call(Lit("<a>"), Elements(), Lit("</a>")), CLOSE)
    (block,) = format.blocks.values()
    (step,) = (step for step in all_steps(block.steps) if isinstance(step.node, Elements))
    assert {closer: after.spelled.keys() for closer, after in format.around_elements(step).items()} == {
        "</a>": {"</c>", "</w>", "<c>", "<w>"},
        "</c>": {"</w>", "<c>", "<w>"},
    }


@pytest.mark.parametrize(
    ("node", "contains"),
    [(JsonCall(), True), (PyCalls(), True), (call(), True), (Many((Lit("<w>"), call())), True), (Args(), False),
     (OneOf(((Lit("<w>"),), (Lit("<v>"), JsonCall()))), True), (OneOf(((Lit("<w>"),),)), False), (Many(()), False)],
)  # fmt: skip
def test_a_node_contains_a_call_at_any_depth(node: Node, contains: bool) -> None:
    assert contains_call(node) is contains


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((Lit("<w>"), Args()), "holds no call"),
        ([JsonCall()], "is not a tuple of nodes"),
        ((Lit("<w>"), JsonCall), "contains <class 'toolwire.wire.syntax.JsonCall'>, which is not a node"),
    ],
)
def test_a_block_that_is_none_is_refused(block: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"'own' {message}"):
        CompiledFormat(WireFormat("own", blocks=(block,)))


@pytest.mark.parametrize("blocks", [JsonCall(), [(JsonCall(),)]], ids=["node", "list"])
def test_blocks_that_are_no_tuple_are_refused(blocks: Any) -> None:
    with pytest.raises(DefinitionError, match="the blocks of the format 'own' are not a tuple, but "):
        CompiledFormat(WireFormat("own", blocks=blocks))
