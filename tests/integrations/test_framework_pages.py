"""The programs in the pages about frameworks: each runs with its framework, and prints what the page shows."""

from __future__ import annotations

import importlib
import io
import linecache
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, Block, blocks

from toolwire import MissingExtra
from toolwire._surface import FRAMEWORK_MODULES

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks


def programs() -> list[tuple[str, Block, str]]:
    """Return the blocks that use a module for a framework and are followed by their output."""
    return [
        (module, block, after.code)
        for page in sorted((ROOT / "docs" / "how-to").rglob("*.md"))
        for block, after in pairwise(blocks(page))
        for module in FRAMEWORK_MODULES
        if block.language == "py" and f"from {module} " in block.code and after.adjacent
    ]


def test_every_framework_has_a_program() -> None:
    assert {module for module, _, _ in programs()} == set(FRAMEWORK_MODULES)


@pytest.mark.parametrize(
    ("module", "block", "shown"), [pytest.param(*one, id=Path(one[0]).suffix[1:]) for one in programs()]
)
def test_the_program_prints_what_the_page_shows(module: str, block: Block, shown: str) -> None:
    try:
        importlib.import_module(module)
    except MissingExtra as missing:
        pytest.skip(f"needs scripts/test-frameworks: {missing}")
    name = f"<{block}>"
    linecache.cache[name] = (len(block.code), None, block.code.splitlines(True), name)  # smolagents reads the source
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block.code, name, "exec"), {"__name__": "__docs__"})
    assert printed.getvalue() == shown
