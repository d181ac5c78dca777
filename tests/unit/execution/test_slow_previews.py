"""Previews that take long: the event loop goes on, and questions stay in the order of the calls."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from toolwire import Session, Tier, ToolCall
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.policy.approval import Approval


def test_the_event_loop_goes_on_while_a_preview_is_made() -> None:
    loop_went_on = threading.Event()

    def preview(arguments: dict[str, Any]) -> str:
        return "shown" if loop_went_on.wait(10) else "the event loop stood still"

    async def confirm(approval: Approval) -> bool:
        return approval.preview == "shown"

    registry = ToolRegistry()
    registry.register(lambda: "done", name="edit", requires_confirmation=True, preview=preview)

    async def work() -> str:
        executor = ToolExecutor(registry, confirm=confirm)
        running = asyncio.ensure_future(executor.execute([ToolCall("edit")], Session(tier=Tier.RUN)))
        while not running.done():
            await asyncio.sleep(0.01)
            loop_went_on.set()
        return running.result()[0].text

    assert asyncio.run(work()) == "done"


def test_a_slow_preview_does_not_change_the_order_of_the_questions() -> None:
    asked: list[str] = []
    others_can_ask = threading.Event()

    def slow(arguments: dict[str, Any]) -> str:
        others_can_ask.wait(0.3)
        return "slow"

    async def confirm(approval: Approval) -> bool:
        asked.append(approval.call.name)
        others_can_ask.set()
        return True

    registry = ToolRegistry()
    registry.register(lambda: "a", name="first", requires_confirmation=True, preview=slow)
    registry.register(lambda: "b", name="second", requires_confirmation=True)
    registry.register(lambda: "c", name="third", requires_confirmation=True, preview=lambda arguments: "quick")
    executor = ToolExecutor(registry, confirm=confirm)
    for _ in range(2):  # a lock belongs to one event loop
        calls = [ToolCall(name) for name in ("first", "second", "third")]
        results = asyncio.run(executor.execute(calls, Session(tier=Tier.RUN)))
        assert [result.text for result in results] == ["a", "b", "c"]
    assert asked == ["first", "second", "third"] * 2
