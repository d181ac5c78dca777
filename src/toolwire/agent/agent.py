"""Agents: a model with tools, and the runs in which it works on a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, Unpack, cast, overload

from typing_extensions import TypeForm, TypeVar

from toolwire._surface import check_items, check_type, wrong_type
from toolwire.agent.agent_keywords import AgentKeywords, check_agent_options, check_run_options
from toolwire.agent.config import AgentConfig, ConfigOptions
from toolwire.agent.conversation_store import Conversation
from toolwire.agent.deferral import DEFER, Deferral
from toolwire.agent.event_iterators import RunEvents, SyncRunEvents
from toolwire.agent.journal import Journal
from toolwire.agent.loop import Run
from toolwire.agent.output import check_no_tool
from toolwire.agent.parent_run import ParentCall
from toolwire.agent.pending import PendingApprovals
from toolwire.agent.prices import check_prices
from toolwire.agent.run_context import AgentParts, ResumeOptions, RunOptions
from toolwire.agent.run_endings import answered, end_of, text_pieces
from toolwire.agent.run_events import AgentEvent, RunEnded
from toolwire.agent.stored_run import saving_run
from toolwire.agent.task import task_message
from toolwire.errors import ConfigurationError, JournalError, RunFailed
from toolwire.execution.approval_requests import AsyncConfirm, Confirm, async_confirm
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import Content, Message
from toolwire.models.backends import Backend
from toolwire.models.named_models import as_backend
from toolwire.policy.approval import ApprovalAnswer
from toolwire.policy.policy import Policy
from toolwire.policy.session import Session
from toolwire.runtime.blocking import iterate_blocking, run_blocking
from toolwire.schema.output_type import OutputType, output_type_of
from toolwire.telemetry.defaults import standard_observers
from toolwire.telemetry.records import Observer
from toolwire.telemetry.run_observer import new_run_id
from toolwire.tools import Tool

if TYPE_CHECKING:
    from toolwire.client.client import Client

_OutputT_co = TypeVar("_OutputT_co", default=str, covariant=True)


class Agent(Generic[_OutputT_co]):
    """A model with tools.

    Args:
        backend: the model: a backend, a client, or a provider and a model in one text, such as "openai:gpt-5-mini".
        tools: the tools that it may call: a registry, or tools in any form that a registry accepts.
        config: settings; None for the defaults.
        output_type: the type of the value that `ask` returns: anything that pydantic understands, such as a model, a
            union or `list[...]`; a list of types, one of which it is; or a dict, a JSON Schema. None for the text of
            the answer.
        options: `policy`, which decides which calls may run; `confirm`, which asks for approval where the policy
            requires it, or "defer", which ends the run until a person has decided; `executor`, which makes the executor
            of a run; `observers`, which receive the records of each run; `telemetry`, whether runs are
            recorded on this machine. See `AgentKeywords`.

    Attributes:
        backend: the model, as a backend.
        config: the argument.
        registry: the tools.
        members: agents that it calls, by the names of the tools for that; see `AgentTeam`.
        handoffs: agents to which it hands a conversation over, likewise.

    Raises:
        ConfigurationError: the policy contains a misspelt name; see `ToolExecutor`. Or `executor` is combined with a
            policy or a timeout, which would have no effect. Or the budget limits money, and nobody says what the model
            costs. Or the text that names the model is incomplete.
        DefinitionError: the output type has no JSON Schema, or a tool has the name of the one for the output.
        KeyError: the text that names the model begins with an unknown provider.
        TypeError: an argument has another type, or an option is unknown.
    """

    @overload
    def __init__(
        self: Agent[str],
        backend: Backend | Client | str,
        tools: ToolRegistry | Iterable[Any] = (),
        config: AgentConfig | None = None,
        *,
        output_type: None = None,
        **options: Unpack[AgentKeywords],
    ) -> None: ...
    @overload
    def __init__(
        self,
        backend: Backend | Client | str,
        tools: ToolRegistry | Iterable[Any] = (),
        config: AgentConfig | None = None,
        *,
        output_type: TypeForm[_OutputT_co],
        **options: Unpack[AgentKeywords],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Any],
        backend: Backend | Client | str,
        tools: ToolRegistry | Iterable[Any] = (),
        config: AgentConfig | None = None,
        *,
        output_type: Mapping[str, Any] | Sequence[Any],
        **options: Unpack[AgentKeywords],
    ) -> None: ...
    def __init__(
        self,
        backend: Backend | Client | str | None = None,  # so that a keyword of another framework is explained first
        tools: ToolRegistry | Iterable[Any] = (),
        config: AgentConfig | None = None,
        *,
        output_type: Any = None,
        **options: Unpack[AgentKeywords],
    ) -> None:
        check_agent_options(options)
        policy, confirm, executor = options.get("policy"), options.get("confirm"), options.get("executor")
        observers = options.get("observers", ())
        backend = as_backend(backend)
        check_type("config", config, (AgentConfig, NoneType), "an AgentConfig or None")
        if isinstance(tools, Tool | str) or not isinstance(tools, Iterable):
            has_registry = isinstance(getattr(tools, "registry", None), ToolRegistry)
            hint = f" ({type(tools).__name__}.registry is one)" if has_registry else ""
            raise wrong_type("tools", tools, f"a ToolRegistry{hint} or a list of tools")
        check_type("policy", policy, (Policy, NoneType), "a Policy or None")
        check_type("observers", observers, Iterable, "an iterable of observers")
        observers = tuple(observers)
        check_items("observers", observers, Observer, "an iterable of observers, with the methods of an Observer")
        if executor is not None and not callable(executor):
            raise wrong_type("executor", executor, "a function that makes a ToolExecutor of a registry and `confirm`")
        # A setting that nobody reads is worse than an error: a deny rule would not deny.
        if executor is not None and (policy is not None or (config is not None and config.timeout is not None)):
            ignored = "policy=" if policy is not None else "AgentConfig(timeout=...)"
            raise ConfigurationError(
                f"{ignored} has no effect beside executor=: pass it to the ToolExecutor made there"
            )
        self._defers = confirm == DEFER
        if not (confirm is None or self._defers or callable(confirm)):
            raise wrong_type("confirm", confirm, "a function of an Approval that returns True or False, or 'defer'")
        confirm = async_confirm(None if confirm == DEFER else confirm)
        self.backend = backend
        self.config = config or AgentConfig()
        # A budget that cannot be counted is refused before anything is spent.
        check_prices(backend, self.config.budget.prices, limited=self.config.budget.money is not None)
        self.registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self.members: dict[str, Agent[Any]] = {}
        self.handoffs: dict[str, Agent[Any]] = {}
        self._policy = policy
        self._confirm = confirm
        self._executor = executor or self._default_executor
        if policy is not None and executor is None:
            # A policy that the executor refuses is reported here, not in the first run.
            ToolExecutor(self.registry, policy=policy, confirm=confirm)
        telemetry = options.get("telemetry")
        check_type("telemetry", telemetry, (bool, NoneType), "True, False or None")
        self.observers = (*observers, *standard_observers(telemetry))
        self._output: OutputType[Any] | None = None
        if output_type is not None and output_type is not str:  # text needs no schema
            check_no_tool(self.registry)
            self._output = output_type_of(output_type)

    @property
    def output(self) -> OutputType[Any] | None:
        """The type of the agent's output, with its JSON Schema; None for the text of the answer."""
        return self._output

    @property
    def defers(self) -> bool:
        """True if a run ends with the reason "pending" where an approval is needed."""
        return self._defers

    def __repr__(self) -> str:
        """Return the agent's name, its model and the number of its tools."""
        model = getattr(self.backend, "model", "") or type(self.backend).__name__
        return f"<Agent {self.config.name!r}: model {model!r}, {len(self.registry)} tools>"

    def _default_executor(self, registry: ToolRegistry, confirm: Confirm | None) -> ToolExecutor:
        return ToolExecutor(registry, policy=self._policy, confirm=confirm, timeout=self.config.timeout, check="warn")

    def run(self, task: Content, **options: Unpack[RunOptions]) -> AsyncGenerator[AgentEvent]:
        """Work on a task, and return an iterator of the events; closing the iterator stops the model and the tools.

        Args:
            task: the user's request: text, or a list of text, images and files.
            options: see `RunOptions`.

        Yields:
            The events of the model's answers and those of the run, `RunEnded` last.

        Raises:
            ConfigurationError: a tool needs dependencies, and there are none; or the budget limits money, and the
                prices of a model are not known; this is raised at once.
            JournalError: the run cannot be recorded, or its records cannot be read.
            DefinitionError: a setting of the model has an invalid value.
            TypeError: an argument is of another type, or a setting is misspelt; this is raised at once.
        """
        check_run_options("run", options, RunOptions.__annotations__)
        check_items("history", options.get("history", ()), Message, "a sequence of Message")
        check_type("session", options.get("session"), (Session, NoneType), "a Session or None")
        check_type("run_id", options.get("run_id", ""), str, "text")
        journal = options.get("journal")
        check_type("journal", journal, (Journal, NoneType), "a Journal, such as MemoryJournal(), or None")
        if self._defers and options.get("parent") is None and journal is not None:
            raise ConfigurationError('an agent with confirm="defer" records its runs itself: it takes no journal')
        if options.get("parent") is None:
            self.check_dependencies(options.get("deps"))
            self.check_budget(options)
        conversation = _conversation_of(options)
        if conversation is not None:
            options = {**options, "history": conversation.messages, "session": conversation.session}
        events = self._run(task_message(task), self.config.with_options(options), options, Deferral(None, {}))
        return RunEvents(events if conversation is None else saving_run(events, conversation, resumes=False))

    def resume(
        self,
        pending: PendingApprovals,
        decisions: Mapping[str, bool | ApprovalAnswer],
        *,
        digest: str = "",
        **options: Unpack[ResumeOptions],
    ) -> AsyncGenerator[AgentEvent]:
        """Resume a run that ended with the reason "pending"; returns an iterator of events, as `run` does.

        Approved calls run exactly as they were shown, if the policy still permits them; the model reads of refusals.
        If the tool or the preview of an approved call has changed since, it does not run: the run ends with the reason
        "pending" again. The events begin with the recorded ones; `ReplayEnded` follows them.

        Args:
            pending: the run, from this process or another one.
            decisions: True, False or an `ApprovalAnswer` for each `PendingApproval.id`.
            digest: `PendingApprovals.digest` of what the decisions are about; another value is refused. "" for no
                check.
            options: see `ResumeOptions`.

        Raises:
            JournalError: a decision is missing or is about no pending call, the value is not the one of the digest, or
                another agent's, or this process has resumed it already; only the last is raised by the iterator.
            ConfigurationError: the agent was not made with `confirm="defer"`; or a tool needs dependencies, and `deps`
                is missing; or the budget limits money, and the prices of a model are not known.
            TypeError: an argument is of another type.
        """
        check_run_options("resume", options, ResumeOptions.__annotations__)
        check_type("pending", pending, PendingApprovals, "PendingApprovals, such as RunEnded.pending")
        check_type("session", options.get("session"), (Session, NoneType), "a Session or None")
        if not self._defers:
            raise ConfigurationError('only an agent with confirm="defer" resumes pending approvals')
        self.check_dependencies(options.get("deps"))
        self.check_budget(options)
        if pending.agent != self.config.name:
            raise JournalError(f"this is a run of the agent {pending.agent!r}, and not of {self.config.name!r}")
        if digest and digest != pending.digest:
            raise JournalError("these are not the pending approvals that the decisions are about")
        conversation = _conversation_of(cast(RunOptions, options))
        if conversation is not None:
            if conversation.pending is None or conversation.pending.digest != pending.digest:
                raise JournalError(f"the conversation {conversation.name!r} does not wait for these approvals")
            options["session"] = conversation.session
        deferral = Deferral(pending, pending.check_decisions(decisions))
        run_options = cast(RunOptions, {**options, "history": pending.history, "run_id": pending.run_id})
        events = self._run(task_message(pending.content), self.config.with_options(run_options), run_options, deferral)
        return RunEvents(events if conversation is None else saving_run(events, conversation, resumes=True))

    def check_dependencies(self, deps: object) -> None:
        """Check that the tools of this agent, and of those that it works with, can work with these dependencies.

        Args:
            deps: the dependencies of the run; None if there are none.

        Raises:
            ConfigurationError: a tool needs dependencies, and there are none.
            TypeError: a tool names a class of which the dependencies are not an instance.
        """
        for agent, _ in self._colleagues():
            agent.registry.check_dependencies(deps)

    def check_budget(self, options: ConfigOptions) -> None:
        """Check that the money of a run can be counted if its budget limits money: also for agents it works with.

        Args:
            options: the options of the run.

        Raises:
            ConfigurationError: the prices of a model are not known.
            DefinitionError, TypeError: an option is not valid.
        """
        if self.config.with_options(options).budget.money is None:
            return
        for agent, in_same_run in self._colleagues():
            config = agent.config.with_options(options) if in_same_run else agent.config
            check_prices(agent.backend, config.budget.prices, limited=True)

    def _colleagues(self) -> list[tuple[Agent[Any], bool]]:
        """Return this agent and those it works with, each with whether it works in the same run after a hand-off."""
        colleagues: list[tuple[Agent[Any], bool]] = [(self, True)]
        for agent, in_same_run in colleagues:
            members = ((member, False) for member in agent.members.values())
            handoffs = ((other, in_same_run) for other in agent.handoffs.values())
            # Agents of teams may refer to each other.
            colleagues += [colleague for colleague in (*members, *handoffs) if colleague not in colleagues]
        return colleagues

    async def _run(
        self, task: Message, config: AgentConfig, options: RunOptions, deferral: Deferral
    ) -> AsyncGenerator[AgentEvent]:
        deferral.claim()
        queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        session, parent = options.get("session"), options.get("parent")
        if session is None:
            session = Session() if parent is None else parent.session.delegate()
        parts = self._parts(config, options, deferral)
        run_id = options.get("run_id") or new_run_id()
        run = Run(parts, queue.put_nowait, session, run_id, options)
        history = options.get("history", ())

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

    def _parts(self, config: AgentConfig, options: RunOptions, deferral: Deferral) -> AgentParts:
        handoffs = {
            name: partial(agent._parts, agent.config.with_options(options), options, deferral)
            for name, agent in self.handoffs.items()
        }
        confirm = self._confirm_of(options.get("parent"), deferral)
        return AgentParts(
            owner=self,
            backend=self.backend,
            registry=self.registry,
            config=config,
            make_executor=self._executor,
            confirm=confirm,
            observers=self.observers,
            output=self._output,
            handoffs=handoffs,
        )

    def _confirm_of(self, parent: ParentCall | None, deferral: Deferral) -> AsyncConfirm | None:
        """Return the function that asks for approval in a run; runs in calls of a deferring one share its questions."""
        if not self._defers:
            return self._confirm
        return parent.confirm if parent is not None and isinstance(parent.confirm, Deferral) else deferral

    async def ask(self, task: Content, **options: Unpack[RunOptions]) -> _OutputT_co:
        """Return the answer to a task: a value of the output type, or text; see `run` for the arguments.

        Raises:
            RunFailed: the run ended without an answer; the error says why, and contains the end of the run.
        """
        return await self._value(self.run(task, **options))

    async def ask_resumed(
        self,
        pending: PendingApprovals,
        decisions: Mapping[str, bool | ApprovalAnswer],
        *,
        digest: str = "",
        **options: Unpack[ResumeOptions],
    ) -> _OutputT_co:
        """Return the answer of a run that is resumed with decisions; see `resume` for the arguments.

        Raises:
            RunFailed: the run ended without an answer, for example since further calls wait for an approval.
        """
        return await self._value(self.resume(pending, decisions, digest=digest, **options))

    async def _value(self, events: AsyncGenerator[AgentEvent]) -> _OutputT_co:
        """Return the value of the output type, or the text, at the end of a run's events."""
        end = answered(await end_of(events))
        if self._output is None:
            return cast(_OutputT_co, end.answer)
        if end.reason != "answered":
            raise RunFailed(f"no output ({end.reason}): the run ended with the tool {end.detail}", end)
        return cast(_OutputT_co, end.output)

    async def run_to_end(self, task: Content, **options: Unpack[RunOptions]) -> RunEnded:
        """Return the end of a run: its answer or output, messages and usage, or why it has no answer; see `run`."""
        return await end_of(self.run(task, **options))

    def run_to_end_sync(self, task: Content, **options: Unpack[RunOptions]) -> RunEnded:
        """Return the end of a run without asyncio; see `run_to_end`."""
        return run_blocking(lambda: self.run_to_end(task, **options))

    def run_sync(self, task: Content, **options: Unpack[RunOptions]) -> Iterator[AgentEvent]:
        """Work on a task without asyncio: an iterator of the events, as `run` yields them; closing it stops the run."""
        return SyncRunEvents(iterate_blocking(lambda: self.run(task, **options)))

    def stream_text(self, task: Content, **options: Unpack[RunOptions]) -> AsyncGenerator[str]:
        """Yield the model's text as it arrives, and raise at the end if it is not an answer; see `run`.

        The pieces are those of all rounds, with an empty line before the text of another round: whether a round is the
        last one shows only when it ends. The text of an output tool, and text of members, is not included.

        Raises:
            RunFailed: the run ended without an answer; the error says why, and contains the end of the run.
        """
        return text_pieces(self.run(task, **options))

    def stream_text_sync(self, task: Content, **options: Unpack[RunOptions]) -> Iterator[str]:
        """Yield the model's text without asyncio; see `stream_text`."""
        return iterate_blocking(lambda: self.stream_text(task, **options))

    def ask_sync(self, task: Content, **options: Unpack[RunOptions]) -> _OutputT_co:
        """Return the answer to a task without asyncio; see `ask`."""
        return run_blocking(lambda: self.ask(task, **options))

    def resume_sync(
        self,
        pending: PendingApprovals,
        decisions: Mapping[str, bool | ApprovalAnswer],
        *,
        digest: str = "",
        **options: Unpack[ResumeOptions],
    ) -> Iterator[AgentEvent]:
        """Resume a run without asyncio; see `resume`."""
        return SyncRunEvents(iterate_blocking(lambda: self.resume(pending, decisions, digest=digest, **options)))

    def ask_resumed_sync(
        self,
        pending: PendingApprovals,
        decisions: Mapping[str, bool | ApprovalAnswer],
        *,
        digest: str = "",
        **options: Unpack[ResumeOptions],
    ) -> _OutputT_co:
        """Return the answer of a run that is resumed without asyncio; see `ask_resumed`."""
        return run_blocking(lambda: self.ask_resumed(pending, decisions, digest=digest, **options))


def _conversation_of(options: RunOptions) -> Conversation | None:
    """Return the stored conversation of a run.

    Raises:
        ConfigurationError: there is another history or session beside it.
        TypeError: it is of another type.
    """
    conversation = options.get("conversation")
    check_type("conversation", conversation, (Conversation, NoneType), 'a Conversation, such as store.open("name")')
    if conversation is not None and (options.get("history") or options.get("session") is not None):
        raise ConfigurationError("a conversation has its own history and session: pass no others beside it")
    return conversation
