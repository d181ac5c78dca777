"""The help of the whole program: complete, true, and printed without any command's module."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from toolwire import cli
from toolwire.cli import COMMANDS, overview


@pytest.mark.parametrize("name", COMMANDS)
def test_each_summary_is_what_the_command_says_of_itself(name: str) -> None:
    function = name.replace("-", "_")
    module = vars(importlib.import_module(f"toolwire.cli.{function}_command"))
    text = module["app"].info.help if "app" in module else module[function].__doc__
    assert " ".join(text.strip().split("\n\n")[0].split()) == COMMANDS[name]


def test_every_command_has_a_summary() -> None:
    modules = Path(cli.__file__).parent.glob("*_command.py")
    names = (path.stem.removesuffix("_command").replace("_", "-") for path in modules)
    assert sorted(names) == sorted(COMMANDS)


def test_the_overview_lists_every_command_within_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = overview().splitlines()
        assert max(map(len, lines[4:])) <= max(width, 61)
        assert [line.split()[0] for line in lines if line[:2] == "  " and line[2] not in " -"] == list(COMMANDS)
        assert "Exit status: 0 done" in overview()


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["--help"], 0), (["-h"], 0)])
def test_the_overview_loads_no_command(arguments: list[str], status: int) -> None:
    code = (
        "import sys; from toolwire.cli import run; status = run(sys.argv[1:]);"
        "loaded = {name for name in sys.modules if name.startswith(('toolwire', 'typer', 'rich', 'pydantic'))};"
        "print(sorted(loaded), status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"['toolwire', 'toolwire._surface', 'toolwire.cli'] {status}"
