"""A search: the pattern and the files, the receiver of its hits, and its errors, whichever program runs it."""

from __future__ import annotations

import os
from typing import Final, NamedTuple, Protocol

from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots

MAX_LINE: Final = 400
"""Maximum length of a line in a hit, in bytes."""


class SearchError(ToolError):
    """A search that could not be made.

    Attributes:
        code: the word for it in an envelope's header.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Query(NamedTuple):
    """A pattern, and the files to search for it.

    Attributes:
        pattern: a regular expression.
        paths: directories and files, relative to the first root.
        ignore_case: match letters of either case.
        smart_case: the same, if the pattern has no capital letter.
        word: match whole words only.
        fixed: take the pattern as text, not as an expression.
        globs: which files, as ripgrep takes them: `*.py`, `!*.min.js`.
        types: which files, by ripgrep's names of types.
        hidden: also files whose names begin with a dot.
        no_ignore: also files that .gitignore and the like leave out.
    """

    pattern: str
    paths: tuple[str, ...] = (".",)
    ignore_case: bool = False
    smart_case: bool = False
    word: bool = False
    fixed: bool = False
    globs: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    hidden: bool = False
    no_ignore: bool = False

    @property
    def options(self) -> list[str]:
        """Ripgrep's options for everything except the pattern and the paths."""
        switches = (
            ("--ignore-case", self.ignore_case),
            ("--smart-case", self.smart_case),
            ("--word-regexp", self.word),
            ("--fixed-strings", self.fixed),
            ("--hidden", self.hidden),
            ("--no-ignore", self.no_ignore),
        )
        return [
            *(option for option, is_set in switches if is_set),
            *(f"--glob={glob}" for glob in self.globs),
            *(f"--type={file_type}" for file_type in self.types),
        ]


class Sink(Protocol):
    """Receives the hits of a search."""

    def hit(self, path: bytes, number: int, line: bytes) -> None:
        """Take a matching line, without its line break."""
        ...

    def binary_file(self) -> None:
        """Count a file that matches and is not text."""
        ...


def shown_prefix(roots: AllowedRoots, path: str) -> bytes:
    """Return what precedes the names of files below a path: the path from its root, with a slash."""
    name = os.path.normpath("/".join(roots.inside(path)[1]) or "." if path.startswith("/") else path)
    return b"" if name == "." else os.fsencode(f"{name}/")
