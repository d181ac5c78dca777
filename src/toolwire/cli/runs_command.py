"""`toolwire runs`: the recorded runs of agents: which there are, what happened in one, and going on with it."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from toolwire._surface import needs_extra
from toolwire.agent.agent import Agent
from toolwire.agent.run_events import AgentEvent, CorrectionAdded, MemberEvent, RunEnded, ToolFinished, ToolStarted
from toolwire.agent.team import AgentTeam
from toolwire.cli.console import CliError, call_line, console, emit, plain, say, styled
from toolwire.cli.event_printer import Telling, emit_event
from toolwire.events import ContentDelta
from toolwire.text.truncate import truncate

if TYPE_CHECKING:
    from toolwire.agent.run_store import RunInfo, RunStore

app = typer.Typer(no_args_is_help=True, help="List recorded runs of agents, show what happened in one, go on with one.")

LIST_EXAMPLES = """Examples:

toolwire runs list

toolwire runs list --state interrupted --json

toolwire runs list --database postgresql://me@server/agents

States: waiting for a worker, running, interrupted (its process died), stopped (somebody did, or an error), ended."""

SHOW_EXAMPLES = """Examples:

toolwire runs show report-7

toolwire runs show last --json

A run is named by its id, the beginning of it if no other begins so, or `last`."""

RESUME_EXAMPLES = """Examples:

toolwire runs resume report-7 --agent my_program:agent

toolwire runs resume last --agent my_program:make_agent --json

What the agent is stands in your program: --agent names the module, which may be a file in this directory, and in it the
agent, the team, or a function that makes it. Exit status 1: the run ended without an answer, or cannot be resumed."""

DELETE_EXAMPLES = """Examples:

toolwire runs delete report-7 report-8

toolwire runs delete --older-than 30

