"""Events as the deltas and calls of vLLM."""

from __future__ import annotations

from collections.abc import Iterable

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    FunctionCall,
    ToolCall,
)

from toolwire import chat_deltas, short_call_id
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, Event


def delta_message(events: Iterable[Event], *, short_ids: bool = False) -> DeltaMessage | None:
    """Return events as one delta, or None if it would be empty.

    Args:
        events: the events of one piece of text.
        short_ids: write ids of nine letters and digits.
    """
    content = reasoning = ""
    calls: list[DeltaToolCall] = []
    for delta in chat_deltas(events, reasoning="reasoning", short_ids=short_ids):
        content += delta.get("content", "")
        reasoning += delta.get("reasoning", "")
        for call in delta.get("tool_calls", ()):
            last = calls[-1] if calls else None
            if last is not None and last.index == call["index"] and last.function is not None:
                last.function.arguments = (last.function.arguments or "") + call["function"]["arguments"]
                continue
            function = DeltaFunctionCall(**call["function"])
            calls.append(
                DeltaToolCall(index=call["index"], id=call.get("id"), type=call.get("type"), function=function)
            )
    if not (content or reasoning or calls):
        return None
    # Members that are not set are not sent, so that a client does not see them as null.
    members: dict[str, object] = {}
    if content:
        members["content"] = content
    if reasoning:
        members["reasoning"] = reasoning
    if calls:
        members["tool_calls"] = calls
    return DeltaMessage(**members)


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
