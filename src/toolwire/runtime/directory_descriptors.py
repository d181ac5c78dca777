"""Open directories: where they really are, what is in them, and programs that start in one."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

MAX_ENTRIES = 100_000
"""Maximum number of names in one directory."""


def beginning_in(directory: int) -> dict[str, Any]:
    """Return arguments of `subprocess` that start a program in an open directory, whatever its name now leads to."""
    if os.path.isdir("/proc/self/fd"):
        return {"cwd": f"/proc/self/fd/{directory}"}  # the child enters it before its descriptors are closed
    return {"preexec_fn": functools.partial(os.fchdir, directory)}


def real_path(directory: int) -> str:
    """Return the path of an open directory, without links; where the system does not say, its device and number."""
    if sys.platform == "darwin":
        import fcntl

        return os.fsdecode(fcntl.fcntl(directory, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    try:
        return os.readlink(f"/proc/self/fd/{directory}")
    except OSError:
        info = os.fstat(directory)
        return f"device {info.st_dev}, directory {info.st_ino}"


def entries_of(directory: int, most: int = MAX_ENTRIES) -> tuple[list[os.DirEntry[str]], bool]:
    """Return what is in an open directory, sorted by name, and whether there is more than the maximum."""
    listing: list[os.DirEntry[str]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if len(listing) == most:
                return sorted(listing, key=lambda entry: entry.name), True
            listing.append(entry)
    return sorted(listing, key=lambda entry: entry.name), False
