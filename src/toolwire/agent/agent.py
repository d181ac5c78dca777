"""Agents: a model with tools, and the runs in which it works on a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from types import NoneType
from typing import Any

from toolwire._surface import check_items, check_type, wrong_type
from toolwire.agent.config import AgentConfig
from toolwire.agent.journal import Journal
from toolwire.agent.loop import AgentParts, Run
from toolwire.agent.parent_run import ParentCall
from toolwire.agent.recovery import OFFENCE
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.errors import RunFailed
from toolwire.execution.approval_requests import Confirm, check_confirm
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import Message
from toolwire.models.backends import Backend
from toolwire.policy.policy import Policy
from toolwire.policy.session import Session
from toolwire.telemetry.defaults import standard_observers
from toolwire.telemetry.records import Observer
from toolwire.telemetry.run_observer import new_run_id
from toolwire.tools import Tool

_BACKEND = "a Backend, such as ApiBackend(client)"


class Agent:
    """A model with tools.

    Args:
        backend: the model.
        tools: the tools that it may call: a registry, or tools in any form that a registry accepts.
        config: settings; None for the defaults.
        policy: decides which calls may run; None for the default policy.
        confirm: asks for approval where the policy requires it.
        executor: makes the executor of a run, in place of one for the policy and `confirm`.
        observers: receive the records of each run.
        telemetry: whether the default observers receive them too; see `toolwire.telemetry.standard_observers`.

    Raises:
        ConfigurationError: the policy contains a misspelt name; see `ToolExecutor`.
        TypeError: an argument has another type.
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
            raise wrong_type("backend", backend, _BACKEND)
        if type(backend).__name__ == "Client":  # its class is not imported here, and it streams too
            raise wrong_type("backend", backend, _BACKEND)
        check_type("config", config, (AgentConfig, NoneType), "an AgentConfig or None")
        if isinstance(tools, Tool | str) or not isinstance(tools, Iterable):
            raise wrong_type("tools", tools, "a ToolRegistry or a list of tools")
        check_type("policy", policy, (Policy, NoneType), "a Policy or None")
        check_type("observers", observers, Iterable, "an iterable of observers")
        if executor is not None and not callable(executor):
            raise wrong_type("executor", executor, "a function that makes a ToolExecutor of a registry and `confirm`")
        if confirm is not None:
            check_confirm(confirm)
        self.backend = backend
        self.config = config or AgentConfig()
        self.registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self._policy = policy
        self._confirm = confirm
        self._executor = executor or self._default_executor
        if policy is not None and executor is None:
            # A policy that the executor refuses is reported here, not in the first run.
            ToolExecutor(self.registry, policy=policy, confirm=confirm)
        self._observers = (*observers, *(standard_observers() if telemetry else ()))

    def __repr__(self) -> str:
        """Return the agent's name, its model and the number of its tools."""
        model = getattr(self.backend, "model", "") or type(self.backend).__name__
        return f"<Agent {self.config.name!r}: model {model!r}, {len(self.registry)} tools>"

    def _default_executor(self, registry: ToolRegistry, confirm: Confirm | None) -> ToolExecutor:
        return ToolExecutor(registry, policy=self._policy, confirm=confirm, check="warn")

    def run(
        self,
        task: str,
        *,
        history: Sequence[Message] = (),
        session: Session | None = None,
        run_id: str = "",
        journal: Journal | None = None,
        parent: ParentCall | None = None,
    ) -> AsyncGenerator[AgentEvent]:
        """Work on a task, and return an iterator of the events; closing the iterator stops the model and the tools.

        Args:
            task: the user's request.
            history: the conversation so far: `RunEnded.messages` of the previous run.
            session: state of the conversation; None for a new one, or for the one that `parent` hands on.
            run_id: name of the run in records, and part of the ids of calls that come without one; "" for a new one.
            journal: records the run. If it contains records, the run continues after them; task, history and agent
                must then be the same as before.
            parent: the call of another run in which this one is nested; see `AgentTeam`.

        Yields:
            The events of the model's answers and those of the run, `RunEnded` last.

        Raises:
            JournalError: the run cannot be recorded, or its records cannot be read.
            TypeError: an argument is of another type; this is raised at once.
        """
        check_type("task", task, str, "text")
        check_items("history", history, Message, "a sequence of Message")
        check_type("session", session, (Session, NoneType), "a Session or None")
        return self._run(task, history, session, run_id, journal, parent)

    async def _run(
        self,
        task: str,
        history: Sequence[Message],
        session: Session | None,
        run_id: str,
        journal: Journal | None,
        parent: ParentCall | None,
    ) -> AsyncGenerator[AgentEvent]:
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
        """Return the answer to a task; see `run` for the arguments.

        Raises:
            RunFailed: the run ended without an answer; the error says why, and contains the end of the run.
        """
        return await answer_of(self.run(task, history=history, session=session, run_id=run_id))


async def answer_of(events: AsyncGenerator[AgentEvent]) -> str:
    """Return the answer at the end of a run's events.

    Raises:
        RunFailed: the run ended without an answer; the error says why, and contains the end of the run.
    """
    end: RunEnded | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunEnded):
                end = event
    assert end is not None
    if not end.good:
        quote = f"; the model said last: {end.answer[:OFFENCE]}" if end.detail and end.answer else ""
        raise RunFailed(f"no answer ({end.reason}): {end.detail or end.answer}{quote}", end)
    return end.answer
