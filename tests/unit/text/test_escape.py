"""Untrusted text is made safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.text.escape import (
    escape_as_json,
    escape_invisible,
    escape_lookalikes,
    is_invisible,
    replace_surrogates,
    strip_invisible,
)

CONTROLS = "\x00\x1b\x7f\x9b\r\u200b\u202e\u2066\ufeff\U000e0041"


def test_invisible_characters_are_escaped_or_stripped() -> None:
    assert escape_invisible(f"a{CONTROLS}b").isprintable()
    assert escape_invisible("a\tb\n\x1b", "\t\n") == "a\tb\n\\x1b"
    assert strip_invisible(f"a{CONTROLS}b\t\u2028c") == "ab\t\nc"
    assert all(map(is_invisible, CONTROLS))
    assert not any(map(is_invisible, "aé中🙂 "))


def test_letters_that_pose_as_latin_ones_are_escaped() -> None:
    assert escape_lookalikes("p\u0430ypal привет") == "p\\u0430ypal привет"
    assert escape_lookalikes("line\nend\x1b") == "line\nend\\x1b"


@given(st.text())
def test_json_escapes_are_printable(text: str) -> None:
    assert escape_as_json(text).isprintable()


@pytest.mark.parametrize(("text", "clean"), [
    ("plain é", "plain é"),
    ("a\ud83d", "a\ufffd"),
    ("\udc80b", "\ufffdb"),
    ("\ud83d\ude00", "😀"),
])  # fmt: skip
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, clean: str) -> None:
    assert replace_surrogates(text) == clean
