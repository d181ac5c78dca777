"""The public surface as type checkers see it: correct programs pass, and each mistake is found where it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USER_CODE = Path("tests/typing/user_code.py")
WRONG_USES = Path("tests/typing/wrong_uses.py")
PYRIGHT = Path(sys.executable).with_name("basedpyright")
_EXPECTED = re.compile(r"# expect: (\S+) \| (\S+)$")
_MYPY = re.compile(r"^(?P<path>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")

Errors = dict[int, set[str]]


def expected(checker: int) -> Errors:
    """The error of each line that must have one; `checker`: 1 for mypy, 2 for pyright."""
    lines = enumerate((ROOT / WRONG_USES).read_text("utf-8").splitlines(), 1)
    return {number: {match[checker]} for number, line in lines if (match := _EXPECTED.search(line))}


def mypy(path: Path) -> Errors:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode in (0, 1), run.stderr
    errors: Errors = {}
    for match in filter(None, map(_MYPY.match, run.stdout.splitlines())):
        if Path(match["path"]) == path:
            errors.setdefault(int(match["line"]), set()).add(match["code"])
    return errors


def pyright(path: Path, folder: Path) -> Errors:
    if not PYRIGHT.is_file():
        pytest.skip("basedpyright is not installed: pip install -e '.[dev]'")
    settings = {"include": [str(ROOT / path)], "extraPaths": [str(ROOT / "src")], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [PYRIGHT, "--outputjson", "-p", folder, "--pythonpath", sys.executable]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    assert report["summary"]["filesAnalyzed"] == 1, run.stdout
    errors: Errors = {}
    for problem in report["generalDiagnostics"]:
        errors.setdefault(problem["range"]["start"]["line"] + 1, set()).add(problem["rule"])
    return errors


def test_mypy_accepts_correct_programs() -> None:
    assert mypy(USER_CODE) == {}


def test_mypy_finds_each_mistake() -> None:
    assert mypy(WRONG_USES) == expected(1)


def test_pyright_accepts_correct_programs(tmp_path: Path) -> None:
    assert pyright(USER_CODE, tmp_path) == {}


def test_pyright_finds_each_mistake(tmp_path: Path) -> None:
    found = pyright(WRONG_USES, tmp_path)
    ignored = {"reportUnusedCoroutine", "reportUnusedCallResult", "reportUnusedExpression", "reportUnknownMemberType"}
    assert {line: rules - ignored for line, rules in found.items() if rules - ignored} == expected(2)
