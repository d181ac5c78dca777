"""Files below allowed directories: nothing else is ever opened, whoever changes the tree meanwhile."""

import errno
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from toolwire import ToolError
from toolwire.runtime import allowed_roots as roots_module
from toolwire.runtime.allowed_roots import MAX_LINKS, MAX_PATH, AllowedRoots
from toolwire.runtime.directory_descriptors import beginning_in, entries_of

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
def test_paths_inside_are_read(tree: Path, path: str) -> None:
    roots = AllowedRoots(tree)
    assert roots.read(path, most=100) == b"inside"
    assert roots.read(f"{tree}/{path}", most=3) == b"ins"


@pytest.mark.mission("F40")
@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt", "a/../../secret.txt", "out/secret.txt", "out_file", "out_absolute/secret.txt",
        "evil/secret.txt", "chain0/secret.txt", "a/b/up/secret.txt", "loop", "nowhere", "none.txt", "fifo", "a", ".",
        "", "top.txt/", "/", "/etc/passwd", "top.txt\0", "x" * 5000, "a/b/up/root/top.txt", "top.txt/x", "/dev/null",
        "..", "a/b/file.txt/..",
    ],
)  # fmt: skip
def test_paths_outside_are_refused(tree: Path, path: str) -> None:
    roots = AllowedRoots(tree)
    if path == "top.txt/":  # the name of a file, written as a directory's: read as the file
        assert roots.read(path, most=9) == b"inside"
        return
    with pytest.raises(ToolError) as caught:
        roots.read(path, most=100)
    assert "secret" not in str(caught.value).replace(path, "")


@pytest.mark.mission("F40")
def test_a_prefix_of_a_root_is_outside(tree: Path) -> None:
    with pytest.raises(ToolError, match="outside"):
        AllowedRoots(tree).read(f"{tree}_evil/secret.txt", most=9)
    assert AllowedRoots(tree, f"{tree}_evil").read(f"{tree}_evil/secret.txt", most=9) == SECRET


@pytest.mark.mission("F40")
def test_without_roots_there_is_no_access(tree: Path) -> None:
    for work in (lambda: AllowedRoots().read("top.txt", most=1), lambda: AllowedRoots(tree / "top.txt")):
        with pytest.raises(ToolError):
            work()


def test_directories_are_opened(tree: Path) -> None:
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
    for path in ("../new.txt", "out/new.txt", "none/new.txt", "a", "fifo", "evil/secret.txt", ".", "loop"):
        with pytest.raises(ToolError):
            roots.write(path, b"bad")
    assert (tree.parent / "secret.txt").read_bytes() == SECRET
    assert sorted(name for name in os.listdir(tree) if name.startswith(".")) == []


def test_a_link_to_a_file_is_followed_within_the_root(tree: Path) -> None:
    roots = AllowedRoots(tree)
    with pytest.raises(ToolError, match="outside"):
        roots.write("out_file", b"mine")
    assert (tree.parent / "secret.txt").read_bytes() == SECRET
    roots.write("to_file", b"mine")
    assert (tree / "to_file").is_symlink()
    assert (tree / "top.txt").read_bytes() == b"mine"


