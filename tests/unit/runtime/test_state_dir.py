"""Files that outlive a process: whose they are, and what becomes of those that are not as they should be."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from toolwire.errors import StateError
from toolwire.runtime.sqlite import open_database
from toolwire.runtime.state_dir import state_folder

SCHEMA = ("CREATE TABLE notes (text TEXT)",)


def test_the_environment_names_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path / "here"))
    assert state_folder() == tmp_path / "here"
    monkeypatch.delenv("TOOLWIRE_STATE")
    assert state_folder().name == "toolwire"


def test_only_its_user_may_read_a_file(tmp_path: Path) -> None:
    path = tmp_path / "made" / "notes.db"
    connection = open_database(path, SCHEMA, 1)
    connection.execute("INSERT INTO notes VALUES ('a')")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    connection.close()
    path.chmod(0o644)
    open_database(path, SCHEMA, 1).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_older_schema_is_replaced_and_a_newer_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with_old = open_database(path, ("CREATE TABLE notes (x TEXT)",), 1)
    with_old.execute("INSERT INTO notes VALUES ('a')")
    with_old.close()
    made = open_database(path, SCHEMA, 2)
    assert made.execute("SELECT text FROM notes").fetchall() == []
    made.close()
    with pytest.raises(StateError, match=r"notes\.db: it was created by a newer Toolwire"):
        open_database(path, SCHEMA, 1)


def test_errors_name_the_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all, but long enough to be looked at" * 40)
    folder = tmp_path / "folder.db"
    folder.mkdir()
    link = tmp_path / "link.db"
    os.symlink(tmp_path / "elsewhere.db", link)
    below = tmp_path / "file"
    below.write_text("")
    for path in (broken, folder, link, below / "x.db"):
        with pytest.raises(StateError, match=path.name):
            open_database(path, SCHEMA, 1)
    with pytest.raises(StateError, match="no such file yet"):
        open_database(tmp_path / "missing.db", SCHEMA, 1, make=False)
    assert not (tmp_path / "missing.db").exists()


def test_a_locked_file_is_waited_for_until_the_time_limit(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    holder = open_database(path, SCHEMA, 1)
    holder.execute("BEGIN IMMEDIATE")
    other = open_database(path, SCHEMA, 1, wait=0.01)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("INSERT INTO notes VALUES ('b')")
    holder.execute("ROLLBACK")
    other.execute("INSERT INTO notes VALUES ('b')")
    holder.close()
    other.close()
