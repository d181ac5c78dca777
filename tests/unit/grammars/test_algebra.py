"""Tests of what may follow the beginning of an expression."""

from __future__ import annotations

from toolwire.grammars.algebra import (
    EMPTY,
    NOTHING,
    Expression,
    Lexeme,
    RuleName,
    char_range,
    choice,
    factored,
    literal,
    repeat,
    sequence,
    without_prefix,
    without_prefixes,
)

RULES: dict[str, Expression] = {"call": choice([literal("<a>1"), literal("<ab>2"), literal("<c>")])}
CALLS = sequence(RuleName("call"), repeat(literal(";")))


def test_each_text_leaves_the_rest_of_its_alternative() -> None:
    rests = without_prefixes(CALLS, ["<a>", "<ab>", "<c>", "<d>", "<a>12"], RULES)
    tail = repeat(literal(";"))
    assert rests == {
        "<a>": sequence(literal("1"), tail),
        "<ab>": sequence(literal("2"), tail),
        "<c>": tail,
    }


def test_many_texts_leave_what_each_leaves_alone() -> None:
    for text in ("", "<", "<a", "<a>1", "<ab>2;;", "<c>;"):
        assert without_prefixes(CALLS, ["<c>", text], RULES)[text] == without_prefix(CALLS, text, RULES)


def test_the_rest_of_a_lexeme_is_a_lexeme() -> None:
    digits = Lexeme(repeat(char_range("0", "9"), 1, 3))
    assert without_prefix(digits, "1", {}) == Lexeme(repeat(char_range("0", "9"), 0, 2))
    assert without_prefix(digits, "x", {}) == NOTHING
    assert without_prefix(literal("ab"), "ab", {}) == EMPTY


def test_equal_options_are_one_when_beginnings_are_shared() -> None:
    assert factored([literal("ab"), literal("ab")]) == literal("ab")
    assert factored([EMPTY, EMPTY, literal("b")]) == choice([EMPTY, literal("b")])
