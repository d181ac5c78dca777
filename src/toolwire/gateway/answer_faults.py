"""Faults of answers: signs that a client must not take an answer for a good one."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire.events import CallEnd, Event, Finish, ProblemFound, UsageCounted
from toolwire.gateway.failures import GatewayFailure
from toolwire.messages import FinishReason, Problem
from toolwire.providers.failure_kinds import UNREACHABLE

_GOOD_ENDS = (FinishReason.STOP, FinishReason.TOOL_CALLS)
"""Ends of an answer in which a client expects that nothing is missing."""


class FaultWatch:
    """Watches the events of one answer for the end of an answer that the client must not take for a good one.

    A connection that is closed in the middle looks like the end of an answer, so only the missing end shows it. An
    answer of which nothing could be read looks like one without content, and an answer whose call was broken looks
    like one without a call.

    Args:
        shows_truncated_calls: whether the client gets the text of a call that is broken, and so sees that it is.
    """

    def __init__(self, *, shows_truncated_calls: bool) -> None:
        self._shows_truncated_calls = shows_truncated_calls
        self._read_any = False
        self._malformed: Problem | None = None
        self._truncated: Problem | None = None
        self._broken: Problem | None = None

    def fault_in(self, events: Sequence[Event]) -> Problem | None:
        """Return the problem that ends the answer with these events; None if there is none, or if it goes on."""
        for event in events:
            match event:
                case ProblemFound(problem) if problem.index is not None:
                    self._broken = self._broken or problem
                case ProblemFound(problem) if problem.kind == "malformed":
                    self._malformed = self._malformed or problem
                case ProblemFound(problem) if problem.kind == "truncated":
                    self._truncated = problem
                case ProblemFound() | UsageCounted() | Finish() | CallEnd(complete=False):
                    pass
                case _:
                    self._read_any = True
        if not (events and isinstance(events[-1], Finish)):
            return None
        if self._truncated is not None and events[-1].reason is FinishReason.ERROR:
            return self._truncated
        if not self._shows_truncated_calls and events[-1].reason in _GOOD_ENDS and self._broken is not None:
            return self._broken
        return None if self._read_any else self._malformed


def check_all_read(problem: Problem | None, backend: str) -> None:
    """Check that nothing of a backend's answer was lost because it does not belong to the backend's API.

    Args:
        problem: the last problem of the answer that belongs to no call; None if there is none.
        backend: the backend's name, for the message.

    Raises:
        GatewayFailure: a part of the answer, or the name of a call, could not be read.
    """
    if problem is not None and problem.kind in ("malformed", "missing_name"):
        raise GatewayFailure(UNREACHABLE, f"{backend}: {problem.message}")
