"""`toolwire runs`: list, show, resume and delete recorded runs of agents."""

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
from rich.text import Text

from toolwire._surface import needs_extra
from toolwire.cli.console import CliError, call_line, console, emit, labelled, plain, print_rows, say, styled
from toolwire.cli.event_printer import EventPrinter, emit_event
from toolwire.events import ContentDelta
from toolwire.text.counted import counted
from toolwire.text.truncate import truncate

with needs_extra("A recorded run", "durable"):
    from toolwire.agent.agent import Agent
    from toolwire.agent.run_events import AgentEvent, CorrectionAdded, MemberEvent, RunEnded, ToolFinished, ToolStarted
    from toolwire.agent.team import AgentTeam

if TYPE_CHECKING:
    from toolwire.agent.run_store import RunInfo, RunStore

app = typer.Typer(no_args_is_help=True, help="List, show, resume and delete recorded runs of agents.")

LIST_EXAMPLES = """Examples:

toolwire runs list

toolwire runs list --state interrupted --json

toolwire runs list --database postgresql://me@server/agents

States: waiting (for a worker), running, interrupted (its process died), stopped (by a user or an error), ended."""

SHOW_EXAMPLES = """Examples:

toolwire runs show report-7

toolwire runs show last --json

Name a run by its id, by an unambiguous beginning of its id, or as `last`."""

RESUME_EXAMPLES = """Examples:

toolwire runs resume report-7 --agent my_program:agent

toolwire runs resume last --agent my_program:make_agent --json

The agent is defined in your program. --agent names the module, which may be a file in this directory, and the agent,
the team, or a function that returns one of them.

Exit status 1: the run ended without an answer, or cannot be resumed."""

DELETE_EXAMPLES = """Examples:

toolwire runs delete report-7 report-8

toolwire runs delete --older-than 30

This deletes all records of a run. A run that a live process works on is not deleted."""

LAST = "last"
DEFAULT_LIMIT = 20
MAX_RESULT = 2_000
"""Maximum length of a result that is shown, in characters."""
_STYLES = {"running": "cyan", "waiting": "cyan", "interrupted": "yellow", "stopped": "yellow", "ended": "green"}

Database = Annotated[
    str,
    typer.Option(
        help="A PostgreSQL URL or an SQLite file; by default, the user's own file.",
        envvar="TOOLWIRE_RUNS",
        show_default=False,
    ),
]
Run = Annotated[str, typer.Argument(help="The run's id, the beginning of its id, or `last`.")]


class RunState(StrEnum):
    """The states of a run."""

    WAITING = "waiting"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    ENDED = "ended"


@app.command("list", epilog=LIST_EXAMPLES)
def list_runs(
    database: Database = "",
    state: Annotated[RunState | None, typer.Option(help="List only runs in this state.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of runs, the newest first.")
    ] = DEFAULT_LIMIT,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")] = False,
) -> None:
    """List runs, the newest first."""
    try:
        with _store(database) as store:
            infos = store.all(limit=None if state else limit)
    except NoRunsError:
        infos = []
    infos = [info for info in infos if state is None or info.state == state][:limit]
    if json:
        for info in infos:
            emit(_info_json(info))
        return
    if not infos:
        say("No runs.")
        return
    rows = [
        (
            styled(info.id, "bold"),
            styled(_state_text(info), _STYLES[info.state]),
            Text(info.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
            styled(info.agent),
            styled(" ".join(info.task.split())),
        )
        for info in infos
    ]
    print_rows(("run", "state", "started", "agent", "task"), rows, fold=("run", "state", "started", "agent"))


@app.command(epilog=SHOW_EXAMPLES)
def show(
    run: Run = LAST,
    database: Database = "",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for the run, then one for each event.")
    ] = False,
) -> None:
    """Show a recorded run: the model's text, its calls and their results, and the end."""
    from toolwire.agent.journal import recorded_events

    with _store(database) as store:
        info = store.info(store.find(run))
        request, journal, end = store.request(info.id), store.journal(info.id), store.end(info.id)
    ends = [end] if end and info.state == "ended" else []
    if json:
        emit({"event": "run", **_info_json(info), "task": request.task})
        for event in (*recorded_events(journal), *ends):
            emit_event(event)
        return
    screen = console()
    screen.print(styled(info.id, "bold"), styled(f"  {_state_text(info)}", _STYLES[info.state]), sep="")
    started_at, updated_at = info.started_at.astimezone(), info.updated_at.astimezone()
    screen.print(
        styled(f"agent {info.agent}, started {started_at:%Y-%m-%d %H:%M:%S}, last change {updated_at:%H:%M:%S}", "dim")
    )
    if info.state in ("running", "interrupted"):
        screen.print(styled(f"process {info.owner}{'' if info.state == 'running' else ', which is gone'}", "dim"))
    printer = _Transcript()
    printer.row("task", request.task, "")
    for event in (*recorded_events(journal), *ends):
        printer.show(event)
    if info.state in ("interrupted", "stopped"):
        say(f"`toolwire runs resume {info.id} --agent MODULE:NAME` resumes it.")


