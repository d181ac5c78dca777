"""Runs that outlive their process, on DBOS: each answer and each call is a recorded step.

A run is begun in one process and resumed in any: what was answered and done is not done again. Only one process has a
run at a time; the database refuses what another one writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import AsyncGenerator, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import Any, Final, Self

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowAttributes, SetWorkflowID, error

from toolwire.agent.agent import Agent, answer_of
from toolwire.agent.codec import from_json, to_json
from toolwire.agent.compatibility import configuration
from toolwire.agent.dbos_workflow import (
    FAILURES,
    ActiveRun,
    Driver,
    aside,
    clock_of,
    drive_with,
    outside,
    to_the_end,
    work,
)
from toolwire.agent.journal import MemoryJournal, recorded_events
from toolwire.agent.run_events import AgentEvent, RunEnded, RunResumed
from toolwire.agent.run_store import (
    APPLICATION,
    END,
    HERE,
    SCHEMA,
    RunInfo,
    RunRequest,
    RunStore,
    RunTail,
    attributes,
    owner_of,
)
from toolwire.agent.session_record import SessionRecord
from toolwire.agent.team import AgentTeam
from toolwire.errors import DefinitionError, JournalError
from toolwire.messages import Message
from toolwire.policy.session import Session

VERSION: Final = "1"
"""Of what is recorded: processes of other versions leave these runs alone."""
QUEUE: Final = "toolwire.for."
"""Begins the name of the queue of an agent, from which any worker takes; the agent's name follows."""
TAKE_SECONDS: Final = 0.2
"""How often a queue is looked at."""
RESCUE_SECONDS: Final = 5.0
"""How often a worker looks for runs of processes that died."""
RESCUES: Final = 5
"""How many processes may die with a run before no worker takes it any more."""
WATCH_SECONDS: Final = 0.5
SETTLE_SECONDS: Final = 0.01
SETTLES_IN: Final = 10.0
"""Seconds after which a run is told to have ended though the database does not know."""
MAX_NAME: Final = 200
"""Characters of a run's name."""

_log = logging.getLogger("toolwire.agent")
_open = False


