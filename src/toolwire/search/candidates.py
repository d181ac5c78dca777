"""Files that may match, named by ripgrep, so that RE2 need not read all the others.

The pattern that ripgrep gets matches at least wherever RE2 would match. It runs in the directory that was opened,
follows no link, and only its list of names is used: each file is then opened below its root and searched by RE2 like
any other, so the results are the same without it. If a directory is swapped for a link meanwhile, ripgrep may read a
file outside. It then only names it, and under such a name nothing outside can be opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from toolwire.runtime.allowed_roots import MAX_DEPTH
from toolwire.search.re2_search import SKIPPED
from toolwire.search.ripgrep import list_files

_OPTIONS = (
    *("--no-follow", "--no-ignore", "--text", "--encoding=none", "--files-with-matches"),
    f"--max-depth={MAX_DEPTH + 1}",
    *(f"--glob=!{name}" for name in sorted(SKIPPED)),
)


def candidate_files(program: str, pattern: str, directory: int, *, max_bytes: int, seconds: float) -> list[str] | None:
    """Return the files that may match, in the order of `AllowedRoots.files`; None if ripgrep cannot be used.

    Args:
        program: the path of ripgrep.
        pattern: a pattern for RE2.
        directory: descriptor of the directory to search.
        max_bytes: larger files are left out.
        seconds: time limit.

    Raises:
        TimeoutError: it took too long.
    """
    wider = wider_pattern(pattern)
    if wider is None:
        return None
    options = (*_OPTIONS, f"--max-filesize={max_bytes}", f"--regexp={wider}", "--", ".")
    try:
        status, paths = list_files(program, options, directory, seconds=seconds)
    except TimeoutError:
        raise
    except OSError:
        return None
    if status not in (0, 1):  # it could not read something, or does not take the pattern
        return None
    return sorted(map(os.fsdecode, paths), key=_sort_key)


def _sort_key(path: str) -> list[tuple[bool, str]]:
    """Sort a directory's files before the directories in it."""
    *directories, file = path.split("/")
    return [*((True, name) for name in directories), (False, file)]


# RE2's classes are those of ASCII, whatever Rust's are, and \s must not reach a line break.
_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\f\r "}
_CONTROLS = {"t": "\\x{9}", "f": "\\x{C}", "r": "\\x{D}", "v": "\\x{B}", "a": "\\x{7}"}
_GROUP = re.compile(r"\((?:\?(?:(?P<keep>i\)|i:|:)|P?<\w+>))?")
_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))")
_NAMED_SET = re.compile(r"\[:\^?[a-z]+:\]")
# RE2 decodes surrogates and overlong sequences as one character each, and Rust does not match invalid UTF-8 with `.`.
_LOOSE = r"(?-u:[\xE0-\xEF][\x80-\xBF]{2}|[\xF0-\xF4][\x80-\xBF]{3})"


class _Untranslatable(Exception):
    """Something in a pattern may mean something else to ripgrep."""


def wider_pattern(pattern: str) -> str | None:
    """Return a pattern for ripgrep that matches at least the lines that RE2 matches; None if there is none."""
    try:
        return "".join(_translate(pattern))
    except _Untranslatable:
        return None


def _translate(pattern: str) -> Iterator[str]:
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
                raise _Untranslatable
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
        raise _Untranslatable
    return character if character.isalnum() and character.isascii() else f"\\x{{{ord(character):X}}}"


def _escape(pattern: str, at: int) -> tuple[str, int, bool]:
    """Translate an escape to members of a set.

    Returns:
        The members, the position after the escape, and whether they are a complement.
    """
    letter = pattern[at + 1 : at + 2]
    if letter in _SETS:
        return _SETS[letter], at + 2, False
    if letter and letter.lower() in _SETS:
        return f"[^{_SETS[letter.lower()]}]", at + 2, True
    if letter == "b":
        return r"(?-u:\b)", at + 2, False
    if letter in _CONTROLS:
        return _CONTROLS[letter], at + 2, False
    if escaped := _HEX.match(pattern, at):
        code = int(escaped[1] or escaped[2], 16)
        if code == 10:
            raise _Untranslatable
        return f"\\x{{{code:X}}}", escaped.end(), False
    if letter and letter.isascii() and not letter.isalnum():
        return _literal(letter), at + 2, False
    raise _Untranslatable


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """Translate a set in brackets, with each member written as a number; return it and the position after it."""
    start = at + 1
    negated = pattern.startswith("^", start)
    at = start = start + negated
    members: list[str] = []
    wide = negated
    while not (pattern.startswith("]", at) and at > start):
        if at >= len(pattern):
            raise _Untranslatable
        if named := _NAMED_SET.match(pattern, at):
            members.append(named.group())
            wide = wide or "^" in named.group()
            at = named.end()
            continue
        if pattern[at] == "\\":
            piece, at, is_wide = _escape(pattern, at)
            if "-u:" in piece:
                raise _Untranslatable
            wide = wide or is_wide
        else:
            piece, at = _literal(pattern[at]), at + 1
        single = piece.startswith("\\x") or len(piece) == 1
        if single and pattern.startswith("-", at) and pattern[at + 1 : at + 2] not in ("", "]"):
            if pattern[at + 1] in "\\[":
                raise _Untranslatable
            piece, at = f"{piece}-{_literal(pattern[at + 1])}", at + 2
        members.append(piece)
    inner = f"[{'^' if negated else ''}{''.join(members)}]"
    return (f"(?:{inner}|{_LOOSE})" if wide else inner), at + 1
