"""Digests of files, read again only if the file has changed."""

from __future__ import annotations

import hashlib
import os
import time
from stat import S_ISREG

_SETTLED_SECONDS = 2.0
"""Age of the last change of a file, in seconds, from which a further change is certain to have another time."""

_MAX_DIGESTS = 1_000
"""Maximum number of digests that are remembered."""
_digests: dict[str, tuple[tuple[int, ...], str]] = {}
"""Digests of files that were read, by path, each with the state of the file."""


def file_digest(path: str) -> str | None:
    """Return the SHA-256 of a regular file as hexadecimal digits; "" if it must not be read, None if there is none.

    Only regular files are opened: a pipe or a device could block, or never end.

    Raises:
        OSError: the file cannot be read.
    """
    if not os.path.isfile(path):
        return None
    before = _state(os.stat(path))
    if (cached := _digests.get(path)) is not None and cached[0] == before:
        return cached[1]
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            after = _state(os.fstat(file.fileno()))
    except PermissionError:
        return ""  # a program may be executable without being readable
    age = time.time() - max(after[0], after[1]) / 1e9
    if before == after and age > _SETTLED_SECONDS:
        if len(_digests) >= _MAX_DIGESTS:
            _digests.clear()
        _digests[path] = after, digest
    return digest


def _state(status: os.stat_result) -> tuple[int, ...]:
    """Return the times of a file's last changes, its size and its identity."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def _open_at_once(path: str, flags: int) -> int:
    # A pipe that took the file's place in the meantime would wait until a program writes into it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
