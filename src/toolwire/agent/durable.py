"""Durable runs, on DBOS: runs that outlive their process, since each answer and each call is a recorded step.

A run begins in one process and can be resumed in any other: no answer is asked for again, and no call runs again. A run
belongs to one process at a time; the database refuses what another one writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final, Self, Unpack

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowAttributes, SetWorkflowID, error

from toolwire._surface import check_number, check_type
from toolwire.agent.agent import Agent
from toolwire.agent.agent_keywords import check_run_options
from toolwire.agent.codec import to_json
from toolwire.agent.compatibility import configuration
from toolwire.agent.dbos_workflow import (
    FAILURES,
    ActiveRun,
    Driver,
    clock_of,
    in_own_thread,
    in_thread,
    recorded_end,
    run_workflow,
    set_driver,
    wait_to_end,
)
from toolwire.agent.journal import MemoryJournal, recorded_events
from toolwire.agent.run_context import DurableRunOptions, SubmitOptions
from toolwire.agent.run_endings import answer_of
from toolwire.agent.run_events import AgentEvent, RunEnded, RunResumed
from toolwire.agent.run_request import RunRequest
from toolwire.agent.run_store import (
    APPLICATION,
    END,
    HERE,
    SCHEMA,
    RunInfo,
    RunStore,
    RunTail,
    attributes,
    checked_name,
    owner_of,
)
from toolwire.agent.session_record import SessionRecord
from toolwire.agent.task import task_message
from toolwire.agent.team import AgentTeam
from toolwire.errors import DefinitionError, JournalError
from toolwire.messages import Content
from toolwire.policy.session import Session

VERSION: Final = "1"
"""Version of the records: processes of another version do not take these runs."""
QUEUE: Final = "toolwire.for."
"""Prefix of the queue of an agent, from which any worker takes runs; the agent's name follows."""
TAKE_SECONDS: Final = 0.2
"""Seconds between two looks into a queue."""
RESCUE_SECONDS: Final = 5.0
"""Seconds between two searches of a worker for runs of dead processes."""
RESCUES: Final = 5
"""Maximum number of processes that may die with a run before workers stop taking it."""
WATCH_SECONDS: Final = 0.5
"""Seconds between two looks at a run that another process executes."""

_log = logging.getLogger("toolwire.agent")
_open = False


