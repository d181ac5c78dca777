"""A model for tests that does what it is asked in plain words, and sees only what its server passes on.

It knows no probe: it follows the instructions of the last question, whatever they are.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from toolwire import FinishReason, ParsedResponse, ToolCall, ToolDefinition, ToolResult, Usage
from toolwire.events import ArgumentsDelta, ContentDelta, Event
from toolwire.messages import FilePart, ImagePart, TextPart
from toolwire.providers.request import ChatRequest

PER_TOKEN = 4
"""Characters of a token."""
_CALL = re.compile(r"Call (\w+) with these arguments: (\{.*\})")
_IN_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def respond(request: ChatRequest) -> ParsedResponse:
    """Return the answer, cut at the maximum length, with the tokens that it took."""
    response = _limited(_answer(request), request)
    is_cut = response.finish_reason is FinishReason.LENGTH
    written = request.max_tokens if is_cut and request.max_tokens else max(1, _size(response))
    return replace(response, usage=Usage(max(1, len(prompt_of(request)) // PER_TOKEN), written))


def prompt_of(request: ChatRequest) -> str:
    """Return everything in a request that the model reads."""
    tools = [json.dumps([tool.name, tool.description, tool.parameters]) for tool in request.tools]
    lines = [f"<{message.role}> {' '.join(map(_text_of, message.parts))}" for message in request.messages]
    return "\n".join([*tools, *lines])


def in_pieces(events: Iterator[Event], size: int = 5) -> Iterator[Event]:
    """Yield the events with their texts in pieces of a few characters."""
    for event in events:
        if isinstance(event, ContentDelta | ArgumentsDelta) and len(event.text) > size:
            for at in range(0, len(event.text), size):
                yield replace(event, text=event.text[at : at + size])
        else:
            yield event


def _text_of(part: Any) -> str:
    match part:
        case TextPart(text):
            return text
        case ToolCall():
            return f"{part.name} {json.dumps(part.arguments, ensure_ascii=False)}"
        case ToolResult():
            return part.marked_text + " ".join(map(_text_of, part.media))
        case ImagePart() | FilePart():
            return "[picture]"
    return ""


def _answer(request: ChatRequest) -> ParsedResponse:
    users = [message for message in request.messages if message.role == "user"]
    text = users[-1].text if users else ""
    calls = _calls(request, text)
    if calls:
        return ParsedResponse(tool_calls=tuple(calls), finish_reason=FinishReason.TOOL_CALLS)
    if match := re.search(r"one word: (\w+)", text):
        return ParsedResponse(f"{match[1].capitalize()}.")
    if match := re.search(r"Repeat exactly: (.*)", text):
        return ParsedResponse(match[1])
    if match := re.search(r"numbers from 1 to (\d+)", text):
        last = int(match[1])
        words = _IN_WORDS * last if "in words" in text else [str(number) for number in range(1, last + 1)]
        return ParsedResponse(("\n" if "on each line" in text else " ").join(words[:last]))
    if match := re.search(r"code does the result for (\w+)", text):
        return ParsedResponse(_result_for(match[1], request))
    if "code" in text:
        codes = re.findall(r"code is (\d+)", prompt_of(request))
        return ParsedResponse(f"It is {codes[-1]}." if codes else "I do not know.")
    if "color" in text:
        return ParsedResponse("Red." if "[picture]" in prompt_of(request) else "I see no picture.")
    return ParsedResponse("Hello.")


def _result_for(city: str, request: ChatRequest) -> str:
    """Return the result of the call for a city: the one with its id, or the one at its place in an API without ids."""
    parts = [part for message in request.messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    results = [part for part in parts if isinstance(part, ToolResult)]
    by_id = {part.call_id: part.text for part in results if part.call_id}
    for call, in_order in zip(calls, results, strict=False):
        if call.arguments.get("city") == city:
            return by_id.get(call.id, "I do not know.") if by_id else in_order.text
    return "I do not know."


def _calls(request: ChatRequest, text: str) -> list[ToolCall]:
    choice, offered = request.tool_choice, {tool.name: tool for tool in request.tools}
    if choice.mode == "none" or not offered:
        return []
    calls = [
        ToolCall(name, json.loads(arguments), "")
        for name, arguments in _CALL.findall(text)
        if name in offered and (not choice.names or name in choice.names)
    ]
    if not calls and choice.mode == "required":
        tool = offered[choice.names[0]] if choice.names else request.tools[0]
        calls = [ToolCall(tool.name, _example(tool), "")]
    return calls[:1] if request.parallel is False else calls


def _example(tool: ToolDefinition) -> dict[str, Any]:
    values = {"string": "Paris", "integer": 1, "number": 1, "boolean": True}
    properties = tool.parameters.get("properties", {})
    return {name: values.get(schema.get("type"), "x") for name, schema in properties.items()}


def _size(response: ParsedResponse) -> int:
    """Return the number of tokens of an answer."""
    calls = sum(
        len(call.name) + len(json.dumps(call.arguments)) for call in (*response.tool_calls, *response.incomplete)
    )
    return -(-(len(response.content) + calls) // PER_TOKEN)


def _limited(response: ParsedResponse, request: ChatRequest) -> ParsedResponse:
    for word in request.stop:
        response = replace(response, content=response.content.partition(word)[0])
    limit = request.max_tokens
    if limit is None or _size(response) <= limit:
        return response
    if not response.tool_calls:
        return replace(response, content=response.content[: limit * PER_TOKEN], finish_reason=FinishReason.LENGTH)
    (call, *_) = response.tool_calls
    started = {name: value for name, value in call.arguments.items() if len(str(value)) < limit}
    cut = replace(call, arguments=started)
    return replace(response, tool_calls=(), incomplete=(cut,), finish_reason=FinishReason.LENGTH)
