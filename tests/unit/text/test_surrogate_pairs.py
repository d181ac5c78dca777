"""Characters that are split between two pieces of a text."""

import pytest

from toolwire.text.surrogate_pairs import SurrogatePairs

FIRST, SECOND = "\ud83d", "\ude00"


def test_a_first_half_waits_for_the_next_piece() -> None:
    pairs = SurrogatePairs()
    assert [pairs.feed(piece) for piece in ("é", f"a{FIRST}", SECOND, FIRST, f"{SECOND}b")] == [
        "é",
        "a",
        "😀",
        "",
        "😀b",
    ]
    assert pairs.finish() == ""


@pytest.mark.parametrize(("lone", "left"), [("surrogatepass", SECOND), ("replace", "\ufffd")])
def test_lone_halves_stay_or_are_replaced(lone: str, left: str) -> None:
    pairs = SurrogatePairs(lone)  # type: ignore[arg-type]
    assert pairs.feed(f"a{SECOND}b") == f"a{left}b"


def test_a_half_that_waits_at_the_end_comes_once() -> None:
    pairs = SurrogatePairs()
    assert pairs.feed(f"a{FIRST}") == "a"
    assert (pairs.finish(), pairs.finish()) == (FIRST, "")
