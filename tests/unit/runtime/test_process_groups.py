"""Programs without asyncio: what is kept of their output, how they end, and what they leave behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from toolwire.runtime import process_groups
from toolwire.runtime.process_groups import CapturedOutput, ProgramResult, in_shared_group, run_program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


def run(script: str, **options: Any) -> ProgramResult:
    return run_program(["sh", "-c", script], **({"seconds": 20, "max_output": 100} | options))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # a process that ended may still be waiting to be collected
    try:
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.001)
    return not is_running(pid)


@pytest.mark.parametrize(
    ("status", "timed_out", "expected"), [(0, False, 0), (3, False, 3), (-9, False, 137), (-15, True, 124)]
)
def test_the_exit_status_is_that_of_a_shell(status: int, timed_out: bool, expected: int) -> None:
    assert ProgramResult(status, timed_out, CapturedOutput(1), CapturedOutput(1)).exit_status == expected


def test_the_beginning_of_each_stream_is_kept() -> None:
    ended = run("printf 12345; printf abc >&2; exit 3", max_output=2)
    assert (ended.status, ended.out.joined(), ended.err.joined()) == (3, b"12", b"ab")
    assert (ended.out.left_out, ended.err.left_out, ended.left_out) == (3, 1, 4)
    together = run("printf 12; printf 34 >&2", separate_stderr=False)
    assert (together.out.joined(), together.err.size) == (b"1234", 0)


def test_time_is_limited_and_the_program_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    willing = run("trap 'echo bye; exit 4' TERM; echo go; while :; do sleep 0.01; done", seconds=0.1)
    assert (willing.timed_out, willing.status, willing.exit_status) == (True, 4, 124)
    assert willing.out.joined() == b"go\nbye\n"
    monkeypatch.setattr(process_groups, "GRACE", 0.05)
    stubborn = run("trap '' TERM; while :; do sleep 0.01; done", seconds=0.1)
    assert (stubborn.timed_out, stubborn.status) == (True, -signal.SIGKILL)


def test_what_a_program_leaves_behind_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run("sleep 300 >/dev/null 2>&1 & echo $!")
    assert (ended.status, ended.timed_out) == (0, False)
    assert ends(int(ended.out.joined()))
    monkeypatch.setattr(process_groups, "LINGER", 0.05)
    began = time.monotonic()
    ended = run("sleep 300 & echo $!")  # it keeps the pipes open
    assert ends(int(ended.out.joined()))
    assert time.monotonic() - began < 5


def test_an_interrupted_program_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            if self not in started:
                started.append(self)
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("sleep 300")
    assert started[0].returncode == -signal.SIGTERM


def test_a_program_starts_in_the_given_directory(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert run("pwd -P", directory=descriptor, max_output=1000).out.joined().decode() == f"{tmp_path.resolve()}\n"
    finally:
        os.close(descriptor)
    assert run("pwd -P", max_output=1000).out.joined().decode() == f"{Path.cwd()}\n"


def test_a_program_has_a_session_of_its_own_unless_the_group_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [sys.executable, "-c", "import os; print(os.getpgid(0) == os.getppid(), os.getpgid(0), os.getpid())"]
    assert not in_shared_group()
    _, group, pid = run_program(script, seconds=20, max_output=100).out.joined().split()
    assert group == pid
    monkeypatch.setenv("TE_SHARED_GROUP", "1")
    assert in_shared_group()
    _, group, pid = run_program(script, seconds=20, max_output=100).out.joined().split()
    assert int(group) == os.getpgid(0)
    late = run("exec sleep 300", seconds=0.05)  # only the program is ended, and not our own group
    assert (late.timed_out, late.status) == (True, -signal.SIGTERM)


def test_a_group_of_its_own_is_watched_while_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    @contextmanager
    def watch(group: int) -> Iterator[None]:
        events.append(str(group))
        yield
        events.append("left")

    monkeypatch.setattr(process_groups, "watch_group", watch)
    monkeypatch.setattr(process_groups, "prepare_watcher", lambda: events.append("prepared"))
    ended = run("echo $$")
    assert events == ["prepared", ended.out.joined().decode().strip(), "left"]
    monkeypatch.setenv("TE_SHARED_GROUP", "1")
    run("true")
    assert len(events) == 3  # the parent ends the shared group


def test_without_standard_input_there_is_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> int:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr("fcntl.fcntl", closed)
    assert run("cat").out.size == 0
    with pytest.raises(OSError, match="Bad file"):
        run("cat", stdin=3)


def test_programs_that_cannot_be_started_are_reported() -> None:
    with pytest.raises(FileNotFoundError):
        run_program(["no-such-program"], seconds=20, max_output=1)
    with pytest.raises(OSError, match=r"[Bb]ad file"):
        run("cat", stdin=1_000)


def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        run("cat", stdin=subprocess.DEVNULL)
        run("true")
    assert len(os.listdir("/dev/fd")) <= before + 1  # the connection to the watcher
