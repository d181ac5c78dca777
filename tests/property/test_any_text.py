"""The laws for any text in every format: chunking, nothing lost, bounded work, no exception."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import laws, texts
from tests.property.nodes import names

CUTS = st.lists(st.integers(0, 400), max_size=6)


def _check(name: str, text: str, cuts: list[int], started: bool, repair: bool, known: bool) -> None:
    laws.check_text(
        text,
        [laws.cut_at(text, cuts), laws.pieces(text, 3)],
        format=name,
        tools=texts.TOOLS if known else (),
        reasoning_started=started,
        repair="safe" if repair else "none",
    )


@pytest.mark.mission("E1", "E13", "F32", "F45")
@pytest.mark.need(9)
@pytest.mark.parametrize("name", names())
def test_laws_hold_for_misplaced_markup(name: str) -> None:
    @given(texts.texts(name), CUTS, st.booleans(), st.booleans(), st.booleans())
    def check(text: str, cuts: list[int], started: bool, repair: bool, known: bool) -> None:
        _check(name, text, cuts, started, repair, known)

    check()


@pytest.mark.mission("E1", "E4", "F33", "F47")
@pytest.mark.parametrize("name", names())
def test_laws_hold_for_damaged_messages(name: str) -> None:
    @given(texts.mutated(name), CUTS, st.booleans(), st.booleans(), st.booleans())
    def check(text: str, cuts: list[int], started: bool, repair: bool, known: bool) -> None:
        _check(name, text, cuts, started, repair, known)

    check()


@pytest.mark.parametrize("name", names())
def test_laws_hold_for_values_at_the_limits(name: str) -> None:
    @settings(max_examples=max(10, settings().max_examples // 6))
    @given(texts.extremes(name), CUTS)
    def check(text: str, cuts: list[int]) -> None:
        options = {"format": name, "tools": texts.TOOLS}
        whole_reading = laws.read([text], **options)
        laws.check_nothing_lost(text, whole_reading.events, name)
        laws.check_positions(text, whole_reading.response)
        want = laws.outcome(whole_reading.response)
        for chunks in (laws.cut_at(text, cuts), laws.pieces(text, 7)):
            reading = laws.read(chunks, **options)
            assert laws.outcome(reading.response) == want
            laws.check_work(text, reading, name)

    check()
