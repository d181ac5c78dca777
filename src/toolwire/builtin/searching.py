"""`search_files`: the lines that a regular expression matches, found by RE2, in time linear in the text.

Where ripgrep is installed, it says first which files are worth reading. It runs in the very directory that was opened,
follows no link, and gets a pattern that matches at least whatever RE2 would match; each file it names is then opened
below the roots and searched by RE2 like any other, so the results are the same without it. Ripgrep finds its own way
through the tree: if somebody swaps a directory for a link meanwhile, it may look at a file outside, but all it tells
is names, and under those names nothing outside can be opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from typing import Any

from toolwire.builtin.path_suggestions import SKIPPED, helpful, passed_over
from toolwire.builtin.reading import MAX_FILE_BYTES, cut, is_binary
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import MAX_DEPTH, AllowedRoots, beginning_in
from toolwire.text.escape import escape_invisible

MAX_PATTERN = 300
MAX_PATTERN_MEMORY = 4 << 20
MAX_SECONDS = 20.0
MAX_MATCHES = 40
MAX_MATCH_LINE = 200
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # a newline too, whatever the options


class Searching:
    """Files searched, below roots.

    Args:
        roots: where.
        ripgrep: whether to use it where it is installed. One that lies below a root is not used: it may have been
            written by the model that searches.
        suggestions: name what may have been meant by a path that is not there.
    """

    def __init__(self, roots: AllowedRoots, *, ripgrep: bool = True, suggestions: bool = True) -> None:
        self._roots = roots
        self._suggestions = suggestions
        self._ripgrep = _ripgrep(roots) if ripgrep else None

    def search_files(self, pattern: str, path: str = ".") -> str:
        """Search text files for a regular expression and list the matching lines with file and line number.

        Args:
            pattern: a regular expression in RE2 syntax, matched within single lines, which ^ and $ begin and end; begin
                it with (?i) to ignore case.
            path: the directory or file to search, relative to the root. Files of more than 8 MB and binary ones are
                not searched; hidden ones only if they are named here.
        """
        regex = _compile(pattern)
        found, notes = list[str](), list[str]()
        deadline = monotonic() + MAX_SECONDS
        with helpful(self._roots, path, "any", suggestions=self._suggestions):
            for name, data in self._texts(pattern, path, deadline, notes):
                if monotonic() > deadline:
                    notes.append(STOPPED)
                    break
                shown = escape_invisible(_joined(path, name))
                for number, line in _matching_lines(regex, data):
                    if len(found) == MAX_MATCHES:
                        return "\n".join([*found, f"(only the first {MAX_MATCHES} matches are shown)"])
                    found.append(f"{shown}:{number}: {cut(line.decode('utf-8', 'replace').strip(), MAX_MATCH_LINE)}")
        return "\n".join([*(found or ["no match"]), *(f"({note})" for note in notes)])

    def _texts(self, pattern: str, path: str, deadline: float, notes: list[str]) -> Iterator[tuple[str, bytes]]:
        """The files that may match, in order of name, with what is in them; nothing for those that are no text."""
        names = self._named(pattern, path, deadline, notes)
        if names is None:
            for name, file in self._roots.files(path, passed_over, notes.append):
                yield name, _text(file)
            return
        for name in names:
            with suppress(ToolError), self._roots.reading(f"{path}/{name}") as file:
                yield name, _text(file)

    def _named(self, pattern: str, path: str, deadline: float, notes: list[str]) -> list[str] | None:
        """The files that ripgrep names; None if they have to be looked for without it."""
        hint = likely(pattern) if self._ripgrep else None
        if hint is None:
            return None
        with suppress(ToolError), self._roots.directory(path) as directory:
            status, out = _run([self._ripgrep or "", *_OPTIONS, f"--regexp={hint}", "--", "."], directory, deadline)
            if status is None:
                notes.append(STOPPED)
                return []
            if status in (0, 1):  # else it met something it could not read, or does not take the pattern
                names = (os.fsdecode(name).removeprefix("./") for name in out.split(b"\0") if name)
                return sorted(names, key=_order)
        return None


STOPPED = f"stopped after {MAX_SECONDS:g} seconds; search a smaller directory"
_OPTIONS = (
    "--no-config",
    "--no-messages",
    "--no-follow",
    "--no-ignore",
    "--text",
    "--encoding=none",
    "--color=never",
    "--files-with-matches",
    "--null",
    f"--max-filesize={MAX_FILE_BYTES}",
    f"--max-depth={MAX_DEPTH + 1}",
    *(f"--glob=!{name}" for name in sorted(SKIPPED)),
)


def _run(argv: list[str], directory: int, deadline: float) -> tuple[int | None, bytes]:
    """A program run in an open directory: its exit status, None if there was no time left, and what it wrote."""
    import subprocess

    with subprocess.Popen(
        argv,
        **beginning_in(directory),
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            out, _ = process.communicate(timeout=max(deadline - monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            return None, b""
        finally:
            process.kill()
    return process.returncode, out


def _ripgrep(roots: AllowedRoots) -> str | None:
    """The program; none that lies below a root."""
    import shutil

    found = shutil.which("rg")
    if found is None or not os.path.isabs(found):
        return None
    places = (os.path.abspath(found), os.path.realpath(found))
    below = (os.path.commonpath([place, root]) == os.fspath(root) for root in roots.roots for place in places)
    return None if any(below) else found


def _order(name: str) -> list[tuple[bool, str]]:
    """A directory's files come before the directories in it."""
    *directories, file = name.split("/")
    return [*((True, one) for one in directories), (False, file)]


