"""Broken servers whose faults concern one part of a request or one value of an answer, and the probes that find them.

A stranger to the probes wrote them, after reports about real servers.
"""

import json
import threading
import time
from dataclasses import replace
from typing import Any

from tests.integration.planted_faults import (
    arguments_changed,
    calls_changed,
    fault,
    in_stream,
    parts_changed,
    tools_changed,
    without_members,
)
from tests.integration.probed_server import Answer, Asked, Body

from toolwire import Message, ParsedResponse, ToolCall, ToolDefinition, ToolResult
from toolwire.providers.request import ChatRequest, ToolChoice

Chunks = list[Any]


def _without_system_beside_tools(request: ChatRequest) -> ChatRequest:
    if not request.tools:
        return request
    return replace(request, messages=tuple(message for message in request.messages if message.role != "system"))


def _one_call_for_each_message(request: ChatRequest) -> ChatRequest:
    def first_call_only(message: Message) -> Message:
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        return replace(message, parts=tuple(part for part in message.parts if part not in calls[1:]))

    return replace(request, messages=tuple(map(first_call_only, request.messages)))


def _first_texts(body: Body) -> Body:
    """Return a body in which a list of texts is its first text."""

    def message(message: Body) -> Body:
        content = message.get("content")
        return {**message, "content": content[0]["text"]} if isinstance(content, list) and content else message

    return {**body, "messages": [message(item) for item in body["messages"]]} if "messages" in body else body


def _without_nested_descriptions(tool: ToolDefinition) -> ToolDefinition:
    properties = {
        name: {**schema, "properties": without_members(schema["properties"], "description")}
        if "properties" in schema
        else schema
        for name, schema in tool.parameters.get("properties", {}).items()
    }
    return replace(tool, parameters={**tool.parameters, "properties": properties})


def _evaluated(item: Any) -> Any:
    """Return the value in a text, as a parser of calls does that does not look at the schema."""
    try:
        return json.loads(item) if isinstance(item, str) else item
    except ValueError:
        return item


def _without_empty_texts(call: ToolCall) -> ToolCall:
    return replace(call, arguments={name: item for name, item in call.arguments.items() if item != ""})


