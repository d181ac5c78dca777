"""Every row of `rows.tsv` has tests that are named after it."""

import pytest
from tests.security.rows import ROWS, named_tests


@pytest.mark.parametrize("key", ROWS)
def test_every_row_has_a_test(key: str) -> None:
    assert named_tests()[key], f"no test's name begins with test_{key}_"


def test_no_row_is_the_beginning_of_another() -> None:
    assert not [(a, b) for a in ROWS for b in ROWS if a != b and b.startswith(f"{a}_")]