def _text(file: int) -> bytes:
    """What is in a file; nothing if it is binary, or too much."""
    if os.fstat(file).st_size > MAX_FILE_BYTES:
        return b""
    with suppress(OSError), os.fdopen(os.dup(file), "rb") as opened:
        data = opened.read(MAX_FILE_BYTES)
        return b"" if is_binary(data) else data
    return b""


def _joined(path: str, name: str) -> str:
    """A file's name as it can be written again: below the path, as that was written."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    path = path if path == "/" else path.rstrip("/")
    if path in ("", "."):
        return name
    return f"{path}/{name}" if name else path


def _matching_lines(regex: Any, data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that a pattern of `_compile` matches in, with their numbers; one search a match, not one a line."""
    if not data:
        return  # no line, not an empty one
    data = data.replace(b"\r\n", b"\n").removesuffix(b"\n")
    number, counted, position = 1, 0, 0
    while position <= len(data) and (match := regex.search(data, position)):
        start = data.rfind(b"\n", 0, match.start()) + 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += data.count(b"\n", counted, start)
        yield number, data[start:end]
        counted, position = start, end + 1


def _compile(pattern: str) -> Any:
    r"""A pattern that searches a whole text line by line: ^ and $ hold at each line, and nothing matches a newline.

    What says by name that it means the text is taken at its word: \A, \z, and ^ and $ after (?-m).
    """
    try:
        import re2
    except ImportError as error:
        raise ToolError(
            f"searching needs {error.name}: install the extra `agent`; in a clone: pip install '.[agent]'"
        ) from error
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ToolError(f"a pattern has 1 to {MAX_PATTERN} characters")
    if _ANY_BYTE.search(pattern):
        raise ToolError(r"not a pattern that RE2 can run: no \C, which matches bytes; use . for any character")
    options = re2.Options()
    options.max_mem = MAX_PATTERN_MEMORY
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    try:
        return re2.compile("(?m)" + pattern, options)
    except (re2.error, UnicodeError) as error:
        text = error.args[0] if error.args else ""
        detail = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        raise ToolError(
            f"not a pattern that RE2 can run: {detail} (no look-around, no back-references; escape ( [ . literally)"
        ) from error


# -- the same pattern for ripgrep ------------------------------------------------------------------------------------

