"""Programs that wait at their start until their process group is watched.

A process can be killed after it has started a program and before its watcher knows the program's group. The program
would then run on. So a shell waits in the program's place for a line on standard input, and becomes the program only
when that line arrives. If this process has ended, no line arrives, and the shell ends.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_SHELL: Final = "/bin/sh"
_OPENING: Final = b"\n"
_MAX_DESCRIPTOR: Final = 9
"""Largest number of a descriptor in a redirection of a POSIX shell."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_SHELLS: Final = ("PWD", "OLDPWD", "SHLVL")


class GatedStart(NamedTuple):
    """The command of a program behind a gate.

    Attributes:
        argv: the shell that waits and then becomes the program; the program itself if there is no gate.
        opening: bytes to write to its standard input, before any other, when its group is watched; b"" if there is no
            gate.
    """

    argv: tuple[str, ...]
    opening: bytes


def gate(argv: Sequence[str], env: Mapping[str, str], directory: str | int, *, source: int | None) -> GatedStart:
    """Return how to start a program behind a gate.

    There is no gate where there is no POSIX shell, for an environment with a name that a shell would drop, and for an
    input whose number a shell cannot write.

    Args:
        argv: the program and its arguments; the shell does not interpret them.
        env: the program's whole environment.
        directory: where it starts: a path, or a descriptor of an open directory.
        source: the inherited descriptor that becomes its standard input; 0 for what follows the opening, None for no
            input.

    Raises:
        OSError: there is no such program, or it may not be run.
    """
    has_shell = os.name == "posix" and os.access(_SHELL, os.X_OK)
    can_be_written = source is None or source <= _MAX_DESCRIPTOR
    if not (has_shell and can_be_written and all(map(_NAME.fullmatch, env))):
        return GatedStart(tuple(argv), b"")
    program = _startable(argv[0], env, directory)
    foreign = [name for name in _SET_BY_SHELLS if name not in env]
    unset = f"unset {' '.join(foreign)}; " if foreign else ""
    redirection = " </dev/null" if source is None else f" <&{source} {source}<&-" if source else ""
    script = f'read -r line || exit 1; {unset}exec "$@"{redirection}'
    return GatedStart((_SHELL, "-c", script, "sh", program, *argv[1:]), _OPENING)


def _startable(name: str, env: Mapping[str, str], directory: str | int) -> str:
    """Return the name by which the shell finds a program.

    The shell would report a program that cannot be started with an exit status that the program itself may have too.
    """
    if os.sep not in name:
        program = shutil.which(name, path=env.get("PATH", os.defpath)) if name else None
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return program if name.startswith("-") else name  # `exec` would take it as an option
    place, path = (directory, name) if isinstance(directory, int) else (None, os.path.join(directory, name))
    info = os.stat(path, dir_fd=place)
    if not stat.S_ISREG(info.st_mode) or not os.access(path, os.X_OK, dir_fd=place):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return name
