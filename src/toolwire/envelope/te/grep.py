"""`te grep`: the best hits of a search, and how many there are."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from toolwire.envelope.programs import TIMED_OUT
from toolwire.envelope.search import MAX_PATTERN, Place, Query, Ripgrep, SearchError, Sink, find_ripgrep
from toolwire.envelope.te.options import Command, Given, Option
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots

if TYPE_CHECKING:
    from toolwire.envelope.scan import Scan
    from toolwire.envelope.search_results import Findings
    from toolwire.envelope.te.context import Context, Done

NONE_FOUND: Final = 1
COMMAND: Final = Command(
    "te grep [OPTION]... PATTERN [PATH]...",
    "Search files: definitions come first and tests last. Without a path, all of the working directory.",
    (
        Option("-e --regexp", "the pattern, where it begins with a dash", "PATTERN"),
        Option("-i --ignore-case", "small letters find capital ones"),
        Option("-S --smart-case", "so they do if the pattern has no capital letter"),
        Option("-w --word-regexp", "whole words only"),
        Option("-F --fixed-strings", "the pattern is text"),
        Option("-g --include --glob", "only such files; all others with ! before it; may be given again", "GLOB"),
        Option("-t --type", "only files of a type that ripgrep knows; may be given again", "TYPE"),
        Option("-l --files-with-matches", "files, and not the lines in them"),
        Option("-c --count", "files, and how many lines of each match"),
        Option("--hidden", "also files whose names begin with a dot"),
        Option("--no-ignore", "also files that .gitignore leaves out"),
        Option("--root", "the directory to stay in, instead of the working directory", "DIR"),
        Option("--preview", "lines that are shown (10)", "N"),
        Option("--annotate", "say behind a line why it comes first"),
        Option("-r -R -n -H -E -s --as-grep"),
    ),
    """examples:
  te grep database_connection
  te grep -w -g '*.py' 'def \\w+_handler' src
  te grep -e --verbose
  te grep -c TODO src
  te -i grep -C3 database_connection    # ripgrep itself, with all that it knows

