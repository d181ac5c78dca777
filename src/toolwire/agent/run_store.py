"""Recorded runs: which there are, what they have come to, and their records.

Everything is kept by DBOS, in one SQLite file of the user's or in PostgreSQL: a run is a workflow, a record is a step.
Nothing here runs an agent; `durable` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, Self

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, WorkflowStatus, error

from toolwire.agent.codec import from_json, loads
from toolwire.agent.journal import MemoryJournal, recorded_events
from toolwire.agent.process_locks import FileLiveProcesses, LiveProcesses, PostgresLiveProcesses
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.errors import JournalError
from toolwire.messages import Message
from toolwire.runtime.sqlite import open_database
from toolwire.runtime.state_dir import state_folder
from toolwire.text.escape import replace_surrogates
from toolwire.text.suggest import closest, did_you_mean

APPLICATION: Final = "toolwire"
WORKFLOW: Final = "toolwire.run"
SCHEMA: Final = "toolwire"
"""In PostgreSQL, so that a program's own DBOS workflows may share the database."""
END: Final = "run/end"
"""The record of how a run ended."""
HERE: Final = "toolwire.at."
"""Begins the name of a queue that one process alone takes from; its own name follows."""
LAST: Final = "last"
SHOWN: Final = 200
"""Characters of a task that a list holds."""