@app.command(epilog=RESUME_EXAMPLES)
def resume(
    run: Run = LAST,
    agent: Annotated[str, typer.Option(help="MODULE:NAME of the agent in your program.")] = "",
    database: Database = "",
    changed: Annotated[
        bool, typer.Option("--changed", help="Resume even if the agent has changed, such as its tools or its model.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per event.")] = False,
) -> None:
    """Resume a run that was stopped or whose process died; recorded calls are shown again, but not run again."""
    if not agent:
        raise CliError("name the agent: --agent MODULE:NAME, where MODULE is your program")
    with _store(database) as store:
        run_id = store.find(run)
    try:
        end = asyncio.run(_resume_run(run_id, _import_agent(agent), database, changed=changed, json=json))
    except KeyboardInterrupt:
        say(f"Stopped; `toolwire runs resume {run_id} --agent {agent}` continues it.")
        raise
    if not end.good:
        raise typer.Exit(1)


@app.command(epilog=DELETE_EXAMPLES)
def delete(
    runs: Annotated[list[str] | None, typer.Argument(help="The ids of the runs.", show_default=False)] = None,
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", min=0, help="Delete all runs that ended more than this number of days ago."),
    ] = None,
    database: Database = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per deleted run.")] = False,
) -> None:
    """Delete runs and all their records."""
    if not runs and older_than is None:
        raise CliError("name the runs, or give --older-than DAYS")
    with _store(database) as store:
        names = list(runs or ())
        if older_than is not None:
            before = datetime.now(UTC) - timedelta(days=older_than)
            names += [info.id for info in store.all() if info.state == "ended" and info.updated_at < before]
        for name in dict.fromkeys(names):
            store.delete(name)
            if json:
                emit({"deleted": name})
            else:
                console().print(styled(name, "bold"), styled("  deleted", "dim"), sep="")


async def _resume_run(
    run_id: str, agent: Agent[Any] | AgentTeam[Any], database: str, *, changed: bool, json: bool
) -> RunEnded:
    from toolwire.agent.durable import DurableRuns

    registry = (agent.coordinator if isinstance(agent, AgentTeam) else agent).registry
    printer = EventPrinter(ends=lambda name: name in registry and registry.lookup(name).behavior.ends_turn)
    end: RunEnded | None = None
    async with (
        DurableRuns(agent, database=database) as runs,
        aclosing(runs.resume(run_id, changed=changed)) as events,
    ):
        async for event in events:
            if json:
                emit_event(event)
            else:
                printer.show(event)
            if isinstance(event, RunEnded):
                end = event
    printer.pause()
    assert end is not None
    return end


class NoRunsError(CliError):
    """The error that no run was ever recorded there."""


def _store(database: str) -> RunStore:
    with needs_extra("A recorded run", "durable"):
        from toolwire.agent.run_store import RunStore, sqlite_file
    path = sqlite_file(database)
    if path is not None and not path.exists():
        raise NoRunsError(f"no run has been recorded in {path} yet", status=1)
    return RunStore(database)


def _import_agent(name: str) -> Agent[Any] | AgentTeam[Any]:
    """Import MODULE:NAME, and return the agent or team that it is or returns."""
    module_name, _, attribute = name.partition(":")
    if not attribute:
        raise CliError(f"{name!r} is not of the form MODULE:NAME")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise CliError(f"the module {module_name!r} cannot be imported: {error}") from error
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise CliError(f"{module_name!r} has no {attribute!r}")
        value = getattr(value, part)
    if callable(value) and not isinstance(value, Agent | AgentTeam):
        value = value()
    if not isinstance(value, Agent | AgentTeam):
        raise CliError(f"{name!r} is a {type(value).__name__}, not an agent or a team")
    return value


# -- output ----------------------------------------------------------------------------------------------------------


def _info_json(info: RunInfo) -> dict[str, Any]:
    body: dict[str, Any] = plain(info)
    return {**body, "started_at": info.started_at.isoformat(), "updated_at": info.updated_at.isoformat()}


def _state_text(info: RunInfo) -> str:
    return f"{info.state}: {info.reason}" if info.reason else info.state


class _Transcript:
    """A printer for a recorded run, all on standard output."""

    def __init__(self) -> None:
        self._prose: list[str] = []
        self._screen = console()

    def row(self, label: str, text: str, style: str) -> None:
        """Print the pending prose, then a labelled text."""
        if self._prose:
            prose, self._prose = "".join(self._prose).strip(), []
            if prose:
                self._screen.print(labelled("text", prose))
        self._screen.print(labelled(label, text.rstrip("\n"), style))

    def show(self, event: AgentEvent) -> None:
        """Show one event, if it has anything to show."""
        match event:
            case ContentDelta(text):
                self._prose.append(text)
            case ToolStarted(call):
                self.row("call", call_line(call.name, call.arguments), "cyan")
            case ToolFinished(outcome):
                text = outcome.result.text
                good = outcome.result.success
                summary = f"{outcome.call.name}: {truncate(text, MAX_RESULT)}"
                self.row("result" if good else "error", summary, "green" if good else "red")
            case CorrectionAdded(text):
                self.row("hint", text, "yellow")
            case MemberEvent(member, ToolStarted() | ToolFinished() as inner):
                self.row("member", member, "magenta")
                self.show(inner)
            case RunEnded():
                detail = f": {event.detail}" if event.detail else ""
                counts = f"{counted(event.rounds, 'round')}, {counted(event.calls, 'call')}, {event.seconds:.1f} s"
                self.row("ended", f"{event.reason}{detail} ({counts})", "green" if event.good else "yellow")
