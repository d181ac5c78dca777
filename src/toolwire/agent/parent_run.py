"""The parent run, as seen by runs nested in its tool calls: events, budget and taint flow back to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from toolwire.agent.budget import RunLimits, Spending
from toolwire.agent.journal import Journal
from toolwire.agent.run_events import AgentEvent, Emit
from toolwire.execution.approval_requests import AsyncConfirm
from toolwire.policy.session import Session

MAX_DEPTH = 8
"""Maximum number of runs that are nested in each other's calls."""


@dataclass(frozen=True, slots=True)
class ParentCall:
    """A tool call, as seen by a run nested in it.

    Attributes:
        place: name of the call that is unique among all runs; the nested run is named after it.
        emit: reports an event of the parent run.
        session: session of the parent run.
        nested: takes the spending of runs inside the call.
        limits: limits of the parent run, which hold for nested runs as well.
        confirm: asks for approval where the nested run has no function of its own for that.
        depth: number of runs around the nested one.
        journal: records the nested run; None if the parent run is not recorded.
        deps: dependencies of the parent run's tools, for nested runs that have none of their own.
    """

    place: str
    emit: Emit
    session: Session
    nested: list[Spending]
    limits: RunLimits
    confirm: AsyncConfirm | None = None
    depth: int = 1
    journal: Journal | None = None
    deps: Any = None


CURRENT_CALL: ContextVar[ParentCall | None] = ContextVar("toolwire_current_call", default=None)
"""The call of a run that is running in this context; None outside every call.

A context variable, because between a run and the runs nested in its calls there is the code of a tool, which passes
nothing on and may be a user's own.
"""


def enclosing_sessions(parent: ParentCall | None) -> tuple[Session, ...]:
    """Return the sessions of the runs around a run that begins now.

    The code of any tool can begin a run, which has nothing else to do with the run around it. Its task may yet contain
    what that run has read, and its answer what it has read itself.

    Args:
        parent: the call that the run is given as its parent; None for none.
    """
    calls = {id(call.session): call.session for call in (parent, CURRENT_CALL.get()) if call is not None}
    return tuple(calls.values())


def with_taint(emit: Emit, session: Session, around: Sequence[Session]) -> Emit:
    """Return a function that emits events of a run, after the sessions around it have got its taint.

    The code that reads the events may return what they show before the run is over.
    """

    def emit_tainted(event: AgentEvent) -> None:
        spread_taint(session, around)
        emit(event)

    return emit_tainted if around else emit


def spread_taint(session: Session, around: Sequence[Session]) -> None:
    """Mark the sessions around a run as untrusted if its own session is."""
    if session.untrusted:
        for outer in around:
            outer.untrusted = True
