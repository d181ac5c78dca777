"""Parts of a text."""

from __future__ import annotations

from toolwire.text.spans import Spans


def test_parts_of_a_text_overlap() -> None:
    spans = Spans([(5, 7), (0, 20), (30, 31)])
    assert [spans.overlap(*part) for part in ((0, 1), (19, 21), (20, 30), (30, 31), (29, 31), (31, 40))] == [
        True, True, False, True, True, False,
    ]  # fmt: skip
    assert not Spans([]).overlap(0, 9)