_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\f\r "}
_CONTROLS = {"t": "\\x{9}", "f": "\\x{C}", "r": "\\x{D}", "v": "\\x{B}", "a": "\\x{7}"}
_GROUP = re.compile(r"\((?:\?(?:(?P<keep>i\)|i:|:)|P?<\w+>))?")
_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))")
_NAMED_SET = re.compile(r"\[:\^?[a-z]+:\]")
# RE2 takes for one character what begins and goes on like one; Rust wants it to be one.
_LOOSE = r"(?-u:[\xE0-\xEF][\x80-\xBF]{2}|[\xF0-\xF4][\x80-\xBF]{3})"


class _NoHint(Exception):
    """A pattern has something that is not surely known to mean the same."""


def likely(pattern: str) -> str | None:
    """A pattern for ripgrep that matches in each line in which RE2 finds this one; None if there is none to be had."""
    try:
        return "".join(_translated(pattern))
    except _NoHint:
        return None


def _translated(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        character = pattern[at]
        piece, end = character, at + 1
        if character == "\\":
            piece, end, wide = _escape(pattern, at)
            piece = f"(?:[{piece}]|{_LOOSE})" if wide else f"[{piece}]" if "-u:" not in piece else piece
        elif character == "[":
            piece, end = _bracket(pattern, at)
        elif character == "(":
            group = _GROUP.match(pattern, at)
            if group is None or (group.end() == at + 1 and pattern[end : end + 1] == "?"):
                raise _NoHint
            piece, end = f"(?{group['keep']}" if group["keep"] else "(?:", group.end()
        elif character == "{" and (count := _COUNT.match(pattern, at)):
            piece, end = count.group(), count.end()
        elif character == ".":
            piece = f"(?:.|{_LOOSE})"
        elif character == "$":
            piece = r"(?:\r?$)"
        elif character not in "^|*+?)":
            piece = _literal(character)
        yield piece
        at = end


def _literal(character: str) -> str:
    if character == "\n":
        raise _NoHint
    return character if character.isalnum() and character.isascii() else f"\\x{{{ord(character):X}}}"


def _escape(pattern: str, at: int) -> tuple[str, int, bool]:
    """What stands behind a backslash, as members of a set; where it ends; whether it is all but some characters."""
    letter = pattern[at + 1 : at + 2]
    if letter in _SETS:
        return _SETS[letter], at + 2, False
    if letter and letter.lower() in _SETS:
        return f"[^{_SETS[letter.lower()]}]", at + 2, True
    if letter == "b":
        return r"(?-u:\b)", at + 2, False
    if letter in _CONTROLS:
        return _CONTROLS[letter], at + 2, False
    if found := _HEX.match(pattern, at):
        code = int(found[1] or found[2], 16)
        if code == 10:
            raise _NoHint
        return f"\\x{{{code:X}}}", found.end(), False
    if letter and letter.isascii() and not letter.isalnum():
        return _literal(letter), at + 2, False
    raise _NoHint


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """A set in brackets, each of its members written as a number."""
    start = at + 1
    negated = pattern.startswith("^", start)
    at = start = start + negated
    members: list[str] = []
    wide = negated
    while not (pattern.startswith("]", at) and at > start):
        if at >= len(pattern):
            raise _NoHint
        if named := _NAMED_SET.match(pattern, at):
            members.append(named.group())
            wide = wide or "^" in named.group()
            at = named.end()
            continue
        if pattern[at] == "\\":
            piece, at, is_wide = _escape(pattern, at)
            if "-u:" in piece:
                raise _NoHint
            wide = wide or is_wide
        else:
            piece, at = _literal(pattern[at]), at + 1
        single = piece.startswith("\\x") or len(piece) == 1
        if single and pattern.startswith("-", at) and pattern[at + 1 : at + 2] not in ("", "]"):
            if pattern[at + 1] in "\\[":
                raise _NoHint
            piece, at = f"{piece}-{_literal(pattern[at + 1])}", at + 2
        members.append(piece)
    inner = f"[{'^' if negated else ''}{''.join(members)}]"
    return (f"(?:{inner}|{_LOOSE})" if wide else inner), at + 1
