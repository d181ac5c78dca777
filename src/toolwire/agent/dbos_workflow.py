"""A run as a workflow of DBOS, whose steps are its records.

DBOS stores the text of a step and never has to run one again: a run that is resumed reads its records by name, and the
numbers that DBOS gave to them stay reserved. Only the end of a run ends its workflow; a run that breaks off leaves it
open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVar, cast

import psycopg
import sqlalchemy
from dbos import DBOS, WorkflowSerializationFormat, error

from toolwire.agent.agent import Agent
from toolwire.agent.codec import dumps, from_json, to_json
from toolwire.agent.compatibility import changes, configuration
from toolwire.agent.output import with_output
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.agent.run_request import RunRequest
from toolwire.agent.run_store import END, MAX_SHOWN, WORKFLOW, RunStore
from toolwire.agent.session_record import SessionRecord
from toolwire.errors import JournalError
from toolwire.policy.session import Session
from toolwire.providers.model_settings import ModelSettings

T = TypeVar("T")

FAILURES: Final = (error.DBOSException, sqlalchemy.exc.SQLAlchemyError, psycopg.Error, OSError)
"""Exceptions of a database that cannot be used."""

SETTLE_SECONDS: Final = 0.01
"""Seconds between two looks at a run that is about to end."""
SETTLES_IN: Final = 10.0
"""Seconds after which the end of a run is reported though the database does not show it yet."""

_log = logging.getLogger("toolwire.agent")


class RunLost(JournalError):
    """The run was stopped, or belongs to another process now."""


class ActiveRun:
    """A run that this process executes.

    Args:
        session: state of the conversation; None for a new session.
        fresh: whether the session is in the state that it had when the run was requested.
        watched: whether the events are read.
        changed: whether the agent may differ from the one that began the run.
        deps: dependencies of the tools, in place of those of the process; None for those.

    Attributes:
        task: the task that executes the run; None before it begins.
        stopped: whether the run was stopped, possibly before it began.
        error: the exception that the run raised, if any.
    """

    def __init__(
        self,
        session: Session | None = None,
        *,
        fresh: bool = False,
        watched: bool = True,
        changed: bool = False,
        deps: Any = None,
    ) -> None:
        self.session = session or Session()
        self.fresh = fresh
        self.changed = changed
        self.deps = deps
        self.task: asyncio.Task[tuple[RunEnded, bool]] | None = None
        self.stopped = False
        self.error: BaseException | None = None
        self._events: asyncio.Queue[AgentEvent | None] | None = asyncio.Queue() if watched else None

    def emit(self, event: AgentEvent | None) -> None:
        """Report an event to the reader, if there is one; None is the end."""
        if self._events is not None:
            self._events.put_nowait(event)

    async def next_event(self) -> AgentEvent | None:
        """Return the next event; None at the end."""
        assert self._events is not None
        return await self._events.get()

    async def stop(self) -> None:
        """Stop the model and the tools, and wait until they have ended."""
        self.stopped = True
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])


class StepJournal:
    """The records of a run as steps of its workflow; see `Journal`. Must be created inside the workflow.

    Args:
        run_id: name of the run.
        records: the existing records, by name.
        last: number of the last existing step.
    """

    def __init__(self, run_id: str, records: dict[str, str], last: int) -> None:
        self._run_id = run_id
        self._records = records
        self._written: set[str] = set()
        # DBOS counts steps anew in each process, and would compare a new record with the old one of the same number.
        for _ in range(last):
            DBOS.reserve_step()

    def names(self) -> Iterable[str]:
        """See `Journal`."""
        return self._records

    def read(self, name: str) -> str | None:
        """See `Journal`."""
        return self._records.get(name)

    def contains(self, name: str) -> bool:
        """Return whether there is a record of this name by now."""
        return name in self._records or name in self._written

    async def write(self, name: str, text: str) -> None:
        """See `Journal`."""
        try:
            await DBOS.run_step_async({"name": name}, lambda: text)
            self._written.add(name)
        except (error.DBOSWorkflowConflictIDError, error.DBOSWorkflowCancelledError) as failure:
            raise RunLost(f"the run {self._run_id!r} was stopped, or is with another process now") from failure
        except FAILURES as failure:
            raise JournalError(f"the run {self._run_id!r} cannot be recorded: {failure}") from failure


class Driver:
    """Executes the runs of one process.

    Args:
        agents: agents by name.
        store: the store of the runs.
        deps: dependencies of the tools.

    Attributes:
        runs: the runs that this process executes, by name.
    """

    def __init__(self, agents: Mapping[str, Agent[Any]], store: RunStore, deps: Any = None) -> None:
        self._deps = deps
        self.runs: dict[str, ActiveRun] = {}
        self._agents = agents
        self._store = store

    def agent(self, name: str) -> Agent[Any]:
        """Return an agent by its name.

        Raises:
            JournalError: this process has no such agent.
        """
        agent = self._agents.get(name)
        if agent is None:
            agents = f"; here are {', '.join(self._agents)}" if self._agents else ""
            raise JournalError(f"the run is one of an agent {name!r}, which is not here{agents}")
        return agent

    def dependencies(self, own: Any) -> Any:
        """Return the dependencies of the tools in a run: its own, or else those of this process."""
        return self._deps if own is None else own

    def check(self, run_id: str, request: RunRequest) -> None:
        """Raise an error if the agent differs from the one that began the run.

        Raises:
            JournalError: it differs, or this process has no such agent.
        """
        if differences := changes(request.configuration, configuration(self.agent(request.agent))):
            raise JournalError(
                f"the agent {request.agent!r} has changed since the run {run_id!r} began: {'; '.join(differences)}. "
                "If that is intended, resume the run with `changed`."
            )

    def claim(self, run_id: str, run: ActiveRun) -> None:
        """Add a run to those that this process executes.

        Raises:
            JournalError: this process executes it already.
        """
        if run_id in self.runs:
            raise JournalError(f"the run {run_id!r} is running in this process already")
        self.runs[run_id] = run

    def release(self, run_id: str, run: ActiveRun) -> None:
        """Remove a run, unless this process has resumed it in the meantime."""
        if self.runs.get(run_id) is run:
            del self.runs[run_id]

    async def suspend(self, run_id: str, reason: str = "") -> None:
        """Stop a run that has not ended; see `RunStore.suspend`. A database that cannot be used is only logged."""
        try:
            await in_thread(self._store.suspend, run_id, reason)
        except (JournalError, *FAILURES) as failure:
            _log.warning("the run %s could not be suspended: %s", run_id, failure)

    async def wait_until_settled(self, run_id: str) -> None:
        """Wait until the database shows that a run has ended, since the reader of the event may look there.

        If the database cannot be written, the end is in the records all the same, and a process that resumes the run
        finds it there.
        """
        with suppress(JournalError, TimeoutError):
            async with asyncio.timeout(SETTLES_IN):
                while (await in_thread(self._store.status, run_id)).status == "PENDING":
                    await asyncio.sleep(SETTLE_SECONDS)

    async def drive(self, run_id: str, text: str) -> str:
        """Run an agent inside its workflow, until the run ends or is left open.

        Returns:
            A summary, as JSON.
        """
        run = self.runs.setdefault(run_id, ActiveRun(watched=False))
        try:
            if run.stopped:
                raise asyncio.CancelledError
            # In a task of its own: DBOS cancels this function from outside when the process closes, and then the run
            # has to come to its end, with its tools stopped, before the workflow does.
            run.task = task = asyncio.create_task(self._execute(run_id, from_json(RunRequest, text), run))
            try:
                await asyncio.wait([task])
            finally:
                if not task.done():
                    await run.stop()
            # DBOS records nothing about a workflow that is cancelled here, so it can be resumed.
            if task.cancelled():
                raise asyncio.CancelledError
            if (exception := task.exception()) is not None:
                run.error = exception
                if not isinstance(exception, RunLost):
                    await self.suspend(run_id, f"{type(exception).__name__}: {exception}")
                raise asyncio.CancelledError
            end, final = task.result()
            if not final:
                await self.suspend(run_id, f"{end.reason}: {end.detail}")
            # Before the end is reported: its reader may resume the run at once.
            self.release(run_id, run)
            run.emit(end)
            if not final:
                raise asyncio.CancelledError
            return dumps(
                {"reason": end.reason, "rounds": end.rounds, "calls": end.calls, "answer": end.answer[:MAX_SHOWN]}
            )
        finally:
            self.release(run_id, run)
            run.emit(None)

    async def _execute(self, run_id: str, request: RunRequest, run: ActiveRun) -> tuple[RunEnded, bool]:
        """Return the end of a run, and whether it is final: a run whose model could not be asked can be resumed."""
        agent = self.agent(request.agent)
        if not run.changed:
            self.check(run_id, request)
        records, last = await in_thread(self._store.records, run_id)
        if not run.fresh:
            record = SessionRecord(run.session, clock_of(agent))
            record.reset()
            record.restore([request.session])
        journal = StepJournal(run_id, records, last)
        end: RunEnded | None = None
        events = agent.run(
            request.content,
            history=request.history,
            session=run.session,
            run_id=run_id,
            journal=journal,
            deps=self.dependencies(run.deps),
            settings=cast(ModelSettings, request.settings),
            extra_body=request.extra_body,
            budget=request.budget,
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RunEnded):
                    end = event
                else:
                    run.emit(event)
        assert end is not None
        final = end.reason != "error" or journal.contains(f"answer.{end.rounds}")
        if final:
            await journal.write(END, to_json(end))
        return end, final


def recorded_end(record: str, agent: Agent[Any] | None) -> RunEnded:
    """Return the recorded end of a run, with its output if the agent is in this process."""
    end = from_json(RunEnded, record)
    return end if agent is None else with_output(end, agent.output)


_driver: Driver | None = None


def set_driver(driver: Driver | None) -> None:
    """Set the driver that executes the workflows of this process."""
    global _driver
    _driver = driver


@DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)
async def run_workflow(request: str) -> str:
    """Execute a run; DBOS calls this in the process to which the run belongs."""
    run_id = DBOS.workflow_id
    assert _driver is not None and run_id is not None
    return await _driver.drive(run_id, request)


async def in_thread(function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Call a function in a thread and return its result.

    The thread has an empty context: in that of a workflow, DBOS would record what the function does as steps of it.
    """
    call = partial(function, *arguments, **keywords)
    return await asyncio.get_running_loop().run_in_executor(None, Context().run, call)


async def wait_to_end(task: asyncio.Future[T]) -> T:
    """Return the result of a task; if the waiting is cancelled, the task still comes to its end before this does."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks it as retrieved, or asyncio would log it
        raise


async def in_own_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a new thread and return its result; see `wait_to_end`.

    For functions that wait for other processes, and for those that end the threads of the event loop.
    """
    with ThreadPoolExecutor(1) as pool:
        return await wait_to_end(asyncio.get_running_loop().run_in_executor(pool, function, *arguments))


def clock_of(agent: Agent[Any]) -> Callable[[], float]:
    """Return the clock by which an agent's sessions count."""
    return agent._executor(agent.registry, None).clock
