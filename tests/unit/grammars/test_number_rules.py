"""Tests of numbers between bounds: exactly those, and none that would be infinite."""

from __future__ import annotations

import pytest

from toolwire.grammars.algebra import Expression, can_be_empty, without_prefix
from toolwire.grammars.number_rules import MAX_LENGTH, integers, numbers


def accepts(part: Expression, text: str) -> bool:
    return can_be_empty(without_prefix(part, text, {}), {})


@pytest.mark.parametrize("low", [None, -105, -10, -3, 0, 1, 7, 98])
@pytest.mark.parametrize("high", [None, -99, -2, 0, 5, 10, 99, 123])
def test_integers_between_bounds_are_offered(low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        return
    exact, part = integers(low, high)
    offered = [number for number in range(-130, 131) if accepts(part, str(number))]
    assert exact
    assert offered == [
        number for number in range(-130, 131) if (low is None or low <= number) and (high is None or number <= high)
    ]


def test_an_integer_has_a_maximum_length() -> None:
    for low in (None, 7, 10 ** (MAX_LENGTH - 1)):
        assert accepts(integers(low, None)[1], "9" * MAX_LENGTH)
        assert not accepts(integers(low, None)[1], "9" * (MAX_LENGTH + 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.5", True), ("1e-300", True), ("1.5E+299", True), ("9.9e307", True), ("1e308", False), ("12e307", False)],
)
def test_no_number_is_infinite(text: str, expected: bool) -> None:
    assert accepts(numbers(None, None)[1], text) is expected


@pytest.mark.parametrize(
    ("low", "high", "is_exact", "signs"),
    [
        (None, None, True, "+-"),
        (0, None, True, "+"),
        (1, None, False, "+"),
        (None, 1, False, "+-"),
        (-9, -1, False, "-"),
    ],
)
def test_bounds_of_numbers_decide_about_the_sign(low: int, high: int, is_exact: bool, signs: str) -> None:
    exact, part = numbers(low, high)
    assert exact is is_exact
    assert [accepts(part, text) for text in ("2.5", "-2.5")] == ["+" in signs, "-" in signs]
