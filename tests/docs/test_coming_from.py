"""The pages for those who come from another framework say where the names in their tables are."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import toolwire

PAGES = sorted((Path(__file__).parents[2] / "docs" / "how-to" / "coming-from").glob("*.md"))
PACKAGES = ("agent", "models", "mcp", "testing", "web", "wire", "integrations")


def _names(page: str) -> set[str]:
    """Return the names without a module in the right columns of the tables."""
    cells = [row.rsplit("|", 2)[1] for row in page.splitlines() if row.startswith("|")]
    codes = [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]
    return {name for code in codes for name in re.findall(r"(?<![\w.])([A-Z]\w+|\w+(?=\())", code)}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_names_of_other_modules_have_their_module_on_the_page(path: Path) -> None:
    page = path.read_text("utf-8")
    names = _names(page) - set(toolwire.__all__)
    homes = {name: f"toolwire.{package}" for package in PACKAGES for name in _public(package) if name in names}
    parts = re.split(r"\n\n|```|\n(?=\|)", page)  # paragraphs, examples and rows
    missing = [name for name, home in homes.items() if not any(_names_both(part, name, home) for part in parts)]
    assert not missing


def _public(package: str) -> list[str]:
    return list(import_module(f"toolwire.{package}").__all__)


def _names_both(part: str, name: str, home: str) -> bool:
    return home in part and re.search(rf"\b{name}\b", part) is not None
