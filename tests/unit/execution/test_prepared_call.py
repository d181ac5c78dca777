"""Calls that are ready to run: looked up, validated, still the same after a person approved them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from toolwire import Session, Tier, ToolCall, ToolDefinition, ToolResult
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.execution.tool_context import CallEnvironment
from toolwire.policy.approval import Approval
from toolwire.policy.policy import Policy, Rule


def run(executor: ToolExecutor, call: ToolCall, **options: Any) -> ToolResult:
    (result,) = asyncio.run(executor.execute([call], Session(tier=Tier.RUN), **options))
    return result


def shared_function(a: int) -> int:
    """Return the number; at the top of a module, so that another process can import it."""
    return a


def another_function(a: int) -> int:
    """Return another number."""
    return -a


@pytest.mark.parametrize(
    ("function", "options", "still_runs"),
    [
        (shared_function, {"description": "Other words."}, True),
        (another_function, {}, False),
        (shared_function, {"isolated": True}, False),
        (shared_function, {"tier": Tier.RUN}, False),
    ],
)
def test_what_would_run_is_compared_with_what_a_person_approved(
    function: Callable[[int], int], options: dict[str, Any], still_runs: bool
) -> None:
    registry = ToolRegistry()
    registry.register(shared_function, name="shared")

    async def confirm(_: Approval) -> bool:
        registry.remove("shared")
        registry.register(function, name="shared", **options)
        return True

    executor = ToolExecutor(registry, policy=Policy((Rule("ask"),)), confirm=confirm)
    result = run(executor, ToolCall("shared", {"a": 1}))
    assert result.success == still_runs
    if not still_runs:
        assert result.error == "shared was changed or switched off meanwhile, so it did not run."


def test_another_schema_is_not_what_a_person_approved() -> None:
    registry = ToolRegistry()
    schemas: list[dict[str, Any]] = [
        {"type": "object", "properties": {"a": {"type": kind}}} for kind in ("integer", "string")
    ]
    registry.register(ToolDefinition("shared", "", schemas[0]), run=shared_function)

    async def confirm(_: Approval) -> bool:
        registry.remove("shared")
        registry.register(ToolDefinition("shared", "", schemas[1]), run=shared_function)
        return True

    executor = ToolExecutor(registry, policy=Policy((Rule("ask"),)), confirm=confirm)
    assert "was changed" in (run(executor, ToolCall("shared", {"a": 1})).error or "")


def test_each_value_of_a_stream_is_reported_and_the_last_one_is_the_result() -> None:
    reports: list[tuple[str, Any]] = []

    async def count(to: int) -> AsyncIterator[int]:
        """Count."""
        for number in range(to):
            yield number

    executor = ToolExecutor(ToolRegistry([count]))
    environment = CallEnvironment(report=lambda call, value: reports.append((call.id, value)))
    result = run(executor, ToolCall("count", {"to": 3}, "c1"), environment=environment)
    assert (result.result, reports) == (2, [("c1", 0), ("c1", 1), ("c1", 2)])


def test_a_tool_whose_definition_is_wrong_cannot_run() -> None:
    registry = ToolRegistry()
    registry.register({"name": "wrong", "parameters": {"type": "array"}}, run=shared_function)
    outcome = asyncio.run(ToolExecutor(registry).run(ToolCall("wrong"), Session()))
    assert outcome.issue is not None
    assert outcome.issue.kind == "not_runnable"
    assert outcome.issue.message.startswith("The tool 'wrong' cannot be used: ")
