"""What is left when a process ends without cleaning up: neither its programs nor its directories."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.runtime.watcher import watch_directory, watch_group

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")

IGNORING = "trap '' HUP INT QUIT TERM; exec 9>fifo; echo started >&9; sleep 300 & sleep 300; wait"
WATCHED = """
import threading
from toolwire.runtime import watcher

def tell():
    while not watcher._WATCHER._entries:
        pass
    with watcher._WATCHER._lock:
        print("watched", flush=True)

threading.Thread(target=tell, daemon=True).start()
"""
COROUTINE = (
    WATCHED
    + """
import asyncio
from toolwire.runtime import processes
asyncio.run(processes.run(
    ["sh", "-c", {command!r}], directory=".", env=processes.environment(), seconds=300, max_output=1
))
"""
)
PLAIN = (
    WATCHED
    + """
from toolwire.runtime.process_groups import run_program
run_program(["sh", "-c", {command!r}], seconds=300, max_output=1)
"""
)
DIRECTORY = (
    WATCHED
    + """
import os, time
from toolwire.runtime.watcher import watch_directory, watch_group
with watch_directory("in valid"), watch_directory(r"a \\d ir"):
    with watch_directory("kept"):
        pass
    descriptor = os.open("fifo", os.O_WRONLY)
    os.write(descriptor, b"started")
    time.sleep(300)
"""
)
SIGNALS = ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL"]


def end_by(number: int, script: str, folder: Path) -> None:
    """Run a script until it has written to a pipe, send a signal, and wait until nobody has the pipe open."""
    os.mkfifo(folder / "fifo")
    reading = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen([sys.executable, "-c", script], cwd=folder, stdout=subprocess.PIPE)
    try:
        assert select.select([reading], [], [], 60)[0]
        assert os.read(reading, 100).startswith(b"started")
        assert process.stdout is not None
        assert process.stdout.readline() == b"watched\n"
        process.send_signal(number)
        assert process.wait() != 0
        assert select.select([reading], [], [], 60)[0], "programs are left"
        assert os.read(reading, 100) == b""
    finally:
        process.kill()
        process.communicate()
        os.close(reading)


@pytest.mark.parametrize("name", SIGNALS)
def test_no_program_outlives_the_process_that_runs_it(name: str, tmp_path: Path) -> None:
    end_by(getattr(signal, name), COROUTINE.format(command=IGNORING), tmp_path)


def test_no_program_that_runs_without_asyncio_outlives_its_process(tmp_path: Path) -> None:
    end_by(signal.SIGKILL, PLAIN.format(command=IGNORING), tmp_path)


def test_directories_are_removed_unless_they_were_before(tmp_path: Path) -> None:
    for name in ("in valid", r"a \d ir", "kept"):
        (tmp_path / name / "inner").mkdir(parents=True)
    end_by(signal.SIGKILL, DIRECTORY, tmp_path)
    while (tmp_path / "in valid").exists() or (tmp_path / r"a \d ir").exists():
        pass
    assert (tmp_path / "kept" / "inner").exists()


def test_a_fork_leaves_what_its_parent_watches(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    program = subprocess.Popen(["sleep", "300"], start_new_session=True)
    with watch_group(program.pid), watch_directory(str(tmp_path / "mine")):
        if (child := os.fork()) == 0:
            with watch_directory(str(tmp_path / "other")):
                os._exit(0)
        os.waitpid(child, 0)
        assert program.poll() is None
        assert (tmp_path / "mine").exists()
    program.kill()
    program.wait()


def test_a_watcher_that_was_killed_is_replaced(tmp_path: Path) -> None:
    script = (
        WATCHED
        + """
import os, signal, time
from toolwire.runtime import watcher
with watcher.watch_directory("first"):
    os.kill(watcher._WATCHER._process, signal.SIGKILL)
    os.waitpid(watcher._WATCHER._process, 0)
    with watcher.watch_directory("second"):
        descriptor = os.open("fifo", os.O_WRONLY)
        os.write(descriptor, b"started")
        time.sleep(300)
"""
    )
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    end_by(signal.SIGKILL, script, tmp_path)
    while any((tmp_path / name).exists() for name in ("first", "second")):
        pass


def test_where_no_shell_can_be_started_nothing_is_watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError

    monkeypatch.setattr("toolwire.runtime.watcher._WATCHER", type(_watcher())())
    monkeypatch.setattr("os.posix_spawn", refuse)
    with watch_directory(str(tmp_path)):
        pass
    assert tmp_path.exists()


def _watcher() -> object:
    from toolwire.runtime import watcher

    return watcher._WATCHER
