"""`list_dir` and `read_file`. Results are bounded, and say what was left out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from toolwire.builtin.path_suggestions import helpful
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.runtime.directory_descriptors import entries_of
from toolwire.search.re2_search import is_binary
from toolwire.text.counted import counted
from toolwire.text.escape import escape_invisible
from toolwire.text.truncate import truncate

MAX_SHOWN_ENTRIES = 200
MAX_FILE_BYTES = 8 << 20
MAX_READ_LINES = 200
MAX_READ_CHARACTERS = 16_000


class Reading:
    """The tools `list_dir` and `read_file`.

    Args:
        roots: directories below which files may be read.
        characters: maximum length of a result of `read_file`; a line has at most a tenth of that.
        suggestions: suggest existing paths for a path that does not exist.
        short_files_whole: return a file that fits into a result whole, whatever lines are asked for.
    """

    def __init__(
        self,
        roots: AllowedRoots,
        *,
        characters: int = MAX_READ_CHARACTERS,
        suggestions: bool = True,
        short_files_whole: bool = False,
    ) -> None:
        self._roots = roots
        self._short_files_whole = short_files_whole
        self._characters = characters
        self._suggestions = suggestions

    def list_dir(self, path: str = ".") -> str:
        """List the files and directories in a directory.

        Args:
            path: the directory, relative to the root; "." is the root itself.
        """
        with (
            helpful(self._roots, path, "directory", suggestions=self._suggestions),
            self._roots.directory(path) as directory,
        ):
            entries, more = entries_of(directory)
            lines = [_shown(entry) for entry in entries[:MAX_SHOWN_ENTRIES]]
        count = f"more than {len(entries)}" if more else f"{len(entries)}"
        cut = f", the first {MAX_SHOWN_ENTRIES} are shown" if len(entries) > MAX_SHOWN_ENTRIES else ""
        return "\n".join([*lines, f"({count} entries{cut})"])

    def read_file(self, path: str, start_line: int = 1, end_line: int = 0) -> str:
        """Read a text file, or some of its lines.

        Args:
            path: the file, relative to the root.
            start_line: the first line to read, counted from 1.
            end_line: the last line to read; 0 reads to the end of the file.
        """
        with (
            helpful(self._roots, path, "file", suggestions=self._suggestions),
            self._roots.reading(path) as file,
        ):
            with os.fdopen(os.dup(file), "rb") as opened:
                data = opened.read(MAX_FILE_BYTES)
            size = max(os.fstat(file).st_size, len(data))
        if is_binary(data):
            raise ToolError(f"{path} is a binary file of {size} bytes; only text can be read")
        lines = data.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n").split("\n")
        if self._short_files_whole and self._fits(lines):
            start_line, end_line = 1, 0
        if start_line < 1 or (end_line and end_line < start_line):
            raise ToolError(f"no such lines: {start_line} to {end_line}; lines are counted from 1")
        if start_line > len(lines):
            raise ToolError(f"{path} has only {counted(len(lines), 'line')}, so there is no line {start_line}")
        shown = list(_bounded(lines[start_line - 1 : end_line or None], self._characters))
        text = "\n".join(shown)
        last = start_line + len(shown) - 1
        if len(shown) < len(lines) or size > len(data):
            total = f"{len(lines)}" if size == len(data) else f"more than {len(lines)}"
            text += f"\n(these are lines {start_line} to {last} of {total})"
        return text or "(empty file)"

    def _fits(self, lines: list[str]) -> bool:
        """Return whether a result can contain these lines, none of them cut."""
        return list(_bounded(lines, self._characters)) == lines


def _shown(entry: os.DirEntry[str]) -> str:
    name = escape_invisible(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} (link)"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        return f"{name} ({entry.stat(follow_symlinks=False).st_size} bytes)"
    except OSError as error:
        return f"{name} ({error.strerror})"


def _bounded(lines: Iterable[str], characters: int) -> Iterator[str]:
    left = characters
    for number, line in enumerate(lines):
        text = truncate(line, characters // 10)
        left -= len(text) + 1
        if number == MAX_READ_LINES or (left < 0 and number):
            return
        yield text
