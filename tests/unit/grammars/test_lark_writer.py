"""Tests of grammars in Lark: how each expression is spelled."""

from __future__ import annotations

import pytest

from toolwire.grammars.algebra import (
    ANY,
    EMPTY,
    Expression,
    Lexeme,
    RuleName,
    char_range,
    chars,
    choice,
    literal,
    optional,
    repeat,
    sequence,
)
from toolwire.grammars.lark_writer import MAX_LITERALS, write_lark

A, B = RuleName("a"), RuleName("b")
RULES: dict[str, Expression] = {"a": literal("x"), "b": sequence(A, literal("y")), "unused": literal("z")}


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        pytest.param(literal('say "\\"\n'), '"say \\"\\\\\\"\\n"', id="quoted"),
        pytest.param(literal("\x00\u200b\U000e0001é"), '"\\u0000\\u200B\\U000E0001é"', id="unprintable"),
        pytest.param(EMPTY, '""', id="empty"),
        pytest.param(choice([literal("a"), literal("b")]), '"a" | "b"', id="choice"),
        pytest.param(choice([literal("a"), EMPTY]), '("a")?', id="choice of nothing"),
        pytest.param(
            sequence(choice([literal("a"), literal("b")]), literal("c")), '("a" | "b") "c"', id="choice in a chain"
        ),
        pytest.param(repeat(literal("a"), 2, 5), '"a"{2,5}', id="bounded"),
        pytest.param(repeat(literal("a"), 2), '"a"{2,}', id="at least"),
        pytest.param(repeat(literal("a"), 3, 3), '"a"{3}', id="exactly"),
        pytest.param(repeat(literal("ab"), 1), '"ab"+', id="once or more"),
        pytest.param(repeat(optional(literal("a"))), '("a"?)*', id="optional in a repetition"),
        pytest.param(Lexeme(literal("a")), '"a"', id="fixed lexeme"),
    ],
)
def test_expressions_are_spelled(root: Expression, expected: str) -> None:
    assert write_lark(root, {}) == f"start: {expected}\n"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(chars("ab-"), "[ab-]", id="hyphen is last"),
        pytest.param(char_range("+", "/"), "[\\+,\\.\\/-]", id="range around a hyphen"),
        pytest.param(repeat(chars("]^\\")), "[\\\\-\\^]*", id="brackets"),
        pytest.param(ANY, "[^\\u0000]", id="any"),
        pytest.param(sequence(literal("a.b"), repeat(literal("+"), 1)), "a\\.b\\++", id="operators"),
        pytest.param(repeat(literal("ab"), 0, 2), "(ab){0,2}", id="repeated text"),
        pytest.param(sequence(literal("a"), choice([literal("b"), EMPTY])), "a(b)?", id="optional alternative"),
        pytest.param(sequence(literal("a"), choice([literal("b"), literal("c")])), "a(b|c)", id="choice in a lexeme"),
        pytest.param(sequence(chars(" "), literal("&-~#")), "[ ]\\u0026\\u002D\\u007E\\u0023", id="ambiguous"),
    ],
)
def test_lexemes_are_regular_expressions(part: Expression, expected: str) -> None:
    assert write_lark(Lexeme(part), {}) == f"start: T0\nT0: /{expected}/\n"


def test_equal_lexemes_are_written_once() -> None:
    digits = Lexeme(repeat(char_range("0", "9"), 1))
    again = Lexeme(repeat(char_range("0", "9"), 1))
    assert write_lark(sequence(digits, literal(","), again), {}) == 'start: T0 "," T0\nT0: /[0-9]+/\n'


def test_many_literals_of_a_choice_are_one_regular_expression() -> None:
    """llguidance reads few more than these as a choice of terminals."""
    few, more = ([literal(f"a{number}") for number in range(count)] for count in (MAX_LITERALS, MAX_LITERALS + 1))
    assert write_lark(choice([*few, A]), RULES).startswith('start: "a0" | "a1" | ')
    assert write_lark(choice([A, *more]), RULES).startswith("start: T0 | r0\nr0: ")


def test_rules_are_renamed_in_the_order_of_use_and_unused_ones_are_missing() -> None:
    assert write_lark(sequence(B, A), RULES) == 'start: r0 r1\nr0: r1 "y"\nr1: "x"\n'


def test_a_rule_inside_a_lexeme_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="the rule 'a' inside a lexeme"):
        write_lark(Lexeme(A), RULES)