class DurableRuns:
    """Recorded runs of agents, which can be resumed. A process can have one of these open.

    Args:
        agents: the agents, by the names in their configurations. A run is resumed with the agent of the same name.
        database: URL of a PostgreSQL database, or path of an SQLite file; "" for the user's own file.
        worker: whether to take submitted runs, and runs of processes that died.
        concurrency: maximum number of submitted runs of one agent that this process executes at a time.
        deps: dependencies of the tools in all runs that this process executes, such as a database; not recorded.

    Raises:
        DefinitionError: two agents have one name, or an agent defers approvals.
    """

    def __init__(
        self,
        *agents: Agent[Any] | AgentTeam[Any],
        database: str = "",
        worker: bool = False,
        concurrency: int = 10,
        deps: Any = None,
    ) -> None:
        check_number("concurrency", concurrency, "a number of runs", least=1, whole=True)
        self._agents: dict[str, Agent[Any]] = {}
        for member in agents:
            agent = member.coordinator if isinstance(member, AgentTeam) else member
            check_type("agents", agent, Agent, "agents and teams")
            if agent.defers:
                raise DefinitionError(f'{agent.config.name!r} has confirm="defer", and a durable run waits by itself')
            if self._agents.setdefault(agent.config.name, agent) is not agent:
                raise DefinitionError(f"two agents are called {agent.config.name!r}")
        self._database = database
        self._worker, self._concurrency = worker, concurrency
        self._deps = deps
        self._queues = [f"{QUEUE}{name}" for name in self._agents]
        self._name = f"{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
        self._store: RunStore | None = None
        self._driver: Driver | None = None
        self._maintenance: asyncio.Task[None] | None = None
        self._launched = False

    # -- opening and closing -------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the database.

        Raises:
            JournalError, StateError: it cannot be used, or this process has durable runs open already.
        """
        global _open
        if _open:
            raise JournalError("this process has durable runs open already")
        _open = True
        opened = False
        try:
            # In a thread, since migrations and locks of other processes may take seconds.
            await in_own_thread(self._prepare)
            self._launch()
            opened = True
        except FAILURES as failure:
            raise JournalError(f"the database of the runs cannot be used: {failure}") from failure
        finally:
            if not opened:
                await self._close()
        self._maintenance = asyncio.create_task(self._maintain())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all runs. They can be resumed, and workers that have their agents take them."""
        await self._close()

    def _prepare(self) -> None:
        """Open the store, lock the name of this process and create its queues; this may wait for other processes."""
        logger = logging.getLogger("dbos")
        if not logger.handlers:  # without one, DBOS adds a handler that writes to standard error
            logger.addHandler(logging.NullHandler())
        self._store = store = RunStore(self._database, make=True)
        store.processes.begin(self._name)
        store.delete_dead_queues()
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
            executor_id=self._name,  # new in each process: when DBOS starts, it takes all runs of its own name
            application_version=VERSION,
            notification_listener_polling_interval_sec=0.1,  # closing waits for one interval
            log_level="ERROR",
        )
        DBOS(config=config)
        # DBOS exists once in a process: if the program had launched it before, our configuration is ignored.
        if DBOS.executor_id != self._name:
            raise JournalError("this program uses DBOS itself: give durable runs a process of their own")
        self._launched = True
        # Runs that are resumed in this process are put into a queue of its own. Those that were submitted are in the
        # queue of their agent, from which any worker takes them.
        DBOS.listen_queues([HERE + self._name, *(self._queues if self._worker else ())])
        self._driver = Driver(self._agents, store, self._deps)
        set_driver(self._driver)
        DBOS.launch()

    async def _close(self) -> None:
        global _open
        store, driver = self._store, self._driver
        self._store = self._driver = None  # from here on no run can begin
        try:
            if self._maintenance is not None:
                self._maintenance.cancel()
                await asyncio.wait([self._maintenance])
            runs = {} if driver is None else dict(driver.runs)
            await asyncio.gather(*(run.stop() for run in runs.values()))
            await in_own_thread(self._close_store, store, list(runs))
        finally:
            if self._launched:  # DBOS made its threads those of the event loop, and has ended them
                asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
            self._launched = _open = False

    def _close_store(self, store: RunStore | None, unfinished: list[str]) -> None:
        if self._launched:
            DBOS.destroy()
            set_driver(None)
        if store is not None:
            with suppress(*FAILURES):
                store.mark_left(unfinished, self._name)
                store.client.delete_queue(HERE + self._name)
            store.processes.end()
            store.close()

    @property
    def store(self) -> RunStore:
        """The store of the runs.

        Raises:
            JournalError: durable runs are not open.
        """
        if self._store is None:
            raise JournalError("durable runs are not open: use `async with`")
        return self._store

    @property
    def _open_driver(self) -> Driver:
        _ = self.store
        assert self._driver is not None
        return self._driver

    # -- beginning -----------------------------------------------------------------------------------------------

    async def run(self, task: Content, **options: Unpack[DurableRunOptions]) -> AsyncGenerator[AgentEvent]:
        """Work on a task in this process, and yield the events of `Agent.run`.

        Closing the iterator stops the run, which can be resumed. So is a run that has this name, task and settings
        already.

        Args:
            task: the user's request.
            options: see `DurableRunOptions`.

        Raises:
            ConfigurationError: a tool needs dependencies, and there are none; or the budget limits money, and the
                prices of the model are not known.
            DefinitionError: a setting of the model has an invalid value.
            JournalError: the run cannot be recorded, or a run with another task, other settings or another budget has
                its name.
            TypeError: an option or a setting is unknown.
        """
        check_run_options("run", options, DurableRunOptions.__annotations__)
        request, run_id = self._request(task, options), checked_name(options.get("run_id", ""))
        driver, session, deps = self._open_driver, options.get("session"), options.get("deps")
        driver.agent(request.agent).check_dependencies(driver.dependencies(deps))
        # The session is fresh: the request has its state, and nothing else can have changed it since.
        text, run = to_json(request), ActiveRun(session, fresh=True, deps=deps)
        driver.claim(run_id, run)
        start = partial(DBOS.start_workflow_async, run_workflow, text)
        is_new = await self._settle_claim(run_id, run, self._begin(run_id, request, start))
        running = self._events(run_id, run) if is_new else self.resume(run_id, session=session, deps=deps)
        async with aclosing(running) as events:
            async for event in events:
                yield event

    async def _begin(self, run_id: str, request: RunRequest, start: Callable[[], Awaitable[object]]) -> bool:
        """Begin a run, and return True; or return False if there is a run of this name and task already."""
        try:
            with SetWorkflowID(run_id, workflow_id_reuse_policy="reject"), SetWorkflowAttributes(attributes(request)):
                await start()
        except error.DBOSWorkflowIDInUseError:
            await self._check_same(run_id, request)
            return False
        except FAILURES as failure:
            raise JournalError(f"the run cannot be recorded: {failure}") from failure
        return True

    async def _settle_claim(self, run_id: str, run: ActiveRun, beginning: Coroutine[Any, Any, bool]) -> bool:
        """Return whether a claimed run runs in this process, and release it if not."""
        # Claimed before it begins: DBOS may execute the workflow before this function is resumed.
        task = asyncio.create_task(beginning)
        runs_here = False
        try:
            runs_here = await wait_to_end(task)
        except asyncio.CancelledError:
            # The run has begun though its reader was cancelled, so nobody would ever stop it.
            if not task.cancelled() and task.exception() is None and task.result():
                await asyncio.shield(self._stop(run_id, run))
            raise
        finally:
            if not runs_here and self._driver is not None:
                self._driver.release(run_id, run)
        return runs_here

    async def ask(self, task: Content, **options: Unpack[DurableRunOptions]) -> str:
        """Return the answer to a task; see `run` for the arguments and other errors.

        Raises:
            RunFailed: the run ended without an answer.
        """
        return await answer_of(self.run(task, **options))

    async def submit(self, task: Content, **options: Unpack[SubmitOptions]) -> str:
        """Queue a task for the workers that share the database, and return the name of the run, for `watch`.

        Args:
            task: the user's request.
            options: see `SubmitOptions`.

        Raises:
            ConfigurationError: the budget limits money, and the prices of the model are not known.
            DefinitionError: a setting of the model has an invalid value.
            JournalError: the run cannot be recorded, or a run with another task, other settings or another budget has
                its name.
            TypeError: an option or a setting is unknown.
        """
        check_run_options("submit", options, SubmitOptions.__annotations__)
        request, run_id = self._request(task, options), checked_name(options.get("run_id", ""))
        text = to_json(request)
        enqueue = partial(DBOS.enqueue_workflow_async, f"{QUEUE}{request.agent}", run_workflow, text)
        await self._begin(run_id, request, enqueue)
        return run_id

    def _request(self, task: Content, options: SubmitOptions) -> RunRequest:
        name, session = options.get("agent", ""), options.get("session")
        if not name:
            if len(self._agents) != 1:
                raise JournalError(f"name the agent; here are {', '.join(self._agents) or 'none'}")
            (name,) = self._agents
        agent = self._open_driver.agent(name)
        # A budget that cannot be counted is refused here, and not in the worker that would execute the run.
        agent.check_budget({"budget": options.get("budget")})
        state = {} if session is None else SessionRecord(session, clock_of(agent)).changes()
        return RunRequest.of(task_message(task), name, options, state, configuration(agent))

    async def _check_same(self, run_id: str, request: RunRequest) -> None:
        earlier = await in_thread(self.store.request, run_id)
        if (earlier.agent, earlier.content) != (request.agent, request.content):
            other = f"of {earlier.agent} with another task: {earlier.task[:80]!r}"
            raise JournalError(f"there is a run {run_id!r} already, {other}")
        if (earlier.settings, earlier.extra_body) != (request.settings, request.extra_body):
            raise JournalError(f"there is a run {run_id!r} already, with other settings: {earlier.settings!r:.80}")
        if earlier.budget_data != request.budget_data:
            raise JournalError(f"there is a run {run_id!r} already, with another budget: {earlier.budget_data!r:.200}")

    # -- resuming ------------------------------------------------------------------------------------------------

    async def resume(
        self, run_id: str, *, session: Session | None = None, changed: bool = False, deps: Any = None
    ) -> AsyncGenerator[AgentEvent]:
        """Resume a run in this process; a run that has ended is replayed.

        Args:
            run_id: name of the run.
            session: receives the state of the conversation.
            changed: whether to resume it though its agent has other tools, another format or another model now.
            deps: dependencies of the tools, in place of those of `DurableRuns`.

        Yields:
            `RunResumed` and the recorded events, then `ReplayEnded` and new ones.

        Raises:
            ConfigurationError: a tool needs dependencies, and there are none.
            JournalError: there is no such run, another process has it, or its agent is not here or has changed.
        """
        driver = self._open_driver
        request = await in_thread(self.store.request, run_id)
        if not changed:
            driver.check(run_id, request)
        run = ActiveRun(session, changed=changed, deps=deps)
        # Before the run is assigned to this process, for then DBOS executes it at once.
        driver.claim(run_id, run)
        if await self._settle_claim(run_id, run, self._take_over(run_id)):
            async with aclosing(self._events(run_id, run)) as events:
                async for event in events:
                    yield event
            return
        records, _ = await in_thread(self.store.records, run_id)
        yield RunResumed()
        for event in recorded_events(MemoryJournal(records)):
            yield event
        yield recorded_end(records[END], self._agents.get(request.agent))

    async def _take_over(self, run_id: str) -> bool:
        """Assign a run to this process, and return True; or return False if it has ended."""
        try:
            return not await in_thread(self.store.hand_over, run_id, HERE + self._name, me=self._name)
        except FAILURES as failure:
            raise JournalError(f"the run {run_id!r} cannot be resumed: {failure}") from failure

    async def watch(self, run_id: str) -> AsyncGenerator[AgentEvent]:
        """Yield the events of a run in any process, by its records, until it ends.

        Raises:
            JournalError: there is no such run, or it was stopped.
        """
        tail = RunTail(self.store, run_id)
        while True:
            info = await in_thread(self.store.info, run_id, look=False)
            if await in_thread(tail.load):
                for event in tail.new_events():
                    yield event
            if info.state == "ended":
                request = await in_thread(self.store.request, run_id)
                yield recorded_end(tail.records[END], self._agents.get(request.agent))
                return
            if info.state == "stopped":
                raise JournalError(f"the run {run_id!r} was stopped{f': {info.reason}' if info.reason else ''}")
            await asyncio.sleep(WATCH_SECONDS)

    async def all(self, *, limit: int | None = None) -> list[RunInfo]:
        """Return the runs of the database, the newest first.

        Raises:
            JournalError: the database cannot be used.
        """
        return await in_thread(self.store.all, limit=limit)

    async def _events(self, run_id: str, run: ActiveRun) -> AsyncGenerator[AgentEvent]:
        """Yield the events of a run of this process; closing the iterator stops the run."""
        ended = False
        try:
            while (event := await run.next_event()) is not None:
                if isinstance(event, RunEnded):
                    ended = True
                    if self._driver is not None:
                        await self._driver.wait_until_settled(run_id)
                yield event
            if run.error is not None:
                raise run.error
            if not ended:
                raise JournalError(f"durable runs were closed while {run_id!r} was running; it can be resumed")
        finally:
            # The reader has left, and nothing else could stop the run. Shielded: the reader may be cancelled again.
            if not ended and run.error is None:
                await asyncio.shield(self._stop(run_id, run))

    async def _stop(self, run_id: str, run: ActiveRun) -> None:
        await run.stop()
        if self._driver is not None:
            await self._driver.suspend(run_id)
            self._driver.release(run_id, run)

    # -- runs of other processes ---------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Work as a worker until this is cancelled."""
        await asyncio.Event().wait()

    async def _maintain(self) -> None:
        """Renew the lock of this process; as a worker, take the runs of dead processes."""
        while True:
            try:
                await in_thread(self.store.processes.renew)
                if self._worker:
                    await in_thread(self._rescue)
            except (JournalError, *FAILURES) as failure:
                _log.warning("cannot look for runs of dead processes now: %s", failure)
            await asyncio.sleep(RESCUE_SECONDS)

    def _rescue(self) -> None:
        store = self.store
        statuses = store.statuses(status=["PENDING", "ENQUEUED"], load_output=False)
        # Looked up before the lock of takeovers is taken: most of the time no process is dead.
        owners = set(map(owner_of, statuses)) - {"", self._name}
        dead = owners - store.processes.running(owners)
        for status in statuses:
            name = (status.attributes or {}).get("agent")
            if owner_of(status) in dead and name in self._agents:
                with suppress(JournalError):  # another worker was faster
                    store.hand_over(status.workflow_id, f"{QUEUE}{name}", me=self._name, deaths=RESCUES)


async def run_durably(
    agent: Agent[Any] | AgentTeam[Any],
    /,
    task: Content,
    *,
    database: str = "",
    **options: Unpack[DurableRunOptions],
) -> AsyncGenerator[AgentEvent]:
    """Run an agent durably, and yield the events; called again with the same name and task, the run is resumed.

    See `DurableRuns` and `DurableRuns.run` for the arguments.

    Raises:
        JournalError, StateError: see `DurableRuns.run`.
    """
    async with (
        DurableRuns(agent, database=database) as runs,
        aclosing(runs.run(task, **options)) as events,
    ):
        async for event in events:
            yield event
