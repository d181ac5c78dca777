"""What was asked for: the rows of `rows/*.tsv` and of `needs.tsv`, and the tests that are marked with them.

`@pytest.mark.mission("A1", "B3")` and `@pytest.mark.need(4)` stand on a test, on a class of tests, on a parameter of a
test (`pytest.param(..., marks=...)`) or in a module's `pytestmark`. They are read from the source, so that docs can be
made without importing the tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    Attributes:
        asked: What is asked for, or what hurts.
        answer: The decision, where no test shows the row; for a need, what Toolwire does.
    """

    key: str
    asked: str
    answer: str


def _rows(path: Path) -> tuple[str, list[Row]]:
    """The title in the first line, `# ...`, and the rows."""
    title, *lines = path.read_text("utf-8").splitlines()
    rows = []
    for line in lines:
        fields = line.split("\t")
        if len(fields) != 3:
            raise ValueError(f"{path.name}: three fields divided by tabs are wanted: {line!r}")
        rows.append(Row(*(field.strip() for field in fields)))
    return title.removeprefix("#").strip(), rows


SECTIONS: dict[str, tuple[str, list[Row]]] = {path.stem: _rows(path) for path in sorted((HERE / "rows").glob("*.tsv"))}
"""By letter, the title of the section and its rows."""

ROWS: list[Row] = [row for _, rows in SECTIONS.values() for row in rows]
NEEDS: list[Row] = _rows(HERE / "needs.tsv")[1] if (HERE / "needs.tsv").exists() else []
CONTRADICTIONS: list[Row] = _rows(HERE / "contradictions.tsv")[1]
"""By topic: what the documents say, and what Toolwire does."""


def _keys(node: ast.AST, mark: str) -> Iterator[str]:
    """The arguments of every `pytest.mark.<mark>(...)` in a piece of source."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == f"pytest.mark.{mark}":
            yield from (str(ast.literal_eval(argument)) for argument in call.args)


def _marked(path: Path, mark: str) -> Iterator[tuple[str, str]]:
    """The keys in one file, each with the test it stands on."""
    source = path.read_text("utf-8")
    if f"mark.{mark}(" not in source:
        return
    tree = ast.parse(source)
    name = path.relative_to(TESTS).as_posix()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark":
            yield from ((key, f"tests/{name}") for key in _keys(statement.value, mark))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((key, f"{name}::{node.name}") for key in _keys(decorator, mark))


def marked(mark: str) -> dict[str, list[str]]:
    """By key, the tests that are marked with it, as `folder/file::name` below `tests`."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for key, test in _marked(path, mark):
            tests = found.setdefault(key, [])
            if test not in tests:
                tests.append(test)
    return found
