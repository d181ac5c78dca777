"""Mistakes in the options of `toolwire eval`, which are told before anything is imported, fetched or asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_EXTRA = """
import sys
for module in ("inspect_ai", "scipy", "altair", "jinja2"):
    sys.modules[module] = None
from toolwire.cli import run
sys.exit(run(["eval", *sys.argv[1:]]))
"""
QUESTION = '{"question": "Weather?", "tools": [{"name": "w", "description": "", "parameters": {}}], "refusal": true}'


def evaluate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where its extra is not installed."""
    command = [sys.executable, "-c", WITHOUT_EXTRA, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--modle", "x"), "No such option: --modle"),
        ((), "name a suite"),
        (("no.jsonl", "--model", "m.gguf"), "no.jsonl is neither a suite"),
        (("mine.jsonl", "--model", "m.gguf", "-f", "hermse"), "did you mean hermes"),
        (("mine.jsonl", "--model", "m.gguf", "--prompt", "rulez"), "did you mean rules"),
        (("mine.jsonl", "--model", "m.gguf", "--constrain", "autoo"), "did you mean auto"),
        (("mine.jsonl", "--model", "m.gguf", "--reading", "stric"), "did you mean strict"),
        (("--rescore", "nowhere"), "nowhere: there is no such file or directory"),
        (("--rescore", "empty", "--max-tokens", "9"), "--rescore asks no model: leave out --max-tokens"),
        (("--rescore", "empty"), "name the directory that an evaluation got as --out"),
    ],
)
def test_a_missing_extra_hides_no_other_mistake(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "mine.jsonl").write_text(QUESTION)
    (tmp_path / "empty").mkdir()
    told = evaluate(tmp_path, *arguments)
    assert told.returncode == 2
    assert message in told.stderr
    assert not (tmp_path / "evaluation").exists()


def test_the_help_needs_no_extra(tmp_path: Path) -> None:
    told = evaluate(tmp_path, "--help")
    assert told.returncode == 0
    assert "--rescore" in told.stdout


def test_the_missing_extra_is_named_before_models_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(QUESTION)
    told = evaluate(tmp_path, "mine.jsonl", "--model", "no-such-model")
    assert told.returncode == 1
    assert "needs inspect_ai, which is not installed" in told.stderr
    assert not (tmp_path / "evaluation").exists()
