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
