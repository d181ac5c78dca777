"""Budgets: which one is used up, what is left, and what nested runs add; with a clock that the tests set."""

from collections.abc import Mapping
from typing import Any

import pytest

from toolwire import Usage
from toolwire.agent import Budget, Prices
from toolwire.agent.budget import LAST_SECONDS, MOST_TOKENS, RunLimits, Spending, is_believable
from toolwire.execution.tool_context import BudgetLeft


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def spent(**values: Any) -> Spending:
    return Spending(**values)


@pytest.mark.parametrize(
    ("budget", "spending", "exceeded"),
    [
        (Budget(), spent(), ""),
        (Budget(rounds=5), spent(rounds=3), ""),
        (Budget(rounds=5), spent(rounds=4), "the budget of 5 rounds"),
        (Budget(rounds=1), spent(), "the budget of 1 rounds"),
        (Budget(calls=2), spent(calls=1), ""),
        (Budget(calls=2), spent(calls=2), "the budget of 2 calls"),
        (Budget(calls=0), spent(), "the budget of 0 calls"),
        (Budget(tokens=10), spent(usage=Usage(6, 3)), ""),
        (Budget(tokens=10), spent(usage=Usage(6, 4)), "the budget of 10 tokens"),
        (Budget(tokens=10), spent(usage=Usage(1, 1, cached_tokens=50, reasoning_tokens=50)), ""),
        (Budget(seconds=1.5), spent(seconds=1.4), ""),
        (Budget(seconds=1.5), spent(seconds=1.5), "the budget of 1.5 seconds"),
        (Budget(money=0.25), spent(money=0.2), ""),
        (Budget(money=0.25), spent(money=0.25), "the budget of 0.25 money"),
        (Budget(calls=1, tokens=1), spent(calls=1, usage=Usage(1, 0)), "the budget of 1 calls"),
    ],
)
def test_a_limit_is_used_up_when_it_is_reached(budget: Budget, spending: Spending, exceeded: str) -> None:
    assert budget.exceeded(spending) == exceeded


