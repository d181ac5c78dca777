"""Files below allowed directories: nothing else is ever opened, whoever changes the tree meanwhile."""

import os
import random
import threading
from pathlib import Path

import pytest

from toolwire import ToolError
from toolwire.roots import AllowedRoots

SECRET = b"secret"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with links of all kinds, and a secret beside it."""
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file.txt").write_bytes(b"inside")
    (root / "top.txt").write_bytes(b"inside")
    (tmp_path / "root_evil").mkdir()
    (tmp_path / "root_evil" / "secret.txt").write_bytes(SECRET)
    (tmp_path / "secret.txt").write_bytes(SECRET)
    links = {
        "to_file": "top.txt",
        "to_directory": "a/b",
        "up_and_back": "a/../a/b",
        "absolute": str(root / "a"),
        "out": "..",
        "out_file": "../secret.txt",
        "out_absolute": str(tmp_path),
        "evil": "../root_evil",
        "loop": "loop",
        "nowhere": "none/at/all",
        "a/b/up": "../../..",
        "chain0": "chain1",
        "chain1": "out",
    }
    for name, target in links.items():
        os.symlink(target, root / name)
    os.mkfifo(root / "fifo")
    return root


@pytest.mark.parametrize(
    "path",
    [
        "top.txt", "./top.txt", "a/b/file.txt", "a//b/./file.txt", "a/b/../b/file.txt", "to_file",
        "to_directory/file.txt", "up_and_back/file.txt", "absolute/b/file.txt", "a/../top.txt",
    ],
)  # fmt: skip
def test_what_lies_inside_is_read(tree: Path, path: str) -> None:
    roots = AllowedRoots(tree)
    assert roots.read(path, most=100) == b"inside"
    assert roots.read(f"{tree}/{path}", most=3) == b"ins"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt", "a/../../secret.txt", "out/secret.txt", "out_file", "out_absolute/secret.txt",
        "evil/secret.txt", "chain0/secret.txt", "a/b/up/secret.txt", "loop", "nowhere", "none.txt", "fifo", "a", ".",
        "", "top.txt/", "/", "/etc/passwd", "top.txt\0", "x" * 5000, "a/b/up/root/top.txt", "top.txt/x", "/dev/null",
        "..", "a/b/file.txt/..",
    ],
)  # fmt: skip
def test_what_does_not_is_refused(tree: Path, path: str) -> None:
    roots = AllowedRoots(tree)
    if path == "top.txt/":  # the name of a file, written as a directory's: read as the file
        assert roots.read(path, most=9) == b"inside"
        return
    with pytest.raises(ToolError) as caught:
        roots.read(path, most=100)
    assert "secret" not in str(caught.value).replace(path, "")


def test_a_prefix_of_a_name_is_no_root(tree: Path) -> None:
    with pytest.raises(ToolError, match="outside"):
        AllowedRoots(tree).read(f"{tree}_evil/secret.txt", most=9)
    assert AllowedRoots(tree, f"{tree}_evil").read(f"{tree}_evil/secret.txt", most=9) == SECRET


def test_no_root_is_no_access(tree: Path) -> None:
    for work in (lambda: AllowedRoots().read("top.txt", most=1), lambda: AllowedRoots(tree / "top.txt")):
        with pytest.raises(ToolError):
            work()


def test_directories_are_opened_too(tree: Path) -> None:
    with AllowedRoots(tree).directory("to_directory") as descriptor:
        assert sorted(os.listdir(descriptor)) == ["file.txt", "up"]
    with pytest.raises(ToolError, match="not a directory"), AllowedRoots(tree).directory("top.txt"):
        pass
    with pytest.raises(OSError, match="descriptor"):
        os.listdir(descriptor)


def test_a_file_is_written_whole_or_not_at_all(tree: Path) -> None:
    roots = AllowedRoots(tree)
    os.chmod(tree / "top.txt", 0o600)
    roots.write("top.txt", b"new")
    assert (tree / "top.txt").read_bytes() == b"new"
    assert (tree / "top.txt").stat().st_mode & 0o777 == 0o600
    roots.write("a/b/made.txt", b"made")
    assert roots.read("a/b/made.txt", most=9) == b"made"
    for path in ("../new.txt", "out/new.txt", "none/new.txt", "a", "fifo", "evil/secret.txt", "."):
        with pytest.raises(ToolError):
            roots.write(path, b"bad")
    assert (tree.parent / "secret.txt").read_bytes() == SECRET
    assert sorted(name for name in os.listdir(tree) if name.startswith(".")) == []


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(tree: Path) -> None:
    AllowedRoots(tree).write("out_file", b"mine")
    assert (tree.parent / "secret.txt").read_bytes() == SECRET
    assert not (tree / "out_file").is_symlink()


def test_ten_thousand_hostile_paths(tree: Path) -> None:
    roots, draw = AllowedRoots(tree), random.Random(7)
    names = [
        *os.listdir(tree),
        *os.listdir(tree / "a" / "b"),
        "..",
        ".",
        "",
        "secret.txt",
        "root",
        "root_evil",
        "b",
        str(tree)[1:],
    ]
    opened = 0
    for _ in range(10_000):
        path = draw.choice(("", "", "/", f"{tree}/")) + "/".join(draw.choices(names, k=draw.randint(1, 7)))
        try:
            assert roots.read(path, most=100) != SECRET, path
            opened += 1
        except ToolError:
            pass
    assert opened > 100


def test_nobody_swaps_a_directory_for_a_link_in_between(tree: Path) -> None:
    """A thread that changes `swap` between a directory of ours and a link out of the root, all the time."""
    inside, outside = tree / "swap_in", tree / "swap_out"
    inside.mkdir()
    (inside / "secret.txt").write_bytes(b"harmless")
    os.symlink(tree.parent, outside)
    place, stop = tree / "swap", threading.Event()
    os.rename(inside, place)

    def swap() -> None:
        while not stop.is_set():
            os.rename(place, inside)
            os.rename(outside, place)
            os.rename(place, outside)
            os.rename(inside, place)

    thread = threading.Thread(target=swap)
    thread.start()
    roots, read = AllowedRoots(tree), 0
    try:
        for _ in range(5_000):
            try:
                assert roots.read("swap/secret.txt", most=100) == b"harmless"
                read += 1
            except ToolError:
                pass
    finally:
        stop.set()
        thread.join()
    assert read
