"""Programs beside the package: what they import from it exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
from pathlib import Path

import pytest
from benchmarks.effect import DRAWN, FILE, PICTURE, drawn_shares, summary

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path for folder in ("benchmarks", "examples", "fuzz") for path in (ROOT / folder).glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_names_that_a_program_imports_exist(program: Path) -> None:
    """Most of these programs run only by hand, so nothing else notices a name that has moved."""
    missing: list[str] = []
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "toolwire":
            module = importlib.import_module(node.module or "")
            missing += [
                f"{node.module}.{name.name}"
                for name in node.names
                if not hasattr(module, name.name) and importlib.util.find_spec(f"{node.module}.{name.name}") is None
            ]
    assert missing == []


def test_figures_of_different_settings_are_not_put_together(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "again", "longer")]
    settings = [{"max_tokens": 200, "limit": 1}, {"max_tokens": 200, "rescored": "x"}, {"max_tokens": 400}]
    for folder, members in zip(folders, settings, strict=True):
        folder.mkdir()
        report = {
            "suite": "s",
            "questions": ["1"],
            "settings": members,
            "machine": {},
            "columns": [],
            "comparisons": [],
        }
        (folder / "report.json").write_text(json.dumps(report), "utf-8")
    assert summary("t", folders[:2])["settings"] == {"max_tokens": 200}
    with pytest.raises(ValueError, match="the evaluations of t have different settings"):
        summary("t", folders)


def test_the_picture_of_the_effect_shows_the_stored_figures() -> None:
    evaluations = json.loads(FILE.read_text(encoding="utf-8"))["evaluations"]
    (drawn,) = [evaluation for evaluation in evaluations if evaluation["title"] == DRAWN]
    points = re.findall(r'aria-label="right: ([^;]*); label: ([^"]*)"', PICTURE.read_text(encoding="utf-8"))
    assert {label: float(value) for value, label in points} == {
        label: pytest.approx(share.value) for label, share in drawn_shares(drawn).items()
    }
    assert len(points) == 20
