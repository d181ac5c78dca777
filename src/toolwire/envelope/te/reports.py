"""`te --stats`, `te --list-handles` and `te --handle`: what was called, what is kept, and the pages of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from toolwire.envelope.grammar import on_one_line
from toolwire.envelope.shaping import page
from toolwire.envelope.te.context import FAILED, Context, Done, dumped
from toolwire.envelope.telemetry import Telemetry
from toolwire.errors import ToolError


def stats(context: Context) -> Done:
    """How often what was called, how much it gave and how long it took."""
    try:
        found = Telemetry.of(context.settings).stats()
    except ToolError as error:
        return context.failed("stats", "not_readable", str(error), status=FAILED)
    if context.as_json:
        return _written(dumped([asdict(one) for one in found]))
    rows = [
        (one.cmd, one.calls, one.truncated, one.errors, one.output, f"{one.median_ms:.0f}", f"{one.p95_ms:.0f}")
        for one in found
    ]
    return _table(("command", "calls", "truncated", "errors", "characters", "median ms", "95% ms"), rows, "no calls")


def handles(context: Context) -> Done:
    """What is kept, the newest first."""
    try:
        found = context.store.list()
    except ToolError as error:
        return context.failed("handles", "not_readable", str(error), status=FAILED)
    if context.as_json:
        return _written(dumped([asdict(one) for one in found]))
    now = time.time()
    rows = [(one.handle, one.cmd, one.lines, one.size, _age(now - one.created), one.agent) for one in found]
    return _table(("handle", "command", "lines", "bytes", "age", "agent"), rows, "nothing is kept")


def one_page(context: Context, handle: str, number: int) -> Done:
    """A page of what is kept."""
    try:
        kept, text = context.store.get(handle)
        written = context.written if context.as_json else None
        document = page(kept, text, number, budget=context.settings.budget, written=written)
    except ToolError as error:
        return context.failed("handle", "no_result", str(error), status=FAILED)
    return context.answer(lambda _: document)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], none: str) -> Done:
    if not rows:
        return _written(none)
    cells = [heads, *([on_one_line(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
    numeric = [all(isinstance(row[at], int) for row in rows) or "ms" in heads[at] for at in range(len(heads))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    return _written("\n".join(lines))


def _written(text: str) -> Done:
    sys.stdout.write(text + "\n")
    return Done(cmd="report", mode="")


def _age(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
