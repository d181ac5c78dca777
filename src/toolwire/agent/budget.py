"""Budgets of runs: what a run may use, what it has used, and what is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from time import monotonic
from types import NoneType
from typing import TypeVar

from toolwire._surface import check_number, check_type
from toolwire.agent.answer_queue import AnswerQueue
from toolwire.agent.prices import FREE, ModelPrices, Prices
from toolwire.execution.tool_context import BudgetLeft
from toolwire.messages import Usage
from toolwire.text.suggest import suggests_keywords

LAST_SECONDS = 60.0
"""Seconds for the last answer, once the seconds of the run are used up."""
ANSWER_TOKENS = 4096
"""Length that an answer is expected to have, in tokens, if the settings of the agent do not limit it."""
MOST_TOKENS = 100_000_000
"""Maximum number of tokens that is believed of one answer; no model reads a tenth of it."""


class BudgetUsedUp(Exception):
    """A budget was used up before the model could be asked, or while it answered; the message says which."""


def is_believable(usage: Usage | None) -> bool:
    """Return whether a model has reported tokens: some, and neither negative nor impossibly large numbers of them."""
    if usage is None:
        return False
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
    # A negative count would give back what a run has used, and a huge one would hide it.
    return min(counts) >= 0 and max(counts) <= MOST_TOKENS and usage.input_tokens + usage.output_tokens > 0


@suggests_keywords
@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of what a run may use; None for no limit.

    When a budget is used up, the model is asked for one last answer; a member of a team is not if it is a budget of its
    coordinator. Tokens and money are counted when an answer ends, so the answer that uses them up is complete. Members
    that work at the same time ask their models only while there is room for all their answers, else one by one: for the
    prompt and `max_tokens` of the agent's settings (4096 without it), and at least for the largest answer so far.

    Attributes:
        rounds: requests to the model, including the one for the last answer. Members of a team count their own.
        calls: tool calls. Members of a team count their own.
        tokens: tokens read and written, including those of members; estimated for answers whose model reports none.
        seconds: duration of the whole run, including the time in which the user is asked for approval. What is running
            when it has passed is stopped; a plain function is abandoned in its thread.
        money: cost by `prices`, including that of members by theirs.
        prices: prices of the model, or of several by their names. Without them, `money` is counted in US dollars by the
            prices that the provider publishes; an agent whose model has none refuses the budget. `Prices()` is for a
            model that costs nothing.
        last_seconds: seconds for each attempt at the last answer, in addition to `seconds`.
    """

    rounds: int = 20
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None
    prices: Prices | Mapping[str, Prices] | None = None
    last_seconds: float = LAST_SECONDS

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            TypeError: a value is of another type.
            ValueError: the budget has no round, or a limit is below zero.
        """
        check_number("rounds", self.rounds, "a number of rounds", least=1, whole=True)
        for name in ("calls", "tokens", "seconds", "money"):
            check_number(name, getattr(self, name), "a number", optional=True)
        check_number("last_seconds", self.last_seconds, "a number of seconds")
        check_type("prices", self.prices, (Prices, Mapping, NoneType), "Prices, a dict of Prices by model, or None")

    def exceeded(self, spending: Spending) -> str:
        """Return which budget is used up before the next round, in words; "" if none is."""
        if spending.rounds >= self.rounds - 1:
            return f"the budget of {self.rounds} rounds"
        if self.calls is not None and spending.calls >= self.calls:
            return f"the budget of {self.calls} calls"
        return self.shared_exceeded(spending)

    def shared_exceeded(self, spending: Spending) -> str:
        """Return which budget that nested runs use too is used up, in words; "" if none is."""
        limits = (
            (self.tokens, spending.tokens, "tokens"),
            (self.seconds, spending.seconds, "seconds"),
            (self.money, spending.total_money, "money"),
        )
        for limit, spent, name in limits:
            if limit is not None and spent >= limit:
                return f"the budget of {limit:g} {name}"
        return ""


@dataclass(slots=True, eq=False)
class Spending:
    """The resources that a run has used.

    Attributes:
        usage: tokens of the run's answers, and of nested runs in calls that have ended.
        money: cost of these tokens.
    """

    rounds: int = 0
    calls: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    money: float = 0.0
    _open_calls: list[list[Spending]] = field(default_factory=list)

    def add(self, usage: Usage | None, prices: ModelPrices = FREE) -> None:
        """Count the tokens of an answer, by the prices of the model that wrote it."""
        if usage is not None:
            self.usage += usage
            self.money += prices.cost_of(usage)

    def open_call(self) -> list[Spending]:
        """Return the list to which runs inside a new call add their spending; it counts at once."""
        nested: list[Spending] = []
        self._open_calls.append(nested)
        return nested

    def close_call(self, nested: list[Spending]) -> None:
        """Add the spending inside a call to this one for good; a call that is closed already is not counted again."""
        # Compared by identity: two calls without nested runs have equal, empty lists.
        still_open = [other for other in self._open_calls if other is not nested]
        if len(still_open) < len(self._open_calls):
            self._open_calls = still_open
            for spending in nested:
                self.usage += spending.total_usage
                self.money += spending.total_money

    @property
    def total_usage(self) -> Usage:
        """Tokens of all answers, including those of nested runs that are still running."""
        return reduce(add, (spending.total_usage for nested in self._open_calls for spending in nested), self.usage)

    @property
    def tokens(self) -> int:
        """Number of tokens read and written, including those of nested runs."""
        total = self.total_usage
        return total.input_tokens + total.output_tokens

    @property
    def total_money(self) -> float:
        """Cost of all answers, including those of nested runs."""
        return self.money + sum(spending.total_money for nested in self._open_calls for spending in nested)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedCost:
    """The most that an answer is expected to use.

    Attributes:
        tokens: tokens read and written.
        money: cost of these tokens.
    """

    tokens: int = 0
    money: float = 0.0


_HAS_ROOM: ContextVar[bool] = ContextVar("toolwire_has_room", default=False)
"""True inside an answer for which there is room: a model may itself be a program that runs agents, and those would wait
for the answer that waits for them."""


class RunLimits:
    """The limits of one run, counted from the moment at which this is made.

    Args:
        budget: the run's own budget.
        parent: limits of the parent run, which hold for this one as well; None if there is no parent.
        clock: returns the time in seconds.

    Attributes:
        budget: the run's own budget.
        spending: what the run has used.
        clock: the clock by which the run's seconds are counted.
    """

    def __init__(
        self,
        budget: Budget,
        parent: RunLimits | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.budget = budget
        self.spending = Spending()
        self.clock = clock
        self._parent = parent
        self._began = clock()
        self._queue: AnswerQueue = AnswerQueue() if parent is None else parent._queue
        self._expected: list[ExpectedCost] = []  # of the answers that are being written, in this run or one inside it
        self._largest = ExpectedCost()  # of these answers so far

    @property
    def limits_money(self) -> bool:
        """True if this budget or one above it limits money."""
        return self.budget.money is not None or (self._parent is not None and self._parent.limits_money)

    @property
    def seconds(self) -> float:
        """Duration of the run so far, in seconds."""
        return self.clock() - self._began

    def add_seconds(self, seconds: float) -> None:
        """Count the seconds that the run took in earlier processes."""
        self._began -= seconds

    def exceeded(self) -> str:
        """Return which budget is used up, in words; "" if none is."""
        self.spending.seconds = self.seconds
        return self.budget.exceeded(self.spending) or self.parent_exceeded()

    def shared_exceeded(self) -> str:
        """Return which budget that nested runs use too is used up, in words; "" if none is."""
        self.spending.seconds = self.seconds
        return self.budget.shared_exceeded(self.spending) or self.parent_exceeded()

    def parent_exceeded(self) -> str:
        """Return which budget of a run around this one is used up, in words; "" if none is."""
        return "" if self._parent is None else self._parent.shared_exceeded()

    @property
    def reserves(self) -> bool:
        """True if answers use a budget of tokens or money, in which there must be room for them."""
        return bool(self._reserving(last=False))

    def _reserving(self, *, last: bool) -> list[RunLimits]:
        """Return the limits that an answer must have room in: those of tokens or money, here and around this run.

        The last answer is asked for when those of the run itself are used up, so only those around it count.
        """
        above = [] if self._parent is None else self._parent._reserving(last=False)
        limited = self.budget.tokens is not None or self.budget.money is not None
        return [self, *above] if limited and not last else above

    @asynccontextmanager
    async def room_for(self, expected: ExpectedCost, *, last: bool = False) -> AsyncIterator[None]:
        """Wait until the budgets have room for an answer, and keep that room until the answer is counted.

        There is always room for one answer, however large it is, while a budget is not used up.

        Args:
            expected: what the answer may use.
            last: whether it is the last answer of the run, which may exceed the run's own budget.

        Raises:
            BudgetUsedUp: a budget was used up, also that of seconds, before there was room.
        """
        levels = self._reserving(last=last)
        if not levels or _HAS_ROOM.get():
            yield
            return

        def admit() -> bool:
            if used_up := self.parent_exceeded() if last else self.shared_exceeded():
                raise BudgetUsedUp(used_up)
            has_room = all(level._has_room(expected) for level in levels)
            if has_room:
                for level in levels:
                    level._expected.append(expected)
            return has_room

        left = self.seconds_left()
        try:
            await self._queue.wait(admit, max(left or 0.0, self.budget.last_seconds) if last else left)
        except TimeoutError:
            raise BudgetUsedUp("the time to wait for other members") from None
        token = _HAS_ROOM.set(True)
        tokens, money = self.spending.tokens, self.spending.total_money
        try:
            yield
        finally:
            _HAS_ROOM.reset(token)
            spent = ExpectedCost(self.spending.tokens - tokens, self.spending.total_money - money)
            for level in levels:
                level._expected.remove(expected)
                level._largest = _at_least(level._largest, spent)
            self._queue.call_next()

    def _has_room(self, expected: ExpectedCost) -> bool:
        if not self._expected:
            return True
        answers = [_at_least(cost, self._largest) for cost in (*self._expected, expected)]
        left = self.left()
        has_tokens = left.tokens is None or sum(answer.tokens for answer in answers) <= left.tokens
        return has_tokens and (left.money is None or sum(answer.money for answer in answers) <= left.money)

    def seconds_left(self) -> float | None:
        """Return the seconds that are left, at least 0; None if there is no limit."""
        budget_left = None if self.budget.seconds is None else max(0.0, self.budget.seconds - self.seconds)
        inherited = None if self._parent is None else self._parent.seconds_left()
        if budget_left is None or inherited is None:
            return inherited if budget_left is None else budget_left
        # A nested run ends with its parent, however much time its own budget has.
        return min(budget_left, inherited)

    def left(self) -> BudgetLeft:
        """Return what is left of the budgets, at least 0 of each."""
        budget, spending = self.budget, self.spending
        above = BudgetLeft() if self._parent is None else self._parent.left()
        return BudgetLeft(
            rounds=max(0, budget.rounds - spending.rounds),
            calls=None if budget.calls is None else max(0, budget.calls - spending.calls),
            tokens=_least(None if budget.tokens is None else max(0, budget.tokens - spending.tokens), above.tokens),
            seconds=self.seconds_left(),
            money=_least(None if budget.money is None else max(0.0, budget.money - spending.total_money), above.money),
        )

    @property
    def out_of_time(self) -> bool:
        """True if no time is left."""
        return self.seconds_left() == 0


_Number = TypeVar("_Number", int, float)


def _least(first: _Number | None, second: _Number | None) -> _Number | None:
    """Return the smaller limit; None if there is none."""
    return second if first is None else first if second is None else min(first, second)


def _at_least(cost: ExpectedCost, least: ExpectedCost) -> ExpectedCost:
    """Return the larger tokens, and the larger money."""
    return ExpectedCost(max(cost.tokens, least.tokens), max(cost.money, least.money))
