"""Directories listed, files read and searched: what is refused, what is cut."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from toolwire.builtin import reading
from toolwire.builtin.toolsets import reading_tools
from toolwire.errors import ToolError


class FileTools:
    """The three tools, to be called."""

    def __init__(self, *roots: Any) -> None:
        tools = {tool.definition.name: tool for tool in reading_tools(*roots, characters=4_000)}
        self.list_dir, self.read_file, self.search_files = (
            tools.get(name, nothing) for name in ("list_dir", "read_file", "search_files")
        )


def nothing(*_: Any) -> str:
    raise AssertionError("there is no such tool")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "allowed"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "sub" / "b.py").write_text("def two():\n    return 2\n")
    (tmp_path / "allowed_evil").mkdir()
    (tmp_path / "allowed_evil" / "secret.txt").write_text("secret\n")
    (tmp_path / "secret.txt").write_text("secret\n")
    return root


def refused(tools: FileTools, path: str, match: str) -> None:
    for call in (tools.list_dir, tools.read_file, lambda p: tools.search_files("secret", p)):
        with pytest.raises(ToolError, match=match):
            call(path)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret.txt",
        "sub/../../secret.txt",
        "../allowed_evil/secret.txt",
        "../allowed_evil",
        "/",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/environ",
        "../does-not-exist",
        "//etc/passwd",
    ],
)
def test_outside_is_refused_whether_it_exists_or_not(root: Path, path: str) -> None:
    refused(FileTools(root), path, "outside the allowed directory")


def test_absolute_path_beside_the_root_is_refused(root: Path) -> None:
    refused(FileTools(root), f"{root}_evil/secret.txt", "outside")
    refused(FileTools(root), f"{root}/../allowed_evil/secret.txt", "outside")
    assert FileTools(root).read_file(f"{root}/a.txt").startswith("one")


def test_links_out_of_the_root_are_refused_however_long_the_chain(root: Path) -> None:
    (root / "direct").symlink_to(root.parent / "secret.txt")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("sub/three")
    (root / "sub" / "three").symlink_to("../../secret.txt")
    (root / "dir").symlink_to(root.parent / "allowed_evil")
    for path in ("direct", "one", "dir", "dir/secret.txt"):
        refused(FileTools(root), path, "outside")
    assert FileTools(root).search_files("secret") == "no match"


def test_links_within_the_root_are_followed(root: Path) -> None:
    (root / "inner").symlink_to("sub/b.py")
    link = root.parent / "link"
    link.symlink_to(root)
    for tools in (FileTools(root), FileTools(link)):
        assert tools.read_file("inner").startswith("def two")
        assert tools.read_file("sub/../a.txt") == "one\ntwo\nthree"


def test_link_loops_end(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    (root / "sub" / "up").symlink_to("..")
    with pytest.raises(ToolError):
        FileTools(root).read_file("loop")
    assert "a.txt:2: two" in FileTools(root).search_files("two")


@pytest.mark.parametrize("path", ["a\0.txt", "a.txt\0", "x" * 5000])
def test_null_characters_and_long_paths_are_refused(root: Path, path: str) -> None:
    refused(FileTools(root), path, "not a path")


def test_lone_surrogates_and_long_names_are_tool_errors(root: Path) -> None:
    for path in ("\ud800", "x" * 300, "a.txt/b"):
        with pytest.raises(ToolError):
            FileTools(root).read_file(path)


def test_without_roots_there_are_no_tools() -> None:
    assert reading_tools() == ()


def test_a_root_must_be_a_directory(root: Path) -> None:
    with pytest.raises(ToolError, match=r"the root .*a\.txt is not a directory"):
        FileTools(root / "a.txt")
    with pytest.raises(ToolError, match=r"the root .*missing does not exist"):
        FileTools(root / "missing")


@pytest.mark.mission("F40")
def test_fifos_sockets_and_devices_are_not_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    tools = FileTools(root)
    for name in ("fifo", "socket"):
        with pytest.raises(ToolError, match="not a regular file"):
            tools.read_file(name)
    assert tools.search_files("x" * 9) == "no match"
    with pytest.raises(ToolError, match="not a regular file"):
        FileTools("/dev").read_file("null")


def test_a_range_of_lines_is_read(root: Path) -> None:
    tools = FileTools(root)
    assert tools.read_file("a.txt") == "one\ntwo\nthree"
    assert tools.read_file("a.txt", 2) == "two\nthree\n(these are lines 2 to 3 of 3)"
    assert tools.read_file("a.txt", 2, 2) == "two\n(these are lines 2 to 2 of 3)"
    assert tools.read_file("a.txt", 3, 99) == "three\n(these are lines 3 to 3 of 3)"
    for lines in ((0, 0), (-1, 0), (3, 2)):
        with pytest.raises(ToolError, match="counted from 1"):
            tools.read_file("a.txt", *lines)
    with pytest.raises(ToolError, match="has only 3 lines, so there is no line"):
        tools.read_file("a.txt", 4)
    with pytest.raises(ToolError, match="list_dir lists directories"):
        tools.read_file("sub")
    with pytest.raises(ToolError, match="read_file reads files"):
        tools.list_dir("a.txt")
    with pytest.raises(ToolError, match="No such file"):
        tools.list_dir("missing")
    (root / "empty").touch()
    assert tools.read_file("empty") == "(empty file)"


@pytest.mark.mission("G6")
def test_truncation_is_stated(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = FileTools(root)
    (root / "long").write_text("\n".join(f"line {n}" for n in range(1, 1001)))
    text = tools.read_file("long")
    assert text.endswith("\n(these are lines 1 to 200 of 1000)")
    assert tools.read_file("long", 201).startswith("line 201\n")
    (root / "wide").write_text("x" * 100_000)
    assert len(tools.read_file("wide")) < 500
    (root / "fat").write_text(f"{'x' * 390}\n" * 100)
    assert len(tools.read_file("fat")) <= 4_100
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 1000)
    assert "of more than " in tools.read_file("long")


def test_binary_files_are_refused_and_other_encodings_decoded(root: Path) -> None:
    tools = FileTools(root)
    (root / "bin").write_bytes(b"\x7fELF\0\0two")
    (root / "latin").write_bytes("two é".encode("latin-1"))
    with pytest.raises(ToolError, match="binary file of 9 bytes"):
        tools.read_file("bin")
    assert tools.read_file("latin") == "two \ufffd"
    assert "bin" not in tools.search_files("two")
    assert "latin:1: two \ufffd" in tools.search_files("two")


def test_directories_are_listed(root: Path) -> None:
    tools = FileTools(root)
    (root / "link").symlink_to("/etc")
    (root / "odd\x1b[2J\nname").touch()
    assert tools.list_dir() == "a.txt (14 bytes)\nlink (link)\nodd\\x1b[2J\\nname (0 bytes)\nsub/\n(4 entries)"
    for number in range(300):
        (root / "sub" / f"{number:03}").touch()
    assert tools.list_dir("sub").endswith("198 (0 bytes)\n199 (0 bytes)\n(301 entries, the first 200 are shown)")
    with pytest.raises(ToolError, match="not a directory"):
        tools.list_dir("a.txt")
    (root / "none").mkdir()
    assert tools.list_dir("none") == "(0 entries)"


@pytest.mark.parametrize("lines", [(2, 0), (3, 1), (0, 0), (9, 12)])
def test_short_file_is_returned_whole_if_that_is_wanted(lines: tuple[int, int], root: Path) -> None:
    _, read, _ = (tool.function for tool in reading_tools(root, characters=100, short_files_whole=True))
    assert read("a.txt", *lines) == "one\ntwo\nthree"


def test_lines_of_a_file_that_does_not_fit_are_chosen_all_the_same(root: Path) -> None:
    (root / "long.txt").write_text("".join(f"line {number}\n" for number in range(40)))
    _, read, _ = (tool.function for tool in reading_tools(root, characters=100, short_files_whole=True))
    assert read("long.txt", 39) == "line 38\nline 39\n(these are lines 39 to 40 of 40)"
    with pytest.raises(ToolError, match="no such lines: 0 to 0"):
        read("long.txt", 0)
    (root / "wide.txt").write_text("word " * 100)
    with pytest.raises(ToolError, match="has only 1 line, so there is no line 9"):
        read("wide.txt", 9)
    with pytest.raises(ToolError, match="has only 40 lines, so there is no line 41"):
        read("long.txt", 41)
