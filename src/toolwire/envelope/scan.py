"""Searching where there is no ripgrep: RE2 over the files below an open directory.

It reads what ripgrep would by default, but for .gitignore and the like, which it does not know: it leaves out hidden
files and directories, `node_modules` and its kind, and files that are no text.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from toolwire.envelope.search import MAX_LINE, Place, Query, SearchError, Sink, check_depth

SKIPPED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})
MAX_MEMORY: Final = 8 << 20
"""Bytes that RE2 may use for a pattern."""
_PROBE: Final = 8_192
_PIECE: Final = 8 << 20
_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # it would match a line break


class Scan:
    """A search with RE2; it begins with `feed`.

    Raises:
        SearchError: there is no RE2 either, or it does not take the pattern.
    """

    def __init__(self, query: Query, place: Place) -> None:
        self._query = query
        self._place = place
        self._regex = _compiled(query)

    def feed(self, sink: Sink, *, seconds: float) -> bool:
        """Search to the end, or to the end of the time; whether it came to its end."""
        until = time.monotonic() + seconds
        for name, file in self._files():
            try:
                if not self._scanned(name, file, sink, until):
                    return False
            finally:
                os.close(file)
            if time.monotonic() > until:
                return False
        return True

    def _files(self) -> Iterator[tuple[bytes, int]]:
        """The files, open, with the names that they are shown under."""
        place = self._place
        if place.is_file:
            yield place.prefix, os.dup(place.descriptor)
            return
        for folder, folders, names, descriptor in os.fwalk(".", dir_fd=place.descriptor):
            folders[:] = sorted(name for name in folders if self._wanted_folder(name))
            if folders:
                check_depth(folder)
            where = folder.removeprefix(".").removeprefix("/")
            for name in sorted(names):
                path = f"{where}/{name}" if where else name
                if not self._wanted(path, name):
                    continue
                file = _opened(name, descriptor)
                if file >= 0:
                    yield place.prefix + os.fsencode(path), file

    def _wanted_folder(self, name: str) -> bool:
        return (self._query.hidden or not name.startswith(".")) and (self._query.no_ignore or name not in SKIPPED)

    def _wanted(self, path: str, name: str) -> bool:
        if name.startswith(".") and not self._query.hidden:
            return False
        globs = self._query.globs
        if any(_fits(path, name, glob[1:]) for glob in globs if glob.startswith("!")):
            return False
        positive = [glob for glob in globs if not glob.startswith("!")]
        return not positive or any(_fits(path, name, glob) for glob in positive)

    def _scanned(self, name: bytes, file: int, sink: Sink, until: float) -> bool:
        number, rest = 1, b""
        search = self._regex.search
        first = True
        while piece := os.read(file, _PIECE):
            if first and b"\0" in piece[:_PROBE]:
                return True
            first = False
            data = rest + piece
            at = data.rfind(b"\n") + 1
            if not at and len(data) > _PIECE:  # a line without an end: what is found in a part of it is found
                at = len(data)
            number = _told(search, data[:at], name, number, sink)
            rest = data[at:]
            if time.monotonic() > until:
                return False
        _told(search, rest, name, number, sink)
        return True


def _told(search: Any, data: bytes, name: bytes, number: int, sink: Sink) -> int:
    """Tell the lines that match; one search a hit, not one a line. Returns the number of the line behind the data."""
    counted = position = 0
    while position < len(data) and (match := search(data, position)):
        start = data.rfind(b"\n", 0, match.start()) + 1
        if start == len(data):  # behind the last line break there is no line
            break
        end = data.find(b"\n", max(start, match.start()))
        end = len(data) if end < 0 else end
        number += data.count(b"\n", counted, start)
        line = data[start:end].removesuffix(b"\r")
        sink.hit(name, number, line if len(line) <= MAX_LINE else line[:MAX_LINE] + b" [... cut]")
        counted = start
        position = end + 1
    return number + data.count(b"\n", counted)


def _compiled(query: Query) -> Any:
    if query.types:
        raise SearchError("invalid_option", "types of files are ripgrep's, and it is not here: use globs")
    try:
        import re2
    except ImportError as error:
        raise SearchError(
            "ripgrep_not_found",
            "there is neither ripgrep nor RE2 to search with: pip install ripgrep, or the extra `agent`",
        ) from error
    pattern = re2.escape(query.pattern) if query.fixed else query.pattern
    if _ANY_BYTE.search(pattern):
        raise SearchError("invalid_pattern", r"\C matches bytes, and is not known here")
    if query.word:
        pattern = rf"\b(?:{pattern})\b"
    ignore = query.ignore_case or (query.smart_case and query.pattern == query.pattern.lower())
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not ignore
    try:
        return re2.compile(f"(?m){pattern}", options)
    except (re2.error, UnicodeError) as error:
        told = error.args[0] if error.args else ""
        raise SearchError(
            "invalid_pattern", told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        ) from error


def _fits(path: str, name: str, glob: str) -> bool:
    """Whether a glob means a file: by its name, or by its path where the glob has a stroke."""
    return fnmatchcase(path if "/" in glob else name, glob.removeprefix("/"))


def _opened(name: str, folder: int) -> int:
    """A regular file, open to be read; -1 if it is none or cannot be."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        file = os.open(name, flags, dir_fd=folder)
    except OSError:
        return -1
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return -1
