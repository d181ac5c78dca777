"""Tests of automata: the same texts as the expression, one state for each place, and the fewest of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.grammars.algebra import (
    EMPTY,
    Expression,
    Lexeme,
    RuleName,
    chars,
    chars_except,
    choice,
    lexeme,
    literal,
    optional,
    repeat,
    sequence,
)
from toolwire.grammars.automaton import State, automaton, counts
from toolwire.grammars.lark_writer import write_lark
from toolwire.grammars.prose import prose

EXPRESSIONS = st.recursive(
    st.sampled_from([EMPTY, literal("a"), literal("ab"), chars("ab"), chars("bc"), chars_except("a")]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: sequence(*parts)),
        st.lists(inner, min_size=1, max_size=3).map(choice),
        inner.map(optional),
        inner.map(repeat),
        inner.map(lambda part: repeat(part, 1)),
        inner.map(lexeme),
    ),
    max_leaves=8,
)


def accepts(states: tuple[State, ...], text: str) -> bool:
    """Return whether an automaton ends with a text."""
    at = 0
    for character in text:
        ways = [
            target
            for part, target in states[at].ways
            if any(low <= ord(character) <= high for low, high in part.ranges)
        ]
        if not ways:
            return False
        (at,) = ways
    return states[at].may_end


def pattern(part: Expression) -> re.Pattern[str]:
    """Return an expression as a regular expression of Python."""
    written = write_lark(Lexeme(part), {}).splitlines()[-1]
    text = written.partition("/")[2].removesuffix("/").replace("[^\\u0000]", "(?s:.)")
    return re.compile(text)


@given(EXPRESSIONS, st.lists(st.text("abc", max_size=6), min_size=1))
def test_an_automaton_accepts_the_texts_of_its_expression(part: Expression, texts: list[str]) -> None:
    if part == EMPTY:
        return
    states = automaton(part)
    for text in texts:
        assert accepts(states, text) is (pattern(Lexeme(part)).fullmatch(text) is not None), text


@given(st.lists(st.text("<ab", min_size=1, max_size=4), min_size=1, max_size=3), st.text("<abc", max_size=12))
def test_text_without_markers_has_a_state_for_each_beginning_of_a_marker(markers: list[str], text: str) -> None:
    states = automaton(prose((), tuple(markers)).text)
    beginnings = {marker[:at] for marker in markers for at in range(len(marker))}
    assert len(states) <= len(beginnings)
    assert accepts(states, text) is not any(marker in text for marker in markers)


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (choice([literal("ab"), literal("cb")]), 3),
        (repeat(choice([literal("a"), literal("b")])), 1),
        (sequence(repeat(chars("a")), repeat(chars("a"))), 1),
        (sequence(literal("x"), choice([literal("y"), literal("z")]), literal("x")), 4),
    ],
    ids=["equal ends", "loop", "two loops", "middle"],
)
def test_states_behind_which_the_same_follows_are_one(part: Expression, size: int) -> None:
    assert len(automaton(part)) == size


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (repeat(chars("a"), 0, 2), True),
        (repeat(chars("a"), 2), True),
        (repeat(chars("a"), 1), False),
        (optional(literal("ab")), False),
        (Lexeme(sequence(literal("a"), optional(repeat(chars("a"), 3, 3)))), True),
    ],
    ids=str,
)
def test_counts(part: Expression, expected: bool) -> None:
    assert counts(part) is expected


def test_a_rule_has_no_automaton() -> None:
    with pytest.raises(AssertionError, match="inside a lexeme"):
        automaton(RuleName("r"))
