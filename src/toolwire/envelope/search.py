"""Searching files below the allowed directories: with ripgrep where there is one, else with RE2.

Each path of a search is opened below its root name by name (`roots.AllowedRoots`) and stays pinned while ripgrep runs:
a directory as its working directory, a file as its standard input. So what a path means cannot be changed between
looking and searching. Below a directory ripgrep finds its own way and follows no link; somebody who swaps a directory
in there for a link at the right moment can still lead it outside, which guards against models, not against other
programs of the same user. Output is read as it comes and kept up to a limit; all of it is counted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import Final, NamedTuple, Protocol

from toolwire.envelope.programs import end, shared_group
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots, beginning_in

MAX_PATTERN: Final = 4_096
"""Characters of a pattern."""
MAX_LINE: Final = 400
"""Bytes of a line that are shown of it."""
MAX_DEPTH: Final = 200
"""Directories one in the other that are gone down into here; each is held open meanwhile."""
_PIPE: Final = 1 << 20
"""Bytes that ripgrep may be ahead of us."""
_PAUSE: Final = 0.003
"""Seconds between readings: ripgrep writes file by file, and waking up for each would take its time from it."""
_HIT: Final = re.compile(rb"([^\0]*)\0(\d+):([^\n]*)\n")
_BINARY: Final = re.compile(
    rb"[^\0]*?(?:: WARNING: stopped searching binary file after match|: binary file matches)"
    rb' \(found "\\0" byte around offset \d+\)\n'
)


class SearchError(ToolError):
    """A search that could not be made.

    Attributes:
        code: a header's word for it.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Query(NamedTuple):
    """What is looked for.

    Attributes:
        pattern: a regular expression.
        paths: directories and files, relative to the first root.
        ignore_case: small letters find capital ones.
        smart_case: so they do if there is no capital letter in the pattern.
        word: only whole words.
        fixed: the pattern is text, not an expression.
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
        """All but the pattern and the paths, as ripgrep takes it."""
        made = [
            option
            for option, wanted in (
                ("--ignore-case", self.ignore_case),
                ("--smart-case", self.smart_case),
                ("--word-regexp", self.word),
                ("--fixed-strings", self.fixed),
                ("--hidden", self.hidden),
                ("--no-ignore", self.no_ignore),
            )
            if wanted
        ]
        made += [f"--glob={glob}" for glob in self.globs]
        return [*made, *(f"--type={kind}" for kind in self.types)]


class Sink(Protocol):
    """Takes what a search finds."""

    def hit(self, path: bytes, number: int, line: bytes) -> None:
        """A line that matches, without its end."""
        ...

    def not_text(self) -> None:
        """A file matches that is no text."""
        ...


def find_ripgrep(named: str = "") -> str:
    """The path of ripgrep: what is named, on PATH, or beside the interpreter; "" if there is none, or it is `none`."""
    if named:
        return "" if named == "none" or not _runs(named) else named
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), os.path.dirname(sys.executable)]
    paths = (os.path.join(folder, "rg") for folder in folders if os.path.isabs(folder))
    return next((path for path in paths if _runs(path)), "")


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


class Place:
    """One path of a search, held open below its root.

    Attributes:
        prefix: what stands before the names of files in it, or the file's own name.
        descriptor: the directory or the file.
        is_file: whether it is a file.
    """

    def __init__(self, roots: AllowedRoots, path: str, stack: ExitStack) -> None:
        """Open a directory or a file.

        Raises:
            ToolError: it may not be read, or is not there.
        """
        self.is_file = False
        name = os.path.normpath(_relative(roots, path))
        try:
            self.descriptor = stack.enter_context(roots.directory(path))
        except ToolError:
            self.descriptor = stack.enter_context(roots.reading(path))
            self.is_file = True
        self.prefix = os.fsencode(name) if self.is_file else b"" if name == "." else os.fsencode(f"{name}/")


def check_depth(folder: str) -> None:
    """Before going down below a directory.

    Raises:
        ToolError: it lies too deep.
    """
    if folder.count("/") >= MAX_DEPTH:
        raise ToolError(
            f"{folder[:80]}...: more than {MAX_DEPTH} directories, one in the other; begin at one that lies deeper"
        )


def _relative(roots: AllowedRoots, path: str) -> str:
    """The path from its root, as it is shown."""
    return "/".join(roots.inside(path)[1]) or "." if path.startswith("/") else path


class Ripgrep:
    """A search that runs; it is started at once and read by `feed`.

    Args:
        program: ripgrep.
        query: what is looked for.
        place: where.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, program: str, query: Query, place: Place) -> None:
        self._place = place
        argv = [
            *(program, "--no-config", "--no-heading", "--with-filename", "--line-number", "--null", "--color=never"),
            *("--no-messages", f"--max-columns={MAX_LINE}", "--max-columns-preview", *query.options),
            *("--regexp", query.pattern, "--", "-" if place.is_file else "./"),
        ]
        self._process = subprocess.Popen(
            argv,
            **({} if place.is_file else beginning_in(place.descriptor)),
            stdin=place.descriptor if place.is_file else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pipesize=_PIPE,
            process_group=None if shared_group() else 0,
        )

    def feed(self, sink: Sink, *, seconds: float) -> bool:
        """Read the search to its end, or to the end of its time.

        Returns:
            Whether it came to its end.

        Raises:
            SearchError: ripgrep refused it or failed.
        """
        late = threading.Event()

        def stop() -> None:
            late.set()
            end(self._process)

        watch = threading.Timer(max(seconds, 0.001), stop)
        watch.daemon = True
        watch.start()
        with self._process as process, ExitStack() as cleaning:
            cleaning.callback(watch.join)
            cleaning.callback(watch.cancel)
            cleaning.callback(_ended, process)
            assert process.stdout is not None
            assert process.stderr is not None
            found = self._read(process.stdout.fileno(), sink)
            told = process.stderr.read()
            status = process.wait()
        if late.is_set():
            return False
        if status not in (0, 1, 2) or (status == 2 and not found and told.strip()):  # 2 alone: a file could not be read
            raise _refused(told.decode("utf-8", "replace"), status)
        return True

    def close(self) -> None:
        """End the search, if it still runs."""
        _ended(self._process)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _read(self, source: int, sink: Sink) -> bool:
        """Read all that comes; whether anything did."""
        prefix, hit = self._place.prefix, sink.hit
        alone = self._place.is_file
        rest = b""
        found = False
        while piece := os.read(source, _PIPE):
            if len(piece) < _PIPE // 4:
                time.sleep(_PAUSE)
            data = rest + piece
            at = 0
            while match := _HIT.match(data, at):
                at = match.end()
                path, number, line = match.groups()
                if b"\n" in path:
                    path = _without_messages(path, sink)
                hit(prefix if alone else prefix + path.removeprefix(b"./"), int(number), line)
                found = True
            rest = _without_messages(data[at:], sink)
        return found


