"""Test an agent without a network: a scripted model gives prepared answers, and the tools really run.

pytest examples/test_an_agent.py
"""

from toolwire import Agent, ParsedResponse, ToolCall, tool
from toolwire.testing import ScriptedBackend, assert_called

STOCK = {"tea": 3}


@tool
def count_stock(item: str) -> int:
    """Return how many of an item are in stock."""
    return STOCK[item]


def test_agent_looks_up_the_stock() -> None:
    """The model calls the tool with the right argument, reads its result, and answers."""
    model = ScriptedBackend([ParsedResponse(tool_calls=(ToolCall("count_stock", {"item": "tea"}),)), "There are 3."])
    end = Agent(model, [count_stock]).run_to_end_sync("How much tea is there?")
    assert_called(end, "count_stock", item="tea")
    assert "3" in str(model.requests[1].messages[-1])
