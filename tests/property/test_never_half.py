"""Law L6: cut text never yields a complete call that the whole text does not contain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import laws, texts
from tests.property.nodes import names

MOST_CUTS = 100
"""Number of cuts of one random message."""


@pytest.mark.mission("E6")
@pytest.mark.need(16)
@pytest.mark.parametrize("name", names())
def test_no_cut_of_a_message_gives_another_call(name: str) -> None:
    @settings(max_examples=max(10, settings().max_examples // 2))
    @given(texts.messages(name), st.integers(0, 10))
    def check(text: str, start: int) -> None:
        step = 1 + len(text) // MOST_CUTS
        laws.check_never_half(text, range(start % step, len(text), step), format=name, tools=texts.TOOLS)

    check()


@pytest.mark.mission("B31", "C18", "H9")
@pytest.mark.need(15)
@pytest.mark.parametrize("name", names())
def test_no_cut_of_a_sample_gives_another_call(name: str) -> None:
    for text in texts.samples(name):
        if len(text) < 600:
            laws.check_never_half(text, format=name, tools=texts.TOOLS)
