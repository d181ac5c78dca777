"""Agents: a model with tools, and the runs in which it works on a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from toolwire.agent.config import AgentConfig
from toolwire.agent.journal import Journal
from toolwire.agent.loop import AgentParts, Run
from toolwire.agent.parent_run import ParentCall
from toolwire.agent.recovery import OFFENCE
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.errors import RunFailed
from toolwire.execution.executor import Confirm, ToolExecutor, check_confirm
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import Message
from toolwire.models.backends import Backend
from toolwire.policy.policy import Policy
from toolwire.policy.session import Session
from toolwire.telemetry.defaults import standard_observers
from toolwire.telemetry.records import Observer
from toolwire.telemetry.run_observer import new_run_id
from toolwire.tools import Tool


class Agent:
    """A model with tools.

    Args:
        backend: the model.
        tools: what it may call: a registry, or tools in any shape that one takes.
        config: how it works.
        policy: what may run.
        confirm: asks somebody where the policy asks.
        executor: runs calls, in place of one that is made of the registry, the policy and `confirm`.
        observers: who is told of each run, besides those who always are.
        telemetry: tell those who always are, see `toolwire.telemetry.standard_observers`.

    Raises:
        ConfigurationError: the policy has a misspelt name; see `ToolExecutor`.
        TypeError: something is of another kind.
    """

    def __init__(
        self,
        backend: Backend,
        tools: ToolRegistry | Iterable[Any] = (),
        config: AgentConfig | None = None,
        *,
        policy: Policy | None = None,
        confirm: Confirm | None = None,
        executor: Callable[[ToolRegistry, Confirm | None], ToolExecutor] | None = None,
        observers: Iterable[Observer] = (),
        telemetry: bool = True,
    ) -> None:
        if not callable(getattr(backend, "stream", None)):
            raise TypeError(
                f"backend is a model, such as ApiBackend(client) or Models().open(profile) gives, not {backend!r:.80}"
            )
        if config is not None and not isinstance(config, AgentConfig):
            raise TypeError(f"config is an AgentConfig, not {config!r:.80}")
        if isinstance(tools, Tool | str) or not isinstance(tools, Iterable):
            raise TypeError(f"tools are a registry or a list of tools, not {tools!r:.80}")
        if confirm is not None:
            check_confirm(confirm)
        self.backend = backend
        self.config = config or AgentConfig()
        self.registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self._policy = policy
        self._confirm = confirm
        self._executor = executor or self._usual
        if policy is not None and executor is None:
            ToolExecutor(self.registry, policy=policy, confirm=confirm)  # what it refuses is told now, and by no run
        self._observers = (*observers, *(standard_observers() if telemetry else ()))

    def _usual(self, registry: ToolRegistry, confirm: Confirm | None) -> ToolExecutor:
        return ToolExecutor(registry, policy=self._policy, confirm=confirm, check="warn")

    async def run(
        self,
        task: str,
        *,
        history: Sequence[Message] = (),
        session: Session | None = None,
        run_id: str = "",
        journal: Journal | None = None,
        parent: ParentCall | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Work on a task; closing the iterator stops the model and the tools.

        Args:
            task: what the user asks.
            history: the conversation so far; `RunEnded.messages` of the run before.
            session: state of the conversation; None for a new one, or for the one that `parent` hands on.
            run_id: names it in records, and goes into the ids of calls that come without one; "": a new one.
            journal: records the run. If it holds records the run goes on behind them; then all the rest has to be
                what it was.
            parent: the call of another run in which this one is nested; see `AgentTeam`.

        Yields:
            The events of the answers and the agent's own, `RunEnded` last.

        Raises:
            JournalError: the run cannot be recorded, or its records cannot be read.
        """
        queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        if session is None:
            session = Session() if parent is None else parent.session.hand_on()
        parts = AgentParts(self.backend, self.registry, self.config, self._executor, self._confirm, self._observers)
        run = Run(parts, queue.put_nowait, session, run_id or new_run_id(), journal, parent)

        async def work() -> None:
            try:
                queue.put_nowait(await run.run(task, history))
            finally:
                queue.put_nowait(None)

        working = asyncio.create_task(work())
        try:
            while (event := await queue.get()) is not None:
                yield event
            await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def ask(
        self, task: str, *, history: Sequence[Message] = (), session: Session | None = None, run_id: str = ""
    ) -> str:
        """The answer to a task.

        Raises:
            RunFailed: there is none; it says why, and holds the end of the run.
        """
        return await answer_of(self.run(task, history=history, session=session, run_id=run_id))


async def answer_of(events: AsyncGenerator[AgentEvent]) -> str:
    """The answer at the end of a run's events.

    Raises:
        RunFailed: there is none; it says why, and holds the end of the run.
    """
    end: RunEnded | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunEnded):
                end = event
    assert end is not None
    if not end.good:
        said = f"; the model said last: {end.answer[:OFFENCE]}" if end.detail and end.answer else ""
        raise RunFailed(f"no answer ({end.reason}): {end.detail or end.answer}{said}", end)
    return end.answer
