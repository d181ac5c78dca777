"""Searching files with ripgrep.

Each path of a search is opened below its root name by name (`allowed_roots.AllowedRoots`) and stays open while ripgrep
runs: a directory as its working directory, a file as its standard input. So nobody can change what a path means
between the check and the search. Below a directory ripgrep walks the tree itself and follows no link. A program
that swaps a directory in there for a link at the right moment can still lead it outside: the search is guarded against
models, not against other programs of the same user.

This module is the first that `te grep` loads; it imports little.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Final

from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.runtime.directory_descriptors import beginning_in
from toolwire.runtime.process_groups import end_program, in_shared_group, run_program
from toolwire.runtime.watcher import watch_group
from toolwire.search.query import MAX_LINE, Query, SearchError, Sink, shown_prefix

MAX_LISTING: Final = 1 << 28
"""Maximum size of a list of files, in bytes."""
_PIPE: Final = 1 << 20
"""Bytes that ripgrep may be ahead of us."""
_PAUSE: Final = 0.003
"""Seconds between reads: ripgrep writes file by file, and waking up for each would take its time from it."""
_HIT: Final = re.compile(rb"([^\0]*)\0(\d+):([^\n]*)\n")
_BINARY: Final = re.compile(
    rb"[^\0]*?(?:: WARNING: stopped searching binary file after match|: binary file matches)"
    rb' \(found "\\0" byte around offset \d+\)\n'
)
_BAD_PATTERN: Final = ("regex parse error", "is not allowed in a regex", "size limit", "error parsing rege")
_BAD_OPTION: Final = ("unrecognized file type", "parsing glob")


def find_ripgrep(name: str = "", *, outside: Iterable[os.PathLike[str]] = ()) -> str:
    """Return the path of ripgrep, from PATH or from beside the interpreter; "" if there is none.

    Args:
        name: a path to use instead, or `none`.
        outside: directories that a model may write to; a program in one of them is not used.
    """
    if name:
        return "" if name == "none" or not _is_executable(name) else name
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), os.path.dirname(sys.executable)]
    paths = (os.path.join(folder, "rg") for folder in folders if os.path.isabs(folder))
    return next((path for path in paths if _is_executable(path) and not _is_below(path, outside)), "")


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_below(path: str, folders: Iterable[os.PathLike[str]]) -> bool:
    spellings = (os.path.abspath(path), os.path.realpath(path))
    return any(os.path.commonpath([name, folder]) == os.fspath(folder) for folder in folders for name in spellings)


class PinnedPath:
    """One path of a search, kept open below its root.

    Attributes:
        prefix: what precedes the names of files in it; the file's own name if it is a file.
        descriptor: of the directory or the file.
        is_file: whether it is a file.
    """

    def __init__(self, roots: AllowedRoots, path: str, stack: ExitStack) -> None:
        """Open a directory or a file until the stack is closed.

        Raises:
            ToolError: it does not exist, or may not be read.
        """
        self.is_file = False
        self.prefix = shown_prefix(roots, path)
        try:
            self.descriptor = stack.enter_context(roots.directory(path))
        except ToolError:
            self.descriptor = stack.enter_context(roots.reading(path))
            self.is_file = True
            self.prefix = self.prefix.removesuffix(b"/")


class RipgrepSearch:
    """A search that runs; it is started at once and read by `feed`.

    Args:
        program: the path of ripgrep.
        query: what to search for.
        pinned: the directory or file to search.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, program: str, query: Query, pinned: PinnedPath) -> None:
        self._pinned = pinned
        argv = [
            *(program, "--no-config", "--no-heading", "--with-filename", "--line-number", "--null", "--color=never"),
            *("--no-messages", f"--max-columns={MAX_LINE}", "--max-columns-preview", *query.options),
            *("--regexp", query.pattern, "--", "-" if pinned.is_file else "./"),
        ]
        self._process = subprocess.Popen(
            argv,
            **({} if pinned.is_file else beginning_in(pinned.descriptor)),
            stdin=pinned.descriptor if pinned.is_file else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pipesize=_PIPE,
            process_group=None if in_shared_group() else 0,
        )

    def feed(self, sink: Sink, *, seconds: float) -> bool:
        """Read the search to its end or until its time is over; return whether it ended in time.

        Raises:
            SearchError: ripgrep refused it or failed.
        """
        late = threading.Event()

        def stop() -> None:
            late.set()
            end_program(self._process)

        timer = threading.Timer(max(seconds, 0.001), stop)
        timer.daemon = True
        timer.start()
        with self._process as process, ExitStack() as cleanup:
            cleanup.callback(timer.join)
            cleanup.callback(timer.cancel)
            cleanup.callback(self._end)
            if not in_shared_group():
                cleanup.enter_context(watch_group(process.pid))
            assert process.stdout is not None
            assert process.stderr is not None
            any_hit = self._read(process.stdout.fileno(), sink)
            errors = process.stderr.read()
            status = process.wait()
        if late.is_set():
            return False
        # Status 2 with hits, or without a message, means only that some file could not be read.
        if status not in (0, 1, 2) or (status == 2 and not any_hit and errors.strip()):
            raise _refusal(errors.decode("utf-8", "replace"), status)
        return True

    def close(self) -> None:
        """End the search if it still runs."""
        self._end()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _end(self) -> None:
        if self._process.poll() is None:
            end_program(self._process)

    def _read(self, source: int, sink: Sink) -> bool:
        """Read all output; return whether there was a hit."""
        prefix, hit = self._pinned.prefix, sink.hit
        is_file = self._pinned.is_file
        rest = b""
        any_hit = False
        while piece := os.read(source, _PIPE):
            if len(piece) < _PIPE // 4:
                time.sleep(_PAUSE)
            data = rest + piece
            at = 0
            while match := _HIT.match(data, at):
                at = match.end()
                path, number, line = match.groups()
                if b"\n" in path:  # either a message before it, or a name with a line break
                    path = _without_messages(path, sink)
                hit(prefix if is_file else prefix + path.removeprefix(b"./"), int(number), line)
                any_hit = True
            rest = _without_messages(data[at:], sink)
        return any_hit


