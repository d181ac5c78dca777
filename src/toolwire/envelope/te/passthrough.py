"""Commands that `te` does not know: run as they are, without a shell, within a time limit."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from toolwire.envelope.content_type import TEXT, content_type
from toolwire.envelope.grammar import BEGIN, EnvelopeDocument, EnvelopeHeader, EnvelopeSection, count_lines
from toolwire.envelope.layout import cut
from toolwire.envelope.store import MAX_KEPT
from toolwire.envelope.te.command_lines import FAILED, READ, RUN
from toolwire.envelope.te.context import CommandContext, CommandOutcome, dumped, short, show, warn
from toolwire.runtime.process_groups import ProgramResult, run_program

READING: Final = frozenset({"grep", "cat", "find", "repo"})
"""Commands of `te` that change nothing, so that they may be repeated."""
MAX_SAID: Final = 200
"""Maximum length of a command in an error, in characters."""
MIN_SHOWN: Final = 40
"""Minimum length of both outputs together, in characters."""
TAIL: Final = 0.5
"""Share of the output for its end, where commands report how they went."""


def run_shown(context: CommandContext, arguments: Sequence[str]) -> CommandOutcome:
    """Run `te run`: both outputs in one envelope."""
    argv = RUN.read(arguments).arguments
    if not argv:
        RUN.wrong("a command is needed")
    return _json(context, argv) if context.as_json else _shaped(context, argv, passed=False)


def pass_on(context: CommandContext, argv: Sequence[str]) -> CommandOutcome:
    """Run a command that `te` does not know; its output gets an envelope only if it exceeds the reader's budget."""
    return _json(context, argv) if context.as_json else _shaped(context, argv, passed=True)


def _shaped(context: CommandContext, argv: Sequence[str], *, passed: bool) -> CommandOutcome:
    cmd = short(argv[0])
    result = _ran(context, argv, merge=not passed)
    if isinstance(result, str):
        warn(result)
        return CommandOutcome(FAILED, cmd, "pass", error="not_started")
    if result.timed_out:
        warn(f"{_late(context, argv)}; te --timeout {2 * _seconds(context):g} doubles the time limit")
    out, err = _text(result.out.joined()), _text(result.err.joined())
    error = "timeout" if result.timed_out else None
    if passed and not result.left_out and len(out) + len(err) <= context.settings.budget and not out.startswith(BEGIN):
        unshaped(result)
        return CommandOutcome(result.exit_status, cmd, "pass", out + err, error=error or "")
    text = out if not err else f"{out.removesuffix(chr(10))}\n{err}" if out else err
    kind = content_type(text[:2_000] + text[-200:])
    header = EnvelopeHeader(
        cmd=cmd, lines=count_lines(text), content_type=None if kind in (TEXT, "json") else kind, error=error
    )
    more = f"{result.left_out} bytes after the first {MAX_KEPT >> 20} MB" if result.left_out else ""
    limit = context.settings.budget
    outcome = context.text(text, header, limit=limit, lines=None, tail=TAIL, more=more, status=result.exit_status)
    outcome.mode = "pass"
    return outcome


def _json(context: CommandContext, argv: Sequence[str]) -> CommandOutcome:
    """Write a command's outputs as one JSON object, truncated to both ends if they exceed the reader's budget."""
    cmd = short(argv[0])
    result = _ran(context, argv, merge=False)
    if isinstance(result, str):
        text = dumped({"stdout": "", "stderr": "", "exit_code": FAILED, "error": result})
        sys.stdout.write(text + "\n")
        return CommandOutcome(FAILED, cmd, "pass", text, error="not_started")
    value: dict[str, Any] = {
        "stdout": _text(result.out.joined()),
        "stderr": _text(result.err.joined()),
        "exit_code": result.exit_status,
        "error": _late(context, argv) if result.timed_out else None,
    }
    budget = context.settings.budget
    text = dumped(value)
    handle = ""
    if len(text) > budget or result.left_out:
        keep = context.keep()
        both_streams = value["stdout"] + value["stderr"]
        header = EnvelopeHeader(cmd=cmd, lines=count_lines(both_streams))
        handle = keep(both_streams, header) or ""
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
    return CommandOutcome(
        result.exit_status, cmd, "pass", text, "truncated" in value, handle, "timeout" if result.timed_out else ""
    )


def _ends(text: str, room: int) -> str:
    """Return both ends of a text, with a breadcrumb between them."""
    shown = cut(text, room, tail=TAIL)
    if not shown.left_out:
        return text
    header = EnvelopeHeader(cmd="run", lines=0)
    return EnvelopeDocument(header, (EnvelopeSection(shown.head, (shown.left_out,)), EnvelopeSection(shown.tail))).body


def _ran(context: CommandContext, argv: Sequence[str], *, merge: bool) -> ProgramResult | str:
    """Return a command's result, or why it could not be started."""
    try:
        context.ran = run_program(argv, seconds=_seconds(context), max_output=MAX_KEPT, separate_stderr=not merge)
        return context.ran
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return f"{argv[0]}: {reason}"


def _late(context: CommandContext, argv: Sequence[str]) -> str:
    return f"command timed out after {_seconds(context):g}s: {shlex.join(argv)[:MAX_SAID]}"


def _seconds(context: CommandContext) -> float:
    return context.seconds or context.settings.seconds


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def unshaped(ran: ProgramResult) -> None:
    """Write a program's outputs to the same streams."""
    for stream, data in ((sys.stdout, ran.out.joined()), (sys.stderr, ran.err.joined())):
        show(stream, data)


# -- raw -------------------------------------------------------------------------------------------------------------


def raw(argv: Sequence[str]) -> CommandOutcome:
    """Run the tool itself with our own streams: no header, no limit. For `grep` see `grep.grep_raw`."""
    cmd = argv[0]
    if cmd == "run":
        argv = argv[1:]
    elif argv[:2] == ["repo", "read"]:
        parsed = READ.read(argv[2:])
        argv = ["cat", "--", os.path.join(parsed.last("root", "."), parsed.last("path"))]
    return run_raw(argv, cmd=cmd)


def run_raw(argv: Sequence[str], *, cmd: str, stdin: int | None = None, root: str = "") -> CommandOutcome:
    """Run a program that reads and writes our own streams.

    Args:
        argv: the program and its arguments.
        cmd: the command's name for the usage log.
        stdin: standard input; None for ours.
        root: the directory to run in; "" for the working directory.
    """
    try:
        if cmd in READING and sys.stdout.isatty():
            # Files may contain what steers a terminal; a program that the user names may steer it.
            with subprocess.Popen(argv, stdin=stdin, cwd=root or None, stdout=subprocess.PIPE) as reader:
                assert reader.stdout is not None
                for line in reader.stdout:
                    show(sys.stdout, line)
            status = reader.returncode
        else:
            status = subprocess.run(argv, stdin=stdin, cwd=root or None, check=False).returncode
    except (OSError, ValueError, IndexError) as error:
        warn(f"{cmd}: {error.strerror if isinstance(error, OSError) else error}")
        return CommandOutcome(FAILED, short(cmd), "raw", error="not_started")
    return CommandOutcome(status if status >= 0 else 128 - status, short(cmd), "raw")
