"""`toolwire tools` and `toolwire call`, at a terminal and without one."""

import json
import os
import pty
import select
import subprocess
from pathlib import Path

import pytest
from tests.integration.test_cli import COMMAND, TOOLS, fails, process, toolwire_cli

OWN = '''
import toolwire
from toolwire import Tier


@toolwire.tool
def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


@toolwire.tool(tier=Tier.RUN, requires_confirmation=True, preview=lambda given: f"fires at {given['target']}")
def fire(target: str) -> str:
    """Fires."""
    return f"fired at {target}"


@toolwire.tool
def fail() -> str:
    """Fails."""
    raise ValueError("broken")
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own_tools.py"
    path.write_text(OWN)
    return str(path)


def test_tools_are_listed_by_tier(tmp_path: Path, own: str) -> None:
    definitions = tmp_path / "weather.json"
    definitions.write_text(json.dumps(TOOLS))
    arguments = ["tools", "list", "--root", str(tmp_path), "--tools", own, "--tools", str(definitions), "--json"]
    done = toolwire_cli(*arguments)
    tools = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert {"read_file", "write_file", "add", "fire", "get_weather"} <= tools.keys()
    assert (tools["fire"]["tier"], tools["fire"]["requires_confirmation"]) == ("RUN", True)
    low = toolwire_cli(*arguments, "--tier", "crawl")
    names = {json.loads(line)["name"] for line in low.stdout.splitlines()}
    assert "add" in names
    assert "fire" not in names
    assert "fire  RUN, asks" in toolwire_cli("tools", "list", "--tools", own).stdout


def test_result_with_an_image_is_described_and_written(tmp_path: Path) -> None:
    path, target = tmp_path / "paint.py", tmp_path / "dot.png"
    path.write_text(
        "import toolwire\n\n\n@toolwire.tool\ndef paint() -> toolwire.ImagePart:\n"
        "    return toolwire.ImagePart('aGk=', 'image/png')\n"
    )
    done = toolwire_cli("call", "paint", "--tools", str(path), "--output", str(target))
    assert done.stdout == "[image: image/png, 2 bytes]\n"
    assert target.read_bytes() == b"hi"


def test_a_schema_is_shown(own: str) -> None:
    shown = json.loads(toolwire_cli("tools", "schema", "add", "--tools", own).stdout)
    assert shown["parameters"]["required"] == ["a"]
    assert "did you mean add" in fails(2, "tools", "schema", "ad", "--tools", own)
    assert "--root DIR adds the built-in tools" in fails(2, "tools", "schema", "ad")


def test_definitions_are_checked_one_by_one(tmp_path: Path) -> None:
    bad = [
        *TOOLS,
        {"name": "two words", "parameters": {"type": "object"}},
        {"name": "loop", "parameters": {"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}},
        {"name": "get_weather"},
        {"nothing": 1},
    ]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": bad}))
    done = toolwire_cli("tools", "check", str(path), "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["usable"] for row in rows] == [True, False, False, False, False]
    assert "/properties/x/$ref" in rows[2]["problem"]
    assert "has this name" in rows[3]["problem"]
    assert done.returncode == 1
    assert "4 of 5 cannot be used" in toolwire_cli("tools", "check", str(path)).stderr
    assert toolwire_cli("tools", "check", "-", stdin=json.dumps(TOOLS)).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["add", '{"a": "4"}'], 0, "5"),
        (["fail"], 1, "ValueError: broken"),
        (["add", '{"a": "x"}'], 2, "/a"),
        (["ad"], 2, "did you mean add"),
        (["add", "[]"], 2, "must be a JSON object"),
        (["add", "{"], 2, "not JSON"),
        (["fire", '{"target": "x"}'], 3, "needs the tier RUN"),
        (["fire", '{"target": "x"}', "--tier", "RUN"], 3, "nobody is at the terminal"),
        (["fire", '{"target": "x"}', "--tier", "RUN", "--yes"], 0, "fired at x"),
        (["add", '{"a": 1}', "--tier", "FLY"], 2, "unknown tier 'FLY'"),
    ],
)
def test_a_call_and_its_status(own: str, arguments: list[str], status: int, said: str) -> None:
    done = toolwire_cli("call", *arguments, "--tools", own)
    assert done.returncode == status, done.stderr
    assert said in (done.stdout if status == 0 else done.stderr)
    if status == 0:
        assert done.stdout == said + "\n"


LOUD = '''
import os
import subprocess
import toolwire

print("loaded")


@toolwire.tool
def loud() -> str:
    """Prints."""
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"], check=True)
    return "done"
