"""Tests of grammars in GBNF: what differs from Lark, and character sets."""

from __future__ import annotations

import pytest
from tests.property.test_grammars import WITH_CALLS

import toolwire
from toolwire.grammars.algebra import (
    ANY,
    LAST,
    Chars,
    Expression,
    Lexeme,
    RuleName,
    char_range,
    chars,
    chars_except,
    choice,
    literal,
    optional,
    repeat,
    sequence,
)
from toolwire.grammars.gbnf_writer import RuleWriter, repetition, write_gbnf
from toolwire.grammars.prose import prose
from toolwire.wire.syntax import WireFormat

WORD = Lexeme(repeat(char_range("a", "z"), 1))


def test_the_first_rule_has_the_name_that_is_asked_for() -> None:
    assert write_gbnf(literal("a"), {}) == 'root ::= "a"\n'


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(chars("az"), "[az]", id="characters"),
        pytest.param(char_range("a", "b"), "[ab]", id="two neighbours"),
        pytest.param(char_range("a", "z"), "[a-z]", id="range"),
        pytest.param(chars_except("<"), "[^\\u003C]", id="complement"),
        pytest.param(chars("\n\t\r é"), "[\\t\\n\\r\\u0020\\u00E9]", id="escapes"),
        pytest.param(chars("\U0001f600"), "[\\U0001F600]", id="above 16 bits"),
        pytest.param(Chars(((0, LAST),)), "[^\\u0000]", id="everything"),
        pytest.param(ANY, "[^\\u0000]", id="any"),
        pytest.param(chars("-"), "[-]", id="hyphen alone"),
        pytest.param(chars("a-z"), "[az-]", id="hyphen among others"),
    ],
)
def test_sets_of_characters_need_no_lexeme(part: Expression, expected: str) -> None:
    assert write_gbnf(part, {}) == f"root ::= {expected}\n"


def test_lexemes_become_rules() -> None:
    text = write_gbnf(sequence(WORD, literal(" "), WORD), {})
    assert text == 'root ::= t0 " " t0\nt0 ::= [a-z]+\n'


def test_a_lexeme_inside_a_lexeme_becomes_a_rule_too() -> None:
    text = write_gbnf(Lexeme(sequence(WORD, repeat(literal(",")))), {})
    assert text == 'root ::= t0\nt0 ::= t1 ","*\nt1 ::= [a-z]+\n'


def test_a_recursive_rule_is_written_once() -> None:
    rules: dict[str, Expression] = {
        "list": choice([literal("[]"), sequence(literal("["), RuleName("list"), literal("]"))])
    }
    assert write_gbnf(RuleName("list"), rules) == 'root ::= r0\nr0 ::= "[]" | "[" r0 "]"\n'


@pytest.mark.parametrize(
    ("least", "most", "sign"),
    [(0, 1, "?"), (0, None, "*"), (1, None, "+"), (2, None, "{2,}"), (0, 3, "{0,3}"), (4, 4, "{4}"), (1, 1, "{1}")],
)
def test_repetitions(least: int, most: int | None, sign: str) -> None:
    assert repetition(least, most) == sign


def test_an_expression_of_one_use_is_not_taken_for_an_earlier_one() -> None:
    writer = RuleWriter({})
    assert [writer.write(literal(str(number))) for number in range(50)] == [f'"{number}"' for number in range(50)]


def test_text_between_markers_has_a_rule_for_each_state() -> None:
    """xgrammar takes tens of milliseconds for each mask inside a choice in parentheses, which ends in the text."""
    assert write_gbnf(prose(("<a>",)).until, {}).splitlines() == [
        "root ::= t0",
        "t0 ::= [^\\u003C]* [\\u003C] t0-1",
        "t0-1 ::= [\\u003C]* t0-1-",
        "t0-1- ::= [^\\u003Ca] t0 | [a] t0-2",
        "t0-2 ::= [^\\u003C\\u003E] t0 | [\\u003C] t0-1 | [\\u003E]",
    ]
    assert write_gbnf(prose((), ("<a",)).text, {}).splitlines() == [
        "root ::= t0",
        "t0 ::= [^\\u003C]* t0-",
        't0- ::= "" | [\\u003C] t0-1',
        "t0-1 ::= [\\u003C]* t0-1-",
        't0-1- ::= "" | [^\\u003Ca] t0',
    ]


def test_a_choice_that_is_not_repeated_is_one_rule() -> None:
    number = Lexeme(sequence(char_range("0", "9"), optional(choice([literal(".0"), literal("e1")]))))
    assert write_gbnf(number, {}) == 'root ::= t0\nt0 ::= [0-9] (".0" | "e1")?\n'


def test_a_string_whose_length_counts_is_one_rule() -> None:
    string = Lexeme(sequence(literal("'"), repeat(choice([chars_except("'\\"), literal("\\'")]), 1, 3), literal("'")))
    assert len(write_gbnf(string, {}).splitlines()) == 2


@pytest.mark.parametrize("wire", WITH_CALLS)
def test_no_text_of_a_format_has_choices_in_parentheses(wire: WireFormat) -> None:
    text = toolwire.grammar([], format=wire, syntax="gbnf").text
    lexemes = [line for line in text.splitlines() if line.startswith("t") and "*" in line]
    assert lexemes and not any("(" in line for line in lexemes)
