"""The store of recorded runs: their list, their state and their records.

DBOS stores everything, in one SQLite file of the user's or in PostgreSQL: a run is a workflow, and a record is a step.
Nothing here runs an agent; `durable` does.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
from toolwire.agent.run_request import RunRequest
from toolwire.agent.stored_names import name_fault
from toolwire.errors import JournalError
from toolwire.runtime.sqlite import open_database
from toolwire.runtime.state_dir import state_folder
from toolwire.text.escape import replace_surrogates
from toolwire.text.suggest import closest, did_you_mean

APPLICATION: Final = "toolwire"
WORKFLOW: Final = "toolwire.run"
SCHEMA: Final = "toolwire"
"""The schema in PostgreSQL, so that a program's own DBOS workflows can share the database."""
END: Final = "run/end"
"""Name of the record of a run's end."""
HERE: Final = "toolwire.at."
"""Prefix of a queue from which one process alone takes runs; the name of the process follows."""
LAST: Final = "last"
MAX_SHOWN: Final = 200
"""Maximum length of a task in a list, in characters."""

State = Literal["waiting", "running", "interrupted", "stopped", "ended"]
"""State of a run. It is `interrupted` if its process died, and `stopped` by a user or an error; both can be resumed."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run in a list.

    Attributes:
        id: name of the run.
        state: its state.
        agent: name of its agent.
        task: beginning of the user's request.
        started_at: time of the request.
        updated_at: time of the last change of the state.
        reason: why the run ended, or the error that stopped it.
        owner: the process that executes it, or did so last.
        rounds, calls: numbers of both, for a run that has ended.
    """

    id: str
    state: State
    agent: str
    task: str
    started_at: datetime
    updated_at: datetime
    reason: str = ""
    owner: str = ""
    rounds: int = 0
    calls: int = 0


def database_url(database: str = "") -> str:
    """Return the URL of a database that is named by a URL, by the path of an SQLite file, or by "" for the user's file.

    Raises:
        JournalError: the URL is malformed, or that of another kind of database.
    """
    if not database:
        database = str(state_folder() / "runs.sqlite3")
    if "://" not in database:
        return f"sqlite:///{Path(database).expanduser().absolute()}"
    kind = database.partition(":")[0].partition("+")[0]
    if kind not in ("sqlite", "postgresql", "postgres"):
        raise JournalError(f"runs are stored in SQLite or PostgreSQL, not in {kind}")
    url = database.replace("postgres://", "postgresql://", 1)
    try:
        sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError) as failure:
        raise JournalError(f"this is not the URL of a database: {failure}") from failure
    return url


def sqlite_file(database: str = "") -> Path | None:
    """Return the file of an SQLite database; None for another database.

    Raises:
        JournalError: see `database_url`.
    """
    url = sqlalchemy.make_url(database_url(database))
    return Path(url.database or "") if url.drivername.startswith("sqlite") else None