def list_files(program: str, options: Sequence[str], directory: int, *, seconds: float) -> tuple[int, list[bytes]]:
    """Run ripgrep in an open directory; return its exit status and the paths of files that it lists.

    Args:
        program: the path of ripgrep.
        options: say which files.
        directory: a descriptor.
        seconds: time limit.

    Raises:
        OSError: it cannot be started, or gives too long a list.
        TimeoutError: it took too long.
    """
    argv = [program, "--no-config", "--no-messages", "--color=never", "--null", *options]
    ended = run_program(
        argv, seconds=max(seconds, 0.001), max_output=MAX_LISTING, stdin=subprocess.DEVNULL, directory=directory
    )
    if ended.timed_out:
        raise TimeoutError
    if ended.left_out:
        raise OSError("the list of files is too long")
    return ended.status, [path.removeprefix(b"./") for path in ended.out.joined().split(b"\0") if path]


def not_ignored(program: str, directory: int, *, seconds: float) -> frozenset[bytes] | None:
    """Return the files in a directory that .gitignore does not leave out, and the directories that contain them.

    Returns:
        Paths relative to the directory; None if ripgrep could not list them.

    Raises:
        TimeoutError: it took too long.
    """
    try:
        status, files = list_files(program, ("--files", "--hidden", "--glob=!.git"), directory, seconds=seconds)
    except TimeoutError:
        raise
    except OSError:
        return None
    if status not in (0, 1, 2):
        return None
    paths = set[bytes]()
    for path in files:
        while path and path not in paths:
            paths.add(path)
            path = path.rpartition(b"/")[0]
    return frozenset(paths)


def _without_messages(data: bytes, sink: Sink) -> bytes:
    """Return what follows the messages about binary files."""
    while message := _BINARY.match(data):
        sink.binary_file()
        data = data[message.end() :]
    return data


def _refusal(errors: str, status: int) -> SearchError:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    reason = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "")
    first = lines[0].removeprefix("rg: ") if lines else f"ripgrep ended with status {status}"
    if any(sign in errors for sign in _BAD_PATTERN):
        return SearchError("invalid_pattern", reason or first)
    return SearchError("invalid_option" if any(sign in errors for sign in _BAD_OPTION) else "internal", first)
