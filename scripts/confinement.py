"""Processes that can write only where they are told to, with Linux namespaces: no root rights are needed."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

UNCONFINED = 120
"""Exit status of a process that could not be confined, and has run nothing."""

_NEW_MOUNTS_AND_PROCESSES, _NEW_USER = 0x20020000, 0x10000000
_PRIVATE, _BIND, _RECURSIVE = 0x44000, 0x1000, 0x8000
_READ_ONLY_WITHOUT_PROGRAMS = 0xF
_MOUNT_SETATTR, _AT_FDCWD, _DEATH_SIGNAL = 442, -100, 1


def fork_confined(run: Callable[[], int], writable: Sequence[Path], *, confined: bool = True) -> int:
    """Fork a process that runs a function and exits with its result.

    Returns:
        The process number; unless confined, also that of its group. Whoever kills it kills all that it has started.
    """
    if pid := os.fork():
        return pid
    status = UNCONFINED if confined else 3
    try:
        if confined:
            _call("prctl", _DEATH_SIGNAL, signal.SIGKILL)
            _confine(writable)
            if child := os.fork():
                os._exit(exit_code(os.waitpid(child, 0)[1]))
            # The first process of a namespace: the kernel ends all others with it.
            _call("prctl", _DEATH_SIGNAL, signal.SIGKILL)
            _show_processes()
            if child := os.fork():
                os._exit(exit_code(_collect_until(child)))
        status = 3
        os.setsid()
        status = run()
    finally:
        os._exit(status)


def exit_code(status: int) -> int:
    """Return what a process exited with, or 128 and the signal that ended it, as shells do."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _call(name: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def _confine(writable: Sequence[Path]) -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_MOUNTS_AND_PROCESSES | (_NEW_USER if user else 0))
    if user:
        for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", file).write_text(text)
    _call("mount", None, b"/", None, ctypes.c_ulong(_PRIVATE), None)
    for path in writable:
        _call("mount", bytes(path), bytes(path), None, ctypes.c_ulong(_BIND), None)
    _set_read_only(Path("/"), read_only=True)
    for path in writable:
        _set_read_only(path, read_only=False)


def _show_processes() -> None:
    """Have `/proc` show the processes of the new namespace, by the numbers that they have in it.

    A container may refuse this. Its `/proc` then shows the numbers of other processes.
    """
    with suppress(OSError):
        _call("mount", b"proc", b"/proc", b"proc", ctypes.c_ulong(_READ_ONLY_WITHOUT_PROGRAMS), None)


def _collect_until(child: int) -> int:
    """Return the status of a child, and collect what is left behind until it ends, as the first process has to."""
    while True:
        process, status = os.wait()
        if process == child:
            return status


def _set_read_only(path: Path, *, read_only: bool) -> None:
    """Set or clear the attribute; below `/` for all mounts, as there is no other way to reach them at once."""
    attributes = (ctypes.c_uint64 * 4)(int(read_only), int(not read_only), 0, 0)
    flags = _RECURSIVE if read_only else 0
    _call("syscall", _MOUNT_SETATTR, _AT_FDCWD, bytes(path), flags, attributes, ctypes.sizeof(attributes))
