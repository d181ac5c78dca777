"""Ten thousand hostile paths over farms of links, through every tool that touches files; and a tree that changes."""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from toolwire.builtin import path_suggestions
from toolwire.builtin.toolsets import builtin_tools
from toolwire.errors import ToolError
from toolwire.search.ripgrep import find_ripgrep

SECRET = "the secret of the neighbours"
OUTSIDE = "only_there.txt"
"""A name that no call makes up."""
HARMLESS = "harmless line\n"
PATHS = 10_000
RACES, RACES_SLOW, MOST_RACES = 1_000, 40, 40_000
SEEN = 20
"""Times that the tree was met in either state, at least."""
SLOW = ("search_files", "execute_command")
"""They start programs, and search what is there without refusing it."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with directories, files and a farm of links; around it neighbours with secrets."""
    root = tmp_path / "root"
    for place in ("a/b/c", "d", "names"):
        (root / place).mkdir(parents=True)
    for place in ("top.txt", "a/one.txt", "a/b/two.txt", "a/b/c/three.txt", "d/four.txt"):
        (root / place).write_text(HARMLESS)
    for place in ("", "root_evil", "roo", "root.", "Root", "neighbour/a"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "secret.txt").write_text(SECRET)
        (tmp_path / place / OUTSIDE).write_text(SECRET)
    draw = random.Random(11)
    near = "../secret.txt ../root_evil ../root_evil/secret.txt ../neighbour . a a/b ../a ../top.txt ../root ../root/a"
    far = ".. ../.. ../../.. ../../../.. a/../.. a/b/../../.. ./././.. a//b ../root/../secret.txt no/such/place"
    system = "/ /etc /etc/passwd /proc/self/cwd /proc/self/root /dev/fd /dev/null"
    own = [str(tmp_path), f"{tmp_path}/secret.txt", f"{root}/../secret.txt", str(root), f"{root}/a", f"/{root}"]
    targets = [*near.split(), *far.split(), *system.split(), *own]
    links: list[str] = []
    for number in range(400):
        place = draw.choice(("", "a/", "a/b/", "a/b/c/", "d/"))
        name = f"l{number}"
        other = draw.choice(links).rsplit("/", 1)[-1] if links else "l0"
        os.symlink(draw.choice([draw.choice(targets), other, f"{other}/..", name]), root / place / name)
        links.append(place + name)
    os.mkfifo(root / "fifo")
    return root


@pytest.fixture
def tools(tree: Path) -> dict[str, Callable[..., Any]]:
    return {tool.definition.name: tool for tool in builtin_tools(tree)}


def outside(tree: Path) -> dict[str, bytes]:
    """All that lies around the root, by name."""
    found = {}
    for place, directories, files in os.walk(tree.parent):
        if place == str(tree.parent):
            directories.remove("root")
        for name in files:
            path = Path(place, name)
            found[str(path)] = path.read_bytes()
        found[place] = b"directory"
    return found


def paths(tree: Path, count: int) -> Iterator[str]:
    draw = random.Random(23)
    odd = "root root_evil roo root. secret.txt neighbour passwd new x.txt ~ ~root %2e%2e ..%2f ..\\ ... $HOME"
    names = [
        *(name for _, directories, files in os.walk(tree) for name in (*directories, *files)),
        *("..", "..", "..", ".", "", "\u2024\u2024", "\uff0e\uff0e", "a\0", " ..", ".. ", "\n"),
        *odd.split(),
    ]
    starts = (*("", "", "", "/", "//", "./", "../"), f"{tree}/", f"{tree}_evil/", f"{tree.parent}/", f"{tree}/../")
    ends = ("", "", "", "/", "/.", "\0")
    real = [os.path.relpath(os.path.join(at, name), tree) for at, _, files in os.walk(tree) for name in files]
    for number in range(count):
        if number % 7 == 0:  # what is there, written in an odd way
            steps = draw.choice(real).split("/")
            yield draw.choice(("", "./", f"{tree}/", "d/../", "a/b/../../")) + draw.choice(("/", "//", "/./")).join(
                steps
            )
        else:
            yield draw.choice(starts) + "/".join(draw.choices(names, k=draw.randint(1, 8))) + draw.choice(ends)


