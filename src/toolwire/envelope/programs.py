"""Programs that `te` runs: as an argument vector, never through a shell, with a limit on time and on memory.

`toolwire.runtime.processes` does as much for tools, with asyncio. Loading that takes longer than many commands do;
and what runs here reads our standard input.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final, NamedTuple

TIMED_OUT: Final = 124
"""The exit status of what took too long, as `timeout` has it."""
GRACE: Final = 0.5
"""Seconds that a program has to end once it was told to."""
LINGER: Final = 1.0
"""Seconds that output is waited for behind a program's end, where something that it left behind holds it open."""
SHARED_GROUP: Final = "TE_SHARED_GROUP"
"""Is set by who runs `te` and will end its group."""
_PIECE: Final = 65_536


class Ran(NamedTuple):
    """What a program did.

    Attributes:
        out: the beginning of its standard output; with `merge`, of both.
        err: the beginning of its standard error.
        dropped: bytes of both that were read and not kept.
        status: its exit status; 128 and the signal's number where one ended it, `TIMED_OUT` where time did.
        timed_out: it was ended because it took too long.
    """

    out: bytes
    err: bytes
    dropped: int
    status: int
    timed_out: bool = False


def run(argv: Sequence[str], *, seconds: float, keep: int, merge: bool = False) -> Ran:
    """Run a program to its end, or to the end of its time; then all that it started in its session ends as well.

    Args:
        argv: the program and its arguments.
        seconds: that it may take.
        keep: bytes that are kept, of each of its outputs.
        merge: standard error goes where standard output does.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge else subprocess.PIPE,
        start_new_session=not shared_group(),
    )
    readers = [_Reader(pipe, keep) for pipe in (process.stdout, process.stderr) if pipe is not None]
    ended = timed_out = False
    try:
        for reader in readers:
            reader.start()
        try:
            process.wait(seconds)
            status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        except subprocess.TimeoutExpired:
            end(process)
            status, timed_out = TIMED_OUT, True
        patience = time.monotonic() + LINGER
        for reader in readers:
            reader.join(max(0.0, patience - time.monotonic()))
        if hasattr(os, "killpg"):
            _signal(process, signal.SIGKILL)  # what it left behind
        ended = True
    finally:
        if not ended:  # interrupted
            end(process)
    out, *rest = (reader.taken() for reader in readers)
    err = rest[0] if rest else (b"", 0)
    return Ran(out[0], err[0], out[1] + err[1], status, timed_out)


def shared_group() -> bool:
    """Whether whoever runs us ends our whole group afterwards; then what we run has to stay in it."""
    return bool(os.environ.get(SHARED_GROUP))


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started in its session: told first, then made to."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg") and not shared_group():
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


class _Reader(threading.Thread):
    """Reads an output to its end, keeps its beginning and counts the rest."""

    def __init__(self, pipe: IO[bytes], keep: int) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._room = keep
        self._lock = threading.Lock()
        self._pieces: list[bytes] = []
        self._dropped = 0

    def run(self) -> None:
        while piece := os.read(self._pipe.fileno(), _PIECE):
            with self._lock:
                kept = piece[: self._room]
                self._room -= len(kept)
                self._dropped += len(piece) - len(kept)
                if kept:
                    self._pieces.append(kept)
        self._pipe.close()

    def taken(self) -> tuple[bytes, int]:
        """What was read so far, and how many bytes were not kept."""
        with self._lock:
            return b"".join(self._pieces), self._dropped
