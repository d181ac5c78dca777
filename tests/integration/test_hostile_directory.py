"""Commands that are started in a directory whose files have the names of modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "arguments"), [("toolwire", ["--version"]), ("toolwire.envelope", ["ls", "."])], ids=["toolwire", "te"]
)
def test_modules_of_the_working_directory_are_not_imported(module: str, arguments: list[str], tmp_path: Path) -> None:
    for name in ("json", "subprocess", "shlex", "sqlite3", "typer", "httpx", "pydantic", "tomllib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the working directory')")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "working directory" not in done.stderr
    assert done.returncode == 0
