"""`toolwire coach`: recommend a format for each model, from the recorded runs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from toolwire.cli.console import CliError, console, emit, styled
from toolwire.cli.stats_command import open_archive, percentage
from toolwire.telemetry.coach import CONFIDENCE, ENOUGH, EXPLORE, Advice, advise

app = typer.Typer(no_args_is_help=True, help="Recommend a format for each model, from the recorded runs.")

REPORT_EXAMPLES = f"""Examples:

toolwire coach report

toolwire coach report --model qwen2.5-1.5b --json

An outcome is an answer that called a tool, or had to. It is good if its calls were in the requested format, were
parsed completely, and named existing tools with valid arguments. The bounds are a {CONFIDENCE:.0%} Wilson score
interval of the share of good outcomes. An agent with a coach tries other formats in {EXPLORE:.0%} of its turns, until
the lower bound of the best format exceeds the upper bounds of the others, or until there are {ENOUGH} outcomes."""


@app.callback()
def _group() -> None:
    """Keep `report` a subcommand, because Typer merges a single one into its parent."""


@app.command(epilog=REPORT_EXAMPLES)
def report(
    model: Annotated[str, typer.Option(help="Report only on this model.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per model.")] = False,
) -> None:
    """Recommend a format for each model, with confidence bounds."""
    archive = open_archive()
    models = [name for name in archive.models() if name == model or not model]
    if not models:
        raise CliError(f"no outcome of {model} is recorded yet" if model else "no outcome is recorded yet", status=1)
    for name in models:
        advice = advise(archive.evidence(name))
        if json:
            _emit(name, advice)
        else:
            _show(name, advice)


def _emit(model: str, advice: Advice) -> None:
    formats = [
        {
            "format": standing.tally.format,
            "tried": standing.tally.tried,
            "good": standing.tally.good,
            "rate": standing.rate,
            "low": standing.low,
            "high": standing.high,
        }
        for standing in advice.standings
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
    for standing in sorted(advice.standings, key=lambda standing: -standing.middle):
        best = standing.tally.format == advice.format
        table.add_row(
            styled(standing.tally.format),
            str(standing.tally.tried),
            percentage(standing.tally.good, standing.tally.tried),
            f"{standing.low:.1%}",
            f"{standing.high:.1%}",
            styled(best_of if best else "", "green"),
        )
    screen = console()
    screen.print(table, soft_wrap=False)
    screen.print(styled(advice.reason, "dim"))
    screen.print()
