"""`toolwire coach`: recommend a format for each model, from recorded runs and evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from toolwire.cli.console import CliError, console, emit, styled
from toolwire.cli.stats_command import open_archive, percentage
from toolwire.telemetry.coach import CONFIDENCE, ENOUGH, EXPLORE, Advice, advise
from toolwire.telemetry.defaults import standard_archive
from toolwire.text.counted import counted

app = typer.Typer(
    no_args_is_help=True, help="Recommend a format for each model, from recorded runs and from evaluations."
)

REPORT_EXAMPLES = f"""Examples:

toolwire coach report

toolwire coach report --model qwen2.5-1.5b --json

An outcome is an answer that called a tool, or had to. It is good if its calls were in the requested format, were
parsed completely, and named existing tools with valid arguments. The bounds are a {CONFIDENCE:.0%} Wilson score
interval of the share of good outcomes. An agent with a coach tries other formats in {EXPLORE:.0%} of its turns, until
the lower bound of the best format exceeds the upper bounds of the others, or until there are {ENOUGH} outcomes."""


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


IMPORT_EXAMPLES = """Examples:

toolwire coach import evaluation

toolwire coach import evaluation/report.json --model 1.5b

An outcome is a question of the evaluation that expects calls. It is good by the same rule as an outcome of a recorded
run. Answers under a grammar do not count. A later report on the same suite replaces what an earlier one said about the
same model and format."""


@app.command("import", epilog=IMPORT_EXAMPLES)
def import_report(
    report: Annotated[Path, typer.Argument(help="A report of `toolwire eval` as JSON, or the directory with it.")],
    model: Annotated[str, typer.Option(help="Import only the outcomes of this model.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per model and format.")] = False,
) -> None:
    """Let the coach learn from an evaluation."""
    from toolwire.evaluation.stored_report import read_report
    from toolwire.telemetry.imported_evidence import import_evidence

    stored = read_report(report)
    evidence = {name: tallies for name, tallies in stored.evidence().items() if not model or name == model}
    if not evidence:
        raise CliError(f"{report} has no outcome" + (f" of {model}" if model else "") + " without a grammar", status=1)
    archive = standard_archive()
    import_evidence(archive.path, f"evaluation of {stored.suite}", evidence)
    for name, tallies in evidence.items():
        for tally in tallies:
            if json:
                emit({"model": name, "format": tally.format, "tried": tally.tried, "good": tally.good})
            else:
                outcomes = counted(tally.tried, "outcome")
                console().print(styled(f"{name} in {tally.format}: {outcomes}, {tally.good} good"))


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
