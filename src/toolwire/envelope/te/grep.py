"""`te grep`: the best hits of a search, and their number."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from toolwire.envelope.te.command_lines import GREP, NONE_FOUND, root_of
from toolwire.envelope.te.options import WRONG, ParsedArguments
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.runtime.process_groups import TIMED_OUT
from toolwire.search.query import Query, SearchError, Sink
from toolwire.search.ripgrep import PinnedPath, RipgrepSearch, find_ripgrep

if TYPE_CHECKING:
    from toolwire.envelope.search_results import SearchResults
    from toolwire.envelope.te.context import CommandContext, CommandOutcome
    from toolwire.search.re2_search import Re2Search

MAX_PATTERN: Final = 4_096
"""Maximum length of a pattern, in characters."""


def query_of(parsed: ParsedArguments) -> Query:
    """Return the query of a command line."""
    arguments = parsed.arguments
    pattern = parsed.last("regexp")
    if len(parsed.all("regexp")) > 1:
        GREP.wrong("one pattern at a time: join them with |")
    if not pattern:
        pattern, arguments = (arguments or [""])[0], arguments[1:]
    if not pattern or len(pattern) > MAX_PATTERN or "\0" in pattern:
        GREP.wrong(f"a pattern has 1 to {MAX_PATTERN} characters, none of them null")
    return Query(
        pattern,
        tuple(arguments) or (".",),
        ignore_case=parsed.has("ignore-case"),
        smart_case=parsed.has("smart-case"),
        word=parsed.has("word-regexp"),
        fixed=parsed.has("fixed-strings"),
        globs=parsed.all("glob"),
        types=parsed.all("type"),
        hidden=parsed.has("hidden"),
        no_ignore=parsed.has("no-ignore"),
    )


class PerFile:
    """Combine all hits of a file into one.

    Args:
        findings: receives the files.
        counted: with the number of lines.

    Attributes:
        total: number of matching lines.
    """

    def __init__(self, findings: SearchResults, *, counted: bool) -> None:
        self._findings = findings
        self._counted = counted
        self._path = b""
        self._lines = 0
        self.total = 0

    def hit(self, path: bytes, number: int, line: bytes) -> None:
        """Count a line; the lines of a file follow one another."""
        if path != self._path:
            self.finish()
            self._path = path
        self._lines += 1
        self.total += 1

    def binary_file(self) -> None:
        """Count a matching file that is not text."""
        self._findings.binary_file()

    def finish(self) -> None:
        """Pass the last file on."""
        if self._lines:
            self._findings.hit(self._path, self._lines if self._counted else 0)
        self._lines = 0


class Search:
    """A search that is started at once: ripgrep runs while the rest of `te` is imported.

    Args:
        arguments: the arguments of `te grep`.
        stack: closes whatever was opened.

    Attributes:
        problem: the error that prevented the start.
    """

    def __init__(self, arguments: Sequence[str], stack: ExitStack) -> None:
        parsed = GREP.read(arguments)
        self.root = parsed.last("root")
        self.query = query_of(parsed)
        self.preview = GREP.number(parsed, "preview")
        self.annotate = parsed.has("annotate")
        self.files = parsed.has("files-with-matches")
        self.count = parsed.has("count")
        if self.files and self.count:
            GREP.wrong("-l or -c, not both")
        self.problem: ToolError | None = None
        self._stack = stack
        self._roots: AllowedRoots | None = None
        self._program = find_ripgrep(os.environ.get("TE_RG", ""))
        self._first: RipgrepSearch | Re2Search | None = None
        try:
            self._roots = AllowedRoots(root_of(parsed.last("root")))
            self._first = self._begun(self.query.paths[0])
        except ToolError as error:
            self.problem = error

    def feed(self, sink: Sink, *, seconds: float) -> bool:
        """Search all paths one after the other; return whether that ended in time.

        Raises:
            ToolError: a path cannot be read, or the search is not possible.
        """
        if self.problem is not None:
            raise self.problem
        until = time.monotonic() + seconds
        for at, path in enumerate(self.query.paths):
            running = self._first if at == 0 and self._first is not None else self._begun(path)
            if not running.feed(sink, seconds=until - time.monotonic()):
                return False
        return True

    def _begun(self, path: str) -> RipgrepSearch | Re2Search:
        assert self._roots is not None
        if not self._program:
            from toolwire.search.re2_search import Re2Search

            return Re2Search(self.query, self._roots, path)
        pinned = PinnedPath(self._roots, path, self._stack)
        try:
            running = RipgrepSearch(self._program, self.query, pinned)
        except OSError as error:
            raise SearchError("internal", f"{self._program}: {error.strerror}") from error
        self._stack.callback(running.close)
        return running


class _GrepLines:
    """Writes hits as grep does."""

    def __init__(self) -> None:
        from toolwire.envelope.te.context import show

        self.status = NONE_FOUND
        self._show = show

    def hit(self, path: bytes, number: int, line: bytes) -> None:
        self._show(sys.stdout, b"%b:%b\n" % (path, line))
        self.status = 0

    def binary_file(self) -> None:
        self.status = 0


def grep_raw(arguments: Sequence[str], *, root: str = "") -> CommandOutcome:
    """Run ripgrep itself; where it is not installed, write what grep would write.

    Args:
        arguments: of ripgrep, or of `te grep`.
        root: the directory to run in; "" for the working directory.
    """
    from toolwire.envelope.te.context import CommandOutcome, warn
    from toolwire.envelope.te.passthrough import run_raw

    if program := find_ripgrep(os.environ.get("TE_RG", "")):
        # Without a path ripgrep would read a standard input that is not a terminal; it is to read files.
        stdin = None if "-" in arguments else subprocess.DEVNULL
        return run_raw([program, *arguments], cmd="grep", stdin=stdin, root=root)
    lines = _GrepLines()
    try:
        with ExitStack() as stack:
            Search(arguments, stack).feed(lines, seconds=sys.maxsize)
    except ToolError as error:
        warn(str(error))
        return CommandOutcome(WRONG, "grep", "raw", error="not_searched")
    return CommandOutcome(lines.status, "grep", "raw")


def repeat_raw(search: Search) -> CommandOutcome:
    """Run ripgrep itself for the same search, without the options that are ours alone."""
    query = search.query
    switches = (("--files-with-matches", search.files), ("--count", search.count))
    argv = [
        *query.options,
        *(option for option, is_set in switches if is_set),
        f"--regexp={query.pattern}",
        "--",
        *query.paths,
    ]
    return grep_raw(argv, root=root_of(search.root))


def grep(search: Search, context: CommandContext) -> CommandOutcome:
    """Read a search that was started, and write the best hits."""
    from toolwire.envelope.search_results import SearchResults
    from toolwire.envelope.te.context import warn

    limits = context.settings.grep
    seconds = context.seconds or limits.milliseconds / 1_000
    by_file = search.files or search.count
    findings = SearchResults("" if by_file else search.query.pattern)
    per_file = PerFile(findings, counted=search.count)
    try:
        in_time = search.feed(per_file if by_file else findings, seconds=seconds)
        per_file.finish()
    except SearchError as error:
        if error.code == "internal" and context.human:
            warn(f"internal error ({error}); here is ripgrep's own output")
            return repeat_raw(search)
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
            error=None if in_time else "timeout",
            stopped="" if in_time else f"the search was stopped after {seconds:g} s and may be incomplete",
        ),
        limit=limits.characters,
        status=TIMED_OUT if not in_time else 0 if findings.total else NONE_FOUND,
    )