def not_ignored(program: str, place: Place, *, seconds: float) -> frozenset[bytes] | None:
    """The files of a directory, and the directories that they lie in, without those that .gitignore leaves out.

    Returns:
        Their paths from the directory on; None if ripgrep could not list them.

    Raises:
        TimeoutError: it took longer.
    """
    argv = [program, "--no-config", "--no-messages", "--files", "--hidden", "--glob=!.git", "--null"]
    try:
        listed = subprocess.run(
            argv,
            **beginning_in(place.descriptor),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(seconds, 0.001),
            check=False,
            process_group=None if shared_group() else 0,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    except OSError:
        return None
    if listed.returncode not in (0, 1, 2):
        return None
    found = set[bytes]()
    for path in listed.stdout.split(b"\0")[:-1]:
        while path and path not in found:
            found.add(path)
            path = path.rpartition(b"/")[0]
    return frozenset(found)


def _without_messages(data: bytes, sink: Sink) -> bytes:
    """What follows the messages about files that are no text."""
    while message := _BINARY.match(data):
        sink.not_text()
        data = data[message.end() :]
    return data


def _ended(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing running where reading broke off."""
    if process.poll() is None:
        end(process)


def _refused(told: str, status: int) -> SearchError:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    reason = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "")
    first = lines[0].removeprefix("rg: ") if lines else f"ripgrep ended with status {status}"
    if any(
        sign in told for sign in ("regex parse error", "is not allowed in a regex", "size limit", "error parsing rege")
    ):
        return SearchError("invalid_pattern", reason or first)
    if "unrecognized file type" in told or "parsing glob" in told:
        return SearchError("invalid_option", first)
    return SearchError("internal", first)