What a run recorded goes with it. A run that a process has is not deleted."""

LAST = "last"
LISTED = 20
SHOWN = 2_000
"""Characters of a result that are shown."""
_STYLES = {"running": "cyan", "waiting": "cyan", "interrupted": "yellow", "stopped": "yellow", "ended": "green"}

Database = Annotated[
    str,
    typer.Option(
        help="An address of PostgreSQL, or an SQLite file; else your own file.",
        envvar="TOOLWIRE_RUNS",
        show_default=False,
    ),
]
Run = Annotated[str, typer.Argument(help="The run's id, the beginning of it, or `last`.")]


class States(StrEnum):
    """Where a run may stand."""

    WAITING = "waiting"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    ENDED = "ended"


@app.command("list", epilog=LIST_EXAMPLES)
def list_runs(
    database: Database = "",
    state: Annotated[States | None, typer.Option(help="Only those that stand there.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, the newest first.")] = LISTED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per run.")] = False,
) -> None:
    """List runs, the newest first."""
    try:
        with _store(database) as store:
            found = store.all(limit=None if state else limit)
    except NoRuns:
        found = []
    found = [one for one in found if state is None or one.state == state][:limit]
    if json:
        for one in found:
            emit(_described(one))
        return
    screen, table = console(), Table(box=None, pad_edge=False)
    for name in ("run", "state", "began", "agent", "task"):
        table.add_column(name, no_wrap=True, overflow="ellipsis" if name == "task" else "fold")
    for one in found:
        row = (
            styled(one.id, "bold"),
            styled(_standing(one), _STYLES[one.state]),
            Text(one.began.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
            styled(one.agent),
            styled(" ".join(one.task.split())),
        )
        if screen.is_terminal:
            table.add_row(*row)
        else:
            sys.stdout.write("\t".join(cell.plain for cell in row) + "\n")
    if screen.is_terminal and found:
        screen.print(table, soft_wrap=False)
    elif not found:
        say("No runs.")


@app.command(epilog=SHOW_EXAMPLES)
def show(
    run: Run = LAST,
    database: Database = "",
    json: Annotated[bool, typer.Option("--json", help="One JSON object for the run, then one for each event.")] = False,
) -> None:
    """Show what happened in a run: what the model said, its calls, what became of them, how it ended."""
    from toolwire.agent.journal import recorded_events

    with _store(database) as store:
        info = store.info(store.find(run))
        request, journal, end = store.request(info.id), store.journal(info.id), store.end(info.id)
    ends = [end] if end and info.state == "ended" else []
    if json:
        emit({"event": "run", **_described(info), "task": request.task})
        for event in (*recorded_events(journal), *ends):
            emit_event(event)
        return
    screen = console()
    screen.print(styled(info.id, "bold"), styled(f"  {_standing(info)}", _STYLES[info.state]), sep="")
    began, changed = info.began.astimezone(), info.changed.astimezone()
    screen.print(styled(f"agent {info.agent}, began {began:%Y-%m-%d %H:%M:%S}, last change {changed:%H:%M:%S}", "dim"))
    if info.state in ("running", "interrupted"):
        screen.print(styled(f"process {info.owner}{'' if info.state == 'running' else ', which is gone'}", "dim"))
    telling = _Transcript()
    telling.row("task", request.task, "")
    for event in (*recorded_events(journal), *ends):
        telling.show(event)
    if info.state in ("interrupted", "stopped"):
        say(f"`toolwire runs resume {info.id} --agent MODULE:NAME` goes on with it.")


@app.command(epilog=RESUME_EXAMPLES)
def resume(
    run: Run = LAST,
    agent: Annotated[str, typer.Option(help="MODULE:NAME of the agent in your program.")] = "",
    database: Database = "",
    changed: Annotated[
        bool, typer.Option("--changed", help="Go on though the agent is not what it was: other tools, another model.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per event.")] = False,
) -> None:
    """Go on with a run whose process died, or that was stopped; what was done is told again, and not done again."""
    if not agent:
        raise CliError("say which agent: --agent MODULE:NAME, where MODULE is your program")
    with _store(database) as store:
        run_id = store.find(run)
    try:
        end = asyncio.run(_resumed(run_id, _loaded(agent), database, changed=changed, json=json))
    except KeyboardInterrupt:
        say(f"Stopped; `toolwire runs resume {run_id} --agent {agent}` goes on.")
        raise
    if not end.good:
        raise typer.Exit(1)


@app.command(epilog=DELETE_EXAMPLES)
def delete(
    runs: Annotated[list[str] | None, typer.Argument(help="The runs' ids.", show_default=False)] = None,
    older_than: Annotated[
        float | None, typer.Option("--older-than", min=0, help="All runs that ended so many days ago.")
    ] = None,
    database: Database = "",
    json: Annotated[bool, typer.Option("--json", help="One JSON object per run that is deleted.")] = False,
) -> None:
    """Delete runs and all that was recorded of them."""
    if not runs and older_than is None:
        raise CliError("say which runs, or --older-than how many days")
    with _store(database) as store:
        names = list(runs or ())
        if older_than is not None:
            before = datetime.now(UTC) - timedelta(days=older_than)
            names += [one.id for one in store.all() if one.state == "ended" and one.changed < before]
        for name in dict.fromkeys(names):
            store.delete(name)
            if json:
                emit({"deleted": name})
            else:
                console().print(styled(name, "bold"), styled("  deleted", "dim"), sep="")


async def _resumed(run_id: str, agent: Agent | AgentTeam, database: str, *, changed: bool, json: bool) -> RunEnded:
    from toolwire.agent.durable import DurableRuns

    registry = (agent.coordinator if isinstance(agent, AgentTeam) else agent).registry
    telling = Telling(ends=lambda name: name in registry and registry.lookup(name).behavior.ends_turn)
    end: RunEnded | None = None
    async with (
        DurableRuns(agent, database=database) as runs,
        aclosing(runs.resume(run_id, changed=changed)) as events,
    ):
        async for event in events:
            if json:
                emit_event(event)
            else:
                telling.show(event)
            if isinstance(event, RunEnded):
                end = event
    telling.aside()
    assert end is not None
    return end


class NoRuns(CliError):
    """No run was ever recorded there."""


def _store(database: str) -> RunStore:
    with needs_extra("A recorded run", "durable"):
        from toolwire.agent.run_store import RunStore, sqlite_file
    path = sqlite_file(database)
    if path is not None and not path.exists():
        raise NoRuns(f"no run has been recorded in {path} yet", status=1)
    return RunStore(database)


def _loaded(name: str) -> Agent | AgentTeam:
    """The agent that MODULE:NAME is, or that it makes."""
    module_name, _, attribute = name.partition(":")
    if not attribute:
        raise CliError(f"{name!r} names no agent: write MODULE:NAME")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise CliError(f"the module {module_name!r} cannot be imported: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise CliError(f"{module_name!r} has no {attribute!r}")
        found = getattr(found, part)
    if callable(found) and not isinstance(found, Agent | AgentTeam):
        found = found()
    if not isinstance(found, Agent | AgentTeam):
        raise CliError(f"{name!r} is a {type(found).__name__}, not an agent or a team")
    return found


# -- what is shown ---------------------------------------------------------------------------------------------------


def _described(info: RunInfo) -> dict[str, Any]:
    body: dict[str, Any] = plain(info)
    return {**body, "began": info.began.isoformat(), "changed": info.changed.isoformat()}


def _standing(info: RunInfo) -> str:
    return f"{info.state}: {info.reason}" if info.reason else info.state


class _Transcript:
    """Shows what was recorded of a run, all of it on standard output."""

    def __init__(self) -> None:
        self._prose: list[str] = []
        self._screen = console()

    def row(self, label: str, text: str, style: str) -> None:
        """A labelled text."""
        if self._prose:
            said, self._prose = "".join(self._prose).strip(), []
            if said:
                self._row("said", said, "")
        self._row(label, text, style)

    def _row(self, label: str, text: str, style: str) -> None:
        indented = text.rstrip("\n").replace("\n", "\n        ")
        self._screen.print(styled(f"{label:<8}", "bold"), styled(indented, style), sep="")

    def show(self, event: AgentEvent) -> None:
        """Show one event, if there is something to show of it."""
        match event:
            case ContentDelta(text):
                self._prose.append(text)
            case ToolStarted(call):
                self.row("call", call_line(call.name, call.arguments), "cyan")
            case ToolFinished(outcome):
                text = outcome.result.text
                good = outcome.result.success
                said = f"{outcome.call.name}: {truncate(text, SHOWN)}"
                self.row("result" if good else "error", said, "green" if good else "red")
            case CorrectionAdded(text):
                self.row("told", text, "yellow")
            case MemberEvent(member, ToolStarted() | ToolFinished() as inner):
                self.row("member", member, "magenta")
                self.show(inner)
            case RunEnded():
                detail = f": {event.detail}" if event.detail else ""
                counts = f"{event.rounds} rounds, {event.calls} calls, {event.seconds:.1f} s"
                self.row("ended", f"{event.reason}{detail} ({counts})", "green" if event.good else "yellow")
