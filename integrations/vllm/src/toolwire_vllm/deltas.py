"""Events as the deltas and calls of vLLM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaMessage, FunctionCall, ToolCall

from toolwire import chat_deltas, short_call_id
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Event


def delta_message(events: Sequence[Event], *, short_ids: bool = False) -> DeltaMessage | None:
    """Return events as one delta, or None if it would be empty.

    Args:
        events: the events of one piece of text.
        short_ids: write ids of nine letters and digits.
    """
    # One call of the model's class checks everything in it; members that are not set are not sent.
    if len(events) == 1:
        match events[0]:
            case ArgumentsDelta(index, text):
                return DeltaMessage(tool_calls=[{"index": index, "function": {"arguments": text}}])
            case ContentDelta(text) if text:
                return DeltaMessage(content=text)
    members: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for delta in chat_deltas(events, reasoning="reasoning", short_ids=short_ids):
        for call in delta.pop("tool_calls", ()):
            if calls and calls[-1]["index"] == call["index"]:
                calls[-1]["function"]["arguments"] += call["function"]["arguments"]
            else:
                calls.append(call)
        for member, text in delta.items():
            members[member] = members.get(member, "") + text
    if calls:
        members["tool_calls"] = calls
    return DeltaMessage(**members) if members else None


def whole_calls(events: Iterable[Event], *, short_ids: bool = False) -> list[ToolCall]:
    """Return the complete calls of a message, with their arguments as a stream has them."""
    arguments: dict[int, list[str]] = {}
    calls: list[ToolCall] = []
    for event in events:
        match event:
            case CallStart(index):
                arguments[index] = []
            case ArgumentsDelta(index, text):
                arguments[index].append(text)
            case CallEnd(index, call, complete=True):
                id = short_call_id(call.id) if short_ids else call.id
                function = FunctionCall(name=call.name, arguments="".join(arguments[index]))
                calls.append(ToolCall(id=id, function=function))
            case _:
                pass
    return calls