def test_ten_thousand_hostile_paths(
    tree: Path, tools: dict[str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_suggestions, "LOOKED_AT", 5)  # most of these paths are not there
    before, done = outside(tree), dict.fromkeys(tools, 0)
    edits = [{"search": "harmless", "replace": "harmless "}]
    for number, path in enumerate(paths(tree, PATHS)):
        calls: list[tuple[str, dict[str, Any]]] = [("read_file", {"path": path}), ("list_dir", {"path": path})]
        if number % 10 == 0:
            calls.append(("search_files", {"pattern": "secret|harmless", "path": path}))
        if number % 5 == 1:
            calls.append(("write_file", {"path": path, "content": HARMLESS}))
        if number % 5 == 2:
            calls.append(("apply_diff", {"path": path, "edits": edits}))
        if number % 20 == 3:
            calls.append(("execute_command", {"command": ["pwd"], "cwd": path}))
        for name, arguments in calls:
            try:
                shown = tools[name](**arguments)
                if name == "execute_command":
                    shown = asyncio.run(shown)
                    assert Path(shown.partition("\n")[0]).is_relative_to(tree), path
                assert SECRET not in shown, (name, path)
                assert ":0:0:" not in shown, (name, path)
                assert OUTSIDE not in shown, (name, path)
                done[name] += 1
            except ToolError as error:
                assert SECRET not in str(error), (name, path)
    assert outside(tree) == before
    assert min(done[name] for name in ("read_file", "list_dir", "search_files", "write_file", "apply_diff")) > 20, done
    assert done["execute_command"] > 4, done


SWAP = """
import ctypes, os, sys
place, other, target = sys.argv[1:]
exchange = ctypes.CDLL(None).renameat2
names = os.fsencode(place), os.fsencode(other)
print("begun", flush=True)
while True:
    if not (os.path.islink(place) or os.path.islink(other)):  # a file was written in the link's place
        os.unlink(other)
        os.symlink(target, other)
    if exchange(-100, names[0], -100, names[1], 2):
        sys.exit(1)
"""


@contextmanager
def swapped(place: Path, target: str) -> Iterator[None]:
    """Another process exchanges a file or directory for a link, and back, all the time."""
    other = place.with_name("other")
    os.symlink(target, other)
    argv = [sys.executable, "-I", "-S", "-c", SWAP, str(place), str(other), target]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
            assert process.poll() is None, "nothing was exchanged any more"
        finally:
            process.kill()


needs_exchange = pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names at once")
FILE_TOOLS = ("read_file", "write_file", "apply_diff", "search_files")


@needs_exchange
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "file") for name in FILE_TOOLS),
        *((name, "directory") for name in (*FILE_TOOLS, "list_dir", "execute_command")),
    ],
)
def test_nobody_leads_a_tool_outside_by_changing_the_tree(tmp_path: Path, name: str, kind: str) -> None:
    root, neighbour = tmp_path / "root", tmp_path / "neighbour"
    (root / "deep" / "swap").mkdir(parents=True)
    (neighbour).mkdir()
    for place in (root / "deep" / "swap", neighbour):
        (place / "file.txt").write_text(HARMLESS if place != neighbour else SECRET)
    (neighbour / "secret.txt").write_text(SECRET)
    if kind == "file":
        place, target = root / "deep" / "swap" / "file.txt", "../../../neighbour/secret.txt"
    else:
        place, target = root / "deep" / "swap", "../../neighbour"
    tool = {one.definition.name: one for one in builtin_tools(root)}[name]
    arguments: dict[str, Any] = {
        "read_file": {"path": "deep/swap/file.txt"},
        "write_file": {"path": "deep/swap/file.txt", "content": HARMLESS},
        "apply_diff": {"path": "deep/swap/file.txt"},
        "search_files": {"pattern": "secret|harmless", "path": "deep"},
        "list_dir": {"path": "deep/swap"},
        "execute_command": {"command": ["pwd", "-P"], "cwd": "deep/swap"},
    }[name]
    done = refused = 0
    with swapped(place, target):
        for number in range(MOST_RACES):
            is_enough = done > 0 if name in SLOW else min(done, refused) >= SEEN
            if is_enough and number >= (RACES_SLOW if name in SLOW else RACES):
                break
            if name == "apply_diff":
                old, new = ("harmless", "harmful")[:: 1 - 2 * (number % 2)]
                arguments["edits"] = [{"search": old, "replace": new}]
            try:
                shown = asyncio.run(tool(**arguments)) if name == "execute_command" else tool(**arguments)
                assert SECRET not in shown
                assert "secret.txt" not in shown
                assert name != "execute_command" or shown.startswith(f"{root}/deep/"), shown
                done += 1
            except ToolError as error:
                assert SECRET not in str(error)
                refused += 1
    assert {path.name: path.read_text() for path in neighbour.iterdir()} == {"file.txt": SECRET, "secret.txt": SECRET}
    assert done
    assert refused or name in SLOW


@needs_exchange
def test_ripgrep_is_given_a_tree_that_changes(tmp_path: Path) -> None:
    """With ripgrep and without, whichever is installed: what is shown was opened below the root."""
    if not find_ripgrep():
        pytest.skip("ripgrep is not installed")
    root, neighbour = tmp_path / "root", tmp_path / "neighbour"
    for number in range(50):
        (root / "swap" / f"d{number}").mkdir(parents=True)
        (root / "swap" / f"d{number}" / "file.txt").write_text(HARMLESS)
        (neighbour / f"d{number}").mkdir(parents=True)
        (neighbour / f"d{number}" / "file.txt").write_text(SECRET)
    tool = {one.definition.name: one for one in builtin_tools(root)}["search_files"]
    with swapped(root / "swap", "../neighbour"):
        for _ in range(30):
            assert SECRET not in tool(pattern="secret|harmless")
