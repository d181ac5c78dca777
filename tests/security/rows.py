"""The rows of `rows.tsv`, and the tests that are named after them."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
ROWS: dict[str, str] = {
    key: label
    for key, _, label in (
        line.partition("\t") for line in (HERE / "rows.tsv").read_text("utf-8").splitlines() if not line.startswith("#")
    )
}


def named_tests() -> dict[str, list[str]]:
    """By row, its tests as `file::name`."""
    found: dict[str, list[str]] = {key: [] for key in ROWS}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for key, tests in found.items():
                    if node.name.startswith(f"test_{key}_"):
                        tests.append(f"{path.name}::{node.name}")
    return found
