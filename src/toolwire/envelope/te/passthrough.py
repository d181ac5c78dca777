"""Commands that are passed on: run as they are, without a shell, for a limited time."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from toolwire.envelope.content_type import TEXT, content_type
from toolwire.envelope.cutting import count_lines, cut
from toolwire.envelope.grammar import BEGIN, Document, Header, Section
from toolwire.envelope.programs import Ran, run
from toolwire.envelope.search import find_ripgrep
from toolwire.envelope.store import MAX_KEPT
from toolwire.envelope.te.context import FAILED, WRONG, Context, Done, dumped, short, warn
from toolwire.envelope.te.options import Command
from toolwire.errors import ToolError

READING: Final = frozenset({"grep", "cat", "find", "repo"})
"""The commands of `te` that change nothing, so that they may be done again."""
MAX_SAID: Final = 200
"""Characters of a command that an error says."""
MIN_SHOWN: Final = 40
"""Characters of both outputs together that are shown at least."""
TAIL: Final = 0.5
"""The share of what is shown that is for the end: that is where commands say how it went."""

RUN: Final = Command(
    "te run COMMAND [ARGUMENT]...",
    "Run a command, and show what it gives in an envelope; its exit status is ours.",
    (),
    "example:\n  te run pytest -x\n\nIt is ended after 30 seconds, with all that it started: status 124. "
    "TE_TIMEOUT or te --timeout allow more.",
    mixed=False,
)


def run_shown(context: Context, arguments: Sequence[str]) -> Done:
    """`te run`: both outputs in one envelope."""
    argv = RUN.read(arguments).arguments
    if not argv:
        RUN.wrong("a command is needed")
    return _json(context, argv) if context.as_json else _shaped(context, argv, passed=False)


def pass_on(context: Context, argv: Sequence[str]) -> Done:
    """A command that `te` has no words for: as it is, as long as its reader has room for that."""
    return _json(context, argv) if context.as_json else _shaped(context, argv, passed=True)


def _shaped(context: Context, argv: Sequence[str], *, passed: bool) -> Done:
    cmd = short(argv[0])
    ran = _ran(context, argv, merge=not passed)
    if isinstance(ran, str):
        warn(ran)
        return Done(FAILED, cmd, "pass", error="not_started")
    if ran.timed_out:
        warn(f"{_late(context, argv)}; te --timeout {2 * _seconds(context):g} gives it twice as long")
    out, err = _text(ran.out), _text(ran.err)
    error = "timeout" if ran.timed_out else None
    if passed and not ran.dropped and len(out) + len(err) <= context.settings.budget and not out.startswith(BEGIN):
        unshaped(ran)
        return Done(ran.status, cmd, "pass", out + err, error=error or "")
    text = out if not err else f"{out.removesuffix(chr(10))}\n{err}" if out else err
    kind = content_type(text[:2_000] + text[-200:])
    header = Header(
        cmd=cmd, lines=count_lines(text), content_type=None if kind in (TEXT, "json") else kind, error=error
    )
    more = f"{ran.dropped} bytes behind the first {MAX_KEPT >> 20} MB" if ran.dropped else ""
    limit = context.settings.budget
    done = context.text(text, header, limit=limit, lines=None, tail=TAIL, more=more, status=ran.status)
    done.mode = "pass"
    return done


def _json(context: Context, argv: Sequence[str]) -> Done:
    """What a command gave as one JSON object, with the ends of its outputs where they are too long for the reader."""
    cmd = short(argv[0])
    ran = _ran(context, argv, merge=False)
    if isinstance(ran, str):
        text = dumped({"stdout": "", "stderr": "", "exit_code": FAILED, "error": ran})
        sys.stdout.write(text + "\n")
        return Done(FAILED, cmd, "pass", text, error="not_started")
    value: dict[str, Any] = {
        "stdout": _text(ran.out),
        "stderr": _text(ran.err),
        "exit_code": ran.status,
        "error": _late(context, argv) if ran.timed_out else None,
    }
    budget = context.settings.budget
    text = dumped(value)
    handle = ""
    if len(text) > budget or ran.dropped:
        keep = context.keep()
        whole = value["stdout"] + value["stderr"]
        header = Header(cmd=cmd, lines=count_lines(whole))
        handle = keep(whole, header) or ""
        value |= {"truncated": True} | ({"handle": handle} if handle else {})
        out, err = value["stdout"], value["stderr"]
        room = budget
        while True:
            value |= {"stdout": _ends(out, room // 2), "stderr": _ends(err, room // 2)}
            text = dumped(value)
            if len(text) <= budget or room <= MIN_SHOWN:
                break
            room = max(room * budget // len(text) - 32, MIN_SHOWN)
    sys.stdout.write(text + "\n")
    return Done(ran.status, cmd, "pass", text, "truncated" in value, handle, "timeout" if ran.timed_out else "")


def _ends(text: str, room: int) -> str:
    """Both ends of a text, and a breadcrumb between them."""
    shown = cut(text, room, tail=TAIL)
    if not shown.left_out:
        return text
    header = Header(cmd="run", lines=0)
    return Document(header, (Section(shown.head, (shown.left_out,)), Section(shown.tail))).body


def _ran(context: Context, argv: Sequence[str], *, merge: bool) -> Ran | str:
    """What a command did, or why it could not be started."""
    try:
        context.ran = run(argv, seconds=_seconds(context), keep=MAX_KEPT, merge=merge)
        return context.ran
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return f"{argv[0]}: {reason}"


def _late(context: Context, argv: Sequence[str]) -> str:
    return f"command timed out after {_seconds(context):g}s: {shlex.join(argv)[:MAX_SAID]}"


def _seconds(context: Context) -> float:
    return context.seconds or context.settings.seconds


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def unshaped(ran: Ran) -> None:
    """Write what a command wrote, where it wrote it."""
    for stream, data in ((sys.stdout, ran.out), (sys.stderr, ran.err)):
        stream.buffer.write(data)
        stream.buffer.flush()


# -- raw -------------------------------------------------------------------------------------------------------------


def raw(argv: Sequence[str], *, root: str = "") -> Done:
    """The tool itself, with nothing between it and its reader: no header, no limit.

    Args:
        argv: the command.
        root: where it runs; "" for the working directory.
    """
    cmd, *rest = argv
    stdin = None
    if cmd == "grep":
        program = find_ripgrep(os.environ.get("TE_RG", ""))
        if not program:
            return _searched(rest)
        argv, stdin = [program, *rest], None if "-" in rest else subprocess.DEVNULL  # files, whatever stdin is
    elif cmd == "run":
        argv = rest
    elif argv[:2] == ["repo", "read"]:
        argv = _read_raw(argv[2:])
    try:
        status = subprocess.run(argv, stdin=stdin, cwd=root or None, check=False).returncode
    except (OSError, ValueError, IndexError) as error:
        warn(f"{cmd}: {error.strerror if isinstance(error, OSError) else error}")
        return Done(FAILED, short(cmd), "raw", error="not_started")
    return Done(status if status >= 0 else 128 - status, short(cmd), "raw")


class _Lines:
    """Writes hits as grep does."""

    def __init__(self) -> None:
        self.status = 1

    def hit(self, path: bytes, number: int, line: bytes) -> None:
        sys.stdout.buffer.write(b"%b:%b\n" % (path, line))
        self.status = 0

    def not_text(self) -> None:
        self.status = 0


def _searched(arguments: Sequence[str]) -> Done:
    """What grep would write, where there is no ripgrep."""
    from toolwire.envelope.te.grep import Search

    lines = _Lines()
    try:
        with ExitStack() as stack:
            Search(arguments, stack).feed(lines, seconds=sys.maxsize)
    except ToolError as error:
        warn(str(error))
        return Done(WRONG, "grep", "raw", error="not_searched")
    return Done(lines.status, "grep", "raw")


def _read_raw(arguments: Sequence[str]) -> list[str]:
    from toolwire.envelope.te.files import READ

    given = READ.read(arguments)
    return ["cat", "--", os.path.join(given.last("root", "."), given.last("path"))]