State = Literal["waiting", "running", "interrupted", "stopped", "ended"]
"""Interrupted: its process died. Stopped: somebody did, or an error. Both can be resumed."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run was asked for.

    Attributes:
        agent: the name of the agent.
        task: what the user asked.
        history: the conversation before it.
        session: what the session was, as `SessionRecord.changes` tells it.
        configuration: what the agent was; see `durable.configuration`.
    """

    agent: str
    task: str
    history: tuple[Message, ...] = ()
    session: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run in a list.

    Attributes:
        id: its name.
        state: where it stands.
        agent: the name of its agent.
        task: the beginning of what the user asked.
        began: when it was asked for.
        changed: when it was recorded last that something begins or ends.
        reason: why it ended; or, of one that an error stopped, that error.
        owner: the process that has it, or had it last.
        rounds, calls: how many there were, of a run that has ended.
    """

    id: str
    state: State
    agent: str
    task: str
    began: datetime
    changed: datetime
    reason: str = ""
    owner: str = ""
    rounds: int = 0
    calls: int = 0


def database_url(database: str = "") -> str:
    """The address of a database: as it is given; of a path to an SQLite file; of the user's own file for "".

    Raises:
        JournalError: the address is none, or of some other database.
    """
    if not database:
        database = str(state_folder() / "runs.sqlite3")
    if "://" not in database:
        return f"sqlite:///{Path(database).expanduser().absolute()}"
    kind = database.partition(":")[0].partition("+")[0]
    if kind not in ("sqlite", "postgresql", "postgres"):
        raise JournalError(f"runs are kept in SQLite or PostgreSQL, not in {kind}")
    url = database.replace("postgres://", "postgresql://", 1)
    try:
        sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError) as failure:
        raise JournalError(f"this is no address of a database: {failure}") from failure
    return url


def sqlite_file(database: str = "") -> Path | None:
    """The file of a database; None if it is none of SQLite.

    Raises:
        JournalError: see `database_url`.
    """
    url = sqlalchemy.make_url(database_url(database))
    return Path(url.database or "") if url.drivername.startswith("sqlite") else None


class RunStore:
    """The runs of one database; open until `close`.

    Args:
        database: see `database_url`.
        make: make the database where it is missing, and bring it up to date.

    Raises:
        JournalError: it cannot be used, or is not there yet.
        StateError: the file cannot be used.
    """

    def __init__(self, database: str = "", *, make: bool = False) -> None:
        self.url = database_url(database)
        self.lives = self._prepared(make)
        try:
            if make:
                DBOS.migrate(self.url, schema=SCHEMA)
            self.client = DBOSClient(
                system_database_url=self.url,
                dbos_system_schema=SCHEMA,
                serializer=DBOSPortableJSONSerializer(),
                application_name=APPLICATION,
                retry_connection_errors=False,
            )
        except (error.DBOSException, sqlalchemy.exc.SQLAlchemyError) as failure:
            raise JournalError(f"the database of the runs cannot be used: {failure}") from failure

    def _prepared(self, make: bool) -> LiveProcesses:
        path = sqlite_file(self.url)
        if path is None:
            plain = sqlalchemy.make_url(self.url).set(drivername="postgresql")
            return PostgresLiveProcesses(plain.render_as_string(hide_password=False))
        open_database(path, (), 1, make=make).close()  # the user's alone, and in WAL mode
        return FileLiveProcesses(path.with_name(f"{path.name}.lives"))

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self.client.destroy()

    def only(self) -> AbstractContextManager[None]:
        """See `LiveProcesses.only`."""
        return self.lives.only()

    # -- reading -------------------------------------------------------------------------------------------------

    def all(self, *, limit: int | None = None, ids: Sequence[str] | None = None) -> list[RunInfo]:
        """The runs, the newest first.

        Raises:
            JournalError: the database cannot be used.
        """
        statuses = self.statuses(limit=limit, ids=ids)
        living = self.lives.living(set(map(owner_of, statuses)) - {""})
        return [_info(status, owner_of(status) in living) for status in statuses]

    def statuses(
        self, *, limit: int | None = None, ids: Sequence[str] | None = None, **more: Any
    ) -> list[WorkflowStatus]:
        """The runs as DBOS knows them, the newest first.

        Raises:
            JournalError: the database cannot be used.
        """
        filters: dict[str, Any] = {"limit": limit, "workflow_ids": None if ids is None else list(ids)}
        filters |= {"load_input": False, **more}
        try:
            statuses = self.client.list_workflows(name=WORKFLOW, sort_desc=True, **filters)
        except (error.DBOSException, sqlalchemy.exc.SQLAlchemyError) as failure:
            raise JournalError(f"the runs cannot be read: {failure}") from failure
        return statuses

    def info(self, run_id: str, *, look: bool = True) -> RunInfo:
        """A run as a list shows it.

        Args:
            run_id: its name.
            look: whether its process lives; without, it counts as living.

        Raises:
            JournalError: there is no such run; the message names those that are called alike.
        """
        if not look:
            return _info(self.status(run_id), True)
        infos = self.all(ids=[run_id])
        return infos[0] if infos else _info(self.status(run_id), False)

    def find(self, name: str) -> str:
        """The run that a name, the beginning of one, or `last` means.

        Raises:
            JournalError: none, or several.
        """
        if self.statuses(ids=[name], load_output=False):
            return name
        filters = {"limit": 1} if name == LAST else {"limit": 10, "workflow_id_prefix": name}
        matches = [status.workflow_id for status in self.statuses(load_output=False, **filters)]
        if len(matches) > 1:
            raise JournalError(f"several runs begin with {name!r}: {', '.join(matches[:3])} ...")
        if not matches and name == LAST:
            raise JournalError("there are no runs")
        return matches[0] if matches else self.status(name).workflow_id

    def status(self, run_id: str, **more: Any) -> WorkflowStatus:
        """A run as DBOS knows it.

        Raises:
            JournalError: there is no such run; the message names those that are called alike.
        """
        statuses = self.statuses(ids=[run_id], **more)
        if statuses:
            return statuses[0]
        near = closest(run_id, [status.workflow_id for status in self.statuses(limit=1000)], limit=3, similarity=0.6)
        raise JournalError(f"there is no run {run_id!r}{did_you_mean(near)}")

    def order(self, run_id: str) -> RunRequest:
        """What a run was asked for.

        Raises:
            JournalError: there is no such run, or its record cannot be read.
        """
        recorded_input = self.status(run_id, load_input=True, load_output=False).input
        if not recorded_input or not recorded_input["args"]:
            raise JournalError(f"what the run {run_id!r} was asked for cannot be read")
        return from_json(RunRequest, recorded_input["args"][0])

    def records(self, run_id: str) -> tuple[dict[str, str], int]:
        """The records of a run by name, and the number of the last; those of calls' own runs included.

        Raises:
            JournalError: the database cannot be used.
        """
        growing = RunTail(self, run_id)
        growing.load()
        return growing.records, growing.last

    def journal(self, run_id: str) -> MemoryJournal:
        """The records of a run, to be read."""
        return MemoryJournal(self.records(run_id)[0])

    def end(self, run_id: str) -> RunEnded | None:
        """How a run ended, if it has."""
        text = self.records(run_id)[0].get(END)
        return None if text is None else from_json(RunEnded, text)

    # -- changing ------------------------------------------------------------------------------------------------

    def hand_over(self, run_id: str, queue: str, *, me: str, deaths: int | None = None) -> bool:
        """Put a run that no living process has into a queue, from which one will take it.

        Args:
            run_id: the run.
            queue: the name of the queue.
            me: the process that does it; it may have the run itself.
            deaths: how many processes may have died with it, but for those that left it; None: somebody resumes it,
                and they are counted anew.

        Returns:
            Whether there is nothing to do, since the run has ended.

        Raises:
            JournalError: another process has it, it waits for a worker, or there is none of this name.
        """
        with self.only():
            status = self.status(run_id)
            if status.status == "SUCCESS":
                return True
            if status.status == "ERROR":
                raise JournalError(f"the run {run_id!r} cannot be gone on with: {status.error}")
            owner = owner_of(status)
            if status.status == "ENQUEUED" and not owner:
                raise JournalError(f"the run {run_id!r} waits for a worker")
            if owner and owner != me and self.lives.living([owner]):
                raise JournalError(f"the run {run_id!r} is with another process: {owner}")
            noted = status.attributes or {}
            died = int(noted.get("died", 0)) + (noted.get("left") != owner)
            if deaths is not None and died > deaths:
                self.put_down(run_id, f"{died} processes died with it")
                return False
            new = {"died": 0, "error": ""} if deaths is None else {"died": died}
            self.client.update_workflow_attributes(run_id, new, merge=True)
            self.client.resume_workflow(run_id, queue_name=queue)
        return False

    def left(self, run_ids: Iterable[str], me: str) -> None:
        """Note that a process ends of its own will while it has these runs: it does not die with them."""
        for run_id in run_ids:
            self.client.update_workflow_attributes(run_id, {"left": me}, merge=True)

    def put_down(self, run_id: str, why: str = "") -> None:
        """Stop a run that has not ended: no worker takes it, and no process writes to it any more."""
        if why:
            self.client.update_workflow_attributes(run_id, {"error": _safe(why[:SHOWN])}, merge=True)
        self.client.cancel_workflow(run_id)

    def delete(self, run_id: str) -> None:
        """Forget a run and its records.

        Raises:
            JournalError: a living process has it, or there is none of this name.
        """
        with self.only():
            owner = owner_of(self.status(run_id, load_output=False))
            if owner and self.lives.living([owner]):
                raise JournalError(f"the run {run_id!r} is with a process: {owner}")
            self.client.delete_workflow(run_id)

    def put_away(self) -> None:
        """Remove the queues of processes that died."""
        with self.only():
            names = [queue.name for queue in self.client.list_queues() if queue.name.startswith(HERE)]
            owners = {name.removeprefix(HERE) for name in names}
            for owner in owners - self.lives.living(owners):
                self.client.delete_queue(HERE + owner)


class RunTail:
    """The records of a run that goes on: each is loaded once.

    Attributes:
        records: by name.
        last: the number of the last.
    """

    def __init__(self, store: RunStore, run_id: str) -> None:
        self.records: dict[str, str] = {}
        self.last = 0
        self._store = store
        self._run_id = run_id
        self._told = 0  # so many records
        self._whole = 0  # so many of the first are known, and nothing can come between them any more

    def load(self) -> bool:
        """Load what there is now, and say whether anything is new.

        Raises:
            JournalError: the database cannot be used.
        """
        try:
            steps = self._store.client.list_workflow_steps(self._run_id, offset=self._whole)
        except (error.DBOSException, sqlalchemy.exc.SQLAlchemyError) as failure:
            raise JournalError(f"the records of {self._run_id!r} cannot be read: {failure}") from failure
        new = False
        for step in steps:  # by their numbers, which begin with 1
            name, text = step["function_name"], step["output"]
            self.last = max(self.last, step["function_id"])
            if step["function_id"] == self._whole + 1:
                self._whole += 1
            if isinstance(text, str) and self.records.get(name) != text:
                self.records[name] = text
                new = True
        return new

    def news(self) -> Iterator[AgentEvent]:
        """The events of the records that came since this was asked last; each record is read once or twice.

        Raises:
            JournalError: they cannot be read.
        """
        names = list(self.records)[self._told :]  # what is written again stays where it was
        self._told += len(names)
        for name in names:
            kind, _, place = name.partition(".")
            start = f"begun.{place}" if kind == "done" else ""
            with_it = {start: self.records[start]} if start in self.records else {}
            yield from islice(recorded_events(MemoryJournal({**with_it, name: self.records[name]})), len(with_it), None)


def owner_of(status: WorkflowStatus) -> str:
    """The process that a run is with; "" if it is with none."""
    if status.status == "PENDING":
        return status.executor_id or ""
    if status.status == "ENQUEUED" and (status.queue_name or "").startswith(HERE):
        return (status.queue_name or "").removeprefix(HERE)
    return ""


def _state(status: WorkflowStatus, alive: bool) -> State:
    if status.status == "SUCCESS":
        return "ended"
    if status.status in ("PENDING", "ENQUEUED", "DELAYED"):
        if not owner_of(status):
            return "waiting"
        return "running" if alive else "interrupted"
    return "stopped"


def _info(status: WorkflowStatus, alive: bool) -> RunInfo:
    noted = status.attributes or {}
    state = _state(status, alive)
    end: dict[str, Any] = {}
    if state == "ended" and isinstance(status.output, str):
        end = loads(status.output)
    return RunInfo(
        status.workflow_id,
        state,
        str(noted.get("agent", "")),
        str(noted.get("task", "")),
        _moment(status.created_at),
        _moment(status.updated_at),
        str(end.get("reason", "") or (noted.get("error", "") if state == "stopped" else "")),
        owner_of(status) or (status.executor_id or ""),
        int(end.get("rounds", 0)),
        int(end.get("calls", 0)),
    )


def _moment(milliseconds: int | None) -> datetime:
    return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC)


def attributes(order: RunRequest, **more: str) -> dict[str, Any]:
    """What a list shows of a run; text that any database takes."""
    texts = {"agent": order.agent, "task": order.task, **more}
    return {key: _safe(text[:SHOWN]) for key, text in texts.items()}


def _safe(text: str) -> str:
    return replace_surrogates(text.replace("\0", "\ufffd"))
