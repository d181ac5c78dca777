"""Programs beside the package: what they import from it exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

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
