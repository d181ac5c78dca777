"""The entry point of `te`: its own options, and the choice of the command."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NoReturn

from toolwire.envelope.te.command_lines import INTERRUPTED, TE
from toolwire.envelope.te.options import ParsedArguments
from toolwire.errors import ConfigurationError, capture_errors

if TYPE_CHECKING:
    from toolwire.envelope.te.context import CommandContext, CommandOutcome


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `te` as a program, by default with the program's own arguments."""
    if sys.stdout is None or sys.stderr is None:  # closed by the caller: there is nobody to tell
        sys.exit(1)
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)  # not all are everywhere
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, _terminated)
    gc.disable()  # it ends before there is much to collect
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError:  # nobody reads, or what is written has no room
        status = 1
    os._exit(status)  # all is written and closed: there is nothing to take apart


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    parsed = TE.read(arguments)
    try:
        return _run(parsed)
    except ConfigurationError as error:
        sys.stderr.write(f"te: {error}\n")
        return 2


def _terminated(number: int, _: object) -> NoReturn:
    """Exit by an exception, so that programs that were started end too."""
    sys.exit(128 + number)


def _run(parsed: ParsedArguments) -> int:
    if parsed.has("version"):
        from importlib.metadata import version

        sys.stdout.write(f"te {version('toolwire')}\n")
        return 0
    argv = parsed.arguments
    raw = parsed.has("raw")
    with ExitStack() as stack:
        started = None
        if argv[:1] == ["grep"] and not raw:
            from toolwire.envelope.te.grep import Search

            started = Search(argv[1:], stack)  # before all else is loaded
        from toolwire.envelope.te.context import CommandContext

        context = CommandContext(parsed.has("json"), raw, _seconds(parsed))
        if started is not None:
            from toolwire.envelope.te.grep import grep, repeat_raw

            search = started
            outcome = _guarded(context, argv, lambda: grep(search, context), lambda: repeat_raw(search))
        else:
            outcome = _guarded(context, argv, lambda: _done(parsed, context))
        if outcome.mode:
            context.record(outcome, argv)
        context.close()
    return outcome.status


def _seconds(parsed: ParsedArguments) -> float | None:
    if not parsed.has("timeout"):
        return None
    try:
        seconds = float(parsed.last("timeout"))
    except ValueError:
        seconds = 0
    if not 0 < seconds < 1e6:
        TE.wrong(f"--timeout takes a positive number of seconds, not {parsed.last('timeout')!r:.80}")
    return seconds


def _done(parsed: ParsedArguments, context: CommandContext) -> CommandOutcome:
    """Run any command but `grep`."""
    from toolwire.envelope.te import passthrough

    argv = parsed.arguments
    if parsed.has("handle") or parsed.has("list-handles") or parsed.has("stats"):
        from toolwire.envelope.te import reports

        if parsed.has("handle"):
            return reports.one_page(context, parsed.last("handle"), TE.number(parsed, "chunk") or 1)
        return reports.handles(context) if parsed.has("list-handles") else reports.stats(context)
    if not argv:
        TE.wrong("a command is needed")
    if context.raw and argv[0] == "grep":
        from toolwire.envelope.te.grep import grep_raw

        return grep_raw(argv[1:])
    if context.raw:
        return passthrough.raw(argv)
    if argv[0] == "run":
        return passthrough.run_shown(context, argv[1:])
    if argv[0] in ("cat", "find") or argv[:2] == ["repo", "read"]:
        from toolwire.envelope.te import files

        if argv[0] == "repo":
            return files.read(context, argv[2:])
        return files.cat(context, argv[1:]) if argv[0] == "cat" else files.find(context, argv[1:])
    return passthrough.pass_on(context, argv)


def _guarded(
    context: CommandContext,
    argv: Sequence[str],
    work: Callable[[], CommandOutcome],
    repeat: Callable[[], CommandOutcome] | None = None,
) -> CommandOutcome:
    """Run a command. If it fails, a person gets the raw output, and an agent an error.

    A program that has run is not run again: a person gets the output that it wrote.
    """
    with capture_errors() as caught:
        return work()
    if isinstance(caught.error, SystemExit | BrokenPipeError | ConfigurationError):  # none of ours
        raise caught.error
    from toolwire.envelope.te.command_lines import FAILED
    from toolwire.envelope.te.context import CommandOutcome, warn
    from toolwire.envelope.te.passthrough import READING, raw, unshaped

    warn(f"internal error: {caught.message}")
    cmd = argv[0] if argv else "te"
    if context.human and context.ran is not None:
        unshaped(context.ran)
        return CommandOutcome(context.ran.exit_status, cmd, "raw", error="internal")
    if context.human and cmd in READING and not isinstance(caught.error, OSError):
        return repeat() if repeat is not None else raw(argv)
    return context.failed(cmd, "internal", status=FAILED)
