"""Rows from other engines' tests and from reports of real output, if their folder is beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.rows import Row, load, verdict
from tests.property.nodes import names

SHARED = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "text"

KNOWN: dict[str, str] = {}
"""Rows that fail, each with the reason; a row that passes has to be removed."""


def _rows() -> list[Row]:
    existing = set(names())
    return [row for path in sorted(SHARED.glob("*.jsonl")) for row in load(path) if row["format"] in existing]


@pytest.mark.skipif(not SHARED.is_dir(), reason="there is no folder with further rows beside the checkout")
def test_shared_rows_read_as_expected() -> None:
    rows = _rows()
    assert rows
    failing = {row["id"]: why for row in rows if (why := verdict(row))}
    drifting = {row: why for row, why in failing.items() if why.startswith("drift")}
    assert not drifting
    unexpected = {row: why for row, why in failing.items() if row not in KNOWN}
    assert not unexpected
    assert sorted(set(KNOWN) - set(failing)) == [], "these rows pass now: take them from KNOWN"
