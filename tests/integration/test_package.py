"""What is packed: everything that the tests read."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = {"pyproject.toml", "README.md", "LICENSE", ".gitignore"}
"""The builder packs these whatever is listed."""


def test_the_source_package_holds_all_that_tests_and_checks_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    assert {".ci", ".importlinter", "scripts", "tests"} <= included
    assert not [name for name in included if not (ROOT / name).exists()]
    visible = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - {"dist", "build"}
    assert visible <= included | ALWAYS
