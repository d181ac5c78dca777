"""Real command-line clients use models of every API, and models that write text alone, through the gateway.

Each client reads a file with its own tool, as the scripted model asks, and prints the model's answer. The clients are
installed once into the folder that `TOOLWIRE_TEST_CLIENTS` names; without it, these tests are skipped with the reason.
Each runs in a network namespace that has nothing but loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from tests.clients.client_recipes import RECIPES
from tests.clients.client_run import ANSWER, CLIENT_SECONDS, NOTE

pytestmark = pytest.mark.npm
FOLDER = "TOOLWIRE_TEST_CLIENTS"
ROOT = Path(__file__).parents[2]
ISOLATED = ("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
NPM_SECONDS = 150


def packages(package: str) -> Path:
    """Return the folder that a package is installed in; skip the test where that is impossible."""
    if not (parent := os.environ.get(FOLDER, "")):
        pytest.skip(f"{FOLDER} does not name a folder for the clients, which take more than 1 GB")
    if any(shutil.which(program) is None for program in ("npm", "node", "git", "ip", "unshare")):
        pytest.skip("one of npm, node, git, ip and unshare is not installed")
    if subprocess.run([*ISOLATED, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no network namespaces")
    folder = Path(parent) / package.replace("/", "-").replace("@", "-").strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):  # several processes may run tests
        if not (done := folder / "installed").exists():
            options = ("--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund")
            command = ["npm", "install", *options, package]
            try:
                installed = subprocess.run(command, capture_output=True, text=True, timeout=NPM_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                pytest.skip(f"npm did not install {package} within {NPM_SECONDS} seconds")
            if installed.returncode:
                pytest.skip(f"npm cannot install {package}: {installed.stderr.strip()[-300:]}")
            done.touch()
    return folder


def read_the_file(name: str, api: str, text_format: str = "") -> None:
    folder = packages(RECIPES[name].package)
    command = [*ISOLATED, sys.executable, "-m", "tests.clients.client_run", name, str(folder), api, text_format]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=CLIENT_SECONDS + 60, check=False)
    assert ran.returncode == 0, ran.stderr
    run = json.loads(ran.stdout)
    assert run["status"] == 0, run
    assert ANSWER in run["output"], run
    assert any(NOTE in result for result in run["results"]), run


@pytest.mark.parametrize("name", RECIPES)
def test_a_client_reads_a_file_and_prints_the_answer(name: str) -> None:
    read_the_file(name, "openai_compatible")


@pytest.mark.parametrize("api", ["anthropic_messages", "openai_responses", "gemini", "ollama"])
@pytest.mark.parametrize("name", ["claude-code", "codex", "codex-gpt-5", "gemini-cli"])
def test_a_client_uses_a_model_of_another_api(name: str, api: str) -> None:
    read_the_file(name, api)


@pytest.mark.parametrize("text_format", ["hermes", "qwen3_coder", "deepseek_v3"])
@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "opencode-chat"])
def test_a_client_uses_a_model_that_writes_its_calls_as_text(name: str, text_format: str) -> None:
    read_the_file(name, "openai_compatible", text_format)