-r, -n, -H and -E are what happens anyway. Exit status: 0 found, 1 nothing found, 2 wrong usage or a pattern that
cannot be read, 124 too slow.""",
)


def query_of(given: Given) -> Query:
    """What a command line looks for."""
    arguments = given.arguments
    pattern = given.last("regexp")
    if len(given.all("regexp")) > 1:
        COMMAND.wrong("one pattern at a time: join them with |")
    if not pattern:
        pattern, arguments = (arguments or [""])[0], arguments[1:]
    if not pattern or len(pattern) > MAX_PATTERN or "\0" in pattern:
        COMMAND.wrong(f"a pattern has 1 to {MAX_PATTERN} characters, none of them null")
    return Query(
        pattern,
        tuple(arguments) or (".",),
        ignore_case=given.has("ignore-case"),
        smart_case=given.has("smart-case"),
        word=given.has("word-regexp"),
        fixed=given.has("fixed-strings"),
        globs=given.all("glob"),
        types=given.all("type"),
        hidden=given.has("hidden"),
        no_ignore=given.has("no-ignore"),
    )


class PerFile:
    """Makes one hit of all those of a file.

    Args:
        findings: takes them.
        counted: with the number of lines.

    Attributes:
        total: lines that match.
    """

    def __init__(self, findings: Findings, *, counted: bool) -> None:
        self._findings = findings
        self._counted = counted
        self._path = b""
        self._lines = 0
        self.total = 0

    def hit(self, path: bytes, number: int, line: bytes) -> None:
        """See `Sink`; those of a file come one after the other."""
        if path != self._path:
            self.finish()
            self._path = path
        self._lines += 1
        self.total += 1

    def not_text(self) -> None:
        """See `Sink`."""
        self._findings.not_text()

    def finish(self) -> None:
        """The file is over."""
        if self._lines:
            self._findings.hit(self._path, self._lines if self._counted else 0)
        self._lines = 0


class Search:
    """A search, begun as soon as it is known: ripgrep runs while the rest of `te` is loaded.

    Args:
        arguments: behind `te grep`.
        stack: ends what was begun, whatever happens.

    Attributes:
        problem: why it could not begin.
    """

    def __init__(self, arguments: Sequence[str], stack: ExitStack) -> None:
        given = COMMAND.read(arguments)
        self.root = given.last("root")
        self.query = query_of(given)
        self.preview = COMMAND.number(given, "preview")
        self.annotate = given.has("annotate")
        self.files = given.has("files-with-matches")
        self.count = given.has("count")
        if self.files and self.count:
            COMMAND.wrong("-l or -c, not both")
        self.problem: ToolError | None = None
        self._stack = stack
        self._roots: AllowedRoots | None = None
        self._program = find_ripgrep(os.environ.get("TE_RG", ""))
        self._first: Ripgrep | Scan | None = None
        try:
            self._roots = AllowedRoots(root_of(given.last("root")))
            self._first = self._begun(self.query.paths[0])
        except ToolError as error:
            self.problem = error

    def feed(self, sink: Sink, *, seconds: float) -> bool:
        """Search all paths, one after the other; whether that came to its end in time.

        Raises:
            ToolError: a path cannot be read, or the search cannot be made.
        """
        if self.problem is not None:
            raise self.problem
        until = time.monotonic() + seconds
        for at, path in enumerate(self.query.paths):
            begun = self._first if at == 0 and self._first is not None else self._begun(path)
            if not begun.feed(sink, seconds=until - time.monotonic()):
                return False
        return True

    def _begun(self, path: str) -> Ripgrep | Scan:
        assert self._roots is not None
        place = Place(self._roots, path, self._stack)
        if not self._program:
            from toolwire.envelope.scan import Scan

            return Scan(self.query, place)
        try:
            begun = Ripgrep(self._program, self.query, place)
        except OSError as error:
            raise SearchError("internal", f"{self._program}: {error.strerror}") from error
        self._stack.callback(begun.close)
        return begun


def root_of(named: str) -> str:
    """The directory to stay in: TE_ROOT or the working directory, or one below it that is named.

    Raises:
        ToolError: what is named lies outside of TE_ROOT.
    """
    outer = os.environ.get("TE_ROOT", "")
    if not named:
        return outer or "."
    if outer:
        AllowedRoots(outer).inside(os.path.realpath(named))
    return named


def itself(search: Search) -> Done:
    """What ripgrep writes for the same search, without options that are ours alone."""
    from toolwire.envelope.te.passthrough import raw

    query = search.query
    ours = (("--files-with-matches", search.files), ("--count", search.count))
    argv = [
        "grep",
        *query.options,
        *(option for option, wanted in ours if wanted),
        f"--regexp={query.pattern}",
        "--",
        *query.paths,
    ]
    return raw(argv, root=root_of(search.root))


def grep(search: Search, context: Context) -> Done:
    """Read a search that was begun, and write the best of it."""
    from toolwire.envelope.search_results import Findings
    from toolwire.envelope.te.context import warn

    limits = context.settings.grep
    seconds = context.seconds or limits.milliseconds / 1_000
    by_file = search.files or search.count
    findings = Findings("" if by_file else search.query.pattern)
    per_file = PerFile(findings, counted=search.count)
    try:
        whole = search.feed(per_file if by_file else findings, seconds=seconds)
        per_file.finish()
    except SearchError as error:
        if error.code == "internal" and context.human:
            warn(f"internal error ({error}); here is what ripgrep itself finds")
            return itself(search)
        return context.failed("grep", error.code, str(error))
    except ToolError as error:
        return context.failed("grep", "not_readable", str(error))
    keep = context.keep()
    return context.answer(
        lambda room: findings.compose(
            "grep",
            preview=search.preview or limits.preview,
            limit=room,
            keep=keep,
            annotate=search.annotate and not by_file,
            lines=per_file.total if by_file else None,
            error=None if whole else "timeout",
            stopped="" if whole else f"the search was stopped after {seconds:g} s, so there may be more",
        ),
        limit=limits.characters,
        status=TIMED_OUT if not whole else 0 if findings.total else NONE_FOUND,
    )