class RunStore:
    """The runs of one database; open until `close`.

    Args:
        database: see `database_url`.
        make: whether to create the database if it is missing, and to bring its tables up to date.

    Attributes:
        processes: locks of the running processes that share the database.

    Raises:
        JournalError: the database cannot be used, or does not exist.
        StateError: the file cannot be used.
    """

    def __init__(self, database: str = "", *, make: bool = False) -> None:
        self.url = database_url(database)
        self.processes = self._open_locks(make)
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

    def _open_locks(self, make: bool) -> LiveProcesses:
        path = sqlite_file(self.url)
        if path is None:
            plain = sqlalchemy.make_url(self.url).set(drivername="postgresql")
            return PostgresLiveProcesses(plain.render_as_string(hide_password=False))
        open_database(path, (), 1, make=make).close()  # creates it for this user alone, in WAL mode
        return FileLiveProcesses(path.with_name(f"{path.name}.locks"))

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Close the connections to the database."""
        self.client.destroy()

    # -- reading -------------------------------------------------------------------------------------------------

    def all(self, *, limit: int | None = None, ids: Sequence[str] | None = None) -> list[RunInfo]:
        """Return the runs, the newest first.

        Raises:
            JournalError: the database cannot be used.
        """
        statuses = self.statuses(limit=limit, ids=ids)
        running = self.processes.running(set(map(owner_of, statuses)) - {""})
        return [_info(status, owner_of(status) in running) for status in statuses]

    def statuses(
        self, *, limit: int | None = None, ids: Sequence[str] | None = None, **other: Any
    ) -> list[WorkflowStatus]:
        """Return the runs as DBOS lists them, the newest first; see `DBOSClient.list_workflows` for other filters.

        Raises:
            JournalError: the database cannot be used.
        """
        filters: dict[str, Any] = {"limit": limit, "workflow_ids": None if ids is None else list(ids)}
        filters |= {"load_input": False, **other}
        try:
            statuses = self.client.list_workflows(name=WORKFLOW, sort_desc=True, **filters)
        except (error.DBOSException, sqlalchemy.exc.SQLAlchemyError) as failure:
            raise JournalError(f"the runs cannot be read: {failure}") from failure
        return statuses

    def info(self, run_id: str, *, look: bool = True) -> RunInfo:
        """Return a run as a list shows it.

        Args:
            run_id: name of the run.
            look: whether to check that its process is running; if not, the process is taken for running.

        Raises:
            JournalError: there is no such run; the message suggests similar names.
        """
        if not look:
            return _info(self.status(run_id), True)
        infos = self.all(ids=[run_id])
        return infos[0] if infos else _info(self.status(run_id), False)

    def find(self, name: str) -> str:
        """Return the name of the run that is meant by a name, the beginning of one, or `last`.

        Raises:
            JournalError: there is no such run, or there are several.
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

    def status(self, run_id: str, **other: Any) -> WorkflowStatus:
        """Return a run as DBOS describes it.

        Raises:
            JournalError: there is no such run; the message suggests similar names.
        """
        statuses = self.statuses(ids=[run_id], **other)
        if statuses:
            return statuses[0]
        near = closest(run_id, [status.workflow_id for status in self.statuses(limit=1000)], limit=3, similarity=0.6)
        raise JournalError(f"there is no run {run_id!r}{did_you_mean(near)}")

    def request(self, run_id: str) -> RunRequest:
        """Return the request with which a run began.

        Raises:
            JournalError: there is no such run, or the request cannot be read.
        """
        recorded_input = self.status(run_id, load_input=True, load_output=False).input
        if not recorded_input or not recorded_input["args"]:
            raise JournalError(f"the request of the run {run_id!r} cannot be read")
        return from_json(RunRequest, recorded_input["args"][0])

    def records(self, run_id: str) -> tuple[dict[str, str], int]:
        """Return the records of a run by name, including those of nested runs, and the number of the last step.

        Raises:
            JournalError: the database cannot be used.
        """
        tail = RunTail(self, run_id)
        tail.load()
        return tail.records, tail.last

    def journal(self, run_id: str) -> MemoryJournal:
        """Return the records of a run as a journal, to be read."""
        return MemoryJournal(self.records(run_id)[0])

    def end(self, run_id: str) -> RunEnded | None:
        """Return the end of a run; None if it has not ended."""
        text = self.records(run_id)[0].get(END)
        return None if text is None else from_json(RunEnded, text)

    # -- changing ------------------------------------------------------------------------------------------------

    def hand_over(self, run_id: str, queue: str, *, me: str, deaths: int | None = None) -> bool:
        """Put a run that belongs to no running process into a queue, from which a process will take it.

        Args:
            run_id: name of the run.
            queue: name of the queue.
            me: name of this process, to which the run may belong.
            deaths: maximum number of processes that may have died with the run, not counting those that closed; None to
                resume it in any case and count anew.

        Returns:
            Whether the run has ended, so that there is nothing to do.

        Raises:
            JournalError: the run belongs to another process or waits for a worker, or there is no such run.
        """
        with self.processes.takeover():
            status = self.status(run_id)
            if status.status == "SUCCESS":
                return True
            if status.status == "ERROR":
                raise JournalError(f"the run {run_id!r} cannot be resumed: {status.error}")
            owner = owner_of(status)
            if status.status == "ENQUEUED" and not owner:
                raise JournalError(f"the run {run_id!r} waits for a worker")
            if owner and owner != me and self.processes.running([owner]):
                raise JournalError(f"the run {run_id!r} is with another process: {owner}")
            noted = status.attributes or {}
            # A process that closed has noted so for its runs; one that did not has died with them.
            died = int(noted.get("died", 0)) + (noted.get("left") != owner)
            if deaths is not None and died > deaths:
                self.suspend(run_id, f"{died} processes died with it")
                return False
            new = {"died": 0, "error": ""} if deaths is None else {"died": died}
            self.client.update_workflow_attributes(run_id, new, merge=True)
            self.client.resume_workflow(run_id, queue_name=queue)
        return False

    def mark_left(self, run_ids: Iterable[str], me: str) -> None:
        """Note that a process closes while these runs belong to it, so that it does not count as dead."""
        for run_id in run_ids:
            self.client.update_workflow_attributes(run_id, {"left": me}, merge=True)

    def suspend(self, run_id: str, reason: str = "") -> None:
        """Stop a run that has not ended: no worker takes it, and no process can write to it any more."""
        if reason:
            self.client.update_workflow_attributes(run_id, {"error": _safe(reason[:MAX_SHOWN])}, merge=True)
        self.client.cancel_workflow(run_id)

    def delete(self, run_id: str) -> None:
        """Delete a run and its records.

        Raises:
            JournalError: the run belongs to a running process, or there is no such run.
        """
        with self.processes.takeover():
            owner = owner_of(self.status(run_id, load_output=False))
            if owner and self.processes.running([owner]):
                raise JournalError(f"the run {run_id!r} is with a process: {owner}")
            self.client.delete_workflow(run_id)

    def delete_dead_queues(self) -> None:
        """Delete the queues of processes that died."""
        with self.processes.takeover():
            names = [queue.name for queue in self.client.list_queues() if queue.name.startswith(HERE)]
            owners = {name.removeprefix(HERE) for name in names}
            for owner in owners - self.processes.running(owners):
                self.client.delete_queue(HERE + owner)


