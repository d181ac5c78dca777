"""Files of an older version: their tables are created again."""

from pathlib import Path

from toolwire.runtime.sqlite import open_database


def test_tables_of_an_older_version_are_created_again_numbered_ones_too(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    older = open_database(path, ["CREATE TABLE old (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT)"], 1)
    older.execute("INSERT INTO old (text) VALUES ('a')")
    older.close()
    newer = open_database(path, ["CREATE TABLE new (id INTEGER PRIMARY KEY AUTOINCREMENT)"], 2)
    tables = {name for (name,) in newer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    newer.close()
    assert tables == {"new", "sqlite_sequence"}
