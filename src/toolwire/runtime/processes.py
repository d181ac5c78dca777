"""Run programs from coroutines: in a process group of their own, for a limited time, with limited output.

The whole group is killed when the program ends, when its time is over, when the caller is cancelled, or when our
process ends, even by SIGKILL: a program waits behind a gate until its group is watched. A process that leaves the group
(a daemon with a session of its own) is not followed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from toolwire.errors import ToolError
from toolwire.runtime.directory_descriptors import beginning_in
from toolwire.runtime.process_groups import CapturedOutput, ProgramResult, signal_group
from toolwire.runtime.start_gate import gate
from toolwire.runtime.watcher import prepare_watcher, watch_group

GRACE = 2.0
"""Seconds between asking a group to end and killing it, and to wait for output after a program's end."""
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"),
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"),
)
"""Environment variables that other programs get; keys and tokens are not among them."""


def environment(*names: str) -> dict[str, str]:
    """Return this program's variables that others may have: `PASSED_ON` and these."""
    return {name: os.environ[name] for name in (*PASSED_ON, *names) if name in os.environ}


def absolute_path(path: str) -> str:
    """Return a search path without entries that are relative to the current directory."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))


async def run(
    argv: Sequence[str],
    *,
    directory: str | int,
    env: Mapping[str, str],
    seconds: float,
    max_output: int,
    stdin: bytes = b"",
    separate_stderr: bool = False,
    ask_first: bool = False,
) -> ProgramResult:
    """Run a program to its end.

    Args:
        argv: the program and its arguments; no shell reads them.
        directory: where it starts: a path, or a descriptor of an open directory.
        env: its whole environment; the program is searched for on its `PATH`.
        seconds: time limit.
        max_output: bytes kept of each stream, half of them from the end.
        stdin: its standard input.
        separate_stderr: capture standard error on its own.
        ask_first: at the time limit, ask the group to end before killing it.

    Raises:
        ToolError: it cannot be started.
    """
    place = {"cwd": directory} if isinstance(directory, str) else beginning_in(directory)
    out, err = CapturedOutput.of_both_ends(max_output), CapturedOutput.of_both_ends(max_output)
    loop = asyncio.get_running_loop()
    prepare_watcher()
    try:
        start = gate(argv, env, directory, source=0 if stdin else None)
        stdin = start.opening + stdin
        transport, program = await loop.subprocess_exec(
            lambda: _Program(out, err),
            *start.argv,
            **place,
            env=dict(env),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if separate_stderr else subprocess.STDOUT,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(f"{argv[0]}: no such program") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ToolError(f"{argv[0]} cannot be started: {reason}") from error
    group = transport.get_pid()
    timed_out = False
    watched = ExitStack()
    _LIVE.add(group)
    try:
        watched.enter_context(watch_group(group))
        if (pipe := transport.get_pipe_transport(0)) is not None:
            assert isinstance(pipe, asyncio.WriteTransport)
            pipe.write(stdin)
            pipe.write_eof()
        timed_out = not await happens(program.ended, seconds)
        if timed_out and ask_first:
            signal_group(group, signal.SIGTERM)
            await happens(program.ended, GRACE)
    finally:
        signal_group(group, signal.SIGKILL)
        _LIVE.discard(group)
        watched.close()
        await happens(program.ended, GRACE)
        # A process that left the group may keep the pipes open; the output until then is enough.
        await happens(program.silent, GRACE)
        transport.close()
    status = transport.get_returncode()
    return ProgramResult(-signal.SIGKILL if status is None else status, timed_out, out, err)


def kill_all() -> None:
    """Kill every running program, for a process that is about to exit without waiting."""
    for group in tuple(_LIVE):
        signal_group(group, signal.SIGKILL)


_LIVE: set[int] = set()


class _Program(asyncio.SubprocessProtocol):
    """A program's output, and events for the end of its streams and for its own end."""

    def __init__(self, out: CapturedOutput, err: CapturedOutput) -> None:
        self._outputs = {1: out, 2: err}
        self._open = {1, 2}
        self.ended = asyncio.Event()
        self.silent = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._open = {fd for fd in (1, 2) if transport.get_pipe_transport(fd) is not None}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._outputs[fd].add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        self.ended.set()


async def happens(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return whether it happened in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
