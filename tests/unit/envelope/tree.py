"""The tree that the examples are made from, and `te` in it, in this process or as one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TE = [sys.executable, "-m", "toolwire.envelope"]


def numbered(lines: dict[int, str], length: int, filler: str = "x = 1") -> str:
    """A file in which these lines stand where their numbers say."""
    return "".join(f"{lines.get(number, filler)}\n" for number in range(1, length + 1))


def build(root: Path) -> None:
    """847 lines in 37 files that say `database_connection`: 615 in tools/rag, 231 in tests, 1 elsewhere."""
    rag, tests, web = root / "tools" / "rag", root / "tests", root / "web"
    for folder in (rag, tests, web):
        folder.mkdir(parents=True)
    head = {15: "def database_connection():", 89: "    database_connection.execute("}
    (rag / "database.py").write_text(numbered(head, 90))
    (rag / "service.py").write_text(numbered({23: "from .database import database_connection"}, 25))
    for number in range(20):
        use = "    rows = database_connection.fetch(1)\n"
        (rag / f"store_{number:02}.py").write_text(use * (31 if number < 12 else 30))
    (tests / "test_database.py").write_text(numbered({7: "mock_database_connection = ..."}, 8))
    for number in range(13):
        (tests / f"test_store_{number:02}.py").write_text(
            "    check(database_connection)\n" * (18 if number < 9 else 17)
        )
    (web / "app.py").write_text("    database_connection.close()\n")
    (root / "te.py").write_text("def handle_grep(arguments):\n    return arguments\n")


def te(*arguments: str, cwd: Path, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """`te` as a process."""
    done = subprocess.run(
        [*TE, *arguments],
        cwd=cwd,
        env={**os.environ, **environ},
        input=stdin.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def wait_until_gone(pid: int) -> None:
    """Until a process runs no more; the test's own limit ends a wait in vain."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
