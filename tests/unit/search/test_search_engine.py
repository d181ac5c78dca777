"""Searching: ripgrep and the search without it give the same, below the allowed directory and nowhere else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.unit.envelope.tree import wait_until_gone

from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.query import MAX_LINE, Query, SearchError
from toolwire.search.re2_search import Re2Search
from toolwire.search.ripgrep import PinnedPath, RipgrepSearch, find_ripgrep

SEARCHERS = [pytest.param(True, id="ripgrep", marks=pytest.mark.skipif(not find_ripgrep(), reason="no ripgrep")), False]


class Sink:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.hits: list[tuple[str, int, str]] = []
        self.binaries = 0

    def hit(self, path: bytes, number: int, line: bytes) -> None:
        self.hits.append((os.fsdecode(path), number, line.decode("utf-8", "replace")))

    def binary_file(self) -> None:
        self.binaries += 1


def search(root: Path, *, ripgrep: Any, seconds: float = 30.0, program: str = "", **options: Any) -> Sink:
    sink = Sink()
    query = Query(**options)
    with ExitStack() as stack:
        for path in query.paths:
            roots = AllowedRoots(root)
            running = (
                RipgrepSearch(program or find_ripgrep(), query, PinnedPath(roots, path, stack))
                if ripgrep
                else Re2Search(query, roots, path)
            )
            assert running.feed(sink, seconds=seconds)
    sink.hits.sort()
    return sink


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    for folder in ("src/deep", "node_modules/x", ".hidden"):
        (root / folder).mkdir(parents=True)
    (root / "src" / "a.py").write_text("def fetch():\n    return 1\nFETCH = fetch\n")
    (root / "src" / "deep" / "b.js").write_bytes(b"x\r\nfetch(1)\r\nprefetched")
    (root / "c.md").write_text("nothing\n")
    (root / "-dash.txt").write_text("--fetch\n")
    (root / "line\nbreak.txt").write_text("fetch\n")
    (root / ".hidden" / "d.py").write_text("fetch\n")
    (root / "node_modules" / "x" / "e.js").write_text("fetch\n")
    (root / ".ignore").write_text("node_modules\n")
    (root / "data.bin").write_bytes(b"\0\1fetch\n")
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "secret.py").write_text("fetch = 'secret'\n")
    os.symlink("../ws-evil", root / "evil")
    os.symlink("../ws-evil/secret.py", root / "evil.py")
    os.symlink("src/a.py", root / "good.py")
    os.mkfifo(root / "fifo.py")
    return root


A = [("src/a.py", 1, "def fetch():"), ("src/a.py", 3, "FETCH = fetch")]
B = [("src/deep/b.js", 2, "fetch(1)"), ("src/deep/b.js", 3, "prefetched")]
BREAK = ("line\nbreak.txt", 1, "fetch")
DASH = ("-dash.txt", 1, "--fetch")


@pytest.mark.parametrize("ripgrep", SEARCHERS)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [DASH, BREAK, *A, *B]),
        ({"paths": ("src/deep",)}, B),
        ({"paths": ("src/deep/",), "word": True}, B[:1]),
        ({"pattern": "^fetch"}, [BREAK, B[0]]),
        ({"paths": ("src/a.py", "./c.md")}, A),
        ({"paths": ("good.py",)}, [("good.py", 1, "def fetch():"), ("good.py", 3, "FETCH = fetch")]),
        ({"pattern": "--fetch"}, [DASH]),
        ({"pattern": "fetch(", "fixed": True}, [A[0], B[0]]),
        ({"pattern": "Fetch", "ignore_case": True, "paths": ("src/a.py",)}, A),
        ({"pattern": "FETCH", "smart_case": True}, A[1:]),
        ({"globs": ("*.js", "*.txt", "!line*")}, [DASH, *B]),
        ({"paths": (".hidden",)}, [(".hidden/d.py", 1, "fetch")]),
        ({"hidden": True, "globs": ("d.py",)}, [(".hidden/d.py", 1, "fetch")]),
        ({"no_ignore": True, "globs": ("e.js",)}, [("node_modules/x/e.js", 1, "fetch")]),
        ({"pattern": "no such thing"}, []),
        ({"pattern": r"\$\(touch x\)|`id`|; ls"}, []),
    ],
)
def test_matching_lines_are_found(
    tree: Path, ripgrep: bool, options: dict[str, Any], expected: list[tuple[str, int, str]]
) -> None:
    hits = search(tree, ripgrep=ripgrep, **{"pattern": "fetch", **options}).hits
    assert [(path, number, line.removesuffix("\r")) for path, number, line in hits] == expected


@pytest.mark.mission("G22")
@pytest.mark.parametrize("ripgrep", SEARCHERS)
@pytest.mark.parametrize(
    "pattern", ["[", "(", "*a", "a{2,1}", r"(?=a)", r"\1", "(?P<x", r"\p{Nope}", "a" + "{1000}" * 5]
)
def test_an_invalid_pattern_is_an_error(tree: Path, ripgrep: bool, pattern: str) -> None:
    with pytest.raises(SearchError) as caught:
        search(tree, ripgrep=ripgrep, pattern=pattern)
    assert caught.value.code == "invalid_pattern"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ripgrep", SEARCHERS)
@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../ws-evil",
        "/etc",
        "evil",
        "evil/secret.py",
        "evil.py",
        "src/../../ws-evil",
        "none",
        "fifo.py",
        "",
        "a\0b",
        "src/a.py/x",
    ],
)
def test_paths_outside_are_refused(tree: Path, ripgrep: bool, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        search(tree, ripgrep=ripgrep, pattern="fetch", paths=(path,))
    assert "secret" not in str(caught.value).replace(path, "")


@pytest.mark.mission("G26")
def test_a_sibling_of_the_root_is_outside(tree: Path) -> None:
    for path in (f"{tree}-evil", f"{tree}-evil/secret.py", f"{tree}/../ws-evil"):
        with pytest.raises(ToolError, match="outside"):
            search(tree, ripgrep=False, pattern="fetch", paths=(path,))
    assert search(tree, ripgrep=False, pattern="def", paths=(str(tree / "src"),)).hits == [
        ("src/a.py", 1, "def fetch():")
    ]


@pytest.mark.skipif(not find_ripgrep() or not os.path.isdir("/proc/self/fd"), reason="no ripgrep, or no /proc")
def test_a_directory_stays_pinned(tree: Path) -> None:
    with ExitStack() as stack:
        place = PinnedPath(AllowedRoots(tree), "src", stack)
        os.rename(tree / "src", tree / "moved")
        os.symlink("../ws-evil", tree / "src")  # swapped between looking and searching
        sink = Sink()
        RipgrepSearch(find_ripgrep(), Query("fetch"), place).feed(sink, seconds=30)
    assert {path for path, _, _ in sink.hits} == {"src/a.py", "src/deep/b.js"}


@pytest.mark.skipif(not find_ripgrep(), reason="no ripgrep")
def test_a_directory_swapped_for_a_link_is_not_followed(tree: Path) -> None:
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(tree / "src", tree / "aside")
            os.symlink("../ws-evil", tree / "src")
            os.unlink(tree / "src")
            os.rename(tree / "aside", tree / "src")

    thread = threading.Thread(target=swap)
    thread.start()
    found: list[str] = []
    try:
        for _ in range(40):
            try:
                found += [line for _, _, line in search(tree, ripgrep=True, pattern="fetch", paths=("src",)).hits]
            except ToolError:
                continue
    finally:
        stop.set()
        thread.join()
    assert not [line for line in found if "secret" in line]


@pytest.mark.parametrize("ripgrep", SEARCHERS)
def test_long_lines_are_truncated_and_large_files_searched(tree: Path, ripgrep: bool) -> None:
    (tree / "long.txt").write_text("fetch " + "x" * 50_000 + "\n")
    with (tree / "large.txt").open("w") as file:
        for _ in range(40):
            file.write(("y" * 99 + "\n") * 4_000)
        file.write("fetch at the end")
    found = search(tree, ripgrep=ripgrep, pattern="fetch", globs=("l*.txt",)).hits
    long, large = sorted((hit for hit in found if hit[0] in ("long.txt", "large.txt")), reverse=True)
    assert large == ("large.txt", 160_001, "fetch at the end")
    assert long[2].startswith("fetch xxx")
    assert len(long[2]) < MAX_LINE + 60


@pytest.mark.parametrize("ripgrep", SEARCHERS)
def test_a_file_without_line_breaks_is_searched(tree: Path, ripgrep: bool) -> None:
    (tree / "one.txt").write_bytes(b"z" * 20_000_000 + b"fetch" + b"z" * 100)
    found = search(tree, ripgrep=ripgrep, pattern="fetch", paths=("one.txt",)).hits
    assert {path for path, _, _ in found} == {"one.txt"}


@pytest.mark.skipif(not find_ripgrep(), reason="no ripgrep")
def test_binary_files_are_counted(tree: Path) -> None:
    (tree / "late.dat").write_bytes(b"fetch early\n" + b"x\n" * 100_000 + b"\0\nfetch\n")
    (tree / "z.txt").write_text("fetch z\n")
    found = search(tree, ripgrep=True, pattern="fetch", globs=("late.dat", "z.txt"))
    assert found.hits == [("late.dat", 1, "fetch early"), ("z.txt", 1, "fetch z")]
    assert found.binaries == 1
    assert search(tree, ripgrep=True, pattern="fetch", paths=("data.bin",)).binaries == 1


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("ripgrep", SEARCHERS)
def test_a_file_that_cannot_be_read_is_left_out(tree: Path, ripgrep: bool) -> None:
    (tree / "c.md").chmod(0)
    assert search(tree, ripgrep=ripgrep, pattern="^def").hits == [("src/a.py", 1, "def fetch():")]


def stand_in(tmp_path: Path, script: str) -> str:
    """A ripgrep that does as it is told."""
    path = tmp_path / "rg"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_timed_out_search_is_killed_with_its_children(tree: Path, tmp_path: Path) -> None:
    program = stand_in(tmp_path, f"printf 'a.py\\0007:found\\n'; sleep 60 & echo $! > {tmp_path}/child; wait")
    sink = Sink()
    with ExitStack() as stack:
        begun = RipgrepSearch(program, Query("x"), PinnedPath(AllowedRoots(tree), ".", stack))
        while not (tmp_path / "child").is_file() or not (tmp_path / "child").read_text().endswith("\n"):
            pass
        assert begun.feed(sink, seconds=0.1) is False
    assert sink.hits == [("a.py", 7, "found")]
    child = int((tmp_path / "child").read_text())
    wait_until_gone(child)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo 'thread panicked' >&2; exit 101", "internal"),
        ("exit 3", "internal"),
        ("kill -9 $$", "internal"),
        ("echo 'unrecognized file type: x' >&2; exit 2", "invalid_option"),
        ("echo \"error parsing glob '['\" >&2; exit 2", "invalid_option"),
    ],
)
def test_a_failing_ripgrep_is_an_error(tree: Path, tmp_path: Path, script: str, code: str) -> None:
    with pytest.raises(SearchError) as caught:
        search(tree, ripgrep=True, program=stand_in(tmp_path, script), pattern="x")
    assert caught.value.code == code


def test_ripgrep_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = stand_in(tmp_path, "exit 1")
    monkeypatch.setenv("PATH", f"relative:{tmp_path}")
    assert find_ripgrep() == program
    assert find_ripgrep("none") == ""
    assert find_ripgrep(program) == program
    assert find_ripgrep("/no/such/rg") == ""
    (tmp_path / "rg").chmod(stat.S_IRUSR)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_ripgrep() == ""


@pytest.mark.mission("G22")
def test_a_search_without_ripgrep_and_re2_is_an_error(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "re2.py").write_text("raise ImportError('gone')\n")
    environ = {**os.environ, "TE_RG": "none", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    argv = [sys.executable, "-m", "toolwire.envelope", "grep", "x"]
    done = subprocess.run(argv, cwd=tree, env=environ, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert b'"error":"ripgrep_not_found"' in done.stdout
    assert b"pip install" in done.stdout


def test_types_need_ripgrep(tree: Path) -> None:
    with pytest.raises(SearchError, match="globs"):
        search(tree, ripgrep=False, pattern="x", types=("py",))
