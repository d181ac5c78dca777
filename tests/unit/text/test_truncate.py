"""Truncation: text within its limit is unchanged, and other text says how much is missing."""

from __future__ import annotations

import pytest

from toolwire.text.truncate import omission, shorten, truncate


@pytest.mark.parametrize(("count", "unit", "note"), [
    (1, "byte", "… (1 byte left out)"),
    (1_200, "character", "… (1,200 characters left out)"),
])  # fmt: skip
def test_an_omission_counts_what_is_missing(count: int, unit: str, note: str) -> None:
    assert omission(count, unit) == note


def test_text_within_the_limit_is_unchanged() -> None:
    for text in ("", "abc", "a\nb"):
        assert truncate(text, 3) is text
        assert truncate(text, 3, where="middle") is text
        assert truncate(text, 3, lines=2) == text
        assert shorten(text, 3) is text


def test_the_end_or_the_middle_of_long_text_is_left_out() -> None:
    assert truncate("abcdef", 5) == "abcde… (1 character left out)"
    assert truncate("abcdefgh", 3, where="middle") == "ab… (5 characters left out) …h"
    assert truncate("abcdefgh", 1, where="middle") == "a… (7 characters left out) …"


def test_missing_lines_are_counted() -> None:
    assert truncate("a\nb\nc\n", 99, lines=2) == "a\nb\n… (1 line left out)"
    assert truncate("abc\nd\ne", 2, lines=3) == "ab\n… (2 lines left out)"
    assert truncate("a\nbcdef\n", 4, lines=2) == "a\nbc… (3 characters left out)"


def test_shortened_text_is_as_long_as_its_limit() -> None:
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("ab cdef", 4) == "ab…"
