"""A run as a workflow of DBOS, whose steps are its records.

DBOS keeps the text of a step, and never has to run one again: a run that goes on reads its records by name, and the
numbers that DBOS gave to them stay taken. Only the end of a run ends its workflow; one that breaks off leaves it open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
import sqlalchemy
from dbos import DBOS, WorkflowSerializationFormat, error

from toolwire.agent.agent import Agent
from toolwire.agent.codec import dumps, from_json, to_json
from toolwire.agent.compatibility import changes, configuration
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.agent.run_store import END, SHOWN, WORKFLOW, RunRequest, RunStore
from toolwire.agent.session_record import SessionRecord
from toolwire.errors import JournalError
from toolwire.policy.session import Session

T = TypeVar("T")

FAILURES: Final = (error.DBOSException, sqlalchemy.exc.SQLAlchemyError, psycopg.Error, OSError)
"""What a database that cannot be used raises."""

_log = logging.getLogger("toolwire.agent")


class RunLost(JournalError):
    """A run that this process had, and another has now, or nobody."""


class ActiveRun:
    """A run that this process has.

    Args:
        session: what the conversation has come to.
        fresh: the session is as it was when the run was asked for.
        heard: somebody listens.
        changed: its agent may be another one than it was.

    Attributes:
        working: the task that runs it.
        left: nobody wants it any more, so it does not begin.
        failed: what it raised.
    """

    def __init__(
        self, session: Session | None = None, *, fresh: bool = False, heard: bool = True, changed: bool = False
    ) -> None:
        self.session = session or Session()
        self.fresh = fresh
        self.changed = changed
        self.working: asyncio.Task[tuple[RunEnded, bool]] | None = None
        self.left = False
        self.failed: BaseException | None = None
        self._events: asyncio.Queue[AgentEvent | None] | None = asyncio.Queue() if heard else None

    def tell(self, event: AgentEvent | None) -> None:
        """Let whoever listens hear an event; None is the end."""
        if self._events is not None:
            self._events.put_nowait(event)

    async def hear(self) -> AgentEvent | None:
        """The next event."""
        assert self._events is not None
        return await self._events.get()

    async def stop(self) -> None:
        """Stop the model and the tools, and wait for them."""
        self.left = True
        if self.working is not None:
            self.working.cancel()
            await asyncio.wait([self.working])


class StepJournal:
    """The records of a run as steps of its workflow; see `Journal`. To be made inside the workflow.

    Args:
        run_id: the run.
        records: what is there.
        last: the number of the last step that is there.
    """

    def __init__(self, run_id: str, records: dict[str, str], last: int) -> None:
        self._run_id = run_id
        self._records = records
        self._written: set[str] = set()
        for _ in range(last):  # their numbers are taken
            DBOS.reserve_step()

    def names(self) -> Iterable[str]:
        """See `Journal`."""
        return self._records

    def read(self, name: str) -> str | None:
        """See `Journal`."""
        return self._records.get(name)

    def holds(self, name: str) -> bool:
        """Whether there is a record of this name by now."""
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
    """Drives the runs of one process.

    Args:
        agents: by name.
        store: where the runs are.

    Attributes:
        lives: the runs that this process has, by name.
    """

    def __init__(self, agents: Mapping[str, Agent], store: RunStore) -> None:
        self.lives: dict[str, ActiveRun] = {}
        self._agents = agents
        self._store = store

    def agent(self, name: str) -> Agent:
        """An agent by its name.

        Raises:
            JournalError: it is not here.
        """
        agent = self._agents.get(name)
        if agent is None:
            agents = f"; here are {', '.join(self._agents)}" if self._agents else ""
            raise JournalError(f"the run is one of an agent {name!r}, which is not here{agents}")
        return agent

    def check(self, run_id: str, order: RunRequest) -> None:
        """See that the agent is the one that it was.

        Raises:
            JournalError: it is not, or it is not here.
        """
        if differences := changes(order.configuration, configuration(self.agent(order.agent))):
            raise JournalError(
                f"the agent {order.agent!r} has changed since the run {run_id!r} began: {'; '.join(differences)}. "
                "If that is intended, resume the run with `changed`."
            )

    def claim(self, run_id: str, life: ActiveRun) -> None:
        """This process has a run.

        Raises:
            JournalError: it has it already.
        """
        if run_id in self.lives:
            raise JournalError(f"the run {run_id!r} is running in this process already")
        self.lives[run_id] = life

    def leave(self, run_id: str, life: ActiveRun) -> None:
        """This process does not have the run any more, unless it has begun another life of it."""
        if self.lives.get(run_id) is life:
            del self.lives[run_id]

    async def put_down(self, run_id: str, why: str = "") -> None:
        """Stop a run that has not ended, see `RunStore.put_down`; a database that is broken hinders nobody."""
        try:
            await outside(self._store.put_down, run_id, why)
        except (JournalError, *FAILURES) as failure:
            _log.warning("the run %s could not be put down: %s", run_id, failure)

    async def drive(self, run_id: str, text: str) -> str:
        """Run an agent inside its workflow, which goes on to its end or is left open.

        Returns:
            A summary, as JSON.
        """
        life = self.lives.setdefault(run_id, ActiveRun(heard=False))
        try:
            if life.left:
                raise asyncio.CancelledError
            life.working = working = asyncio.create_task(self._worked(run_id, from_json(RunRequest, text), life))
            try:
                await asyncio.wait([working])
            finally:
                if not working.done():
                    await life.stop()
            if working.cancelled():
                raise asyncio.CancelledError  # which DBOS takes no note of
            if (raised := working.exception()) is not None:
                life.failed = raised
                if not isinstance(raised, RunLost):
                    await self.put_down(run_id, f"{type(raised).__name__}: {raised}")
                raise asyncio.CancelledError
            end, final = working.result()
            if not final:
                await self.put_down(run_id, f"{end.reason}: {end.detail}")
            self.leave(run_id, life)
            life.tell(end)
            if not final:
                raise asyncio.CancelledError
            return dumps({"reason": end.reason, "rounds": end.rounds, "calls": end.calls, "answer": end.answer[:SHOWN]})
        finally:
            self.leave(run_id, life)
            life.tell(None)

    async def _worked(self, run_id: str, order: RunRequest, life: ActiveRun) -> tuple[RunEnded, bool]:
        """How it ended, and whether that is its end: without an answer of the model it can be gone on with."""
        agent = self.agent(order.agent)
        if not life.changed:
            self.check(run_id, order)
        records, last = await outside(self._store.records, run_id)
        if not life.fresh:
            record = SessionRecord(life.session, clock_of(agent))
            record.reset()
            record.restore([order.session])
        journal = StepJournal(run_id, records, last)
        end: RunEnded | None = None
        running = agent.run(order.task, history=order.history, session=life.session, run_id=run_id, journal=journal)
        async with aclosing(running) as events:
            async for event in events:
                if isinstance(event, RunEnded):
                    end = event
                else:
                    life.tell(event)
        assert end is not None
        final = end.reason != "error" or journal.holds(f"answer.{end.rounds}")
        if final:
            await journal.write(END, to_json(end))
        return end, final


_driver: Driver | None = None


def drive_with(driver: Driver | None) -> None:
    """Say who drives the workflows of this process."""
    global _driver
    _driver = driver


@DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)
async def work(order: str) -> str:
    """The workflow of a run."""
    run_id = DBOS.workflow_id
    assert _driver is not None and run_id is not None
    return await _driver.drive(run_id, order)


async def outside(function: Callable[..., T], *arguments: Any, **more: Any) -> T:
    """What a function gives back, called in a thread as if no workflow were running, so that it is no step of one."""
    call = partial(function, *arguments, **more)
    return await asyncio.get_running_loop().run_in_executor(None, Context().run, call)


async def to_the_end(task: asyncio.Future[T]) -> T:
    """What a task gives back; whoever is cancelled while he waits hears so when it has come to its end."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody else asks
        raise


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """What a function gives back that is called in a thread of its own; see `to_the_end`."""
    with ThreadPoolExecutor(1) as pool:
        return await to_the_end(asyncio.get_running_loop().run_in_executor(pool, function, *arguments))


def clock_of(agent: Agent) -> Callable[[], float]:
    """The clock by which an agent's sessions count."""
    return agent._executor(agent.registry, None).clock
