"""`search_files`: the lines that a regular expression matches, found by RE2, in time linear in the text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic

from toolwire.builtin.path_suggestions import helpful
from toolwire.builtin.reading import MAX_FILE_BYTES
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.candidates import candidate_files
from toolwire.search.re2_search import compile_pattern, is_binary, is_skipped, matching_lines
from toolwire.search.ripgrep import find_ripgrep
from toolwire.text.escape import escape_invisible
from toolwire.text.truncate import truncate

MAX_PATTERN = 300
"""Maximum length of a pattern, in characters."""
MAX_PATTERN_MEMORY = 4 << 20
"""Memory that RE2 may use for a pattern, in bytes."""
MAX_SECONDS = 20.0
MAX_MATCHES = 40
MAX_MATCH_LINE = 200
"""Maximum length of a line in the result, in characters."""
STOPPED = f"stopped after {MAX_SECONDS:g} seconds; search a smaller directory"


class Searching:
    """The tool `search_files`.

    Args:
        roots: directories below which files may be read.
        ripgrep: use ripgrep where it is installed. A program below a root is not used: the model that searches may
            have written it.
        suggestions: suggest existing paths for a path that does not exist.
    """

    def __init__(self, roots: AllowedRoots, *, ripgrep: bool = True, suggestions: bool = True) -> None:
        self._roots = roots
        self._suggestions = suggestions
        self._ripgrep = find_ripgrep(outside=roots.roots) if ripgrep else ""

    def search_files(self, pattern: str, path: str = ".") -> str:
        """Search text files for a regular expression and list the matching lines with file and line number.

        Args:
            pattern: a regular expression in RE2 syntax, matched within single lines, which ^ and $ begin and end; begin
                it with (?i) to ignore case.
            path: the directory or file to search, relative to the root. Files of more than 8 MB and binary ones are
                not searched; hidden ones only if they are named here.
        """
        if not pattern or len(pattern) > MAX_PATTERN:
            raise ToolError(f"a pattern has 1 to {MAX_PATTERN} characters")
        regex = compile_pattern(pattern, max_memory=MAX_PATTERN_MEMORY)
        matches, notes = list[str](), list[str]()
        deadline = monotonic() + MAX_SECONDS
        with helpful(self._roots, path, "any", suggestions=self._suggestions):
            for name, data in self._texts(pattern, path, deadline, notes):
                if monotonic() > deadline:
                    notes.append(STOPPED)
                    break
                shown = escape_invisible(_joined(path, name))
                for number, line in matching_lines(regex, data.replace(b"\r\n", b"\n")):
                    if len(matches) == MAX_MATCHES:
                        return "\n".join([*matches, f"(only the first {MAX_MATCHES} matches are shown)"])
                    text = truncate(line.decode("utf-8", "replace").strip(), MAX_MATCH_LINE)
                    matches.append(f"{shown}:{number}: {text}")
        return "\n".join([*(matches or ["no match"]), *(f"({note})" for note in notes)])

    def _texts(self, pattern: str, path: str, deadline: float, notes: list[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the names of files that may match, in order, and their contents; b"" if a file is not text."""
        names = self._candidates(pattern, path, deadline, notes)
        if names is None:
            for name, file in self._roots.files(path, is_skipped, notes.append):
                yield name, _text(file)
            return
        for name in names:
            with suppress(ToolError), self._roots.reading(f"{path}/{name}") as file:
                yield name, _text(file)

    def _candidates(self, pattern: str, path: str, deadline: float, notes: list[str]) -> list[str] | None:
        """Return the files that ripgrep names; None if all of them have to be read."""
        if not self._ripgrep:
            return None
        with suppress(ToolError), self._roots.directory(path) as directory:
            seconds = deadline - monotonic()
            try:
                return candidate_files(self._ripgrep, pattern, directory, max_bytes=MAX_FILE_BYTES, seconds=seconds)
            except TimeoutError:
                notes.append(STOPPED)
                return []
        return None


def _text(file: int) -> bytes:
    """Return a file's content; b"" if it is binary or too large."""
    if os.fstat(file).st_size > MAX_FILE_BYTES:
        return b""
    with suppress(OSError), os.fdopen(os.dup(file), "rb") as opened:
        data = opened.read(MAX_FILE_BYTES)
        return b"" if is_binary(data) else data
    return b""


def _joined(path: str, name: str) -> str:
    """Return a file's name below the path, spelled as the path was."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    path = path if path == "/" else path.rstrip("/")
    if path in ("", "."):
        return name
    return f"{path}/{name}" if name else path
