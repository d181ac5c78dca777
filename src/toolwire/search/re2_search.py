"""Searching files with RE2, in time linear in the text: where ripgrep is not installed, or its answer must not count.

It reads the files that ripgrep would read by default, except that it knows nothing of .gitignore: hidden files and
directories, `node_modules` and its like, and binary files are left out.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from toolwire._surface import needs_extra
from toolwire.errors import MissingExtra
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.query import MAX_LINE, Query, SearchError, Sink, shown_prefix

SKIPPED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Names of directories that hardly anybody means to search."""
MAX_DEPTH: Final = 200
"""Maximum number of directories inside one another; each is kept open meanwhile."""
MAX_MEMORY: Final = 8 << 20
"""Memory that RE2 may use for a pattern, in bytes."""
PROBE: Final = 8_192
"""Bytes at the beginning of a file; a null byte among them means that the file is not text."""
_PIECE: Final = 8 << 20
_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # it matches a line break, whatever the options


def is_skipped(name: str) -> bool:
    """Return whether files and directories of this name are left out unless they are named."""
    return name.startswith(".") or name in SKIPPED


def is_binary(data: bytes) -> bool:
    """Return whether a file that begins like this is not text."""
    return b"\0" in data[:PROBE]


def compile_pattern(pattern: str, *, max_memory: int = MAX_MEMORY, ignore_case: bool = False) -> Any:
    r"""Compile a pattern that searches a text line by line: ^ and $ match at each line, and nothing matches a newline.

    \A and \z, and ^ and $ after (?-m), keep their meaning: the ends of the text.

    Raises:
        SearchError: RE2 is not installed, or does not take the pattern.
    """
    try:
        with needs_extra("Searching", "agent"):
            import re2
    except MissingExtra as error:
        hint = "`te grep` needs it only where ripgrep is not installed: pip install ripgrep"
        raise SearchError("ripgrep_not_found", f"{error}; {hint}") from error
    if _ANY_BYTE.search(pattern):
        raise SearchError(
            "invalid_pattern", r"not a pattern that RE2 can run: no \C, which matches bytes; use . for any character"
        )
    options = re2.Options()
    options.max_mem = max_memory
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(f"(?m){pattern}", options)
    except (re2.error, UnicodeError) as error:
        text = error.args[0] if error.args else ""
        detail = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        raise SearchError(
            "invalid_pattern",
            f"not a pattern that RE2 can run: {detail} (no look-around, no back-references; escape ( [ . literally)",
        ) from error


def matching_lines(regex: Any, data: bytes, number: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that match, with their numbers; searches once per match, not once per line.

    Args:
        regex: from `compile_pattern`.
        data: whole lines; the last one may lack its line break.
        number: of the first line.
    """
    if not data:
        return  # no line, as opposed to an empty one
    data = data.removesuffix(b"\n")
    counted = position = 0
    while position <= len(data) and (match := regex.search(data, position)):
        start = data.rfind(b"\n", 0, match.start()) + 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += data.count(b"\n", counted, start)
        yield number, data[start:end]
        counted, position = start, end + 1


class Re2Search:
    """A search with RE2; it begins with `feed`.

    Args:
        query: what to search for.
        roots: where files may be read.
        path: the directory or file to search.

    Raises:
        SearchError: RE2 is not installed, or does not take the pattern.
    """

    def __init__(self, query: Query, roots: AllowedRoots, path: str) -> None:
        if query.types:
            raise SearchError("invalid_option", "types of files need ripgrep, which is not installed: use globs")
        self._query = query
        self._roots = roots
        self._path = path
        self._prefix = shown_prefix(roots, path)
        self._regex = _compile_query(query)

    def feed(self, sink: Sink, *, seconds: float) -> bool:
        """Search to the end or until time is over; return whether it ended in time.

        Raises:
            ToolError: the path may not be read, or its directories are nested too deeply.
        """
        deadline = time.monotonic() + seconds
        roots = self._roots
        for name, file in roots.files(self._path, self._is_skipped, _refuse, depth=MAX_DEPTH, entries=sys.maxsize):
            if name and not self._is_selected(name):
                continue
            shown = self._prefix + os.fsencode(name) if name else self._prefix.removesuffix(b"/")
            if not self._search_file(shown, file, sink, deadline):
                return False
        return True

    def _is_skipped(self, name: str) -> bool:
        query = self._query
        return (not query.hidden and name.startswith(".")) or (not query.no_ignore and name in SKIPPED)

    def _is_selected(self, path: str) -> bool:
        excluded = [glob[1:] for glob in self._query.globs if glob.startswith("!")]
        included = [glob for glob in self._query.globs if not glob.startswith("!")]
        if any(_glob_matches(path, glob) for glob in excluded):
            return False
        return not included or any(_glob_matches(path, glob) for glob in included)

    def _search_file(self, name: bytes, file: int, sink: Sink, deadline: float) -> bool:
        """Search a file piece by piece; return whether that ended in time."""
        number, rest = 1, b""
        is_first = True
        while piece := os.read(file, _PIECE):
            if is_first and is_binary(piece):
                return True
            is_first = False
            data = rest + piece
            end = data.rfind(b"\n") + 1
            if not end and len(data) > _PIECE:  # a line without an end is searched in parts
                end = len(data)
            number = self._report(data[:end], name, number, sink)
            rest = data[end:]
            if time.monotonic() > deadline:
                return False
        self._report(rest, name, number, sink)
        return time.monotonic() <= deadline

    def _report(self, data: bytes, name: bytes, number: int, sink: Sink) -> int:
        """Report the lines that match; return the number of the line after the data."""
        for at, line in matching_lines(self._regex, data, number):
            text = line.removesuffix(b"\r")
            sink.hit(name, at, text if len(text) <= MAX_LINE else text[:MAX_LINE] + b" [... cut]")
        return number + data.count(b"\n")


def _compile_query(query: Query) -> Any:
    pattern = re.escape(query.pattern) if query.fixed else query.pattern
    if query.word:
        pattern = rf"\b(?:{pattern})\b"
    ignore_case = query.ignore_case or (query.smart_case and query.pattern == query.pattern.lower())
    return compile_pattern(pattern, ignore_case=ignore_case)


def _glob_matches(path: str, glob: str) -> bool:
    """Match a glob with a file's name, or with its path if the glob contains a slash."""
    return fnmatchcase(path if "/" in glob else path.rpartition("/")[2], glob.removeprefix("/"))


def _refuse(reason: str) -> None:
    raise SearchError("not_readable", f"{reason}; start in a directory that is deeper")
