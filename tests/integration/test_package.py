"""What is packed: everything that the tests read."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from toolwire.errors import install_command

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = {"pyproject.toml", "README.md", "LICENSE", ".gitignore"}
"""The builder packs these whatever is listed."""


def test_the_source_package_holds_all_that_tests_and_checks_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    assert {".ci", ".importlinter", "scripts", "tests"} <= included
    assert not [name for name in included if not (ROOT / name).exists()]
    visible = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - {"dist", "build", "site"}
    assert visible <= included | ALWAYS


BARE = """
import asyncio, sys
for name in ("httpx", "httpx2", "re2", "dbos", "filelock", "mcp", "xllamacpp", "huggingface_hub", "prompt_toolkit",
             "opentelemetry", "botocore"):
    sys.modules[name] = None
import toolwire
from toolwire.agent import Agent, AgentConfig, AgentTeam, Member
from toolwire.testing import ScriptedBackend

@toolwire.tool
def look() -> str:
    "Look."
    return "nothing"

call = toolwire.ParsedResponse(tool_calls=(toolwire.ToolCall("look", {}, "1"),))
print(asyncio.run(Agent(ScriptedBackend([call, "Nothing there."]), [look]).ask("Look.")))
from toolwire.cli import run
assert run(["runs", "list"]) != 0
assert run(["formats"]) == 0
"""


def test_without_extras_agents_run_and_commands_say_what_they_need(tmp_path: Path) -> None:
    environment = {**os.environ, "TOOLWIRE_STATE": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, env=environment, check=False)
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (0, "Nothing there."), ran.stderr
    assert install_command("durable") in ran.stderr
    assert "Traceback" not in ran.stderr


WITHOUT_LOCAL = """
import sys
for name in ("filelock", "xllamacpp", "huggingface_hub"):
    sys.modules[name] = None
from toolwire.cli import run
assert run(["ask", "Hello", "--model", "hf:a/b/c.gguf"]) == 1
"""


def test_without_a_local_model_ask_names_the_other_way(tmp_path: Path) -> None:
    environment = {**os.environ, "TOOLWIRE_STATE": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT_LOCAL]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"{install_command('local')}; or name a model behind an API, such as --model openai:" in ran.stderr


WITHOUT_ANY_EXTRA = """
import sys
from toolwire._surface import EXTRAS
for name in EXTRAS:
    sys.modules[name] = None
from toolwire.cli import COMMANDS, run
assert run(["prse"]) == 2
for command in [name for name in COMMANDS if name != "te"]:  # its help ends the process
    print(command, run([command, "-h"]))
"""


def test_without_any_extra_every_command_has_help_or_says_what_it_needs(tmp_path: Path) -> None:
    environment = {**os.environ, "TOOLWIRE_STATE": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_ANY_EXTRA], capture_output=True, text=True, env=environment, check=False
    )
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "runs 1"), ran.stderr
    assert "No such command 'prse'. Did you mean 'parse', " in ran.stderr
    assert f"A recorded run needs anyio, which is not installed: {install_command('durable')}" in ran.stderr
