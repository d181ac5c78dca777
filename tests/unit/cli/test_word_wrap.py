"""Prose wrapped while it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.cli.word_wrap import WordWrapper


def wrapped(text: str, width: int = 10, size: int = 0) -> str:
    made = WordWrapper(width)
    pieces = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    return "".join([*map(made.feed, pieces), made.finish()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one two", "one two"),
        ("one two three", "one two\nthree"),
        ("one two three\n\nfour five six seven", "one two\nthree\n\nfour five\nsix seven"),
        ("incomprehensibilities here", "incomprehensibilities\nhere"),
        ("- one two three four", "- one two\nthree four"),
        ("    code that is long", "    code that is long"),
        ("```\nlong line of code\n```\nlong line of prose", "```\nlong line of code\n```\nlong line\nof prose"),
        ("漢字漢 字漢字", "漢字漢\n字漢字"),
        ("trailing  \nspace", "trailing\nspace"),
    ],
)
def test_lines_break_between_words(text: str, shown: str) -> None:
    assert wrapped(text) == shown


@given(st.text(alphabet="ab \n`漢", max_size=60), st.integers(1, 12), st.integers(1, 5))
def test_any_pieces_give_the_same_and_no_word_is_lost(text: str, width: int, size: int) -> None:
    shown = wrapped(text, width, size)
    assert shown == wrapped(text, width)
    assert shown.split() == text.split()
    assert shown.count("\n") >= text.count("\n")
