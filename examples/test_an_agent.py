"""Test an agent without a network: a scripted model gives prepared answers, and the tools really run.

pytest examples/test_an_agent.py
"""

import asyncio

from toolwire import Agent, FinishReason, ParsedResponse, ToolCall, tool
from toolwire.testing import ScriptedBackend, assert_called

STOCK = {"tea": 3}


@tool
def count_stock(item: str) -> int:
    """Return how many of an item are in stock."""
    return STOCK[item]


def test_agent_looks_up_the_stock() -> None:
    """The model calls the tool with the right argument."""
    call = ToolCall("count_stock", {"item": "tea"})
    model = ScriptedBackend([ParsedResponse(tool_calls=(call,)), "There are 3."])
    *_, end = Agent(model, [count_stock]).run_sync("How much tea is there?")
    assert_called(end, "count_stock", item="tea")


def test_agent_reports_the_stock() -> None:
    """The result of the call reaches the model, and its answer reaches the user."""
    call = ToolCall("count_stock", {"item": "tea"}, "call_1")
    model = ScriptedBackend([ParsedResponse(tool_calls=(call,), finish_reason=FinishReason.TOOL_CALLS), "There are 3."])
    answer = asyncio.run(Agent(model, [count_stock]).ask("How much tea is there?"))
    assert answer == "There are 3."
    assert "3" in str(model.requests[1].messages[-1])


def test_agent_lets_the_model_correct_a_wrong_name() -> None:
    """A call of an unknown tool is explained to the model and does not end the run."""
    wrong = ToolCall("count_stok", {"item": "tea"}, "call_1")
    model = ScriptedBackend(
        [ParsedResponse(tool_calls=(wrong,), finish_reason=FinishReason.TOOL_CALLS), "I could not look it up."]
    )
    assert asyncio.run(Agent(model, [count_stock]).ask("How much tea is there?")) == "I could not look it up."
    assert "did you mean count_stock?" in str(model.requests[1].messages)
