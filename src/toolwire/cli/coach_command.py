"""`toolwire coach`: which format suits which model, by what was recorded."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from toolwire.cli.console import CliError, console, emit, styled
from toolwire.cli.stats_command import recorded, share
from toolwire.telemetry.coach import CONFIDENCE, ENOUGH, EXPLORE, Advice, advise

app = typer.Typer(no_args_is_help=True, help="Which format suits which model, by what was recorded.")

REPORT_EXAMPLES = f"""Examples:

toolwire coach report

toolwire coach report --model qwen2.5-1.5b --json

An outcome is an answer that called something, or had to: good if the calls stood in the format that was asked for,
could be read whole, and named tools and arguments that are there. The bounds are a {CONFIDENCE:.0%} Wilson score
interval of the share of good ones. An agent with a coach asks in other formats in {EXPLORE:.0%} of its turns, until the
lower bound of the best lies above the upper bounds of the others, or until {ENOUGH} outcomes are known."""


@app.callback()
def _group() -> None:
    """Keeps `report` a command of its own."""


@app.command(epilog=REPORT_EXAMPLES)
def report(
    model: Annotated[str, typer.Option(help="Only this model.")] = "",
    json: Annotated[bool, typer.Option("--json", help="One JSON object per model.")] = False,
) -> None:
    """Recommend a format for each model, with bounds that say how sure that is."""
    archive = recorded()
    models = [name for name in archive.models() if name == model or not model]
    if not models:
        raise CliError(f"no outcome of {model} is recorded" if model else "no outcome is recorded", status=1)
    for name in models:
        advice = advise(archive.evidence(name))
        if json:
            _emit(name, advice)
        else:
            _show(name, advice)


def _emit(model: str, advice: Advice) -> None:
    formats = [
        {
            "format": one.tally.format,
            "tried": one.tally.tried,
            "good": one.tally.good,
            "rate": one.rate,
            "low": one.low,
            "high": one.high,
        }
        for one in advice.standings
    ]
    emit(
        {
            "model": model,
            "recommended": advice.format,
            "settled": advice.settled and len(advice.standings) > 1,
            "reason": advice.reason,
            "interval": "wilson",
            "confidence": CONFIDENCE,
            "formats": formats,
        }
    )


def _show(model: str, advice: Advice) -> None:
    table = Table(box=None, pad_edge=False, title=styled(model or "(no name)", "bold"), title_justify="left")
    table.add_column("format", style="bold")
    for name in ("outcomes", "good", "at least", "at most"):
        table.add_column(name, justify="right")
    table.add_column("")
    best_of = "recommended" if len(advice.standings) > 1 else "only one tried"
    for one in sorted(advice.standings, key=lambda one: -one.middle):
        best = one.tally.format == advice.format
        table.add_row(
            styled(one.tally.format),
            str(one.tally.tried),
            share(one.tally.good, one.tally.tried),
            f"{one.low:.1%}",
            f"{one.high:.1%}",
            styled(best_of if best else "", "green"),
        )
    screen = console()
    screen.print(table, soft_wrap=False)
    screen.print(styled(advice.reason, "dim"))
    screen.print()
