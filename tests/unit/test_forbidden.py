"""The check that refuses constructs which run data as code or hide errors."""

import ast
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "forbidden.py"
spec = importlib.util.spec_from_file_location("forbidden", SCRIPT)
assert spec is not None
assert spec.loader is not None
forbidden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(forbidden)


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "exec(text)",
        "builtins.eval(text)",
        "__import__(name)",
        "import pickle",
        "import os, marshal",
        "from pickle import loads",
        "yaml.load(text)",
        "from yaml import load",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "try:\n    f()\nexcept:\n    pass",
        "try:\n    f()\nexcept Exception:\n    raise",
        "try:\n    f()\nexcept (OSError, BaseException) as e:\n    pass",
    ],
)
def test_refused(source: str) -> None:
    assert len(list(forbidden.findings(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "re2.compile(pattern)",
        "ast.literal_eval(text)",
        "yaml.safe_load(text)",
        "model.eval()",
        "try:\n    f()\nexcept (OSError, ValueError):\n    pass",
    ],
)
def test_allowed(source: str) -> None:
    assert list(forbidden.findings(ast.parse(source))) == []


def test_the_project_has_none() -> None:
    assert forbidden.main() == 0
