"""What a run may still use: by its own budget, and by that of the run it works for."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from toolwire.agent.budget import Budget, Prices, Spent
from toolwire.agent.parent_run import ParentCall


class Limits:
    """The limits of one run, from its beginning.

    Args:
        budget: its own.
        lead: whom it works for.
        clock: seconds.

    Attributes:
        budget: its own.
        spent: what it has used.
    """

    def __init__(self, budget: Budget, lead: ParentCall | None, clock: Callable[[], float] = monotonic) -> None:
        self.budget = budget
        self.spent = Spent(budget.prices or Prices())
        self._lead = lead
        self._clock = clock
        self._begun = clock()

    @property
    def seconds(self) -> float:
        """How long the run has taken."""
        return self._clock() - self._begun

    def went_on_for(self, seconds: float) -> None:
        """It has taken so long in earlier lives."""
        self._begun -= seconds

    def exceeded(self) -> str:
        """Which budget is used up, in words; "" if none is."""
        self.spent.seconds = self.seconds
        return self.budget.exceeded(self.spent) or self._led()

    def overspent(self) -> str:
        """The same, as far as runs inside its calls use it too: they count rounds and calls of their own."""
        self.spent.seconds = self.seconds
        return self.budget.overspent(self.spent) or self._led()

    def _led(self) -> str:
        return "" if self._lead is None else self._lead.overspent()

    def left(self) -> float | None:
        """Seconds that are left, 0 at the least; None: there is no limit."""
        own = None if self.budget.seconds is None else max(0.0, self.budget.seconds - self.seconds)
        theirs = None if self._lead is None else self._lead.left()
        if own is None or theirs is None:
            return theirs if own is None else own
        return min(own, theirs)

    @property
    def out_of_time(self) -> bool:
        """No second is left."""
        return self.left() == 0
