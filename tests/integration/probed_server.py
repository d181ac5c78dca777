"""A server of any API on loopback whose model does what the probes ask, except for one planted fault."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import FinishReason, ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.messages import TextPart
from toolwire.probes.smoke_probes import CODE, PARIS, ROME
from toolwire.providers.request import ChatRequest

KEY = "key-of-the-test"
FAULTS = {
    "none": None,
    "streamed arguments differ": "streamed-call",
    "stream ends in the middle": "streamed-call",
    "ids are missing": "call-ids",
    "ids are equal": "call-ids",
    "arguments are cut": "one-call",
    "finish reason of calls": "one-call",
    "finish reason of cut answers": "cut-answer",
    "named choice is ignored": "named-choice",
    "usage is missing": "usage",
    "usage of streams is missing": "streamed-usage",
    "result is ignored": "result-returned",
    "one of two calls": "parallel-calls",
    "the same call twice": "parallel-calls",
    "call is in the text": "one-call",
    "any key is accepted": "wrong-key",
    "wrong key crashes": "wrong-key",
}
"""Planted faults, and the probe that has to find each."""
USAGE = Usage(20, 10)


@contextmanager
def probed(api_name: str, fault: str = "none") -> Iterator[str]:
    """Yield the address of a server."""
    api = toolwire.get_api(api_name)

    def answer(request: Asked) -> Answer:
        if KEY not in "".join(request.headers.values()) and fault != "any key is accepted":
            error = b'{"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}'
            return Answer(error, status=500 if fault == "wrong key crashes" else 401)
        body = json.loads(request.body)
        stream = bool(body.get("stream")) or "stream" in request.path
        response = respond(api.decode_request(body), fault, stream=stream)
        if stream:
            data = b"".join(api.encode_stream(toolwire.replay(response), model="m"))
            if fault == "stream ends in the middle" and response.tool_calls:
                data = data[: len(data) * 6 // 10]
            return Answer(_changed(data, fault), content_type="text/event-stream")
        return Answer(_changed(json.dumps(api.encode_response(response, model="m")).encode(), fault))

    with serving(answer) as url:
        yield url


def _changed(data: bytes, fault: str) -> bytes:
    """Return the bytes of an answer of Chat Completions with a fault that a `ParsedResponse` cannot express."""
    if fault == "ids are missing":
        return re.sub(rb'"id": ?"call_\d", ?', b"", data)
    if fault == "arguments are cut":
        return data.replace(rb"\"days\": 3}", rb"\"da")
    return data


def respond(request: ChatRequest, fault: str, *, stream: bool) -> ParsedResponse:
    """Return what the model answers."""
    response = _respond(request, fault, stream=stream)
    if fault == ("usage of streams is missing" if stream else "usage is missing"):
        return response
    return replace(response, usage=USAGE)


def _respond(request: ChatRequest, fault: str, *, stream: bool) -> ParsedResponse:
    last = request.messages[-1]
    text = " ".join(part.text for part in last.parts if isinstance(part, TextPart))
    results = [part.text for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    if results:
        assert CODE in results[0]
        return ParsedResponse("I do not know." if fault == "result is ignored" else f"It is {CODE}.")
    if "blue" in text:
        return ParsedResponse("Blue.")
    if "1 to 200" in text:
        assert request.max_tokens == 16
        reason = FinishReason.STOP if fault == "finish reason of cut answers" else FinishReason.LENGTH
        return ParsedResponse("One two three", finish_reason=reason)
    if request.tool_choice.name == "get_time" and fault != "named choice is ignored":
        return _calls(("get_time", {"city": "Paris"}))
    if "twice" in text:
        if fault == "one of two calls":
            return _calls(("get_weather", PARIS))
        if fault == "the same call twice":
            return _calls(("get_weather", PARIS), ("get_weather", PARIS))
        ids = ("call_1", "call_1") if fault == "ids are equal" else ("call_1", "call_2")
        return _calls(("get_weather", PARIS), ("get_weather", ROME), ids=ids)
    if fault == "call is in the text":
        return ParsedResponse(
            '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}</tool_call>'
        )
    if fault == "streamed arguments differ" and stream:
        return _calls(("get_weather", {**PARIS, "days": 33}))
    response = _calls(("get_weather", PARIS))
    return replace(response, finish_reason=FinishReason.LENGTH) if fault == "finish reason of calls" else response


def _calls(*calls: tuple[str, dict[str, Any]], ids: tuple[str, ...] = ("call_1", "call_2")) -> ParsedResponse:
    return ParsedResponse(
        "",
        tool_calls=tuple(ToolCall(name, arguments, id) for (name, arguments), id in zip(calls, ids, strict=False)),
        finish_reason=FinishReason.TOOL_CALLS,
    )