def _with_arguments_as_text(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    if not request.tool_choice.names or not answer.tool_calls:
        return answer
    return replace(answer, content=json.dumps(dict(answer.tool_calls[0].arguments)))


def _with_a_piece_twice(answer: ParsedResponse, _: ChatRequest) -> ParsedResponse:
    return replace(answer, content=answer.content[:40] + answer.content[34:])


def _in_half_characters(chunks: Chunks) -> Chunks:
    """Send each character outside the basic plane in two deltas, as it is written in UTF-16."""
    sent: Chunks = []
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"] if isinstance(chunk, dict) and chunk["choices"] else {}
        text = delta.get("content") or ""
        units = text.encode("utf-16-le")
        if len(units) == 2 * len(text):
            sent.append(chunk)
            continue
        for at in range(0, len(units), 2):
            piece = json.loads(json.dumps(chunk))
            piece["choices"][0]["delta"]["content"] = units[at : at + 2].decode("utf-16-le", "surrogatepass")
            sent.append(piece)
    return sent


def _finished_early(chunks: Chunks) -> Chunks:
    """Send the finish reason before the last delta of a call."""
    at = next((at for at, chunk in enumerate(chunks) if '"finish_reason": "tool_calls"' in json.dumps(chunk)), 0)
    return [*chunks[: at - 1], chunks[at], chunks[at - 1], *chunks[at + 1 :]] if at else chunks


def _without_limit_beside_tools(request: ChatRequest) -> ChatRequest:
    return replace(request, max_tokens=None) if request.tools else request


def _collected_beside_tools(answer: Answer, asked: Asked) -> Answer:
    if not answer.pause or b'"tools"' not in asked.body:
        return answer
    return replace(answer, pause=0.0, delay=answer.pause * len(answer.body) / 97)


def _with_markup(answer: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    """Return the answer of a model that sees the tools, although it may not call them."""
    if request.tool_choice.mode != "none" or not request.tools:
        return answer
    call = {"name": request.tools[0].name, "arguments": {"city": "Paris", "days": 1}}
    return replace(answer, content=f"<tool_call>{json.dumps(call)}</tool_call>")


def _without_nulls(call: ToolCall) -> ToolCall:
    return replace(call, arguments={name: item for name, item in call.arguments.items() if item is not None})


def _results_by_order(request: ChatRequest) -> ChatRequest:
    """Give each result to the call at its place, whatever id it has."""
    calls = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    ids = iter([call.id for call in calls])

    def message(message: Message) -> Message:
        parts = [replace(p, call_id=next(ids, "")) if isinstance(p, ToolResult) else p for p in message.parts]
        return replace(message, parts=tuple(parts))

    return replace(request, messages=tuple(map(message, request.messages)))


class _MixedStreams:
    """Ends a stream as another one that is sent at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, bytes] = {}

    def __call__(self, answer: Answer, asked: Asked) -> Answer:
        if b"event-stream" not in answer.content_type.encode():
            return answer
        with self._lock:
            self._running[id(asked)] = answer.body
        time.sleep(0.2)
        with self._lock:
            others = [body for key, body in self._running.items() if key != id(asked)]
        time.sleep(0.1)
        with self._lock:
            del self._running[id(asked)]
        return replace(answer, body=_with_end_of(others[0], answer.body)) if others else answer


def _with_end_of(other: bytes, own: bytes) -> bytes:
    own_events, other_events = (body.split(b"\n\n") for body in (own, other))
    return b"\n\n".join([*own_events[: len(own_events) // 2], *other_events[len(other_events) // 2 :]])


LOSSES = {
    "whole numbers arrive with a fraction": fault(
        "whole-number", response=arguments_changed(lambda item: float(item) if type(item) is int else item)
    ),
    "a forbidden call is in the text": fault("no-choice-text", response=_with_markup),
    "calls arrive in reversed order in streams": fault(
        "streamed-order",
        response=in_stream(lambda answer, _: replace(answer, tool_calls=answer.tool_calls[::-1])),
    ),
    "line ends are lost in streams": fault(
        "streamed-lines",
        response=in_stream(lambda answer, _: replace(answer, content=answer.content.replace("\n", ""))),
    ),
    "nulls do not arrive": fault("null-argument", response=calls_changed(_without_nulls)),
    "max_tokens is ignored": fault(
        "both-maximums", body=lambda body: {name: item for name, item in body.items() if name != "max_tokens"}
    ),
    "long results are cut": fault(
        "long-result",
        request=parts_changed(
            lambda part: replace(part, result=part.text[:4000]) if isinstance(part, ToolResult) else part
        ),
    ),
    "results belong to the call at their place": fault("result-ids", request=_results_by_order),
    "streams at the same time are mixed": fault("streams-at-once", reply=_MixedStreams()),
    "system messages beside tools do not reach the model": fault(
        "system-beside-tools", request=_without_system_beside_tools
    ),
    "only eight tools reach the model": fault(
        "last-tool", request=lambda request: replace(request, tools=request.tools[:8])
    ),
    "definitions of schemas do not reach the model": fault(
        "definitions",
        request=tools_changed(lambda tool: replace(tool, parameters=without_members(tool.parameters, "$defs"))),
    ),
    "descriptions of nested parameters do not reach the model": fault(
        "nested-parameter", request=tools_changed(_without_nested_descriptions)
    ),
    "the second of two earlier calls does not reach the model": fault(
        "second-call", request=_one_call_for_each_message
    ),
    "the second text of a message does not reach the model": fault("text-parts", body=_first_texts),
    "texts that look like numbers arrive as numbers": fault("text-values", response=arguments_changed(_evaluated)),
    "texts arrive without white space": fault(
        "white-space", response=arguments_changed(lambda item: item.strip() if isinstance(item, str) else item)
    ),
    "empty texts do not arrive": fault("empty-text", response=calls_changed(_without_empty_texts)),
    "whole numbers arrive as doubles": fault(
        "large-number",
        response=arguments_changed(lambda item: int(float(item)) if type(item) is int else item),
    ),
    "booleans arrive as words of Python": fault(
        "nested-schema",
        "streamed-nested-schema",
        response=arguments_changed(lambda item: str(item) if isinstance(item, bool) else item),
    ),
    "a stream repeats a piece": fault("long-stream", response=in_stream(_with_a_piece_twice)),
    "a stream beside tools loses its first piece": fault(
        "long-stream",
        response=lambda answer, request: (
            replace(answer, content=answer.content[2:]) if request.tools and request.stream else answer
        ),
    ),
    "a stream beside tools loses what looks like a call": fault(
        "brackets",
        response=lambda answer, request: (
            replace(answer, content=answer.content.partition("<")[0]) if request.tools and request.stream else answer
        ),
    ),
    "a tool is called whenever one is offered": fault(
        "free-choice",
        request=lambda request: (
            replace(request, tool_choice=ToolChoice("required"))
            if request.tools and request.tool_choice.mode == "auto"
            else request
        ),
    ),
    "hyphens in names arrive as underscores": fault(
        "long-name", response=calls_changed(lambda call: replace(call, name=call.name.replace("-", "_")))
    ),
    "a stream has halves of characters": fault("text-characters", chunks=_in_half_characters),
    "a stream finishes before the end of a call": fault("one-finish", chunks=_finished_early),
    "a stream arrives at once if tools are offered": fault("stream-beside-tools", reply=_collected_beside_tools),
    "stop words are ignored in streams": fault(
        "stop-word", request=lambda request: replace(request, stop=()) if request.stream else request
    ),
    "the maximum length is ignored if tools are offered": fault(
        "cut-call", "cut-streamed-call", request=_without_limit_beside_tools
    ),
    "the arguments of a named call are also in the text": fault(
        "named-choice", "streamed-named-choice", response=_with_arguments_as_text
    ),
}
"""Planted faults of a server of Chat Completions."""
