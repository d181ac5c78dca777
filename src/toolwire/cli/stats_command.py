"""`toolwire stats`: show how well each model wrote calls in each format, and their outcomes."""

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

Runs of ask and chat are recorded on this machine, and those of agents that ask for it. TOOLWIRE_RECORD=off records
nothing, TOOLWIRE_RECORD=figures no text, TOOLWIRE_RECORD=on the runs of every agent."""

_AGO = re.compile(r"(?P<count>\d{1,6})\s*(?P<unit>[smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def stats(
    model: Annotated[str, typer.Option(help="Show only this model.")] = "",
    format: Annotated[
        str, typer.Option("--format", "-f", help="Show only this format; native: fields of an API.")
    ] = "",
    since: Annotated[
        str, typer.Option(help="Count only newer answers: 90m, 24h, 7d, or a date such as 2026-11-01.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per model and format.")] = False,
) -> None:
    """Show statistics for each model and format.

    Read: answers without a problem. Good: answers that called a tool as requested. Worked: permitted calls that did not
    fail. Seconds: duration of whole answers.
    """
    archive = open_archive()
    figures = archive.figures(model=model, format=format, since=parse_since(since) if since else 0.0)
    if json:
        for row in figures:
            emit({**asdict(row), "parse_rate": row.parse_rate, "tool_success": row.tool_success})
        return
    if not figures:
        raise CliError("no such answer is recorded", status=1)
    for name in sorted({row.model for row in figures}):
        _table(name, [row for row in figures if row.model == name])


def open_archive() -> Archive:
    """Return the archive of this machine.

    Raises:
        CliError: nothing is recorded yet.
    """
    archive = standard_archive()
    if not archive.path.exists():
        raise CliError(f"nothing is recorded yet: {archive.path} does not exist", status=1)
    return archive


def parse_since(text: str) -> float:
    """Parse a date or an age such as 7d, and return seconds since 1970.

    Raises:
        CliError: the text is neither.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return time.time() - int(ago["count"]) * _UNITS[ago["unit"]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        raise CliError(f"{text!r} is not a time; write 90m, 24h, 7d, or a date such as 2026-11-01") from None


def _table(model: str, figures: list[Figures]) -> None:
    table = Table(box=None, pad_edge=False, title=styled(model or "(no name)", "bold"), title_justify="left")
    table.add_column("format", style="bold", overflow="fold")
    for name in ("answers", "read", "good", "calls", "worked", "median s", "p95 s"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in figures:
        table.add_row(
            styled(row.format),
            str(row.answers),
            percentage(row.clean, row.answers),
            percentage(row.good, row.tried),
            str(row.calls),
            percentage(row.worked, row.calls - row.refused),
            f"{row.median:.2f}" if row.answers else "-",
            f"{row.p95:.2f}" if row.answers else "-",
        )
    screen = console()
    screen.print(table, soft_wrap=False)
    for row in figures:
        tallies = (
            ("repairs", row.repairs),
            ("problems", row.problems),
            ("written in other formats", row.mismatches),
        )
        for name, tally in tallies:
            if tally:
                screen.print(styled(f"{row.format}: {name}: ", "dim"), styled(format_counts(tally)), sep="")
    screen.print()


def percentage(part: int, whole: int) -> str:
    """Return a share in percent; "-" if `whole` is 0."""
    return f"{part / whole:.1%}" if whole else "-"


def format_counts(tallies: Mapping[str, int]) -> str:
    """Return counts as text, such as "closed 2, quoted 1"."""
    return ", ".join(f"{name} {count}" for name, count in tallies.items())
