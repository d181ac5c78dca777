"""What a run is to the runs inside its calls: it hears them, pays for them, and knows what they have read."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from toolwire.agent.budget import Spent
from toolwire.agent.run_events import AgentEvent
from toolwire.execution.executor import Confirm
from toolwire.policy.session import Session

DEEPEST = 8
"""Members of members of members."""

Emit = Callable[[AgentEvent], None]


@dataclass(frozen=True, slots=True)
class ParentCall:
    """A call of a run, to the run inside it.

    Attributes:
        place: names the call among all runs; a run inside it is named after it.
        emit: hears what is told.
        session: of the run that made the call.
        inside: what runs inside the call use.
        overspent: which of its budgets that these use too is used up, in words; "" if none is.
        left: seconds that it has left; None: no limit.
        confirm: asks somebody, where a run inside the call has nobody of its own.
        depth: how many runs stand around the call.
    """

    place: str
    emit: Emit
    session: Session
    inside: list[Spent]
    overspent: Callable[[], str]
    left: Callable[[], float | None]
    confirm: Confirm | None = None
    depth: int = 1


LEAD: ContextVar[ParentCall | None] = ContextVar("toolwire_lead", default=None)
"""Inside a call that a run makes: that call."""
