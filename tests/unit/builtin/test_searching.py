"""Files searched: the same lines with ripgrep and without, in time linear in the text."""

import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from toolwire.builtin import searching
from toolwire.builtin.reading import MAX_FILE_BYTES
from toolwire.builtin.searching import Searching
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.candidates import wider_pattern
from toolwire.search.ripgrep import find_ripgrep

Search = Callable[..., str]
needs_ripgrep = pytest.mark.skipif(not find_ripgrep(), reason="ripgrep is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "allowed"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "sub" / "b.py").write_text("def two():\n    return 2\n")
    return root


@pytest.fixture(params=[pytest.param(True, marks=needs_ripgrep, id="ripgrep"), pytest.param(False, id="re2")])
def search(root: Path, request: pytest.FixtureRequest) -> Search:
    return Searching(AllowedRoots(root), ripgrep=request.param).search_files


def test_matching_lines_are_listed(root: Path, search: Search) -> None:
    assert search("two") == "a.txt:2: two\nsub/b.py:1: def two():"
    assert search("TWO") == "no match"
    assert search("(?i)TWO", "sub") == "sub/b.py:1: def two():"
    assert search("(?i)TWO", "./sub/") == "sub/b.py:1: def two():"
    assert search("(?i)TWO", f"{root}/sub") == f"{root}/sub/b.py:1: def two():"
    assert search("^t", "a.txt") == "a.txt:2: two\na.txt:3: three"


def test_hidden_binary_and_large_files_are_not_searched(root: Path, search: Search) -> None:
    for name in (".git", "node_modules", "sub/__pycache__", "sub/.hidden"):
        (root / name).mkdir()
        (root / name / "file").write_text("two")
    (root / ".gitignore").write_text("*\n")
    (root / ".dot").write_text("two")
    (root / "binary").write_bytes(b"two\0")
    (root / "big").write_bytes(b"two\n" * (MAX_FILE_BYTES // 4 + 1))
    (root / "link").symlink_to("a.txt")
    (root / "up").symlink_to("..")
    os.mkfifo(root / "fifo")
    assert search("two") == "a.txt:2: two\nsub/b.py:1: def two():"


def test_unusual_file_names_are_searched(root: Path, search: Search) -> None:
    for name in ("-e", "--files", "new\nline", "es\x1bc", "sp ace", "\udcff", "sub/-x", "z"):
        (root / name).write_text("two")
    assert search("two") == "\n".join(
        [
            "--files:1: two",
            "-e:1: two",
            "a.txt:2: two",
            "es\\x1bc:1: two",
            "new\\nline:1: two",
            "sp ace:1: two",
            "z:1: two",
            "\\udcff:1: two",
            "sub/-x:1: two",
            "sub/b.py:1: def two():",
        ]
    )
    assert search("-e") == "no match"
    assert search("--pre=x") == "no match"


@pytest.mark.parametrize(
    "pattern",
    ["^", "$", "^$", r"\s", "[^x]", r"a\s+b", r"\n", "(?s)a.b", r"\W$", r"^\s*b", "x?", r"\bb|a$", "(?i)^A", r"[^b]$"],
)
def test_search_finds_what_a_search_of_each_line_finds(root: Path, search: Search, pattern: str) -> None:
    import re2

    for text in ("a\nb\n", "a\n\n b\n\n", "", "\n", "ab\n\ta b", "x\nx\nb a\né a\n", "a\r\nb\r\n"):
        (root / "sub" / "b.py").write_text(text, newline="")
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
        found = [f"sub/b.py:{n}: {line.strip()}" for n, line in enumerate(lines, 1) if re2.search(pattern, line)]
        assert search(pattern, "sub") == ("\n".join(found) or "no match")


def test_lines_are_not_searched_one_by_one(root: Path) -> None:
    (root / "sub" / "b.py").write_bytes(b"\n" * MAX_FILE_BYTES)
    search = Searching(AllowedRoots(root), ripgrep=False).search_files
    begin = time.process_time()
    for pattern in ("x", r"\s", r"^x|y$"):
        assert search(pattern, "sub") == "no match"
    assert search("^$", "sub").startswith("sub/b.py:1: \nsub/b.py:2: \n")
    assert time.process_time() - begin < 4


def test_invalid_patterns_are_refused(search: Search) -> None:
    for pattern in ("(", "(?=a)", r"(a)\1", "", "x" * 301, "a{1000}{1000}", r"a\Cb", r"\\\C"):
        with pytest.raises(ToolError):
            search(pattern)


def test_searching_is_linear_and_bounded(root: Path, search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "evil").write_text("a" * 5000 + "!\n" + "hit\n" * 1000 + f"hit{'y' * 5000}\n")
    assert search("^(a+)+$") == "no match"
    assert search("hit").endswith("(only the first 40 matches are shown)")
    assert max(len(line) for line in search("hity").splitlines()) < 300
    monkeypatch.setattr(searching, "MAX_SECONDS", 0.0)
    assert "(stopped after" in search("two")


def test_deep_trees_are_searched_to_a_maximum_depth(root: Path, search: Search) -> None:
    place = root / "deep"
    for _ in range(110):
        place = place / "d"
    place.mkdir(parents=True)
    (place / "file").write_text("two")
    (root / "deep" / "d" / "file").write_text("two")
    assert "deep/d/file:1: two" in search("two", "deep")
    assert search("two", "deep").count("two") == 1


def test_a_ripgrep_below_a_root_is_not_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "bin").mkdir()
    program = root / "bin" / "rg"
    program.write_text(f"#!/bin/sh\ntouch {root}/ran\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    outside = root.parent / "path"
    outside.mkdir()
    (outside / "rg").symlink_to(program)
    for place in (root / "bin", outside):
        monkeypatch.setenv("PATH", str(place))
        assert Searching(AllowedRoots(root)).search_files("two").startswith("a.txt")
    assert not (root / "ran").exists()


def test_a_ripgrep_that_fails_is_not_needed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = root.parent / "path"
    place.mkdir()
    for script in ("exit 2", "kill -9 $$", "printf 'nothing/like/that\\0../../etc/passwd\\0/etc/passwd\\0a.txt\\0'"):
        (place / "rg").write_text(f"#!/bin/sh\n{script}\n")
        (place / "rg").chmod(0o755)
        monkeypatch.setenv("PATH", f"{place}:/bin:/usr/bin")
        assert Searching(AllowedRoots(root)).search_files("two").startswith("a.txt:2: two")


_PIECES = st.sampled_from(
    [
        *"ab1_ .^$|-é",
        *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\.", r"\x41", r"\t", r"\r", "[a-c]", "[^a]"),
        *(r"[\W1]", "[^\\s-]", "[]^-]", "{", "}", "]"),
        *("[[:alpha:]]", "[^[:digit:]]", "(a|b)", "(?:ab)", "(?i)A", "(?i:É)", "a*", "b+?", ".{2}", r"\W{2,}"),
    ]
)  # fmt: skip
_BYTES = st.lists(
    st.sampled_from(
        [
            *(b"a", b"b", b"A", b"1", b"_", b" ", b"\t", b"\r", b"\n", b"\r\n", b"-", b".", b"]", b"^", b"{", b"}"),
            *("é".encode(), "É".encode(), b"K", "ſ".encode(), "\u2028".encode(), "\ufeff".encode(), b"\x85", b"\xff"),
            *(b"\xed\xa0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\x80", b"\xe2\x82"),
        ]
    ),
    max_size=12,
).map(b"".join)  # fmt: skip


@needs_ripgrep
@settings(max_examples=80, deadline=None)
@given(st.lists(_PIECES, min_size=1, max_size=4).map("".join), st.lists(_BYTES, min_size=8, max_size=8))
@example(".", [b"\xed\xa0\x80"])
@example(r"^\W$", [b"\xe0\x80\x80\r\n"])
@example("k", [b"K"])
def test_results_are_the_same_without_ripgrep(pattern: str, texts: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            Path(folder, f"f{number}").write_bytes(text)
        roots = AllowedRoots(folder)
        try:
            expected = Searching(roots, ripgrep=False).search_files(pattern)
        except ToolError:
            assume(False)
        assert Searching(roots).search_files(pattern) == expected
        assert wider_pattern(pattern) is not None or re.search(r"\\[nz]", pattern)
