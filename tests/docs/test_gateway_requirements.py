"""The page with the gateway's requirements names all of them, and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs/project/gateway.md").read_text("utf-8")


def test_the_page_names_every_requirement_once() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE)
    numbers = [int(number) for row in rows for number in row.split(",")]
    assert sorted(numbers) == list(range(1, 64))


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 50
    missing = [
        f"{path}::{test}" for path, test in named if not re.search(rf"def {test}\(", (TESTS / path).read_text("utf-8"))
    ]
    assert missing == []
