"""Law L6: text cut anywhere never yields a complete call that is not all there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.property import laws, texts
from tests.property.nodes import names


@pytest.mark.parametrize("name", names())
def test_every_cut_of_messages(name: str) -> None:
    @settings(max_examples=max(10, settings().max_examples // 2))
    @given(texts.messages(name))
    def check(text: str) -> None:
        laws.check_never_half(text, format=name, tools=texts.TOOLS)

    check()


@pytest.mark.parametrize("name", names())
def test_every_cut_of_samples(name: str) -> None:
    for text in texts.samples(name):
        for tools in (texts.TOOLS, ()):
            laws.check_never_half(text, format=name, tools=tools)