def test_missing_directories_are_created_and_removed_on_failure(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = AllowedRoots(tree)
    roots.write("x/y/z.txt", b"1", parents=True)
    roots.write("nowhere", b"2", parents=True)  # a link to what is not there
    assert roots.read("x/y/z.txt", most=9) == b"1"
    assert (tree / "none" / "at" / "all").read_bytes() == b"2"
    for path in ("new/../../secret.txt", "new/../x.txt", "out/new/x", "top.txt/new/x", "loop/new/x", "evil/new/x"):
        with pytest.raises(ToolError):
            roots.write(path, b"bad", parents=True)
    before = sorted(os.listdir(tree))

    def refuse(_: bytes | None) -> bytes:
        raise ToolError("no")

    with pytest.raises(ToolError, match="no"):
        roots.update("p/q/r.txt", refuse, most=9, parents=True)
    assert sorted(os.listdir(tree)) == before
    assert not (tree.parent / "new").exists()


def test_a_file_is_updated_from_its_content(tree: Path) -> None:
    roots = AllowedRoots(tree)
    roots.update("top.txt", lambda old: (old or b"") + b"!", most=100)
    roots.update("a/new.txt", lambda old: b"none" if old is None else b"some", most=100)
    assert roots.read("top.txt", most=99) == b"inside!"
    assert roots.read("a/new.txt", most=99) == b"none"
    with pytest.raises(ToolError, match="the maximum is 3"):
        roots.update("top.txt", lambda old: b"", most=3)
    for path in ("a", "fifo", "none/x", "out_file"):
        with pytest.raises(ToolError):
            roots.update(path, lambda old: b"", most=100)
    assert roots.look("top.txt", most=99) == b"inside!"
    assert roots.look("no.txt", most=99) is None
    assert roots.look("no/such/directory", most=99) is None
    for path in ("no/../such", "../x", "out/none/x", "a", "fifo"):
        with pytest.raises(ToolError):
            roots.look(path, most=99)


def test_all_files_are_walked_in_order_without_links(tree: Path) -> None:
    roots, notes = AllowedRoots(tree), list[str]()
    (tree / "a" / "z.txt").write_bytes(b"inside")
    walked = [(name, os.read(file, 9)) for name, file in roots.files(".", lambda name: name == "skip", notes.append)]
    assert walked == [("top.txt", b"inside"), ("a/z.txt", b"inside"), ("a/b/file.txt", b"inside")]
    assert [name for name, _ in roots.files("to_directory", lambda _: False, notes.append)] == ["file.txt"]
    assert [name for name, _ in roots.files("top.txt", lambda _: False, notes.append)] == [""]
    assert not notes
    with pytest.raises(ToolError):
        list(roots.files("out", lambda _: False, notes.append))


def test_hard_links_can_be_refused(tree: Path) -> None:
    os.link(tree.parent / "secret.txt", tree / "hard")
    assert AllowedRoots(tree).read("hard", most=9) == SECRET
    strict = AllowedRoots(tree, hard_links=False)
    with pytest.raises(ToolError, match="has 2 names"):
        strict.read("hard", most=9)
    with pytest.raises(ToolError, match="has 2 names"):
        strict.update("hard", lambda old: b"", most=99)
    assert "hard" not in [name for name, _ in strict.files(".", lambda _: False, lambda _: None)]
    AllowedRoots(tree).write("hard", b"mine")  # a content of its own, whatever other names had
    assert (tree.parent / "secret.txt").read_bytes() == SECRET


def test_mounts_can_be_refused() -> None:
    if os.stat("/proc").st_dev == os.stat("/").st_dev:
        pytest.skip("nothing is mounted on /proc")
    assert AllowedRoots("/").read("proc/self/comm", most=99)
    with pytest.raises(ToolError, match="another file system"):
        AllowedRoots("/", mounts=False).read("proc/self/comm", most=99)


def test_a_root_is_recognized_by_its_original_spelling(tree: Path) -> None:
    link = tree.parent / "link"
    link.symlink_to(tree)
    os.symlink(f"{link}/a", tree / "by_link")
    for path in ("top.txt", f"{link}/top.txt", f"{tree}/top.txt", "by_link/b/file.txt"):
        assert AllowedRoots(link).read(path, most=9) == b"inside"
    with pytest.raises(ToolError):
        AllowedRoots(tree).read(f"{link}/top.txt", most=9)


def test_of_nested_roots_the_outer_one_counts(tree: Path) -> None:
    roots = AllowedRoots(tree / "a", tree)
    assert roots.read(f"{tree}/a/../top.txt", most=9) == b"inside"
    with pytest.raises(ToolError):
        roots.read("../top.txt", most=9)


def test_a_root_that_became_a_link_is_refused(tree: Path) -> None:
    roots = AllowedRoots(tree / "a" / "b")
    (tree / "a").rename(tree / "gone")
    (tree / "evil_a").mkdir()
    (tree / "evil_a" / "b").mkdir()
    (tree / "evil_a" / "b" / "file.txt").write_bytes(SECRET)
    (tree / "a").symlink_to("evil_a")
    with pytest.raises(ToolError):
        roots.read("file.txt", most=9)


@pytest.mark.parametrize("path", ["\ud800", "x" * 300, "a\0b", "top.txt/b"])
def test_invalid_paths_are_tool_errors(tree: Path, path: str) -> None:
    for work in (AllowedRoots(tree).read, AllowedRoots(tree).look):
        with pytest.raises(ToolError):
            work(path, most=9)


def test_systems_that_cannot_open_below_a_directory_have_no_roots(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots_module, "_POSIX", False)
    with pytest.raises(ToolError, match="cannot be guarded on this system"):
        AllowedRoots(tree)
    assert AllowedRoots().roots == ()


@pytest.mark.mission("F40")
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


def test_a_directory_swapped_for_a_link_leads_nowhere(tree: Path) -> None:
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


def test_as_many_links_as_allowed_are_followed_and_one_more_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link0").write_bytes(b"inside")
    for number in range(MAX_LINKS + 1):
        (tmp_path / f"link{number + 1}").symlink_to(f"link{number}")
    roots = AllowedRoots(tmp_path)
    assert roots.read(f"link{MAX_LINKS}", most=9) == b"inside"
    with pytest.raises(ToolError, match="too many links"):
        roots.read(f"link{MAX_LINKS + 1}", most=9)


@pytest.fixture
def no_descriptor_leaks() -> Iterator[None]:
    """Fail if a test leaves a descriptor open."""
    descriptors = "/proc/self/fd"
    if not os.path.isdir(descriptors):
        pytest.skip("this system does not list open descriptors")
    before = sorted(os.listdir(descriptors))
    yield
    assert sorted(os.listdir(descriptors)) == before


@pytest.mark.usefixtures("no_descriptor_leaks")
@pytest.mark.parametrize("hard_links", [True, False])
def test_no_descriptor_stays_open_whether_a_call_succeeds_or_fails(tree: Path, hard_links: bool) -> None:
    os.link(tree / "top.txt", tree / "hard")
    roots = AllowedRoots(tree, hard_links=hard_links)

    def change(_: bytes | None) -> bytes:
        return b"new"

    for path in ("a/b/file.txt", "absolute/b/file.txt", "hard", "fifo", "a", "none/x", "out_file", "a/b/../../top.txt"):
        for work in (
            lambda path=path: roots.read(path, most=9),
            lambda path=path: roots.look(path, most=9),
            lambda path=path: roots.look(path, most=1),
            lambda path=path: roots.update(path, change, most=9),
            lambda path=path: roots.write(path, b"", parents=True),
            lambda path=path: list(roots.files(path, lambda _: False, lambda _: None)),
            lambda path=path: list(roots.names(path, lambda _: False, deep=True, most=99)),
            lambda path=path: next(roots.files(path, lambda _: False, lambda _: None)),
        ):
            with suppress(ToolError, StopIteration):
                work()


def test_a_path_of_the_maximum_length_is_read_and_a_longer_one_is_refused(tree: Path) -> None:
    assert MAX_PATH == 4_096
    longest = "./" * ((MAX_PATH - len("top.txt")) // 2) + "top.txt"
    longest = longest.replace("./", ".//", MAX_PATH - len(longest))
    assert AllowedRoots(tree).read(longest, most=9) == b"inside"
    with pytest.raises(ToolError, match="too long"):
        AllowedRoots(tree).read(f"/{longest}", most=9)


def _replace_after_check(monkeypatch: pytest.MonkeyPatch, name: str, replace: Any) -> None:
    """Call a function once the status of a name was read, as a program does that wins a race."""
    status = os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        info = status(path, **options)
        if path == name and "dir_fd" in options:
            replace()
        return info

    monkeypatch.setattr(os, "stat", stat)


@pytest.mark.usefixtures("no_descriptor_leaks")
def test_a_file_replaced_by_a_pipe_after_the_check_is_refused_at_once(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replace_after_check(monkeypatch, "top.txt", lambda: os.replace(tree / "fifo", tree / "top.txt"))
    with pytest.raises(ToolError, match="not a regular file"):
        AllowedRoots(tree).read("top.txt", most=9)


def test_a_file_replaced_by_a_link_after_the_check_is_not_followed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_after_check(monkeypatch, "top.txt", lambda: os.replace(tree / "out_file", tree / "top.txt"))
    with pytest.raises(ToolError):
        AllowedRoots(tree).read("top.txt", most=9)


def test_a_temporary_name_that_somebody_has_guessed_is_not_written_through(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    os.symlink("../secret.txt", tree / ".top.txt.000000000000")
    with pytest.raises(ToolError):
        AllowedRoots(tree).write("top.txt", b"mine")
    assert (tree.parent / "secret.txt").read_bytes() == SECRET
    assert (tree / "top.txt").read_bytes() == b"inside"
    (tree / ".a.txt.000000000000").write_bytes(b"of another program")
    with pytest.raises(ToolError):
        AllowedRoots(tree).write("a.txt", b"mine")
    assert not (tree / "a.txt").exists()


def test_a_directory_that_another_program_creates_first_is_used(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def create_first(name: Any, **options: Any) -> None:
        mkdir(name, **options)
        mkdir(name, **options)

    monkeypatch.setattr(os, "mkdir", create_first)
    AllowedRoots(tree).write("new/deep/x.txt", b"mine", parents=True)
    assert (tree / "new" / "deep" / "x.txt").read_bytes() == b"mine"


def test_directories_are_created_only_where_that_is_requested(tree: Path) -> None:
    roots = AllowedRoots(tree)
    for work in (lambda: roots.write("new/x.txt", b""), lambda: roots.read("new/x.txt", most=9)):
        with pytest.raises(ToolError):
            work()
        assert not (tree / "new").exists()


def test_messages_name_the_kind_of_what_is_refused(tree: Path) -> None:
    roots = AllowedRoots(tree)
    for work in (lambda: roots.write("a", b""), lambda: roots.look("a", most=9), lambda: roots.read("a", most=9)):
        with pytest.raises(ToolError, match="a is a directory"):
            work()
    for work in (lambda: roots.write("fifo", b""), lambda: roots.look("fifo", most=9)):
        with pytest.raises(ToolError, match="fifo is not a regular file"):
            work()
    with pytest.raises(ToolError, match="no directory is allowed"):
        AllowedRoots().read("top.txt", most=9)
    with pytest.raises(ToolError, match="not a path"):
        roots.read("", most=9)
    with pytest.raises(ToolError, match="null character"):
        roots.read("a\0", most=9)


def test_a_walk_does_not_enter_another_file_system_if_mounts_are_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted, status = (tree / "a" / "b").stat().st_ino, os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        info = status(descriptor)
        device = info.st_dev + (info.st_ino == mounted)
        return os.stat_result((info.st_mode, info.st_ino, device, *tuple(info)[3:]))

    monkeypatch.setattr(os, "fstat", fstat)

    def names(roots: AllowedRoots) -> list[str]:
        return [name for name, _ in roots.names("a", lambda _: False, deep=True, most=99)]

    assert names(AllowedRoots(tree)) == ["b", "b/file.txt", ""]
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    strict = AllowedRoots(tree, mounts=False)
    assert names(strict) == ["b"]
    assert [name for name, _ in strict.files("a", lambda _: False, lambda _: None)] == []
    with pytest.raises(ToolError, match="another file system"):
        strict.read("a/b/file.txt", most=9)
    assert len(os.listdir("/proc/self/fd") if before else []) == len(before)


def test_a_walk_reports_each_limit_that_it_reaches(tree: Path) -> None:
    roots, reports = AllowedRoots(tree), list[str]()
    deep = [name for name, _ in roots.files("a", lambda _: False, reports.append, depth=0)]
    assert (deep, reports) == ([], ["nothing deeper than 0 directories was looked at"])
    reports.clear()
    assert [name for name, _ in roots.files("a", lambda _: False, reports.append, depth=1)] == ["b/file.txt"]
    assert not reports
    wide = list(roots.files("a/b", lambda _: False, reports.append, entries=1))
    assert len(wide) <= 1
    assert reports == ["only 1 names of the directory were looked at"]
    reports.clear()
    list(roots.files("a", lambda _: False, reports.append, entries=1))
    assert reports == ["only 1 names of b/ were looked at"]


def test_exactly_the_maximum_number_of_entries_is_listed(tree: Path) -> None:
    with AllowedRoots(tree).directory("a/b") as directory:
        assert ([entry.name for entry in entries_of(directory, 2)[0]], entries_of(directory, 2)[1]) == (
            ["file.txt", "up"],
            False,
        )
        assert entries_of(directory, 1)[1] is True
    assert len(list(AllowedRoots(tree).names(".", lambda _: False, deep=False, most=3))) == 3


def test_a_program_begins_in_the_open_directory_without_python_code_after_the_fork(tree: Path) -> None:
    with AllowedRoots(tree).directory("a") as directory:
        (tree / "a").rename(tree / "renamed")
        (tree / "a").symlink_to(tree.parent)
        options = beginning_in(directory)
        command = [sys.executable, "-S", "-c", "import os; print(os.listdir('.'))"]
        assert subprocess.run(command, **options, capture_output=True, text=True, check=True).stdout == "['b']\n"
        if os.path.isdir("/proc/self/fd"):  # code between fork and exec can hang in a program with threads
            assert "preexec_fn" not in options


def test_new_text_of_a_private_file_is_private_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("old")
    (tmp_path / "key").chmod(0o600)
    modes = []
    fchmod = os.fchmod

    def record(file: int, mode: int) -> None:
        modes.append(os.fstat(file).st_mode & 0o777)
        fchmod(file, mode)

    monkeypatch.setattr(os, "fchmod", record)
    before = os.umask(0)
    try:
        AllowedRoots(tmp_path).write("key", b"new")
    finally:
        os.umask(before)
    assert modes == [0o600]
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_new_file_is_as_open_as_the_process_makes_files(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        AllowedRoots(tmp_path).write("new", b"text")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o664


def test_new_text_is_on_the_disk_before_its_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    sync, rename = os.fsync, os.replace

    def note_sync(file: int) -> None:
        events.append(f"sync {os.fstat(file).st_size}")
        sync(file)

    def note_rename(*names: Any, **directories: Any) -> None:
        events.append("rename")
        rename(*names, **directories)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    AllowedRoots(tmp_path).write("file", b"four")
    assert events == ["sync 4", "rename"]


@pytest.mark.parametrize("path", ["closed/file", "closed"])
def test_a_directory_that_may_not_be_opened_is_no_other_kind_of_file(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    really_open = os.open

    def refuse(name: Any, *options: Any, **settings: Any) -> int:
        if name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return really_open(name, *options, **settings)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ToolError, match="Permission denied"):
        AllowedRoots(tmp_path).read(path, most=9)