def test_rounds_and_calls_are_not_shared_with_nested_runs() -> None:
    spending = spent(rounds=9, calls=9, usage=Usage(9, 0))
    assert Budget(rounds=2, calls=2).shared_exceeded(spending) == ""
    assert Budget(rounds=2, calls=2, tokens=9).shared_exceeded(spending) == "the budget of 9 tokens"


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"rounds": 0}, ValueError, "rounds"),
        ({"rounds": None}, TypeError, "rounds must be a number of rounds"),
        ({"rounds": 1.5}, TypeError, "rounds must be a number of rounds"),
        ({"calls": -1}, ValueError, "calls"),
        ({"calls": "1"}, TypeError, "calls must be a number"),
        ({"tokens": -1}, ValueError, "tokens"),
        ({"seconds": -0.1}, ValueError, "seconds"),
        ({"money": "1"}, TypeError, "money must be a number"),
        ({"last_seconds": None}, TypeError, "last_seconds must be a number of seconds"),
        ({"prices": 3}, TypeError, "prices must be Prices, a dict of Prices by model, or None"),
    ],
)
def test_a_limit_that_is_none_is_an_error(values: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Budget(**values)


def test_defaults() -> None:
    budget = Budget()
    assert (budget.rounds, budget.last_seconds, LAST_SECONDS) == (20, 60.0, 60.0)
    assert [budget.calls, budget.tokens, budget.seconds, budget.money, budget.prices] == [None] * 5
    assert isinstance(Budget(prices={"small": Prices(1.0)}).prices, Mapping)


def test_tokens_and_money_of_answers_are_added() -> None:
    spending = Spending()
    spending.add(None, Prices(5.0, 5.0))
    spending.add(Usage(1_000_000, 500_000, 400_000), Prices(1.0, 4.0, cached=0.5))
    spending.add(Usage(10, 1))
    assert (spending.tokens, spending.usage) == (1_500_011, Usage(1_000_010, 500_001, 400_000))
    assert spending.total_money == spending.money == pytest.approx(0.6 + 0.2 + 2.0)


def test_nested_runs_count_at_once_and_only_once() -> None:
    spending = Spending(usage=Usage(1, 1), money=1.0)
    first, second, empty = spending.open_call(), spending.open_call(), spending.open_call()
    first += [Spending(usage=Usage(10, 0), money=2.0), Spending(usage=Usage(0, 20), money=3.0)]
    second.append(Spending(usage=Usage(100, 0), money=4.0))
    inside = second[0].open_call()
    inside.append(Spending(usage=Usage(1000, 0), money=5.0))
    everything = (1132, 15.0)
    assert (spending.tokens, spending.total_money) == everything
    assert (spending.usage, spending.money) == (Usage(1, 1), 1.0)
    for nested in (empty, first, first, second, second):
        spending.close_call(nested)
        assert (spending.tokens, spending.total_money) == everything
    assert (spending.usage, spending.money) == (Usage(1111, 21), 15.0)
    first.append(Spending(usage=Usage(7, 7), money=7.0))
    assert (spending.tokens, spending.total_money) == everything, "the call is closed"


def test_an_empty_call_that_ends_leaves_the_other_empty_one_open() -> None:
    spending = Spending()
    first, second = spending.open_call(), spending.open_call()
    spending.close_call(second)
    first.append(Spending(usage=Usage(3, 0)))
    second.append(Spending(usage=Usage(100, 0)))
    assert spending.tokens == 3


def test_seconds_are_counted_from_the_beginning_and_from_earlier_processes() -> None:
    clock = Clock()
    limits = RunLimits(Budget(seconds=10), None, clock)
    clock.now += 4
    assert (limits.seconds, limits.seconds_left(), limits.out_of_time, limits.exceeded()) == (4.0, 6.0, False, "")
    limits.add_seconds(5)
    assert (limits.seconds, limits.seconds_left()) == (9.0, 1.0)
    clock.now += 1
    assert (limits.seconds_left(), limits.out_of_time) == (0.0, True)
    assert limits.exceeded() == limits.shared_exceeded() == "the budget of 10 seconds"
    assert limits.spending.seconds == 10.0
    clock.now += 1
    assert (limits.seconds_left(), limits.out_of_time) == (0.0, True)


@pytest.mark.parametrize(
    ("own", "above", "left"),
    [(None, None, None), (5.0, None, 5.0), (None, 3.0, 3.0), (5.0, 3.0, 3.0), (2.0, 3.0, 2.0)],
)
def test_a_nested_run_ends_with_its_parent(own: float | None, above: float | None, left: float | None) -> None:
    clock = Clock()
    limits = RunLimits(Budget(seconds=own), RunLimits(Budget(seconds=above), None, clock), clock)
    assert limits.seconds_left() == left
    assert limits.left().seconds == left
    assert not limits.out_of_time


@pytest.mark.parametrize(
    ("above", "exceeded"),
    [
        (Budget(rounds=1, calls=0), ""),
        (Budget(tokens=5), "the budget of 5 tokens"),
        (Budget(money=1.0), "the budget of 1 money"),
        (Budget(seconds=2), "the budget of 2 seconds"),
    ],
)
def test_what_all_runs_share_ends_a_nested_run_too(above: Budget, exceeded: str) -> None:
    clock = Clock()
    parent = RunLimits(above, None, clock)
    limits = RunLimits(Budget(tokens=100, money=100.0), parent, clock)
    assert limits.exceeded() == limits.shared_exceeded() == ""
    parent.spending.open_call().append(limits.spending)
    limits.spending.add(Usage(5, 0), Prices(200_000.0))
    clock.now += 2
    assert limits.exceeded() == limits.shared_exceeded() == exceeded


@pytest.mark.parametrize(
    ("own", "above", "limited"), [(None, None, False), (0.0, None, True), (None, 0.0, True), (1.0, 1.0, True)]
)
def test_money_is_limited_if_a_budget_above_limits_it(own: float | None, above: float | None, limited: bool) -> None:
    assert RunLimits(Budget(money=own), RunLimits(Budget(money=above), None)).limits_money == limited
    assert RunLimits(Budget(money=own), None).limits_money == (own is not None)


def test_what_is_left_is_the_least_and_never_below_zero() -> None:
    clock = Clock()
    parent = RunLimits(Budget(rounds=2, calls=1, tokens=50, money=3.0), None, clock)
    limits = RunLimits(Budget(rounds=9, calls=8, tokens=40, money=5.0, seconds=7), parent, clock)
    assert limits.left() == BudgetLeft(9, 8, 40, 7.0, 3.0)
    assert parent.left() == BudgetLeft(2, 1, 50, None, 3.0)
    limits.spending.rounds, limits.spending.calls = 4, 3
    parent.spending.open_call().append(limits.spending)
    limits.spending.add(Usage(10, 5), Prices(100_000.0, 0.0))
    clock.now += 2
    assert limits.left() == BudgetLeft(5, 5, 25, 5.0, 2.0)
    assert parent.left() == BudgetLeft(2, 1, 35, None, 2.0)
    limits.spending.rounds, limits.spending.calls = 10, 9
    limits.spending.add(Usage(100, 0), Prices(1_000_000.0))
    clock.now += 10
    assert limits.left() == BudgetLeft(0, 0, 0, 0.0, 0.0)
    assert RunLimits(Budget(), None, clock).left() == BudgetLeft(20)


@pytest.mark.parametrize(
    ("usage", "believable"),
    [
        (None, False),
        (Usage(0, 0), False),
        (Usage(0, 0, cached_tokens=5), False),
        (Usage(1, 0), True),
        (Usage(0, 1), True),
        (Usage(MOST_TOKENS, 0), True),
        (Usage(MOST_TOKENS + 1, 0), False),
        (Usage(5, -1), False),
        (Usage(-1, 5), False),
        (Usage(5, 5, cached_tokens=-1), False),
        (Usage(5, 5, reasoning_tokens=MOST_TOKENS + 1), False),
    ],
)
def test_usage_is_believed_if_it_is_neither_missing_nor_absurd(usage: Usage | None, believable: bool) -> None:
    assert is_believable(usage) is believable


@pytest.mark.parametrize(
    ("own", "above", "reserves"),
    [
        (Budget(), Budget(), False),
        (Budget(tokens=1), Budget(), True),
        (Budget(money=1.0), Budget(), True),
        (Budget(), Budget(tokens=1), True),
        (Budget(seconds=1), Budget(calls=1), False),
    ],
)
def test_a_run_reserves_room_if_it_or_a_run_above_limits_tokens_or_money(
    own: Budget, above: Budget, reserves: bool
) -> None:
    assert RunLimits(own, RunLimits(above, None)).reserves is reserves