class DurableRuns:
    """Runs of agents that are recorded, and can be resumed. One may be open in a process.

    Args:
        agents: known by the names of their configurations: a run is resumed with the agent of its agent's name.
        database: an address of PostgreSQL, or a path of an SQLite file; "": the user's own file.
        worker: take runs that were submitted, and those of processes that died.
        concurrency: submitted runs of one agent that this process has at a time.

    Raises:
        DefinitionError: two agents have one name.
    """

    def __init__(
        self, *agents: Agent | AgentTeam, database: str = "", worker: bool = False, concurrency: int = 10
    ) -> None:
        self._agents: dict[str, Agent] = {}
        for member in agents:
            agent = member.coordinator if isinstance(member, AgentTeam) else member
            if self._agents.setdefault(agent.config.name, agent) is not agent:
                raise DefinitionError(f"two agents are called {agent.config.name!r}")
        self._database = database
        self._worker = worker
        self._concurrency = concurrency
        self._name = f"{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
        self._store: RunStore | None = None
        self._driver: Driver | None = None
        self._tending: asyncio.Task[None] | None = None
        self._launched = False

    # -- opening and closing -------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the database.

        Raises:
            JournalError, StateError: it cannot be used; or this process has durable runs open already.
        """
        global _open
        if _open:
            raise JournalError("this process has durable runs open already")
        _open = True
        opened = False
        try:
            await aside(self._prepare)
            self._launch()
            opened = True
        except FAILURES as failure:
            raise JournalError(f"the database of the runs cannot be used: {failure}") from failure
        finally:
            if not opened:
                await self._close()
        self._tending = asyncio.create_task(self._tend())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of all runs; they can be resumed, and workers that have their agents take them."""
        await self._close()

    def _prepare(self) -> None:
        """Make and lock what has to be; this may wait for other processes."""
        logger = logging.getLogger("dbos")
        if not logger.handlers:  # else it writes to standard error by itself
            logger.addHandler(logging.NullHandler())
        self._store = store = RunStore(self._database, make=True)
        store.lives.begin(self._name)
        store.put_away()
        for queue in self._queues:
            store.client.register_queue(
                queue,
                worker_concurrency=self._concurrency,
                polling_interval_sec=TAKE_SECONDS,
                on_conflict="always_update" if self._worker else "never_update",
            )
        store.client.register_queue(HERE + self._name, polling_interval_sec=TAKE_SECONDS)

    def _launch(self) -> None:
        store = self.store
        config = DBOSConfig(
            name=APPLICATION,
            system_database_url=store.url,
            dbos_system_schema=SCHEMA,
            serializer=DBOSPortableJSONSerializer(),
            executor_id=self._name,  # one that nobody had: at its start DBOS takes what is of the same name
            application_version=VERSION,
            notification_listener_polling_interval_sec=0.1,  # how long closing waits
            log_level="ERROR",
        )
        DBOS(config=config)
        if DBOS.executor_id != self._name:
            raise JournalError("this program uses DBOS itself: give durable runs a process of their own")
        self._launched = True
        DBOS.listen_queues([HERE + self._name, *(self._queues if self._worker else ())])
        self._driver = Driver(self._agents, store)
        drive_with(self._driver)
        DBOS.launch()

    async def _close(self) -> None:
        global _open
        store, driver = self._store, self._driver
        self._store = self._driver = None  # nothing begins any more
        try:
            if self._tending is not None:
                self._tending.cancel()
                await asyncio.wait([self._tending])
            lives = {} if driver is None else dict(driver.lives)
            await asyncio.gather(*(life.stop() for life in lives.values()))
            await aside(self._closed, store, list(lives))
        finally:
            if self._launched:  # DBOS had lent its threads to the loop, and has ended them
                asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
            self._launched = _open = False

    def _closed(self, store: RunStore | None, left: list[str]) -> None:
        if self._launched:
            DBOS.destroy()
            drive_with(None)
        if store is not None:
            with suppress(*FAILURES):
                store.left(left, self._name)
                store.client.delete_queue(HERE + self._name)
            store.lives.end()
            store.close()

    @property
    def _queues(self) -> list[str]:
        return [f"{QUEUE}{name}" for name in self._agents]

    @property
    def store(self) -> RunStore:
        """The runs of the database.

        Raises:
            JournalError: it is not open.
        """
        if self._store is None:
            raise JournalError("durable runs are not open: use `async with`")
        return self._store

    @property
    def _driving(self) -> Driver:
        _ = self.store
        assert self._driver is not None
        return self._driver

    # -- beginning -----------------------------------------------------------------------------------------------

    async def run(
        self,
        task: str,
        *,
        agent: str = "",
        run_id: str = "",
        history: Sequence[Message] = (),
        session: Session | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Work on a task here; closing the iterator stops the run, which can be resumed.

        If there is a run of this name and this task already, it is resumed.

        Args:
            task: what the user asks.
            agent: the name of the agent, if there are several.
            run_id: the name of the run; a new one if none is given.
            history: the conversation so far.
            session: what it has come to; kept up to date.

        Yields:
            What `Agent.run` does.

        Raises:
            JournalError: the run cannot be recorded, or another one has its name.
        """
        order, run_id = self._ordered(task, agent, history, session), _named(run_id)
        text, life = to_json(order), ActiveRun(session, fresh=True)
        self._driving.claim(run_id, life)
        is_new = await self._claimed(run_id, life, self._begun(run_id, order, text))
        running = self._heard(run_id, life) if is_new else self.resume(run_id, session=session)
        async with aclosing(running) as events:
            async for event in events:
                yield event

    async def _begun(self, run_id: str, order: RunRequest, text: str) -> bool:
        """Whether the run is a new one."""
        try:
            with SetWorkflowID(run_id, workflow_id_reuse_policy="reject"), SetWorkflowAttributes(attributes(order)):
                await DBOS.start_workflow_async(work, text)
        except error.DBOSWorkflowIDInUseError:
            await self._same(run_id, order)
            return False
        except FAILURES as failure:
            raise JournalError(f"the run cannot be recorded: {failure}") from failure
        return True

    async def _claimed(self, run_id: str, life: ActiveRun, beginning: Coroutine[Any, Any, bool]) -> bool:
        """Whether a run that was claimed is to go on here. One that begins while nobody waits any more is stopped."""
        task = asyncio.create_task(beginning)
        runs_here = False
        try:
            runs_here = await to_the_end(task)
        except asyncio.CancelledError:
            if not task.cancelled() and task.exception() is None and task.result():
                await asyncio.shield(self._stopped(run_id, life))
            raise
        finally:
            if not runs_here and self._driver is not None:
                self._driver.leave(run_id, life)
        return runs_here

    async def ask(
        self,
        task: str,
        *,
        agent: str = "",
        run_id: str = "",
        history: Sequence[Message] = (),
        session: Session | None = None,
    ) -> str:
        """The answer to a task; see `run` for the arguments.

        Raises:
            RunFailed: there is none.
            JournalError: see `run`.
        """
        return await answer_of(self.run(task, agent=agent, run_id=run_id, history=history, session=session))

    async def submit(
        self,
        task: str,
        *,
        agent: str = "",
        run_id: str = "",
        history: Sequence[Message] = (),
        session: Session | None = None,
    ) -> str:
        """Leave a task to the workers that share the database; see `run` for the arguments.

        Returns:
            The name of the run; `watch` tells of it.

        Raises:
            JournalError: the run cannot be recorded, or another one has its name.
        """
        order, run_id = self._ordered(task, agent, history, session), _named(run_id)
        text = to_json(order)
        try:
            with SetWorkflowID(run_id, workflow_id_reuse_policy="reject"), SetWorkflowAttributes(attributes(order)):
                await DBOS.enqueue_workflow_async(f"{QUEUE}{order.agent}", work, text)
        except error.DBOSWorkflowIDInUseError:
            await self._same(run_id, order)
        except FAILURES as failure:
            raise JournalError(f"the run cannot be recorded: {failure}") from failure
        return run_id

    def _ordered(self, task: str, name: str, history: Sequence[Message], session: Session | None) -> RunRequest:
        if not name:
            if len(self._agents) != 1:
                raise JournalError(f"say which agent; here are {', '.join(self._agents) or 'none'}")
            (name,) = self._agents
        agent = self._driving.agent(name)
        state = {} if session is None else SessionRecord(session, clock_of(agent)).changes()
        return RunRequest(name, task, tuple(history), state, configuration(agent))

    async def _same(self, run_id: str, order: RunRequest) -> None:
        earlier = await outside(self.store.order, run_id)
        if (earlier.agent, earlier.task) != (order.agent, order.task):
            raise JournalError(
                f"there is a run {run_id!r} already, of {earlier.agent} with another task: {earlier.task[:80]!r}"
            )

    # -- going on ------------------------------------------------------------------------------------------------

    async def resume(
        self, run_id: str, *, session: Session | None = None, changed: bool = False
    ) -> AsyncGenerator[AgentEvent]:
        """Go on with a run here; of one that has ended, tell what there was.

        Args:
            run_id: its name.
            session: becomes what the conversation had come to.
            changed: go on though its agent has other tools, another format or another model than it had.

        Yields:
            What was recorded, behind `RunResumed`; then what happens, behind `ReplayEnded`.

        Raises:
            JournalError: there is no such run, another process has it, its agent is not here or is another one.
        """
        driver = self._driving
        order = await outside(self.store.order, run_id)
        if not changed:
            driver.check(run_id, order)
        life = ActiveRun(session, changed=changed)
        driver.claim(run_id, life)
        if await self._claimed(run_id, life, self._handed(run_id)):
            async with aclosing(self._heard(run_id, life)) as events:
                async for event in events:
                    yield event
            return
        records, _ = await outside(self.store.records, run_id)
        yield RunResumed()
        for event in recorded_events(MemoryJournal(records)):
            yield event
        yield from_json(RunEnded, records[END])

    async def _handed(self, run_id: str) -> bool:
        """Whether the run is to go on here; else it has ended."""
        try:
            return not await outside(self.store.hand_over, run_id, HERE + self._name, me=self._name)
        except FAILURES as failure:
            raise JournalError(f"the run {run_id!r} cannot be resumed: {failure}") from failure

    async def watch(self, run_id: str) -> AsyncGenerator[AgentEvent]:
        """The events of a run that any process has, as its records tell them, to its end.

        Raises:
            JournalError: there is no such run, or it was stopped.
        """
        growing = RunTail(self.store, run_id)
        while True:
            info = await outside(self.store.info, run_id, look=False)
            if await outside(growing.load):
                for event in growing.news():
                    yield event
            if info.state == "ended":
                yield from_json(RunEnded, growing.records[END])
                return
            if info.state == "stopped":
                raise JournalError(f"the run {run_id!r} was stopped{f': {info.reason}' if info.reason else ''}")
            await asyncio.sleep(WATCH_SECONDS)

    async def all(self, *, limit: int | None = None) -> list[RunInfo]:
        """The runs of the database, the newest first.

        Raises:
            JournalError: the database cannot be used.
        """
        return await outside(self.store.all, limit=limit)

    async def _heard(self, run_id: str, life: ActiveRun) -> AsyncGenerator[AgentEvent]:
        """The events of a run that this process has; leaving them stops it."""
        ended = False
        try:
            while (event := await life.hear()) is not None:
                if isinstance(event, RunEnded):
                    ended = True
                    await self._settled(run_id)
                yield event
            if life.failed is not None:
                raise life.failed
            if not ended:
                raise JournalError(f"durable runs were closed while {run_id!r} was running; it can be resumed")
        finally:
            if not ended and life.failed is None:
                await asyncio.shield(self._stopped(run_id, life))

    async def _settled(self, run_id: str) -> None:
        """Wait until the database knows that a run has ended, as whoever hears of it may ask there.

        If that cannot be written the records say so all the same, and the run is the process's until it is resumed.
        """
        with suppress(JournalError, TimeoutError):
            async with asyncio.timeout(SETTLES_IN):
                while (await outside(self.store.status, run_id)).status == "PENDING":
                    await asyncio.sleep(SETTLE_SECONDS)

    async def _stopped(self, run_id: str, life: ActiveRun) -> None:
        await life.stop()
        if self._driver is not None:
            await self._driver.put_down(run_id)
            self._driver.leave(run_id, life)

    # -- looking after others ------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Work until this is cancelled."""
        await asyncio.Event().wait()

    async def _tend(self) -> None:
        """Say that this process lives; as a worker, take the runs of those that do not."""
        while True:
            try:
                await outside(self.store.lives.keep)
                if self._worker:
                    await outside(self._rescue)
            except (JournalError, *FAILURES) as failure:
                _log.warning("runs of dead processes cannot be looked for now: %s", failure)
            await asyncio.sleep(RESCUE_SECONDS)

    def _rescue(self) -> None:
        store = self.store
        statuses = store.statuses(status=["PENDING", "ENQUEUED"], load_output=False)
        owners = set(map(owner_of, statuses)) - {"", self._name}
        dead = owners - store.lives.living(owners)
        for status in statuses:
            name = (status.attributes or {}).get("agent")
            if owner_of(status) in dead and name in self._agents:
                with suppress(JournalError):  # another worker was faster
                    store.hand_over(status.workflow_id, f"{QUEUE}{name}", me=self._name, deaths=RESCUES)


def _named(run_id: str) -> str:
    """The name of a run; a new one if none is given."""
    if run_id and (not run_id.isprintable() or not run_id.strip() or len(run_id) > MAX_NAME):
        raise JournalError(f"a run cannot be called {run_id[:80]!r}: at most {MAX_NAME} characters, all to be seen")
    return run_id or f"run_{uuid.uuid4().hex[:12]}"


async def run_durably(
    agent: Agent | AgentTeam,
    task: str,
    *,
    run_id: str = "",
    database: str = "",
    history: Sequence[Message] = (),
    session: Session | None = None,
) -> AsyncGenerator[AgentEvent]:
    """One recorded run, or the rest of it: called again with the same name and task it goes on where it was.

    Args:
        agent: who works.
        task: what the user asks.
        run_id: the name of the run.
        database: see `DurableRuns`.
        history: the conversation so far.
        session: what it has come to.

    Raises:
        JournalError, StateError: see `DurableRuns.run`.
    """
    async with (
        DurableRuns(agent, database=database) as runs,
        aclosing(runs.run(task, run_id=run_id, history=history, session=session)) as events,
    ):
        async for event in events:
            yield event
