"""End the programs and remove the directories of this process when it ends without cleaning up, even by SIGKILL.

A small shell in a process group of its own reads from a pipe what there is to clean up. The system closes the pipe
whichever way this process ends; the shell then kills the groups, removes the directories and ends too. POSIX only:
elsewhere, and where there is no `/bin/sh`, nothing is watched.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_SCRIPT: Final = r"""
trap '' HUP INT QUIT TERM
set --
while read -r action entry; do
  if [ "$action" = watch ]; then set -- "$@" "$entry"; continue; fi
  for each do shift; [ "$each" = "$entry" ] || set -- "$@" "$each"; done
done
for each do case $each in [0-9]*) kill -s KILL -- "-$each";; esac; done
for each do
  case $each in /*) for attempt in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$each"; [ -e "$each" ] || break; done;; esac
done
"""
"""Its positional parameters are the entries: numbers of groups, and absolute paths. `read -r` keeps backslashes."""


class _Watcher:
    """The shell of this process, which is started when there is something to watch for the first time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[str] = []
        self._pipe: int | None = None
        self._process = 0

    def start(self) -> None:
        """Start the shell unless it runs."""
        with self._lock:
            if self._pipe is None:
                self._start()

    def add(self, entry: str) -> None:
        """Clean up this entry when the process ends."""
        with self._lock:
            self._entries.append(entry)
            if self._pipe is None:
                self._start()
            else:
                self._send(f"watch {entry}\n")

    def remove(self, entry: str) -> None:
        """Leave this entry alone: the process has cleaned it up."""
        with self._lock:
            if entry not in self._entries:  # it was added before this process was forked
                return
            self._entries.remove(entry)
            if self._pipe is not None:
                self._send(f"leave {entry}\n")

    def forget(self) -> None:
        """Begin anew in a process that was forked: what its parent watches is not its own."""
        if self._pipe is not None:
            # As long as a copy of this end is open, the parent's shell does not see the parent end.
            os.close(self._pipe)
        self._pipe = None
        self._entries = []
        self._lock = threading.Lock()  # a thread of the parent may hold the other one

    def _start(self) -> None:
        reading, writing = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._process = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT],
                {"PATH": "/usr/bin:/bin"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    # Readers of our output wait for its end, and must not wait for the shell.
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                ],
                setpgroup=0,  # the terminal's signals for our group do not reach it
            )
        except OSError:
            os.close(writing)
            return
        finally:
            os.close(reading)
            os.close(null)
        self._pipe = writing
        for entry in self._entries:
            self._send(f"watch {entry}\n")

    def _send(self, line: str) -> None:
        assert self._pipe is not None
        try:
            # A line is shorter than the system's atomic size, so that lines of threads do not mix.
            os.write(self._pipe, line.encode("utf-8", "surrogateescape"))
        except BrokenPipeError:  # another process has killed the shell
            os.close(self._pipe)
            self._pipe = None
            with suppress(ChildProcessError):
                os.waitpid(self._process, os.WNOHANG)
            if self._entries:
                self._start()


_WATCHER: Final = _Watcher()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WATCHER.forget)


def prepare_watcher() -> None:
    """Start the shell before a program, so that less time passes between the program's start and `watch_group`."""
    if hasattr(os, "posix_spawn"):
        _WATCHER.start()


@contextmanager
def watch_group(group: int) -> Iterator[None]:
    """Have this process group killed if our process ends within the block."""
    with _watched(str(group)):
        yield


@contextmanager
def watch_directory(directory: str) -> Iterator[None]:
    """Have this directory removed if our process ends within the block."""
    with _watched(os.path.abspath(directory)):
        yield


@contextmanager
def _watched(entry: str) -> Iterator[None]:
    # An entry is one line, whose surrounding blanks the shell drops: such a path would name another one.
    if not hasattr(os, "posix_spawn") or "\n" in entry or "\0" in entry or entry != entry.strip():
        yield
        return
    _WATCHER.add(entry)
    try:
        yield
    finally:
        _WATCHER.remove(entry)
