"""`toolwire trace`: one run, round by round: what was written, how it was read, what was called and came back."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from toolwire.cli.console import CliError, console, emit, safe, styled
from toolwire.cli.stats_command import counts, recorded
from toolwire.telemetry.archive import LAST, Recorded, Row
from toolwire.telemetry.records import NATIVE

EXAMPLES = """Examples:

toolwire trace

toolwire trace --list

toolwire trace 2737f1 --json

toolwire trace last --raw 2 | toolwire parse --format hermes

What looks like a secret is not recorded, and long texts are cut. TOOLWIRE_TELEMETRY=off records nothing."""

WIDE = 100
"""Columns from which what was written and how it was read stand side by side."""
LISTED = 20


def trace(
    run: Annotated[str, typer.Argument(help="A run's id or its beginning; last: the newest.")] = LAST,
    list_runs: Annotated[bool, typer.Option("--list", "-l", help="List the newest runs.")] = False,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many --list shows.")] = LISTED,
    raw: Annotated[int, typer.Option(min=0, help="Print what the model wrote in this round, and nothing else.")] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object for the run, then one for each answer.")
    ] = False,
) -> None:
    """Show a run: the text of the model, the calls parsed from it, their approvals and their results."""
    archive = recorded()
    if list_runs:
        _list(archive.runs(last), json=json)
        return
    found = archive.run(run)
    if raw:
        _raw(found, raw)
    elif json:
        emit({"record": "run", **found.run, "children": list(found.children), "namesakes": list(found.namesakes)})
        for turn in found.turns:
            emit({"record": "turn", **turn})
    else:
        _show(found)


# -- a list ----------------------------------------------------------------------------------------------------------


def _list(runs: list[Row], *, json: bool) -> None:
    if json:
        for run in runs:
            emit({"record": "run", **run})
        return
    screen = console()
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)
    table.add_column("begun", no_wrap=True)
    for name in ("model", "format", "ended"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in ("rounds", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("task", no_wrap=True, overflow="ellipsis")
    for run in runs:
        row = (
            styled(run["id"], "bold"),
            Text(_when(run["begun"])),
            styled(run["model"]),
            styled(run["format"]),
            _ended(run),
            Text(str(run["turns"])),
            Text("" if run["seconds"] is None else f"{run['seconds']:.1f}"),
            styled(" ".join(run["task"].split())[:200]),
        )
        if screen.is_terminal:
            table.add_row(*row)
        else:
            sys.stdout.write("\t".join(cell.plain for cell in row) + "\n")
    if screen.is_terminal:
        screen.print(table, soft_wrap=False)


def _ended(run: Row) -> Text:
    if run["reason"] is None:
        return styled("not ended", "yellow")
    return styled(run["reason"], "green" if run["good"] else "red")


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


# -- a run -----------------------------------------------------------------------------------------------------------


def _raw(found: Recorded, round: int) -> None:
    turns = [turn for turn in found.turns if turn["round"] == round]
    if not turns:
        raise CliError(f"the run has no round {round}; it has {len({turn['round'] for turn in found.turns})}")
    if sys.stdout.isatty():
        console().print(styled(turns[-1]["raw"]))
    else:
        sys.stdout.write(turns[-1]["raw"])


def _show(found: Recorded) -> None:
    screen = console()
    run = found.run
    screen.print(styled(f"run {run['id']}", "bold"), styled(f"  {_when(run['begun'])}", "dim"), sep="")
    about = f"{run['agent']}: {run['model'] or 'a model'}"
    about += f" through {run['api']}" if run["api"] else ""
    screen.print(styled(f"{about}, {_asked(run['format'])}"))
    if run["task"]:
        screen.print(styled("task: ", "dim"), styled(run["task"]), sep="")
    if found.namesakes:
        others = [one for one in found.namesakes if one != run["id"]]
        others = [f"{one}#1" if one == found.namesakes[0] else one for one in others]
        screen.print(styled(f"other runs of this name: {', '.join(others)}", "yellow"))
    reached = 0
    for turn in found.turns:
        if turn["round"] < reached or (turn["round"] == reached and turn["attempt"] == 1):
            screen.print(styled(f"\nbegun again at {_when(turn['begun'])}", "yellow"))
        reached = turn["round"]
        _round(screen, turn)
    screen.print()
    screen.print(_ended(run), styled(_sum(run)), styled(f": {run['detail']}" if run["detail"] else ""), sep="")
    if found.children:
        screen.print(styled(f"runs inside it: {', '.join(found.children)}", "dim"))


def _sum(run: Row) -> str:
    if run["reason"] is None:
        return ""
    tokens = f", {run['input_tokens']} + {run['output_tokens']} tokens" if run["output_tokens"] else ""
    money = f", {run['money']:.4g} money" if run["money"] else ""
    return f" after {run['rounds']} rounds, {run['calls']} calls{tokens}{money}, {run['seconds']:.2f} s"


def _asked(format: str) -> str:
    return "in fields of its API" if format == NATIVE else f"in {format}"


def _round(screen: Console, turn: Row) -> None:
    again = f", attempt {turn['attempt']}" if turn["attempt"] > 1 else ""
    screen.print()
    screen.print(Rule(styled(f"round {turn['round']}{again}", "bold"), align="left", style="dim"), soft_wrap=False)
    screen.print(styled(_facts(turn), "dim"))
    if turn["choice"]:
        screen.print(styled(f"format: {turn['choice']}", "dim"))
    wrote, read = styled(turn["raw"] or "(not kept)", "" if turn["raw"] else "dim"), _events(turn["events"])
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
    if turn["told"]:
        _section(screen, "the model is told", styled(turn["told"], "yellow"))
    if turn["error"]:
        _section(screen, "error", styled(turn["error"], "red"))


def _section(screen: Console, title: str, inside: Text) -> None:
    screen.print(styled(title, "dim"))
    if screen.is_terminal:
        screen.print(Padding(inside, (0, 0, 0, 2), expand=False), soft_wrap=False)
        return
    for line in inside.split("\n", allow_blank=True):
        screen.print("  " if line.plain else "", line, sep="")


def _facts(turn: Row) -> str:
    facts = [f"{turn['seconds']:.2f} s" + ("" if turn["first"] is None else f", first after {turn['first']:.2f} s")]
    if turn["input_tokens"] or turn["output_tokens"]:
        facts.append(f"{turn['input_tokens']} + {turn['output_tokens']} tokens")
    found = ", ".join(turn["found"]) or "no call"
    facts.append(f"asked for {turn['format']}, found {found}")
    if turn["repairs"]:
        facts.append(f"repairs: {counts(turn['repairs'])}")
    if turn["problems"]:
        facts.append(f"problems: {counts(turn['problems'])}")
    return "; ".join((*facts, f"ended by {turn['finish']}"))


def _events(events: list[list[Any]]) -> Text:
    made = Text()
    for at, (kind, text, count) in enumerate(events):
        style = {"problem": "red", "call start": "cyan", "call end": "cyan"}.get(kind, "dim")
        times = f" ({count} pieces)" if count > 1 else ""
        made.append("\n" if at else "").append(f"{kind}{times} ", style).append(safe(" ".join(text.split())))
    return made


def _call(call: Row) -> Text:
    made = Text()
    made.append(safe(call["tool"]), "bold").append(f" {safe(call['arguments'])}\n")
    style = "green" if call["ok"] else "red" if call["issue"] else "yellow"
    made.append("  " + safe(call["decision"]), style)
    if call["asked"] is not None:
        made.append(f", asked for {call['asked']:.1f} s", "dim")
    if call["reason"]:
        made.append(f": {safe(call['reason'])}", "dim")
    if call["repairs"]:
        made.append(f", repaired: {', '.join(call['repairs'])}", "dim")
    made.append(f" ({call['seconds']:.3f} s)\n", "dim")
    result = call["result"] if call["ok"] else call["error"]
    return made.append("  -> ", "dim").append(safe(result) or "(nothing)", "" if call["ok"] else "red")
