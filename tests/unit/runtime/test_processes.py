"""Other programs: how much of their output is kept, how they end. What commands make of it: `test_commands.py`."""

import asyncio
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from toolwire import ToolError
from toolwire.runtime import processes
from toolwire.runtime.process_groups import CapturedOutput, ProgramResult


def run(*argv: str, **options: Any) -> ProgramResult:
    settings: dict[str, Any] = {"directory": "/", "env": processes.environment(), "seconds": 20, "max_output": 1_000}
    return asyncio.run(processes.run(argv, **(settings | options)))


def test_the_beginning_and_the_end_of_output_are_captured() -> None:
    draw = random.Random(2)
    for _ in range(500):
        text = bytes(draw.randrange(256) for _ in range(draw.randrange(60)))
        kept, at = CapturedOutput(10, 10), 0
        while at < len(text):
            size = draw.randint(1, 15)
            kept.add(text[at : at + size])
            at += size
        head, tail = kept.parts()
        assert kept.size == len(text)
        assert kept.left_out == max(0, len(text) - 20)
        if len(text) <= 20:
            assert kept.joined() == text
        else:
            assert (head, tail) == (text[:10], text[-10:])


@pytest.mark.parametrize("most", [0, 1, 2])
def test_at_least_a_byte_of_each_end_is_captured(most: int) -> None:
    kept = CapturedOutput.of_both_ends(most)
    kept.add(b"hello")
    kept.add(b"!")
    assert (kept.parts(), kept.left_out) == ((b"h", b"!"), 4)


def test_half_of_the_output_is_captured_from_each_end() -> None:
    kept = CapturedOutput.of_both_ends(7)
    kept.add(b"0123456789")
    assert (kept.parts(), kept.left_out) == ((b"012", b"789"), 4)


def test_streams_are_captured_together_or_separately() -> None:
    script = "echo out; echo err >&2; cat; exit 3"
    together = run("sh", "-c", script, stdin=b"in")
    assert (together.status, together.out.joined(), together.err.size) == (3, b"out\nerr\nin", 0)
    apart = run("sh", "-c", script, stdin=b"in", separate_stderr=True)
    assert (apart.out.joined(), apart.err.joined()) == (b"out\nin", b"err\n")


def test_large_input_and_output_are_passed_through() -> None:
    given = b"x" * 5_000_000
    ended = run("cat", stdin=given, max_output=1 << 24)
    assert ended.out.joined() == given
    assert run("true", stdin=given).status == 0  # it reads nothing of it
    assert run(sys.executable, "-c", "print('y' * 3_000_000)").out.size == 3_000_001


def test_time_is_limited_whatever_the_program_ignores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    stubborn = run("sh", "-c", "trap '' TERM; while :; do sleep 1; done", seconds=0.2, ask_first=True)
    assert (stubborn.timed_out, stubborn.status) == (True, -9)
    monkeypatch.setattr(processes, "GRACE", 20)
    willing = run("sh", "-c", "trap 'echo bye; exit 4' TERM; while :; do sleep 0.01; done", seconds=0.3, ask_first=True)
    assert (willing.timed_out, willing.status) == (True, 4)
    assert willing.out.joined().endswith(b"bye\n")


def test_a_process_that_left_the_group_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.2)
    script = "import os, time\nif not os.fork():\n os.setsid()\n time.sleep(3)\nelse: print('done', flush=True)"
    ended = run(sys.executable, "-c", script)
    assert (ended.status, ended.out.joined()) == (0, b"done\n")


def test_programs_that_cannot_be_started_are_tool_errors() -> None:
    for argv in (["no-such-program"], ["/"], ["/no/such"], ["a\0b"]):
        with pytest.raises(ToolError):
            run(*argv)


def test_search_paths_contain_no_current_directory() -> None:
    assert processes.absolute_path(
        f"/bin{os.pathsep}{os.pathsep}.{os.pathsep}bin{os.pathsep}/usr/bin"
    ) == os.pathsep.join(("/bin", "/usr/bin"))


def test_kill_all_ends_every_running_program() -> None:
    async def main() -> ProgramResult:
        env = processes.environment()
        running = asyncio.create_task(
            processes.run(["sleep", "300"], directory="/", env=env, seconds=60, max_output=99)
        )
        while not processes._LIVE:
            await asyncio.sleep(0)
        processes.kill_all()
        return await running

    ended = asyncio.run(main())
    assert (ended.status, ended.timed_out) == (-9, False)


class _Pipes(asyncio.SubprocessTransport):
    """A program with these pipes to read from."""

    def __init__(self, *numbers: int) -> None:
        super().__init__()
        self._numbers = numbers

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return asyncio.BaseTransport() if fd in self._numbers else None


@pytest.mark.parametrize("pipes", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1), (1,), (0, 1)])
def test_output_ends_with_its_last_pipe(pipes: tuple[int, ...]) -> None:
    async def closed_before_the_end() -> list[bool]:
        program = processes._Program(CapturedOutput(9), CapturedOutput(9))
        program.connection_made(_Pipes(*pipes))
        silent = []
        for pipe in pipes:
            silent.append(program.silent.is_set())
            program.pipe_connection_lost(pipe, None)
        return [*silent, program.silent.is_set()]

    outputs = [at for at, pipe in enumerate(pipes) if pipe]
    assert asyncio.run(closed_before_the_end()) == [at > max(outputs) for at in range(len(pipes) + 1)]


def test_a_program_that_was_killed_has_been_collected(tmp_path: Path) -> None:
    async def main() -> None:
        argv = ["sh", "-c", "exec >&- 2>&-; echo $$ > number; mv number ready; exec sleep 300"]
        settings: dict[str, Any] = {"env": processes.environment(), "seconds": 300, "max_output": 9}
        running = asyncio.create_task(processes.run(argv, directory=str(tmp_path), **settings))
        while not (tmp_path / "ready").exists():
            await asyncio.sleep(0)
        for _ in range(10):  # the ends of the output arrive
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "ready").read_text()), 0)

    asyncio.run(main())


def test_programs_get_neither_keys_nor_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "PATH HOME USER LOGNAME SHELL TMPDIR TZ"
    names += " LANG LANGUAGE LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME"
    for name in (*names.split(), "OPENAI_API_KEY", "GITHUB_TOKEN", "LD_PRELOAD", "WANTED"):
        monkeypatch.setenv(name, "x")
    assert processes.environment() == dict.fromkeys(names.split(), "x")
    assert processes.environment("WANTED", "NOT_SET") == dict.fromkeys((*names.split(), "WANTED"), "x")


@pytest.mark.parametrize("separate", [True, False])
def test_a_program_that_has_ended_is_not_waited_for(separate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 20)
    began = time.monotonic()
    assert run("sh", "-c", "echo out", separate_stderr=separate).out.joined() == b"out\n"
    assert time.monotonic() - began < 10
