"""Normal forms of text."""

from __future__ import annotations

import time
import unicodedata

import pytest

from toolwire.text.unicode_forms import normalize


@pytest.mark.parametrize("text", ["plain", "e\u0301", "\uff21\ufb01", "a" + "\u0316\u0300" * 15, "\u0344\uff9e"])
def test_text_of_any_script_has_its_normal_form(text: str) -> None:
    assert normalize("NFKC", text) == unicodedata.normalize("NFKC", text)
    assert normalize("NFC", text) == unicodedata.normalize("NFC", text)


def test_long_rows_of_marks_are_separated() -> None:
    assert normalize("NFC", "a" + "\u0316" * 31) == "a" + "\u0316" * 30 + "\u034f\u0316"


@pytest.mark.parametrize("marks", ["\u0300\u0316", "\u0344\u0316", "\uff9e\u0300", "\u0f77\u0300"])
def test_marks_without_end_take_linear_time(marks: str) -> None:
    start = time.process_time()
    normalize("NFKC", marks * 150_000)
    assert time.process_time() - start < 5  # sorted by insertion, they take a minute
