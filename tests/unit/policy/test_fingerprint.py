"""What an approval is bound to: the call, the definition of its tool, and the preview that was shown."""

from toolwire import ToolCall, ToolDefinition
from toolwire.policy.fingerprint import approval_key, shown_key


def test_an_approval_is_bound_to_what_was_shown() -> None:
    key = approval_key(ToolCall("f", {"a": 1}), ToolDefinition("f"))
    assert shown_key(key, "") == key
    shown = {shown_key(key, preview) for preview in ("", "one", "two")}
    assert len(shown) == 3
    assert all(one.startswith(key) for one in shown)


def test_an_approval_is_bound_to_the_call_and_the_definition() -> None:
    call, definition = ToolCall("f", {"a": 1}), ToolDefinition("f", "Does it.")
    others = (
        approval_key(ToolCall("f", {"a": 2}), definition),
        approval_key(ToolCall("f", {"a": 1.5}), definition),
        approval_key(call, ToolDefinition("f", "Does something else.")),
        approval_key(call, ToolDefinition("g", "Does it.")),
    )
    assert approval_key(call, definition) not in others
    assert len(set(others)) == 4
    assert approval_key(ToolCall("f", {"a": 1}, "another id"), definition) == approval_key(call, definition)
