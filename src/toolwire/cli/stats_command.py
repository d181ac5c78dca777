"""`toolwire stats`: how well models wrote calls in which format, and what became of these."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table

from toolwire.cli.console import CliError, console, emit, styled
from toolwire.telemetry.archive import Archive, Figures
from toolwire.telemetry.defaults import standard_archive

EXAMPLES = """Examples:

toolwire stats

toolwire stats --model qwen2.5-1.5b --since 7d

toolwire stats --format hermes --since 2026-11-01 --json

Runs are recorded on this machine only; TOOLWIRE_TELEMETRY=off stops that, TOOLWIRE_TELEMETRY=figures keeps no text."""

_AGO = re.compile(r"(?P<count>\d{1,6})\s*(?P<unit>[smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def stats(
    model: Annotated[str, typer.Option(help="Only this model.")] = "",
    format: Annotated[str, typer.Option("--format", "-f", help="Only this format; native: fields of an API.")] = "",
    since: Annotated[str, typer.Option(help="Only newer answers: 90m, 24h, 7d, or a date such as 2026-11-01.")] = "",
    json: Annotated[bool, typer.Option("--json", help="One JSON object per model and format.")] = False,
) -> None:
    """Figures per model and format.

    Read: answers without a problem. Good: those that called something, as they were asked to. Worked: calls that were
    let run and did not fail. Seconds are those of whole answers.
    """
    archive = recorded()
    figures = archive.figures(model=model, format=format, since=moment(since) if since else 0.0)
    if json:
        for one in figures:
            emit({**asdict(one), "parse_rate": one.parse_rate, "tool_success": one.tool_success})
        return
    if not figures:
        raise CliError("no such answer is recorded", status=1)
    for name in sorted({one.model for one in figures}):
        _table(name, [one for one in figures if one.model == name])


def recorded() -> Archive:
    """What was recorded on this machine.

    Raises:
        CliError: nothing was.
    """
    archive = standard_archive()
    if not archive.path.exists():
        raise CliError(f"nothing is recorded yet: there is no {archive.path}", status=1)
    return archive


def moment(text: str) -> float:
    """A time, or how long ago it was, in seconds since 1970.

    Raises:
        CliError: it is neither.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return time.time() - int(ago["count"]) * _UNITS[ago["unit"]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        raise CliError(f"{text!r} is no time; it can be 90m, 24h, 7d, or a date such as 2026-11-01") from None


def _table(model: str, figures: list[Figures]) -> None:
    table = Table(box=None, pad_edge=False, title=styled(model or "(no name)", "bold"), title_justify="left")
    table.add_column("format", style="bold", overflow="fold")
    for name in ("answers", "read", "good", "calls", "worked", "median s", "p95 s"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in figures:
        table.add_row(
            styled(one.format),
            str(one.answers),
            share(one.clean, one.answers),
            share(one.good, one.tried),
            str(one.calls),
            share(one.worked, one.calls - one.refused),
            f"{one.median:.2f}",
            f"{one.p95:.2f}",
        )
    screen = console()
    screen.print(table, soft_wrap=False)
    for one in figures:
        named = (("repairs", one.repairs), ("problems", one.problems), ("written in other formats", one.mismatches))
        for name, found in named:
            if found:
                screen.print(styled(f"{one.format}: {name}: ", "dim"), styled(counts(found)), sep="")
    screen.print()


def share(part: int, whole: int) -> str:
    """A share in percent; "-" of nothing."""
    return f"{part / whole:.1%}" if whole else "-"


def counts(named: Mapping[str, int]) -> str:
    """Counts in words."""
    return ", ".join(f"{name} {count}" for name, count in named.items())
