"""`te cat`, `te find` and `te repo read`: files and their names, below one directory."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from toolwire.envelope.content_type import TEXT, content_type
from toolwire.envelope.grammar import EnvelopeDocument, EnvelopeHeader, EnvelopeSection, count_lines
from toolwire.envelope.search_results import SearchResults
from toolwire.envelope.store import MAX_KEPT
from toolwire.envelope.te.command_lines import CAT, FAILED, FIND, NONE_FOUND, READ, root_of
from toolwire.envelope.te.context import CommandContext, CommandOutcome
from toolwire.envelope.te.options import CommandSpec, ParsedArguments
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.runtime.process_groups import TIMED_OUT
from toolwire.search.re2_search import MAX_DEPTH, is_binary
from toolwire.search.ripgrep import PinnedPath, find_ripgrep, not_ignored

_PIECE: Final = 1 << 20

# -- cat -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Text:
    """Text that was read.

    Attributes:
        text: the beginning, at most `MAX_KEPT` bytes.
        size: size of the whole, in bytes.
        lines: number of lines of the whole.
        is_text: the beginning contains no null character.
        late: the time limit was exceeded; size and lines are those of the part that was read.
    """

    text: str
    size: int
    lines: int
    is_text: bool
    late: bool = False


def cat(context: CommandContext, arguments: Sequence[str]) -> CommandOutcome:
    """Show files in an envelope."""
    parsed = CAT.read(arguments)
    if not parsed.arguments:
        CAT.wrong("a file is needed")
    return _shown(context, CAT, parsed, "cat", parsed.arguments)


def read(context: CommandContext, arguments: Sequence[str]) -> CommandOutcome:
    """Show a file of a repository in an envelope."""
    parsed = READ.read(arguments)
    if parsed.arguments or not parsed.last("path"):
        READ.wrong("a file is needed: --path FILE" if not parsed.arguments else "no arguments, only options")
    return _shown(context, READ, parsed, "repo read", parsed.all("path"))


def _shown(
    context: CommandContext, command: CommandSpec, parsed: ParsedArguments, cmd: str, paths: Sequence[str]
) -> CommandOutcome:
    line_range = _range(command, parsed)
    limits = context.settings.cat
    try:
        roots = AllowedRoots(root_of(parsed.last("root")))
        given_time = context.settings.seconds if "-" in paths else limits.milliseconds / 1_000  # it waits for a command
        seconds = context.seconds or given_time
        until = time.monotonic() + seconds
        read = [_read(roots, path, line_range, until) for path in paths]
    except ToolError as error:
        return context.failed(cmd, "not_readable", str(error), status=FAILED)
    except OSError as error:
        return context.failed(cmd, "not_readable", error.strerror or "cannot be read", status=FAILED)
    size = sum(text.size for text in read)
    if not all(text.is_text for text in read):
        header = EnvelopeHeader(cmd=cmd, size=size, content_type="binary", truncated=True)
        notice = f"{size} bytes, not text"
        return context.answer(lambda _: EnvelopeDocument(header, (EnvelopeSection("", (notice,)),)))
    kinds = {content_type(text.text[:2_000] + text.text[-200:], path) for text, path in zip(read, paths, strict=True)}
    kind = kinds.pop() if len(kinds) == 1 else TEXT
    lines = sum(text.lines for text in read)
    late = any(text.late for text in read)
    shown = "".join(text.text for text in read)
    header = EnvelopeHeader(
        cmd=cmd, lines=lines, content_type=None if kind == TEXT else kind, error="timeout" if late else None
    )
    left = lines - count_lines(shown)
    more = [f"{left} lines after the first {MAX_KEPT >> 20} MB"] if left > 0 else []
    more += [f"reading was stopped after {seconds:g} s and may be incomplete"] if late else []
    return context.text(
        shown,
        header,
        limit=limits.characters,
        lines=command.number(parsed, "preview") or (None if line_range else limits.preview),
        more="; ".join(more),
        status=TIMED_OUT if late else 0,
    )


def _range(command: CommandSpec, parsed: ParsedArguments) -> tuple[int, int] | None:
    """Return the requested lines, or None for all."""
    if not parsed.has("lines"):
        return None
    match = re.fullmatch(r"([1-9]\d{0,8})?(?:(-)([1-9]\d{0,8})?)?", parsed.last("lines"))
    if match is None or not (match[1] or match[3]):
        command.wrong(f"--lines takes a range such as 10-20, 10- or -20, not {parsed.last('lines')!r:.80}")
    first = int(match[1] or 1)
    last = int(match[3]) if match[3] else (sys.maxsize if match[2] else first)
    if last < first:
        command.wrong(f"--lines {first}-{last}: the last line is before the first")
    return first, last


def _read(roots: AllowedRoots, path: str, line_range: tuple[int, int] | None, until: float) -> _Text:
    if path == "-":
        return _read_from(sys.stdin.fileno(), line_range, until)
    with roots.reading(path) as descriptor:
        return _read_from(descriptor, line_range, until)


def _read_from(descriptor: int, line_range: tuple[int, int] | None, until: float) -> _Text:
    """Read a file to its end, and store the beginning of the requested lines."""
    pieces: list[bytes] = []
    room, size, is_text, ends = MAX_KEPT, 0, True, b"\n"
    breaks, before = 0, 0
    first, last = line_range or (1, sys.maxsize)
    late = False
    while True:
        if late := not _ready(descriptor, until):
            break
        if not (piece := os.read(descriptor, _PIECE)):
            break
        if not size:
            is_text = not is_binary(piece)
        if line_range:
            piece, before = _within(piece, before, first, last)
            if before >= last and not piece:
                break
        size += len(piece)
        breaks += piece.count(b"\n")
        ends = piece[-1:] or ends
        beginning = piece[:room]
        room -= len(beginning)
        if beginning:
            pieces.append(beginning)
    text = b"".join(pieces).decode("utf-8", "replace")
    return _Text(text, size, breaks + (ends != b"\n"), is_text, late)


def _ready(descriptor: int, until: float) -> bool:
    """Wait until there is something to read; return whether there is in time."""
    left = until - time.monotonic()
    if left <= 0 or os.name == "nt":  # where only sockets can be waited for
        return left > 0
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(left * 1_000))


def _within(piece: bytes, before: int, first: int, last: int) -> tuple[bytes, int]:
    """Return the part of a piece within lines `first` to `last`, and the number of line breaks up to its end."""
    start = _after(piece, first - 1 - before)
    end = _after(piece, last - before)
    return piece[start:end], before + piece.count(b"\n")


def _after(piece: bytes, breaks: int) -> int:
    """Return the position after a number of line breaks, or the end."""
    at = 0
    if breaks > len(piece):
        return len(piece)
    for _ in range(breaks):
        at = piece.find(b"\n", at) + 1
        if not at:
            return len(piece)
    return at


# -- find ------------------------------------------------------------------------------------------------------------

_ONE_STROKE: Final = frozenset({"-name", "-iname", "-path", "-type", "-maxdepth"})


def find(context: CommandContext, arguments: Sequence[str]) -> CommandOutcome:
    """List the names of files in an envelope."""
    parsed = FIND.read([f"-{argument}" if argument in _ONE_STROKE else argument for argument in arguments])
    kind = parsed.last("type")
    if kind not in ("", "f", "d"):
        FIND.wrong(f"--type takes f or d, not {kind!r:.80}")
    depth = parsed.last("maxdepth")
    if depth and not (depth.isascii() and depth.isdecimal() and len(depth) < 10):
        FIND.wrong(f"--maxdepth takes a number of at most 9 digits, not {depth!r:.80}")
    limits = context.settings.find
    seconds = context.seconds or limits.milliseconds / 1_000
    until = time.monotonic() + seconds
    findings = SearchResults()
    program = find_ripgrep(os.environ.get("TE_RG", ""))
    with_ignored = parsed.has("no-ignore") or not program
    late = False
    try:
        with ExitStack() as stack:
            roots = AllowedRoots(root_of(parsed.last("root")))
            for path in parsed.arguments or ["."]:
                place = PinnedPath(roots, path, stack)
                try:
                    left = until - time.monotonic()
                    shown = (
                        None if with_ignored or place.is_file else not_ignored(program, place.descriptor, seconds=left)
                    )
                except TimeoutError:
                    late = True
                    break
                for name in _names(place, int(depth or sys.maxsize), kind, shown):
                    if late := time.monotonic() > until:
                        break
                    if _matches(parsed, name):
                        findings.hit(os.fsencode(name))
    except ToolError as error:
        return context.failed("find", "not_readable", str(error), status=FAILED)
    keep = context.keep()
    preview = FIND.number(parsed, "preview") or limits.preview
    return context.answer(
        lambda room: findings.compose(
            "find",
            preview=preview,
            limit=room,
            keep=keep,
            error="timeout" if late else None,
            stopped=f"the search was stopped after {seconds:g} s and may be incomplete" if late else "",
        ),
        limit=limits.characters,
        status=TIMED_OUT if late else 0 if findings.total else NONE_FOUND,
    )


def _matches(parsed: ParsedArguments, path: str) -> bool:
    name = path.rpartition("/")[2]
    if not all(fnmatchcase(name.lower(), glob.lower()) for glob in parsed.all("iname")):
        return False
    return all(fnmatchcase(name, glob) for glob in parsed.all("name")) and all(
        fnmatchcase(path, glob) or fnmatchcase(f"./{path}", glob) for glob in parsed.all("path")
    )


def _names(place: PinnedPath, depth: int, kind: str, shown: Collection[bytes] | None) -> Iterator[str]:
    """Yield paths of files (`f`), directories (`d`) or both. Links are not followed, and .git is left out.

    `shown` limits the paths. Empty directories and links are always included, because ripgrep lists neither.
    """
    prefix = os.fsdecode(place.prefix)
    if place.is_file:
        if kind != "d":
            yield prefix
        return
    if depth < 1:
        return
    for folder, folders, names, descriptor in os.fwalk(".", dir_fd=place.descriptor):
        folders[:] = sorted(name for name in folders if name != ".git")
        if shown is not None:
            above = os.fsencode(folder[2:] and f"{folder[2:]}/")
            folders[:] = [
                name for name in folders if above + os.fsencode(name) in shown or _holds_nothing(name, descriptor)
            ]
            names = [name for name in names if above + os.fsencode(name) in shown or not _is(name, descriptor, "f")]
        where = prefix + (f"{folder[2:]}/" if folder != "." else "")
        for name in sorted([*folders, *names]):
            if not kind or _is(name, descriptor, kind):
                yield where + name
        if folder.count("/") + 1 >= depth:
            folders[:] = []
        elif folders and folder.count("/") >= MAX_DEPTH:
            raise ToolError(
                f"nothing deeper than {MAX_DEPTH} directories was looked at; start in a directory that is deeper"
            )


def _holds_nothing(name: str, folder: int) -> bool:
    """Return whether it is an empty directory or a link to a directory."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return not _is(name, folder, "d")
    try:
        return not os.listdir(opened)
    finally:
        os.close(opened)


def _is(name: str, folder: int, kind: str) -> bool:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:  # gone meanwhile
        return False
    return stat.S_ISDIR(mode) if kind == "d" else stat.S_ISREG(mode)
