"""Files of an older version, whose tables are created again, and files of other programs, which are left alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from toolwire.errors import StateError
from toolwire.runtime.sqlite import open_database


def test_tables_of_an_older_version_are_created_again_numbered_ones_too(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    older = open_database(path, ["CREATE TABLE new (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT)"], 1)
    older.execute("INSERT INTO new (text) VALUES ('a')")
    older.close()
    newer = open_database(path, ["CREATE TABLE new (id INTEGER PRIMARY KEY AUTOINCREMENT)"], 2)
    tables = {name for (name,) in newer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert newer.execute("SELECT * FROM new").fetchall() == []
    newer.close()
    assert tables == {"new", "sqlite_sequence"}


@pytest.mark.parametrize(
    ("version", "make"), [(0, False), (1, False), (1, True), (2, False), (3, False), (3, True)], ids=str
)
def test_a_file_of_another_program_stays_as_it_is(tmp_path: Path, version: int, make: bool) -> None:
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
        connection.execute("INSERT INTO photos VALUES ('a')")
        connection.execute(f"PRAGMA user_version={version}")
        connection.commit()
    path.chmod(0o644)
    content = path.read_bytes()
    with pytest.raises(StateError, match=r"photos\.db: it .* another program"):
        open_database(path, ["CREATE TABLE runs (id TEXT)"], 2, make=make)
    assert path.read_bytes() == content
    if not make:
        assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TABLE runs (text TEXT)", "an older Toolwire, or by another program"),
        ("PRAGMA application_id=7", "has no tables"),
    ],
    ids=["tables", "empty"],
)
def test_a_reader_changes_no_file_whose_tables_may_be_of_another_program(
    tmp_path: Path, statement: str, reason: str, version: int
) -> None:
    path = tmp_path / "races.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.execute(f"PRAGMA user_version={version}")
    content = path.read_bytes()
    with pytest.raises(StateError, match=reason) as caught:
        open_database(path, ["CREATE TABLE runs (id TEXT)", "CREATE TABLE turns (id TEXT)"], 2, make=False)
    assert isinstance(caught.value.__cause__, sqlite3.NotSupportedError)
    assert path.read_bytes() == content
