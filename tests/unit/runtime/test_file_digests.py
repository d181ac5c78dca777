"""Digests of files, and which of them are remembered."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from toolwire.runtime import file_digests
from toolwire.runtime.file_digests import file_digest


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read, all of which changed long ago."""
    names: list[str] = []
    read = hashlib.file_digest

    def counted(file: Any, kind: str) -> Any:
        names.append(os.path.basename(file.name))
        return read(file, kind)

    monkeypatch.setattr(file_digests, "_digests", {})
    monkeypatch.setattr(file_digests.hashlib, "file_digest", counted)
    monkeypatch.setattr(file_digests.time, "time", lambda: os.stat("/").st_mtime + 1e9)
    return names


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("a" * 10)
    read = file_digests.hashlib.file_digest

    def written_to(file: Any, kind: str) -> Any:
        digest = read(file, kind)
        path.write_text("b" * 20)
        return digest

    with monkeypatch.context() as patch:
        patch.setattr(file_digests.hashlib, "file_digest", written_to)
        file_digest(str(path))
    assert file_digest(str(path)) == hashlib.sha256(b"b" * 20).hexdigest()
    assert reads == ["a", "a"]


def test_the_number_of_remembered_digests_is_bounded(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "_MAX_DIGESTS", 3)
    for name in "abcde":
        (tmp_path / name).write_text(name)
        for _ in range(2):
            assert file_digest(str(tmp_path / name)) == hashlib.sha256(name.encode()).hexdigest()
        assert len(file_digests._digests) <= 3
    assert reads == [*"abcde"]


@pytest.mark.parametrize(("age", "times"), [(1.9, 2), (2.5, 1)])
def test_a_digest_is_remembered_from_two_seconds_after_the_last_change(
    age: float, times: int, tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("a")
    os.utime(path, (0, 0))  # as a program may do that changed it: the time of the status tells
    changed = os.stat(path).st_ctime
    monkeypatch.setattr(file_digests.time, "time", lambda: changed + age)
    for _ in range(2):
        file_digest(str(path))
    assert len(reads) == times


def test_what_is_not_a_regular_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [file_digest(str(path)) for path in (tmp_path, tmp_path / "missing", os.devnull)] == [None] * 3
    monkeypatch.setattr(file_digests.os.path, "isfile", lambda _: True)  # a file that was replaced afterwards
    assert file_digest(os.devnull) is None


@pytest.mark.timeout(10)
def test_a_pipe_that_took_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(file_digests.os.path, "isfile", lambda _: True)
    assert file_digest(str(tmp_path / "pipe")) is None


def test_a_file_that_must_not_be_read_has_an_empty_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError

    (tmp_path / "a").write_text("a")
    monkeypatch.setattr("builtins.open", refused)
    assert file_digest(str(tmp_path / "a")) == ""
