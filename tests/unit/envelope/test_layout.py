"""Cutting: what is shown has room, nothing is lost, and what is left out is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.envelope.test_grammar import PARTS

from toolwire.envelope.grammar import count_lines, quoted
from toolwire.envelope.layout import cut, pieces

texts = st.lists(st.sampled_from((*PARTS, "bcd", "\r# TE:", " " * 9)), max_size=40).map("".join) | st.text()


@given(texts, st.integers(8, 60))
def test_pieces_join_to_the_whole_and_each_fits(text: str, room: int) -> None:
    found = list(pieces(text, room))
    assert "".join(found) == text
    assert all(piece and len(quoted(piece)) <= room for piece in found)


@given(texts, st.integers(8, 60), st.none() | st.integers(1, 9), st.sampled_from([0.0, 0.3, 0.5]))
def test_truncated_text_fits(text: str, room: int, lines: int | None, tail: float) -> None:
    shown = cut(text, room, lines=lines, tail=tail)
    assert len(quoted(shown.head)) + len(quoted(shown.tail)) <= room
    assert text.startswith(shown.head)
    assert text.removesuffix("\n").endswith(shown.tail)
    assert lines is None or count_lines(shown.head) + count_lines(shown.tail) <= lines
    if not shown.left_out:
        assert "\n".join(part for part in (shown.head, shown.tail) if part).removesuffix("\n") == text.removesuffix(
            "\n"
        )


def test_a_tail_that_begins_with_a_marker_only_because_it_was_cut_there_fits() -> None:
    shown = cut("xxxx# TE:\r# TE:", 12, tail=1.0)  # its last eleven characters are two markers, each a character longer
    assert len(quoted(shown.head)) + len(quoted(shown.tail)) <= 12


@pytest.mark.parametrize(
    ("text", "room", "lines", "tail", "head", "left_out", "end"),
    [
        ("a\nb\n", 9, None, 0, "a\nb\n", "", ""),
        ("a\nb\nc\nd\n", 9, 2, 0, "a\nb", "lines 3-4 of 4, 4 characters", ""),
        ("a\nb\nc\nd\n", 5, None, 0, "a\nb", "lines 3-4 of 4, 4 characters", ""),
        ("a\nb\nc\nd\n", 9, 2, 0.5, "a", "lines 2-3 of 4, 4 characters", "d"),
        ("a\nb\nc", 9, 2, 0, "a\nb", "line 3 of 3, 1 characters", ""),
        ("abcdefghij", 4, None, 0, "abcd", "6 characters of line 1 of 1", ""),
        ("a\n" + "b" * 90, 40, None, 0, "a", "line 2 of 2, 90 characters", ""),
    ],
)
def test_the_description_of_what_is_left_out(
    text: str, room: int, lines: int | None, tail: float, head: str, left_out: str, end: str
) -> None:
    shown = cut(text, room, lines=lines, tail=tail)
    assert (shown.head, shown.left_out, shown.tail) == (head, left_out, end)


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("\n", 1), ("a\n\n", 2), ("a\r\nb", 2)])
def test_lines_are_counted(text: str, lines: int) -> None:
    assert count_lines(text) == lines
