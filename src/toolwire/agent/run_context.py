"""The context of one run: what its model turns and its tool calls share."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.agent.budget import RunLimits
from toolwire.agent.config import AgentConfig
from toolwire.agent.parent_run import ParentCall
from toolwire.agent.run_events import Emit
from toolwire.execution.disclosure import Disclosure
from toolwire.policy.session import Session
from toolwire.telemetry.run_observer import RunObserver


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
    """

    config: AgentConfig
    session: Session
    run_id: str
    limits: RunLimits
    disclosure: Disclosure
    observer: RunObserver
    emit: Emit
    parent: ParentCall | None
