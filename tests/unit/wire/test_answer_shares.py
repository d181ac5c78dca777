"""Shares of the forms in which models write calls."""

import pytest

from toolwire.wire.answer_shares import (
    MEASURED,
    FormShare,
    ModelAnswers,
    form_shares,
    measured_answers,
    nearest_format,
    plain_name,
)
from toolwire.wire.dialects import DIALECTS
from toolwire.wire.format_registry import formats


def test_the_measured_counts_agree_with_each_other() -> None:
    known = {dialect.name for dialect in DIALECTS} | set(formats())
    assert len({measured.model for measured in MEASURED}) == len(MEASURED)
    for measured in MEASURED:
        counts = [count for _, count in measured.forms]
        assert measured.model
        assert 0 < sum(counts) <= measured.answers, measured.model
        assert counts == sorted(counts, reverse=True), measured.model
        assert {form for form, _ in measured.forms} <= known, measured.model


@pytest.mark.parametrize("name", ["GPT 4o", "gpt_4o", " gpt/4o ", "gpt.4o", "gpt:-4o"])
def test_separators_and_case_do_not_count(name: str) -> None:
    assert plain_name(name) == "-gpt-4o-"


def test_a_name_means_a_model_before_its_family() -> None:
    def same_family(name: str) -> bool:
        return name.startswith("gpt-4o")

    (mini,) = measured_answers("openai/gpt-4o-mini-2024-07-18", same_family)
    assert mini.model == "gpt-4o-mini-2024-07-18"
    family = [measured.model for measured in measured_answers("gpt-4o-audio", same_family)]
    assert family == ["gpt-4o-2024-05-13", "gpt-4o-mini-2024-07-18"]
    assert measured_answers("gpt-4o", lambda name: False) == ()


def test_shares_are_parts_of_all_answers() -> None:
    first = ModelAnswers("a", 60, (("hermes", 40), ("call_list", 10)))
    second = ModelAnswers("b", 40, (("hermes", 10), ("call_list", 30)))
    assert form_shares([first, second]) == (FormShare("hermes", False, 0.5), FormShare("call_list", True, 0.4))
    assert form_shares([]) == ()


def test_dialects_count_for_the_format_that_they_are_nearest_to() -> None:
    nearest = {dialect.name: dialect.nearest for dialect in DIALECTS}
    dialect = next(name for name, format_name in nearest.items() if format_name and format_name != "hermes")
    shares = [FormShare("hermes", False, 0.45), FormShare(dialect, True, 0.55)]
    assert nearest_format(shares) == nearest[dialect]
    assert nearest_format(shares[:1]) == "hermes"
    assert nearest_format([]) == ""


def test_of_formats_with_equal_shares_the_first_is_the_nearest() -> None:
    dialect = next(dialect for dialect in DIALECTS if dialect.nearest and dialect.nearest != "hermes")
    parts = [FormShare(dialect.name, True, 0.1), FormShare(dialect.nearest, False, 0.2)]
    assert nearest_format([FormShare("hermes", False, 0.3), *parts]) == "hermes"
    assert nearest_format([*parts, FormShare("hermes", False, 0.3)]) == dialect.nearest