'''


def test_standard_output_has_the_result_alone(tmp_path: Path) -> None:
    path = tmp_path / "loud.py"
    path.write_text(LOUD)
    done = process("call", "loud", "--tools", str(path), "--json")
    assert json.loads(done.stdout)["result"]["result"] == "done"
    assert sorted(done.stderr.split()) == ["echoed", "loaded", "printed", "written"]
    assert toolwire_cli("call", "loud", "--tools", str(path)).stdout == "done\n"
    assert toolwire_cli("tools", "check", str(path), "--json").stdout.count("\n") == 1


def test_arguments_come_from_standard_input(own: str) -> None:
    assert toolwire_cli("call", "add", "-", "--tools", own, stdin='{"a": 4}').stdout == "5\n"


def test_a_refusal_says_which_tier_would_do(own: str) -> None:
    assert "Add --tier RUN." in fails(3, "call", "fire", '{"target": "x"}', "--tools", own)


def test_python_files_are_checked(own: str) -> None:
    assert toolwire_cli("tools", "check", own).stdout.splitlines()[0] == "add: can be used"


def test_nothing_to_list_says_what_gives_tools() -> None:
    done = toolwire_cli("tools", "list")
    assert done.stdout == ""
    assert "--tools FILE" in done.stderr


def test_a_call_without_any_tool_says_what_gives_tools(tmp_path: Path) -> None:
    assert "There are no tools. --root DIR adds the built-in tools" in fails(2, "call", "add")
    (tmp_path / "tools.json").write_text("[]")
    assert "no tools: --root DIR" in toolwire_cli("tools", "list", "--tools", str(tmp_path / "tools.json")).stderr


def test_rules_from_a_file_hold_even_with_yes(own: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[policy.rules]]\neffect = "deny"\ntool = "fire"\nreason = "no firing on Sundays"\n')
    done = toolwire_cli(
        *("call", "fire", '{"target": "x"}', "--tools", own, "--tier", "RUN", "--yes", "--policy", str(rules), "--json")
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"], told["issue"]["kind"]) == (3, 3, "denied")
    assert "no firing on Sundays" in told["result"]["error"]


def test_a_python_file_that_cannot_be_run_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("raise RuntimeError('no')")
    assert "RuntimeError: no" in fails(1, "call", "x", "--tools", str(path))
    path.write_text("x = 1")
    assert "makes no tool" in fails(2, "call", "x", "--tools", str(path))


@pytest.mark.parametrize(
    ("typed", "status", "said", "target"),
    [
        ("y\n", 0, "fired at moon", "moon"),
        ("\n", 3, "refused", "moon"),
        ("maybe\nw\nn\n", 3, "refused", "moon"),
        ("abort\nyep\na\nNo\n", 3, "refused", "moon"),
        (
            "y\nyes\nwhole\nYES\n",
            0,
            "answer w to see all of it, then approve",
            "moon " + " ".join(map(str, range(1500))),
        ),
        ("n\n", 3, "refused", "moon " + " ".join(map(str, range(1500)))),
    ],
)
def test_somebody_at_the_terminal_is_asked(own: str, typed: str, status: int, said: str, target: str) -> None:
    leader, follower = pty.openpty()
    os.write(leader, b"y\n")  # typed before the question: no answer to it
    command = [*COMMAND, "call", "fire", json.dumps({"target": target}), "--tools", own, "--tier", "RUN"]
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env={**os.environ, "COLUMNS": "100"}
    )
    os.close(follower)
    shown, answers = "", typed.splitlines(keepends=True)
    try:
        while select.select([leader], [], [], 30)[0]:
            try:
                piece = os.read(leader, 4096).decode()
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            shown += piece
            while answers and shown.count("[w]hole text: ") > len(typed.splitlines()) - len(answers):
                os.write(leader, answers.pop(0).encode())
        assert process.wait(30) == status, shown
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    assert said in shown
    assert "fires at moon" in shown


@pytest.mark.parametrize("name", ["calendar.py", "my own-tools.v2.py"])
def test_an_isolated_tool_is_the_one_in_the_file_whatever_its_name(tmp_path: Path, name: str) -> None:
    """Also where the standard library has a function of that name in a module of that name."""
    (tmp_path / name).write_text(
        "import datetime\nfrom toolwire import tool\n\n\n@tool(isolated=True)\n"
        "def isleap(year: int) -> str:\n    return f'my own {year}'\n\n\nalso = isleap\n"
    )
    ended = toolwire_cli("call", "isleap", '{"year": 2000}', "--tools", str(tmp_path / name), "--yes")
    assert (ended.returncode, ended.stdout) == (0, "my own 2000\n"), ended.stderr


def test_nobody_is_asked_who_does_not_see_the_question(own: str) -> None:
    leader, follower = pty.openpty()
    try:
        os.write(leader, b"y\n")
        command = [*COMMAND, "call", "fire", '{"target": "x"}', "--tools", own, "--tier", "RUN"]
        done = subprocess.run(command, stdin=follower, capture_output=True, text=True, timeout=30, check=False)
    finally:
        os.close(leader)
        os.close(follower)
    assert done.returncode == 3
    assert "nobody is at the terminal" in done.stderr


def test_a_key_twice_is_no_argument(own: str) -> None:
    told = fails(2, "call", "add", '{"a": 1, "a": 40, "b": 2}', "--tools", own)
    assert "the second argument has the key 'a' twice in one object" in told