class RunTail:
    """The records of a run that is running; each of them is loaded once.

    Attributes:
        records: records by name.
        last: number of the last step.
    """

    def __init__(self, store: RunStore, run_id: str) -> None:
        self.records: dict[str, str] = {}
        self.last = 0
        self._store = store
        self._run_id = run_id
        self._reported = 0  # number of records whose events were returned
        self._complete = 0  # number of first steps that are loaded without a gap

    def load(self) -> bool:
        """Load the records that exist now, and return whether any of them is new.

        Raises:
            JournalError: the database cannot be used.
        """
        try:
            steps = self._store.client.list_workflow_steps(self._run_id, offset=self._complete)
        except (error.DBOSException, sqlalchemy.exc.SQLAlchemyError) as failure:
            raise JournalError(f"the records of {self._run_id!r} cannot be read: {failure}") from failure
        new = False
        for step in steps:  # in the order of their numbers, from 1
            name, text = step["function_name"], step["output"]
            self.last = max(self.last, step["function_id"])
            if step["function_id"] == self._complete + 1:
                self._complete += 1
            if isinstance(text, str) and self.records.get(name) != text:
                self.records[name] = text
                new = True
        return new

    def new_events(self) -> Iterator[AgentEvent]:
        """Yield the events of the records that were loaded since the last call.

        Raises:
            JournalError: they cannot be read.
        """
        names = list(self.records)[self._reported :]  # a record that is written again keeps its place
        self._reported += len(names)
        for name in names:
            kind, _, place = name.partition(".")
            start = f"begun.{place}" if kind == "done" else ""
            # The event of an outcome depends on whether the call has a start, whose own event was yielded before.
            with_start = {start: self.records[start]} if start in self.records else {}
            yield from islice(
                recorded_events(MemoryJournal({**with_start, name: self.records[name]})), len(with_start), None
            )


def owner_of(status: WorkflowStatus) -> str:
    """Return the process to which a run belongs; "" if there is none."""
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


def attributes(request: RunRequest) -> dict[str, Any]:
    """Return the attributes that a list shows of a run, as text that every database accepts."""
    texts = {"agent": request.agent, "task": request.task}
    return {key: _safe(text[:MAX_SHOWN]) for key, text in texts.items()}


def _safe(text: str) -> str:
    return replace_surrogates(text.replace("\0", "\ufffd"))


def checked_name(run_id: str) -> str:
    """Return the name of a run, or a new one for "".

    Raises:
        JournalError: it is too long or not printable.
    """
    if run_id and (fault := name_fault("a run", run_id)):
        raise JournalError(fault)
    return run_id or f"run_{uuid.uuid4().hex[:12]}"
