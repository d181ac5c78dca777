"""Other programs, run with an end: in a process group of their own, for a limited time, with limited output.

When the program ends, or its time does, or whoever waits stops waiting, the whole group is killed. A process that
leaves the group (a daemon with a session of its own) is not followed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import beginning_in

GRACE = 2.0
"""Seconds between asking a group to end, where that is done, and killing it; and for output after a program's end."""
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"),
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"),
)
"""Environment variables that other programs are given; keys and tokens are not among them."""


class Kept:
    """The beginning and the end of what a program writes.

    Args:
        most: bytes that are kept, half of them from the end; at least two are.
    """

    def __init__(self, most: int) -> None:
        self._half = max(most // 2, 1)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._held = 0
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self.size += len(piece)
        room = self._half - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece:
            self._tail.append(piece)
            self._held += len(piece)
            while self._held - len(self._tail[0]) >= self._half:
                self._held -= len(self._tail.popleft())

    @property
    def left_out(self) -> int:
        """Bytes in the middle that are gone."""
        return max(self.size - len(self._head) - min(self._held, self._half), 0)

    def parts(self) -> tuple[bytes, bytes]:
        """The beginning and the end; they adjoin if nothing was left out."""
        tail = b"".join(self._tail)
        return bytes(self._head), tail[-self._half :] if len(tail) > self._half else tail

    def whole(self) -> bytes:
        """All of it, if nothing was left out."""
        return b"".join(self.parts())


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        status: its exit status; negative: the signal that ended it.
        timed_out: its time was over.
        out: what it wrote.
        err: what it wrote to standard error, if that was kept apart.
    """

    status: int
    timed_out: bool
    out: Kept
    err: Kept


def environment(*names: str) -> dict[str, str]:
    """This program's environment variables that others may have: `PASSED_ON` and these."""
    return {name: os.environ[name] for name in (*PASSED_ON, *names) if name in os.environ}


def absolute_path(path: str) -> str:
    """The search path without entries that mean the current directory, or depend on it."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))


async def run(
    argv: Sequence[str],
    *,
    directory: str | int,
    env: Mapping[str, str],
    seconds: float,
    most: int,
    given: bytes = b"",
    apart: bool = False,
    ask_first: bool = False,
) -> Ended:
    """Run a program to its end.

    Args:
        argv: the program and its arguments; no shell reads them.
        directory: where it begins: a path, or a descriptor of an open directory.
        env: all of its environment; the program is looked for on its `PATH`.
        seconds: that it may take.
        most: bytes of output that are kept of each stream.
        given: its standard input.
        apart: keep standard error apart from standard output.
        ask_first: ask the group to end before it is killed, when its time is over.

    Raises:
        ToolError: it cannot be started.
    """
    place = {"cwd": directory} if isinstance(directory, str) else beginning_in(directory)
    out, err = Kept(most), Kept(most)
    loop = asyncio.get_running_loop()
    try:
        transport, program = await loop.subprocess_exec(
            lambda: _Program(out, err),
            *argv,
            **place,
            env=dict(env),
            stdin=subprocess.PIPE if given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(f"{argv[0]}: no such program") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ToolError(f"{argv[0]} cannot be started: {reason}") from error
    group = transport.get_pid()
    timed_out = False
    _LIVE.add(group)
    try:
        if (stdin := transport.get_pipe_transport(0)) is not None:
            assert isinstance(stdin, asyncio.WriteTransport)
            stdin.write(given)
            stdin.write_eof()
        timed_out = not await _happens(program.ended, seconds)
        if timed_out and ask_first:
            _signal(group, signal.SIGTERM)
            await _happens(program.ended, GRACE)
    finally:
        _signal(group, signal.SIGKILL)
        _LIVE.discard(group)
        await _happens(program.ended, GRACE)
        # Whoever left the group may hold the pipes open; what came until then is enough.
        await _happens(program.silent, GRACE)
        transport.close()
    status = transport.get_returncode()
    return Ended(-signal.SIGKILL if status is None else status, timed_out, out, err)


def kill_all() -> None:
    """End every program that runs now, for a process that is about to leave without waiting for anything."""
    for group in tuple(_LIVE):
        _signal(group, signal.SIGKILL)


_LIVE: set[int] = set()


class _Program(asyncio.SubprocessProtocol):
    """What is heard of a program: its output, that its streams were closed, and that it ended."""

    def __init__(self, out: Kept, err: Kept) -> None:
        self._kept = {1: out, 2: err}
        self._open = {1, 2}
        self.ended = asyncio.Event()
        self.silent = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._open = {fd for fd in (1, 2) if transport.get_pipe_transport(fd) is not None}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._kept[fd].add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        self.ended.set()


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _signal(group: int, number: signal.Signals) -> None:
    """Send a signal to a group, which is named after its first process and outlives it while it has members."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
