"""What stands in fenced blocks of a Markdown page, and how it is run.

- python: runs; all blocks of a page share their names, in order. With `>>>` it is a doctest.
- text: right after a python block, what it printed; a block that prints has one.
- json NAME, text NAME and so on: a file that console blocks find under this name.
- toml: only shown, and read as TOML.
- console: `$ command` lines, each followed by what it prints.
- sh: shown only, because it needs a network or a model; its options are looked at.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = frozenset({"python", "text", "json", "console", "sh", "toml"})

_BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<code>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `adjacent`: only white space stands between it and the block before."""

    page: Path
    line: int
    language: str
    name: str
    code: str
    adjacent: bool

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(text):
        language, _, name = match["info"].strip().partition(" ")
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, language, name, match["code"], not text[end : match.start()].strip()))
        end = match.end()
    return found


def run_page(page: Path, folder: Path) -> None:
    """Run all blocks of a page; raises AssertionError where one does not give what the page shows."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    found = blocks(page)
    for at, block in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else None
        shown = after.code if after and after.adjacent and after.language == "text" and not after.name else ""
        if block.name:
            (folder / block.name).write_text(block.code, "utf-8")
        elif block.language == "toml":
            tomllib.loads(block.code)
        elif block.language == "console":
            _console(block, folder)
        elif block.language == "python" and block.code.startswith(">>>"):
            _doctest(block, names)
        elif block.language == "python":
            _python(block, names, shown)


def _python(block: Block, names: dict[str, Any], shown: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * block.line + block.code, str(block.page), "exec"), names)
    assert out.getvalue() == shown, f"{block} prints\n{out.getvalue()}\nand shows\n{shown}"


def _doctest(block: Block, names: dict[str, Any]) -> None:
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.code, names, str(block), str(block.page), block.line)
    test.globs = names  # get_doctest copies them
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
    assert result.attempted, f"{block} holds no example"
    assert not result.failed, "".join(said)


def _console(block: Block, folder: Path) -> None:
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.code, re.MULTILINE)
    assert commands, f"{block} holds no command"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    state = str(folder / "state")  # what commands keep is kept there
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "XDG_STATE_HOME": state}
    for command, shown in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        said = done.stdout.decode()
        assert said == shown, f"{block}: {command}\nprints\n{said}\nand shows\n{shown}"
        assert done.returncode == 0, f"{block}: {command} ends with status {done.returncode}"
