"""What holds where nobody says otherwise, as decided."""

import pytest

from toolwire import Tier, ToolCall, ToolDefinition, ToolExecutor, ToolRegistry
from toolwire.agent import Budget
from toolwire.policy.policy import Ask, Context, Deny, Policy


@pytest.mark.mission("C34")
def test_five_minutes_to_answer() -> None:
    assert ToolExecutor(ToolRegistry())._requests._timeout == 300.0


@pytest.mark.mission("C32")
def test_twenty_rounds() -> None:
    assert Budget().rounds == 20


@pytest.mark.mission("C36")
def test_a_tool_that_changes_something_is_not_approved_beforehand() -> None:
    tool = ToolDefinition("wipe", tier=Tier.RUN, requires_confirmation=True)
    assert isinstance(Policy().decide(ToolCall("wipe"), tool, Context()), Deny), "a session begins below its tier"
    assert isinstance(Policy().decide(ToolCall("wipe"), tool, Context(tier=Tier.RUN)), Ask)
