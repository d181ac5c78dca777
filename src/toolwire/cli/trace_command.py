"""`toolwire trace`: show one run by rounds: the model's text, the parsed events, the calls and their results."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from toolwire.cli.console import CliError, console, emit, print_rows, safe, styled
from toolwire.cli.stats_command import format_counts, open_archive
from toolwire.telemetry.archive import LAST, Recorded, Row
from toolwire.telemetry.records import NATIVE
from toolwire.telemetry.request_rows import TOOLS
from toolwire.text.counted import counted

EXAMPLES = """Examples:

toolwire trace

toolwire trace --list

toolwire trace 2737f1 --json

toolwire trace last --raw 2 | toolwire parse --format hermes

Text that looks like a secret is not recorded, and long texts are truncated. TOOLWIRE_RECORD=off records nothing."""

WIDE = 100
"""Minimum width of a terminal, in columns, to show the text and its events side by side."""
DEFAULT_LIMIT = 20


def trace(
    run: Annotated[str, typer.Argument(help="The id of a run or its beginning; last: the newest run.")] = LAST,
    list_runs: Annotated[bool, typer.Option("--list", "-l", help="List the newest runs.")] = False,
    last: Annotated[
        int, typer.Option("--last", "-n", min=1, help="Maximum number of runs that --list shows.")
    ] = DEFAULT_LIMIT,
    raw: Annotated[int, typer.Option(min=0, help="Print only the model's text of this round.")] = 0,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object for the run, one for each message of its requests and each answer."
        ),
    ] = False,
) -> None:
    """Show a run: the text of the model, the calls parsed from it, their approvals and their results."""
    archive = open_archive()
    if list_runs:
        _list(archive.runs(last), json=json)
        if not json and (lost := archive.lost()):
            console().print(styled(_lost(lost, "in all runs"), "yellow"))
        return
    recorded_run = archive.run(run)
    if raw:
        _print_raw(recorded_run, raw)
    elif json:
        emit(
            {
                "record": "run",
                **recorded_run.run,
                "children": list(recorded_run.children),
                "namesakes": list(recorded_run.namesakes),
                "lost": recorded_run.lost,
            }
        )
        for message in recorded_run.messages.values():
            emit({"record": "message", **message})
        for turn in recorded_run.turns:
            emit({"record": "turn", **turn})
    else:
        _show(recorded_run)


# -- a list ----------------------------------------------------------------------------------------------------------


def _list(runs: list[Row], *, json: bool) -> None:
    if json:
        for run in runs:
            emit({"record": "run", **run})
        return
    rows = [
        (
            styled(run["id"], "bold"),
            Text(_local_time(run["started_at"])),
            styled(run["model"]),
            styled(run["format"]),
            _outcome_text(run),
            Text(str(run["turns"])),
            Text("" if run["seconds"] is None else f"{run['seconds']:.1f}"),
            styled(" ".join(run["task"].split())[:200]),
        )
        for run in runs
    ]
    print_rows(("run", "started", "model", "format", "ended", "rounds", "s", "task"), rows, right=("rounds", "s"))


def _outcome_text(run: Row) -> Text:
    if run["reason"] is None:
        return styled("not ended", "yellow")
    return styled(run["reason"], "green" if run["good"] else "red")


def _local_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


# -- a run -----------------------------------------------------------------------------------------------------------


def _print_raw(recorded_run: Recorded, round: int) -> None:
    turns = [turn for turn in recorded_run.turns if turn["round"] == round]
    if not turns:
        raise CliError(f"the run has no round {round}; it has {len({turn['round'] for turn in recorded_run.turns})}")
    if sys.stdout.isatty():
        console().print(styled(turns[-1]["raw"]))
    else:
        sys.stdout.write(turns[-1]["raw"])


def _show(recorded_run: Recorded) -> None:
    screen = console()
    run = recorded_run.run
    screen.print(styled(f"run {run['id']}", "bold"), styled(f"  {_local_time(run['started_at'])}", "dim"), sep="")
    about = f"{run['agent']}: {run['model'] or 'a model'}"
    about += f" through {run['api']}" if run["api"] else ""
    screen.print(styled(f"{about}, {_requested_format(run['format'])}"))
    if run["task"]:
        screen.print(styled("task: ", "dim"), styled(run["task"]), sep="")
    if recorded_run.namesakes:
        namesakes = [run_id for run_id in recorded_run.namesakes if run_id != run["id"]]
        namesakes = [f"{run_id}#1" if run_id == recorded_run.namesakes[0] else run_id for run_id in namesakes]
        screen.print(styled(f"other runs of this name: {', '.join(namesakes)}", "yellow"))
    reached = 0
    shown: set[int] = set()
    for turn in recorded_run.turns:
        if turn["round"] < reached or (turn["round"] == reached and turn["attempt"] == 1):
            screen.print(styled(f"\nrestarted at {_local_time(turn['started_at'])}", "yellow"))
        reached = turn["round"]
        _round(screen, turn, [recorded_run.messages.get(number) for number in turn["request"] if number not in shown])
        shown.update(turn["request"])
    screen.print()
    screen.print(
        _outcome_text(run), styled(_totals(run)), styled(f": {run['detail']}" if run["detail"] else ""), sep=""
    )
    if recorded_run.lost:
        screen.print(styled(_lost(recorded_run.lost, "of this run"), "yellow"))
    if recorded_run.children:
        screen.print(styled(f"runs inside it: {', '.join(recorded_run.children)}", "dim"))


def _lost(records: int, where: str) -> str:
    return f"{records} records {where} were dropped: too many at once, or the file could not be written"


def _totals(run: Row) -> str:
    if run["reason"] is None:
        return ""
    tokens = f", {run['input_tokens']} + {run['output_tokens']} tokens" if run["output_tokens"] else ""
    money = f", {run['money']:.4g} money" if run["money"] else ""
    spent = f"{counted(run['rounds'], 'round')}, {counted(run['calls'], 'call')}"
    return f" after {spent}{tokens}{money}, {run['seconds']:.2f} s"


def _requested_format(format: str) -> str:
    return "in fields of its API" if format == NATIVE else f"in {format}"


def _round(screen: Console, turn: Row, new: Sequence[Row | None]) -> None:
    """Show a turn, with those messages of its request that no request before had; None for a deleted one."""
    again = f", attempt {turn['attempt']}" if turn["attempt"] > 1 else ""
    screen.print()
    screen.print(Rule(styled(f"round {turn['round']}{again}", "bold"), align="left", style="dim"), soft_wrap=False)
    screen.print(styled(_turn_facts(turn), "dim"))
    if turn["choice"]:
        screen.print(styled(f"format: {turn['choice']}", "dim"))
    if new:
        _section(
            screen,
            f"new in the request of {counted(len(turn['request']), 'part')}",
            Text("\n").join(map(_message, new)),
        )
    absent = "(no answer)" if turn["error"] else "(not recorded)"
    wrote, read = styled(turn["raw"] or absent, "" if turn["raw"] else "dim"), _events(turn["events"])
    if screen.is_terminal and screen.width >= WIDE:
        table = Table(box=None, pad_edge=False, expand=True, show_header=True, header_style="dim")
        table.add_column("the model wrote", ratio=1, overflow="fold")
        table.add_column("it was read as", ratio=1, overflow="fold")
        table.add_row(wrote, read)
        screen.print(table, soft_wrap=False)
    else:
        _section(screen, "the model wrote", wrote)
        _section(screen, "it was read as", read)
    if turn["calls"]:
        _section(screen, "calls", Text("\n").join(_call(call) for call in turn["calls"]))
    if turn["failed"]:
        _section(screen, "could not be read", styled(turn["failed"], "red"))
    if turn["correction"]:
        _section(screen, "correction", styled(turn["correction"], "yellow"))
    if turn["error"]:
        _section(screen, "error", styled(turn["error"], "red"))


def _message(message: Row | None) -> Text:
    if message is None:
        return styled("(not recorded any more)", "dim")
    text = "\n".join(line.rstrip() for line in message["text"].splitlines())
    if message["role"] == TOOLS:
        text = ", ".join(line.partition(" ")[0] for line in text.splitlines())
    return Text.assemble((f"{message['role']} ", "cyan"), safe(text))


def _section(screen: Console, title: str, inside: Text) -> None:
    screen.print(styled(title, "dim"))
    if screen.is_terminal:
        screen.print(Padding(inside, (0, 0, 0, 2), expand=False), soft_wrap=False)
        return
    for line in inside.split("\n", allow_blank=True):
        screen.print("  " if line.plain else "", line, sep="")


def _turn_facts(turn: Row) -> str:
    facts = [
        f"{turn['seconds']:.2f} s"
        + ("" if turn["time_to_first_event"] is None else f", first after {turn['time_to_first_event']:.2f} s")
    ]
    if turn["input_tokens"] or turn["output_tokens"]:
        facts.append(f"{turn['input_tokens']} + {turn['output_tokens']} tokens")
    formats = ", ".join(turn["formats"]) or "no call"
    requested = "fields of its API" if turn["format"] == NATIVE else turn["format"]
    facts.append(f"asked for {requested}, found {formats}")
    if turn["repairs"]:
        facts.append(f"repairs: {format_counts(turn['repairs'])}")
    if turn["problems"]:
        facts.append(f"problems: {format_counts(turn['problems'])}")
    return "; ".join((*facts, f"ended by {turn['finish']}"))


def _events(events: list[list[Any]]) -> Text:
    rendered = Text()
    for at, (kind, text, count) in enumerate(events):
        style = {"problem": "red", "call start": "cyan", "call end": "cyan"}.get(kind, "dim")
        times = f" ({count} pieces)" if count > 1 else ""
        rendered.append("\n" if at else "").append(f"{kind}{times} ", style).append(safe(" ".join(text.split())))
    return rendered


def _call(call: Row) -> Text:
    text = Text()
    text.append(safe(call["tool"]), "bold").append(f" {safe(call['arguments'])}\n")
    style = "green" if call["ok"] else "red" if call["issue"] else "yellow"
    text.append("  " + safe(call["decision"]), style)
    if call["approval_seconds"] is not None:
        text.append(f", asked for {call['approval_seconds']:.1f} s", "dim")
    if call["reason"]:
        text.append(f": {safe(call['reason'])}", "dim")
    if call["repairs"]:
        text.append(f", repaired: {', '.join(call['repairs'])}", "dim")
    text.append(f" ({call['seconds']:.3f} s)\n", "dim")
    result = call["result"] if call["ok"] else call["error"]
    return text.append("  -> ", "dim").append(safe(result) or "(nothing)", "" if call["ok"] else "red")
