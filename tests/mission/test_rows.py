"""Every row of what was asked for has a test or a decision, and no mark points at nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.mission import rows
from tests.mission.rows import NEEDS, ROWS, Row, marked

FOUNDING = Path(__file__).resolve().parents[3] / "shared" / "mission" / "checklist.md"


def _unanswered(asked: Iterable[Row], tests: dict[str, list[str]]) -> list[str]:
    return [row.key for row in asked if not row.answer and not tests.get(row.key)]


def _duplicates(keys: list[str]) -> list[str]:
    return sorted({key for key in keys if keys.count(key) > 1})


def test_every_row_has_a_test_or_a_decision() -> None:
    assert _unanswered(ROWS, marked("mission")) == []


def test_a_row_with_neither_is_noticed() -> None:
    assert _unanswered(
        [Row("A1", "a call", ""), Row("A2", "two", "decided"), Row("A3", "three", "")], {"A3": ["x"]}
    ) == ["A1"]


def test_every_mark_is_of_a_row() -> None:
    assert sorted(set(marked("mission")) - {row.key for row in ROWS}) == []
    assert sorted(set(marked("need")) - {row.key for row in NEEDS}) == []


def test_every_row_says_what_is_asked_and_stands_once() -> None:
    for asked in (ROWS, NEEDS):
        assert [row.key for row in asked if not row.asked] == []
        assert _duplicates([row.key for row in asked]) == []


def test_a_row_stands_in_the_file_of_its_letter() -> None:
    for letter, (title, section) in rows.SECTIONS.items():
        assert title
        assert [row.key for row in section] == [f"{letter}{number}" for number in range(1, len(section) + 1)]


def test_every_need_is_answered_and_shown_or_said_to_be_open() -> None:
    tests = marked("need")
    assert [row.key for row in NEEDS if not row.answer] == []
    assert [row.key for row in NEEDS if not tests.get(row.key) and "not yet" not in row.answer.lower()] == []


def test_no_row_of_the_founding_documents_is_missing() -> None:
    if not FOUNDING.exists():
        pytest.skip("the list of what was asked for is not beside this checkout")
    keys = re.findall(r"^\| ([A-H]\d+) \|", FOUNDING.read_text("utf-8"), re.MULTILINE)
    assert keys
    assert sorted(set(keys) ^ {row.key for row in ROWS}) == []


def test_marks_are_found_wherever_they_may_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "TESTS", tmp_path)
    mark = "pytest.mark.mission"
    (tmp_path / "test_x.py").write_text(
        f"pytestmark = {mark}('A1')\n@{mark}('A2', 'A3')\ndef test_a(): ...\n"
        f"@{mark}('A4')\nclass TestB:\n    @{mark}('A5')\n    async def test_c(self): ...\n"
        f"@pytest.mark.parametrize('x', [pytest.param(1, marks={mark}('A2'))])\ndef test_d(x): ...\n"
    )
    assert marked("mission") == {
        "A1": ["tests/test_x.py"],
        "A2": ["test_x.py::test_a", "test_x.py::test_d"],
        "A3": ["test_x.py::test_a"],
        "A4": ["test_x.py::TestB"],
        "A5": ["test_x.py::test_c"],
    }
