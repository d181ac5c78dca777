"""Programs in process groups: end one with everything that it started, or run one to its end, without asyncio.

`toolwire.runtime.processes` runs programs from coroutines. It loads asyncio, which takes longer than many commands of
`te` do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import IO, Any, Final, NamedTuple

from toolwire.runtime.directory_descriptors import beginning_in
from toolwire.runtime.start_gate import gate
from toolwire.runtime.watcher import prepare_watcher, watch_group

TIMED_OUT: Final = 124
"""Exit status of a program that exceeded its time limit, as the command `timeout` reports it."""
GRACE: Final = 0.5
"""Seconds between asking a program to end and killing it."""
LINGER: Final = 1.0
"""Seconds to wait for output after a program's end, in case a process that it left behind keeps the pipes open."""
SHARED_GROUP: Final = "TE_SHARED_GROUP"
"""Environment variable set by a parent that ends our whole process group itself."""
_PIECE: Final = 65_536  # pragma: no mutate: any size reads everything


class CapturedOutput:
    """The beginning and the end of what a program writes.

    Args:
        head: bytes kept from the beginning.
        tail: bytes kept from the end.

    Attributes:
        size: bytes that were written in all.
    """

    def __init__(self, head: int, tail: int = 0) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0

    @classmethod
    def of_both_ends(cls, limit: int) -> CapturedOutput:
        """Keep half of the limit from each end, and at least one byte."""
        half = max(limit // 2, 1)
        return cls(half, half)

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self.size += len(piece)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece and self._tail_limit:
            self._tail.append(piece)
            self._tail_size += len(piece)
            while self._tail_size - len(self._tail[0]) >= self._tail_limit:
                self._tail_size -= len(self._tail.popleft())

    @property
    def left_out(self) -> int:
        """Number of bytes in the middle that were dropped."""
        return max(self.size - len(self._head) - min(self._tail_size, self._tail_limit), 0)

    def parts(self) -> tuple[bytes, bytes]:
        """Return the beginning and the end; they adjoin if nothing was left out."""
        tail = b"".join(self._tail)
        return bytes(self._head), tail[-self._tail_limit :] if len(tail) > self._tail_limit else tail

    def joined(self) -> bytes:
        """Return the beginning and the end as one."""
        return b"".join(self.parts())


class ProgramResult(NamedTuple):
    """The result of a program.

    Attributes:
        status: exit status; negative for the signal that ended it.
        timed_out: whether it was ended because it exceeded its time limit.
        out: standard output; standard error as well unless that was captured separately.
        err: standard error, if captured separately.
    """

    status: int
    timed_out: bool
    out: CapturedOutput
    err: CapturedOutput

    @property
    def exit_status(self) -> int:
        """The status as a shell reports it: `TIMED_OUT`, or 128 and the number of the signal that ended it."""
        if self.timed_out:
            return TIMED_OUT
        return self.status if self.status >= 0 else 128 - self.status

    @property
    def left_out(self) -> int:
        """Number of bytes of both streams that were dropped."""
        return self.out.left_out + self.err.left_out


def run_program(
    argv: Sequence[str],
    *,
    seconds: float,
    max_output: int,
    separate_stderr: bool = True,
    stdin: int | None = None,
    directory: int | None = None,
) -> ProgramResult:
    """Run a program to its end or until its time is over, then end whatever it started in its session.

    Args:
        argv: the program and its arguments; no shell reads them.
        seconds: time limit.
        max_output: bytes kept from the beginning of each stream.
        separate_stderr: capture standard error on its own.
        stdin: standard input; None for ours.
        directory: descriptor of the directory that it starts in; None for our working directory.

    Raises:
        OSError: it cannot be started.
    """
    own_group = not in_shared_group()
    place: dict[str, Any] = {} if directory is None else beginning_in(directory)
    with ExitStack() as closing:
        opening = b""
        if own_group:
            prepare_watcher()
            source = None if stdin == subprocess.DEVNULL else _duplicate(stdin, closing)
            argv, opening = gate(argv, os.environ, os.curdir if directory is None else directory, source=source)
            if opening:
                stdin = subprocess.PIPE
                place["pass_fds"] = () if source is None else (source,)
        process = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if separate_stderr else subprocess.STDOUT,
            start_new_session=own_group,
            **place,
        )
    out, err = CapturedOutput(max_output), CapturedOutput(max_output)
    readers = [_Reader(pipe, to) for pipe, to in ((process.stdout, out), (process.stderr, err)) if pipe is not None]
    finished = timed_out = False
    watched = ExitStack()
    try:
        if own_group:
            watched.enter_context(watch_group(process.pid))
        if opening:
            assert process.stdin is not None
            with suppress(OSError), process.stdin as pipe:  # it was killed
                pipe.write(opening)
        for reader in readers:
            reader.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            end_program(process)
            timed_out = True
        deadline = time.monotonic() + LINGER
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        if hasattr(os, "killpg"):
            _signal(process, signal.SIGKILL)  # processes that it left behind
        finished = True
    finally:
        if not finished:  # interrupted
            end_program(process)
        watched.close()
    return ProgramResult(process.returncode, timed_out, out, err)


def _duplicate(stdin: int | None, closing: ExitStack) -> int | None:
    """Return another number of an open file, which a gate can name if it is small; it is closed with the stack.

    Args:
        stdin: its number; None for our standard input, which may be closed.
        closing: closes the copy.

    Raises:
        OSError: the file is not open.
    """
    if sys.platform == "win32":
        return stdin  # pragma: no mutate: it runs on Windows alone
    import fcntl  # here, because Windows does not have it

    try:
        copy = fcntl.fcntl(stdin or 0, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:
        if stdin is None:
            return None
        raise
    closing.callback(os.close, copy)
    return copy


def in_shared_group() -> bool:
    """Return whether our parent ends our whole process group, so that what we start has to stay in it."""
    return bool(os.environ.get(SHARED_GROUP))


def end_program(process: subprocess.Popen[bytes]) -> None:
    """Ask a program and its group to end, then kill them."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()


def signal_group(group: int, number: int) -> None:
    """Send a signal to a group, which is named after its first process and outlives it while it has members."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    if hasattr(os, "killpg") and not in_shared_group():
        signal_group(process.pid, number)
        return
    with suppress(ProcessLookupError, PermissionError):
        process.send_signal(number)


class _Reader(threading.Thread):
    """Reads a pipe to its end, so that the program never waits for us."""

    def __init__(self, pipe: IO[bytes], output: CapturedOutput) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._output = output

    def run(self) -> None:
        while piece := os.read(self._pipe.fileno(), _PIECE):
            self._output.add(piece)
        self._pipe.close()
