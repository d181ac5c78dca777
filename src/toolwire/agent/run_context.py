"""The options of one run, the parts of its agent, and the context that its model turns and its tool calls share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from toolwire.agent.budget import Budget, RunLimits
from toolwire.agent.config import AgentConfig, ConfigOptions
from toolwire.agent.conversation_store import Conversation
from toolwire.agent.journal import Journal
from toolwire.agent.output import RunOutput
from toolwire.agent.parent_run import ParentCall
from toolwire.agent.run_events import Emit
from toolwire.agent.untrusted_history import ToolOwner
from toolwire.execution.approval_requests import AsyncConfirm
from toolwire.execution.disclosure import Disclosure
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import Message
from toolwire.models.backends import Backend
from toolwire.policy.session import Session
from toolwire.providers.model_settings import ModelSettings
from toolwire.schema.output_type import OutputType
from toolwire.telemetry.records import Observer
from toolwire.telemetry.run_observer import RunObserver


class RunOptions(ConfigOptions, total=False):
    """Options of a run.

    Attributes:
        settings, extra_body, extra_headers: additions to the requests of this run; see `toolwire.models.ModelOptions`.
        budget: what the run may use, in place of the agent's budget; None for that.
        history: the conversation so far: `RunEnded.messages` of the previous run.
        session: state of the conversation; None for a new one, or for the one that `parent` hands on.
        conversation: a stored conversation, in place of `history` and `session`; see `ConversationStore`.
        run_id: name of the run in records, and part of the ids of calls that come without one; "" for a new one.
        deps: dependencies of the tools, which get them as `ToolContext.deps`; any object. Members of a team get them
            too. They are not recorded.
        journal: records the run. If it contains records, the run continues after them; task, history and agent must
            then be the same as before.
        parent: the call of another run in which this one is nested; see `AgentTeam`.
    """

    history: Sequence[Message]
    session: Session | None
    conversation: Conversation | None
    run_id: str
    deps: Any
    journal: Journal | None
    parent: ParentCall | None


class ResumeOptions(ConfigOptions, total=False):
    """Options of a run that is resumed with decisions.

    Attributes:
        settings, extra_body, extra_headers: additions to the requests from here on; they are not part of the value.
        budget: what the run may use from its beginning, in place of the agent's budget; None for that.
        session: gets the state of the conversation, in place of the state that it has; None for a new one.
        conversation: the stored conversation whose `pending` is resumed, in place of `session`. No other process can
            resume it then.
        deps: dependencies of the tools.
    """

    session: Session | None
    conversation: Conversation | None
    deps: Any


class SubmitOptions(TypedDict, total=False):
    """Options of a durable run that any worker may execute. All of them are recorded.

    Attributes:
        agent: name of the agent; may be left out if there is one only.
        run_id: name of the run; "" for a new one.
        history: the conversation so far.
        session: state of the conversation; updated while the run works in this process.
        settings, extra_body: additions to the requests of this run; see `toolwire.models.ModelOptions`. There are no
            `extra_headers`, which often contain secrets: give them to the agent or the client.
        budget: what the run may use, in place of the agent's budget; None for that. Without prices of its own it has
            those of the agent's budget in the process that executes the run.
    """

    agent: str
    run_id: str
    history: Sequence[Message]
    session: Session | None
    settings: ModelSettings | None
    extra_body: Mapping[str, Any] | None
    budget: Budget | None


class DurableRunOptions(SubmitOptions, total=False):
    """Options of a durable run that this process executes.

    Attributes:
        deps: dependencies of the tools, in place of those of `DurableRuns`. They are not recorded: the process that
            resumes the run passes its own.
    """

    deps: Any


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The parts of an agent that its runs use.

    Attributes:
        owner: the agent itself, with the tools of all agents that it works with.
        backend: the model.
        registry: the tools that it may call.
        config: settings of the agent.
        make_executor: makes the executor of a run, from the registry and the function that asks for approval.
        confirm: asks for approval where the policy requires it.
        observers: receive the records of each run.
        output: the type of its output; None for text.
        handoffs: returns the parts of another agent, by the name of the tool that hands the conversation over to it.
    """

    owner: ToolOwner
    backend: Backend
    registry: ToolRegistry
    config: AgentConfig
    make_executor: Callable[[ToolRegistry, AsyncConfirm | None], ToolExecutor]
    confirm: AsyncConfirm | None
    observers: Sequence[Observer]
    output: OutputType[Any] | None = None
    handoffs: Mapping[str, Callable[[], AgentParts]] = field(default_factory=dict)

    def disclosure(self) -> Disclosure:
        """Return what chooses the tools that the model can see."""
        format = self.backend.format or self.backend.api or "openai_chat"
        return Disclosure(self.registry, format=format, budget_tokens=self.config.definitions)


@dataclass(frozen=True, slots=True)
class RunContext:
    """The parts of a run that all its steps use; made once, when the run is made.

    Attributes:
        config: settings of the agent.
        session: state of the conversation.
        run_id: name of the run.
        limits: what the run may still use.
        disclosure: chooses the tools that the model can see.
        observer: reports to the observers of the run.
        emit: reports an event to the reader of the run's events.
        parent: the call in which this run is nested; None for a run that a program began.
        deps: dependencies of the tools.
        output: the structured output of the run; None for text.
    """

    config: AgentConfig
    session: Session
    run_id: str
    limits: RunLimits
    disclosure: Disclosure
    observer: RunObserver
    emit: Emit
    parent: ParentCall | None
    deps: Any
    output: RunOutput | None
