"""`te --stats`, `te --list-handles` and `te --handle`: statistics of calls, and stored results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from toolwire.envelope.envelope import page
from toolwire.envelope.te.command_lines import FAILED
from toolwire.envelope.te.context import CommandContext, CommandOutcome, dumped, warn, write
from toolwire.envelope.usage_log import UsageLog
from toolwire.errors import ToolError
from toolwire.text.escape import escape_as_json
from toolwire.text.truncate import shorten

_SAID: Final = 40
"""Maximum length of the breadcrumb, in characters."""
_CELL: Final = 100
"""Maximum length of a cell, in characters."""


def stats(context: CommandContext) -> CommandOutcome:
    """Write statistics of all calls."""
    try:
        summaries = UsageLog.of(context.settings).stats()
    except ToolError as error:
        return context.failed("stats", "not_readable", str(error), status=FAILED)
    if context.as_json:
        return _newest(context, [dumped(asdict(summary)) for summary in summaries])
    rows = [
        (
            summary.cmd,
            summary.calls,
            summary.truncated,
            summary.errors,
            summary.output,
            f"{summary.median_ms:.0f}",
            f"{summary.p95_ms:.0f}",
        )
        for summary in summaries
    ]
    lines = _table(("command", "calls", "truncated", "errors", "characters", "median ms", "95% ms"), rows, "no calls")
    return _newest(context, lines)


def handles(context: CommandContext) -> CommandOutcome:
    """Write a list of stored results, the newest first."""
    try:
        results = context.store.list()
    except ToolError as error:
        return context.failed("handles", "not_readable", str(error), status=FAILED)
    if context.as_json:
        return _newest(context, [dumped(asdict(result)) for result in results])
    now = time.time()
    rows = [
        (result.handle, result.cmd, result.lines, result.size, _age(now - result.created), result.agent)
        for result in results
    ]
    lines = _table(("handle", "command", "lines", "bytes", "age", "agent"), rows, "no stored results")
    return _newest(context, lines)


def one_page(context: CommandContext, handle: str, number: int) -> CommandOutcome:
    """Write a part of a stored result."""
    try:
        result, text = context.store.get(handle)
        written = context.written if context.as_json else None
        document = page(result, text, number, budget=context.settings.budget, written=written)
    except ToolError as error:
        return context.failed("handle", "no_result", str(error), status=FAILED)
    return context.answer(lambda _: document)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], none: str) -> list[str]:
    if not rows:
        return [none]
    cells = [heads, *([shorten(escape_as_json(str(cell)), _CELL) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
    numeric = [all(isinstance(row[at], int) for row in rows) or "ms" in heads[at] for at in range(len(heads))]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]


def _newest(context: CommandContext, lines: list[str]) -> CommandOutcome:
    """Write as many of the first lines as fit, and the number of the others."""
    room = context.settings.budget - (_SAID if not context.as_json else 2)
    shown = 0
    for line in lines:
        room -= len(line) + (2 if context.as_json else 1)
        if room < 0:
            break
        shown += 1
    if context.as_json:
        text = f"[{', '.join(lines[:shown])}]"
        if shown < len(lines):
            warn(f"{len(lines) - shown} more")
    else:
        left = len(lines) - shown
        text = "\n".join([*lines[:shown], *([f"# TE: {left} more"] if left else [])])
    write(text)
    return CommandOutcome(cmd="report", mode="")


def _age(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
