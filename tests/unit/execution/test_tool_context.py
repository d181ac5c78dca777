"""The context that a running call hands to its tool."""

from typing import Any

from toolwire import Session, ToolCall, ToolContext
from toolwire.execution.tool_context import BudgetLeft, CallEnvironment

CALL = ToolCall("look", {}, id="c1")


def test_progress_is_reported_until_the_call_is_given_up() -> None:
    reports: list[tuple[ToolCall, Any]] = []
    context: ToolContext[None] = ToolContext(
        CALL, Session(), CallEnvironment(report=lambda call, value: reports.append((call, value)))
    )
    context.report(1)
    assert not context.cancelled
    context.give_up()
    context.report(2)
    assert context.cancelled
    assert reports == [(CALL, 1)]


def test_the_environment_is_passed_on() -> None:
    left = BudgetLeft(rounds=2, money=0.5)
    context: ToolContext[str] = ToolContext(
        CALL, Session(), CallEnvironment(deps="database", run_id="r1", budget_left=lambda: left)
    )
    assert (context.deps, context.run_id, context.budget_left) == ("database", "r1", left)
    assert repr(context) == "<ToolContext of look 'c1'>"


def test_a_context_outside_of_a_run_has_no_limits_and_drops_reports() -> None:
    context: ToolContext[Any] = ToolContext(CALL, Session())
    context.report("ignored")
    assert (context.deps, context.run_id) == (None, "")
    assert context.budget_left == BudgetLeft(None, None, None, None, None)
