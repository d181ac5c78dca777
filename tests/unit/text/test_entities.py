"""Character references of HTML."""

from __future__ import annotations

import pytest

from toolwire.text.entities import resolve_entities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a &lt;b&gt; &amp; &#65;&#x42;", "a <b> & AB"),
        ("&#0000000000000065;", "A"),
        (f"&#{'0' * 5000}65;", "A"),
        (f"&#{'1' * 5000};", "\ufffd"),
        (f"&#{'1' * 5000}", "\ufffd"),
        ("&#99999999;", "\ufffd"),
        (f"&#{'0' * 5000};", "\ufffd"),
        (f"&#x{'f' * 5000};", "\ufffd"),
        ("&# 1; &#;", "&# 1; &#;"),
    ],
)
def test_references_of_any_length_are_resolved(text: str, expected: str) -> None:
    assert resolve_entities(text) == expected
