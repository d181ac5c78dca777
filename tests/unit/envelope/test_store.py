"""Results behind handles: they outlive processes, go when they are old, and are their user's alone."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.envelope.store import MAX_KEPT, HandleStore
from toolwire.errors import ToolError


class Clock:
    """Seconds since 1970, as one says."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_stored_result_is_returned(tmp_path: Path) -> None:
    store = HandleStore(tmp_path / "new" / "handles.db")
    text = "a\nü\ud800\0b\n"
    handle = store.put(text, cmd="cat", agent="me", session="s", content_type="log")
    assert re.fullmatch("res_[0-9a-f]{12}", handle)
    kept, found = store.get(handle)
    assert found == text
    assert (kept.lines, kept.cmd, kept.agent, kept.session, kept.content_type) == (2, "cat", "me", "s", "log")
    assert store.list() == [kept]
    store.close()


def test_another_process_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "handles.db"
    store = HandleStore(path)
    handle = store.put("from here", cmd="x")
    code = (
        "import sys; from toolwire.envelope.store import HandleStore\n"
        "print(HandleStore(sys.argv[1]).get(sys.argv[2])[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, path, handle], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"from here\n"
    store.close()


def test_many_processes_write_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from toolwire.envelope.store import HandleStore; store = HandleStore(sys.argv[1])\n"
        "for n in range(20): print(store.put('x' * 1000, cmd=str(n)))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "handles.db")]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(5)]
    handles = [line for one in running for line in one.communicate(timeout=60)[0].decode().split()]
    assert [one.returncode for one in running] == [0] * 5
    store = HandleStore(tmp_path / "handles.db")
    assert sorted(kept.handle for kept in store.list()) == sorted(handles)
    assert len(set(handles)) == 100
    store.close()


@pytest.mark.mission("G19")
def test_old_results_expire(tmp_path: Path) -> None:
    clock = Clock()
    store = HandleStore(tmp_path / "handles.db", max_age=100, clock=clock)
    old = store.put("old", cmd="x")
    clock.now += 60
    young = store.put("young", cmd="x")
    clock.now += 60
    with pytest.raises(ToolError, match="nothing is stored"):
        store.get(old)
    assert [kept.handle for kept in store.list()] == [young]
    store.put("new", cmd="x")
    rows = sqlite3.connect(tmp_path / "handles.db")
    assert rows.execute("SELECT count(*) FROM results").fetchone() == (2,)
    rows.close()
    store.close()


@pytest.mark.mission("G19")
def test_the_oldest_results_are_removed_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    clock = Clock()
    store = HandleStore(tmp_path / "handles.db", max_bytes=1_000, clock=clock)
    handles = []
    for _ in range(5):
        clock.now += 1
        handles.append(store.put("x" * 300, cmd="x"))
    assert [kept.handle for kept in store.list()] == handles[:1:-1]
    with pytest.raises(ToolError, match="exceed the maximum"):
        store.put("x" * 1_001, cmd="x")
    store.close()


def test_a_very_long_text_is_stored_in_part(tmp_path: Path) -> None:
    store = HandleStore(tmp_path / "handles.db")
    assert len(store.get(store.put("x" * (MAX_KEPT + 5), cmd="x"))[1]) == MAX_KEPT
    store.close()


def test_the_files_are_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "handles.db"
    path.parent.mkdir(mode=0o755)
    path.touch(mode=0o644)
    store = HandleStore(path)
    store.put("x", cmd="x")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(modes) == {"handles.db", "handles.db-wal", "handles.db-shm"}
    assert set(modes.values()) == {0o600}
    store.close()


def test_a_new_directory_is_the_users_alone(tmp_path: Path) -> None:
    store = HandleStore(tmp_path / "state" / "handles.db")
    store.put("x", cmd="x")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    store.close()


@pytest.mark.parametrize(
    "handle", ["", "res_", "res_01H", "../../etc", "res_0123456789ab; DROP TABLE results", "RES_0123456789ab"]
)
def test_invalid_handles_are_refused(tmp_path: Path, handle: str) -> None:
    with pytest.raises(ToolError, match="is not a handle"):
        HandleStore(tmp_path / "handles.db").get(handle)


def test_a_broken_file_is_renamed(tmp_path: Path) -> None:
    path = tmp_path / "handles.db"
    path.write_bytes(b"this is no database, and long enough to be looked at" * 100)
    store = HandleStore(path)
    assert store.get(store.put("text", cmd="x"))[1] == "text"
    assert (tmp_path / "handles.db.broken").read_bytes().startswith(b"this is no database")
    store.close()


def test_a_file_that_breaks_later_is_renamed(tmp_path: Path) -> None:
    path = tmp_path / "handles.db"
    store = HandleStore(path)
    handles = [store.put("x" * 5_000, cmd="x") for _ in range(9)]
    store.close()
    data = bytearray(path.read_bytes())
    data[4_096:] = b"\xff" * (len(data) - 4_096)
    path.write_bytes(data)
    with pytest.raises(ToolError, match="malformed"):
        store.get(handles[0])
    with pytest.raises(ToolError, match="nothing is stored"):
        store.get(handles[0])
    assert store.get(store.put("new", cmd="x"))[1] == "new"
    store.close()


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    os.symlink("elsewhere", tmp_path / "handles.db")
    with pytest.raises(ToolError, match="not a regular file"):
        HandleStore(tmp_path / "handles.db").put("x", cmd="x")
    assert (tmp_path / "elsewhere").stat().st_size == 0


def test_a_failed_write_is_rolled_back(tmp_path: Path) -> None:
    store = HandleStore(tmp_path / "handles.db")
    store.put("x", cmd="x")
    with pytest.raises(ZeroDivisionError), store._database.writing() as connection:
        connection.execute("DELETE FROM results")
        _ = 1 / 0
    assert len(store.list()) == 1
    store.close()


def test_a_fork_has_a_connection_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys; from toolwire.envelope.store import HandleStore; store = HandleStore(sys.argv[1])\n"
        "store.put('parent', cmd='x'); child = os.fork()\n"
        "store.put('either', cmd='x')\n"
        "sys.exit(0) if not child else print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(store.list()))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "handles.db")]
    assert subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout == b"0 3\n"
