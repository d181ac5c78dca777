"""Fenced code blocks of Markdown pages, and how the tests run them.

- python: runs; all blocks of a page share their names, in order. With `>>>` it is a doctest.
- py: code of another library, only shown, and compiled.
- text: directly after a python block, the output of that block; a block that prints has one.
- LANGUAGE title="NAME": a file that console blocks find under this name.
- toml: only shown, and parsed as TOML.
- console: `$ command` lines, each followed by its output.
- sh: only shown, because it needs a network or a model; its options are checked.

A page that asks a real model has a file of recorded answers beside it in tests/docs/answers; see `answers_of`.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from toolwire import FinishReason, ParsedResponse, ToolCall
from toolwire.client.endpoints import ENDPOINTS
from toolwire.models import HttpAnswer, HttpRequest
from toolwire.testing import ScriptedTransport

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = frozenset({"python", "py", "text", "json", "console", "sh", "toml"})

_BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<code>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL)
_INFO = re.compile(r'(?P<language>\w*)(?: title="(?P<name>[\w.]+)")?')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `adjacent` means that only white space separates it from the block before."""

    page: Path
    line: int
    language: str
    name: str
    code: str
    adjacent: bool

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def page_id(page: Path) -> str:
    return (page.relative_to(ROOT) if page.is_relative_to(ROOT) else page).as_posix().removeprefix("docs/")


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    parsed: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(text):
        info = _INFO.fullmatch(match["info"].strip())
        language, name = (info["language"], info["name"] or "") if info else (match["info"], "")
        line = text.count("\n", 0, match.start()) + 1
        parsed.append(Block(page, line, language, name, match["code"], not text[end : match.start()].strip()))
        end = match.end()
    return parsed


def run_page(page: Path, folder: Path) -> None:
    """Run all blocks of a page; raise AssertionError where the output differs from what the page shows."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    page_blocks = blocks(page)
    answers = iter(answers_of(page))
    with mock.patch("toolwire.client.client.HttpTransport", lambda **_: RecordedTransport(answers)):
        for index, block in enumerate(page_blocks):
            after = page_blocks[index + 1] if index + 1 < len(page_blocks) else None
            shown = after.code if after and after.adjacent and after.language == "text" and not after.name else ""
            if block.name:
                (folder / block.name).write_text(block.code, "utf-8")
            elif block.language == "toml":
                tomllib.loads(block.code)
            elif block.language == "py":
                compile(block.code, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            elif block.language == "console":
                _run_console(block, folder)
            elif block.language == "python" and block.code.startswith(">>>"):
                _run_doctest(block, names)
            elif block.language == "python":
                _run_python(block, names, shown)


def answers_of(page: Path) -> list[ParsedResponse]:
    """Return the recorded answers of the model that a page asks, in order; none for a page that asks no model.

    The file is a JSON list. A string is an answer in words, a list of `[name, arguments]` is an answer with tool calls.
    """
    path = ROOT / "tests" / "docs" / "answers" / (page_id(page).replace("/", "_").removesuffix(".md") + ".json")
    answers = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return [ParsedResponse(answer) if isinstance(answer, str) else _with_calls(answer) for answer in answers]


def _with_calls(calls: list[tuple[str, dict[str, Any]]]) -> ParsedResponse:
    values = tuple(ToolCall(name, arguments, f"call_{number}") for number, (name, arguments) in enumerate(calls, 1))
    return ParsedResponse(tool_calls=values, finish_reason=FinishReason.TOOL_CALLS)


class RecordedTransport:
    """Answers the requests of a `Client` in the words of the API that it asks, without a network."""

    offline = True

    def __init__(self, answers: Iterator[ParsedResponse]) -> None:
        self._answers = answers

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        urls = {name: endpoint.base_url for name, endpoint in ENDPOINTS.items() if endpoint.base_url}
        api = next(name for name, url in urls.items() if request.url.startswith(url))
        async with ScriptedTransport(api, [next(self._answers)]).open(request) as answer:
            yield answer

    async def close(self) -> None:
        """Do nothing; no connection is open."""


def _run_python(block: Block, names: dict[str, Any], shown: str) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile("\n" * block.line + block.code, str(block.page), "exec"), names)
    assert output.getvalue() == shown, f"{block} prints\n{output.getvalue()}\nand the page shows\n{shown}"


def _run_doctest(block: Block, names: dict[str, Any]) -> None:
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.code, names, str(block), str(block.page), block.line)
    test.globs = names  # get_doctest copies them
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    assert result.attempted, f"{block} contains no example"
    assert not result.failed, "".join(report)


def _run_console(block: Block, folder: Path) -> None:
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.code, re.MULTILINE)
    assert commands, f"{block} contains no command"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    state = str(folder / "state")
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "XDG_STATE_HOME": state}
    for command, shown in commands:
        process = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        output = process.stdout.decode()
        assert output == shown, f"{block}: {command}\nprints\n{output}\nand the page shows\n{shown}"
        assert process.returncode == 0, f"{block}: {command} exits with status {process.returncode}"
