"""The project's own rows, which may expect facts that only Toolwire reports besides calls, content and reasoning.

`expect.problems` is the kinds of problems in order, `expect.incomplete` the names of calls that are not all there; a
call may give `id`, `server` and `repairs`.
"""

from __future__ import annotations

import pytest
from tests.conformance.rows import OWN, Row, load, verdict
from tests.property.nodes import names

from toolwire.wire.formats import FORMATS

ROWS = load(OWN)


@pytest.mark.mission("B36")
@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ROWS if row["format"] in names()])
def test_row_reads_as_expected(row: Row) -> None:
    assert not verdict(row)


def test_every_format_has_a_row_in_its_publishers_spelling() -> None:
    spelled = {row["format"] for row in ROWS if row["id"].endswith("/spelling")}
    assert {wire.name for wire in FORMATS} <= spelled


def test_row_ids_are_unique() -> None:
    ids = [row["id"] for row in ROWS]
    assert len(set(ids)) == len(ids)
    assert all(row["id"] == f"own/{row['format']}/{row['id'].split('/')[-1]}" for row in ROWS)
