"""Open directories: they stay the same ones, whatever becomes of their names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolwire.runtime import directory_descriptors
from toolwire.runtime.directory_descriptors import beginning_in, entries_of, real_path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX only")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    """A directory, open, with another in the place of its name."""
    (tmp_path / "a").mkdir()
    descriptor = os.open(tmp_path / "a", os.O_RDONLY)
    for name in ("c", "a", "b"):
        (tmp_path / "a" / name).write_text("")
    (tmp_path / "a").rename(tmp_path / "moved")
    (tmp_path / "a").mkdir()
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("has_proc", [True, False])
def test_a_program_starts_in_the_open_directory(
    has_proc: bool, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_proc:
        monkeypatch.setattr(directory_descriptors.os.path, "isdir", lambda _: False)
    place = beginning_in(directory)
    monkeypatch.undo()
    if os.path.isdir("/proc/self/fd"):
        assert ("preexec_fn" in place) is not has_proc  # it is not safe in a process with threads
    assert subprocess.run(["ls"], capture_output=True, check=True, **place).stdout == b"a\nb\nc\n"


def test_the_path_is_the_present_one(directory: int, tmp_path: Path) -> None:
    assert real_path(directory) == str(tmp_path.resolve() / "moved")


def test_without_a_path_the_directory_is_still_told_from_others(
    directory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: str) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(directory_descriptors.sys, "platform", "freebsd")
    monkeypatch.setattr(directory_descriptors.os, "readlink", refused)
    info = os.stat(tmp_path / "moved")
    assert real_path(directory) == f"device {info.st_dev}, directory {info.st_ino}"


def test_macos_tells_the_path_of_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def told(directory: int, command: int, buffer: bytes) -> bytes:
        assert (directory, command, len(buffer)) == (7, 50, 1024)  # MAXPATHLEN, without which macOS writes beyond it
        return b"/tmp/caf\xc3\xa9".ljust(1024, b"\0")

    monkeypatch.setattr(directory_descriptors.sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_GETPATH", 50, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", told)
    assert os.fsencode(real_path(7)) == b"/tmp/caf\xc3\xa9"


@pytest.mark.parametrize(("most", "count", "more"), [(2, 2, True), (3, 3, False), (4, 3, False)])
def test_the_number_of_entries_is_bounded(most: int, count: int, more: bool, directory: int) -> None:
    entries, is_more = entries_of(directory, most)
    names = [entry.name for entry in entries]
    assert (len(names), is_more) == (count, more)
    assert names == sorted(names)
    assert set(names) <= {"a", "b", "c"}
