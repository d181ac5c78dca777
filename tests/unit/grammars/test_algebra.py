"""Tests of what may follow the beginning of an expression."""

from __future__ import annotations

from toolwire.grammars.algebra import (
    EMPTY,
    LAST,
    NOTHING,
    Chars,
    Expression,
    Lexeme,
    RuleName,
    can_be_empty,
    char_range,
    chars_except,
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


def test_equal_options_of_a_choice_are_one() -> None:
    assert choice([literal("a"), literal("b"), literal("a")]) == choice([literal("a"), literal("b")])


def test_a_repetition_of_nothing_is_empty_unless_it_is_needed() -> None:
    assert repeat(NOTHING) == repeat(literal("a"), 0, 0) == EMPTY
    assert repeat(NOTHING, 1) == NOTHING


def test_the_last_character_is_outside_a_set_of_all_others() -> None:
    assert chars_except(Chars(((0, LAST - 1),))) == Chars(((LAST, LAST),))


def test_a_rule_that_begins_with_itself_is_not_empty_by_itself() -> None:
    rules: dict[str, Expression] = {"r": choice([RuleName("r"), literal("a")])}
    assert not can_be_empty(RuleName("r"), rules)
