"""Answers with wrong types or numbers in each of their places: nothing raises, and any API can write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.streams import streamed

from toolwire import (
    FinishReason,
    Message,
    OpaquePart,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    Usage,
    collect,
    get_api,
)
from toolwire.providers.framing import sse

APIS = [
    *("openai_chat", "openai_responses", "anthropic_messages", "gemini", "gemini_interactions", "bedrock_converse"),
    *("cohere", "mistral", "ollama"),
]
CALL = ToolCall("get_weather", {"city": "Paris"}, "call00001")
WRONG: tuple[Any, ...] = (
    5,
    "\udc00",
    [],
    ["x"],
    {"message": "x"},
    {"answer": 5},
    {"a": {"b": [{}]}},
    True,
    1e300,
    None,
)


def answer(api: str) -> dict[str, Any]:
    reasoning = ReasoningPart("It rains.", "c2lnbmVk", get_api(api).kind)
    parts = (reasoning, TextPart("Rain."), CALL)
    response = ParsedResponse(
        "Rain.", tool_calls=(CALL,), finish_reason=FinishReason.TOOL_CALLS, parts=parts, usage=Usage(5, 7)
    )
    body: dict[str, Any] = json.loads(json.dumps(get_api(api).encode_response(response, model="m", created=9)))
    return body


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("api", APIS)
def test_any_wrong_value_is_read_and_written_by_every_api(api: str) -> None:
    body = answer(api)
    for *parents, last in places(body):
        for value in WRONG:
            lie = json.loads(json.dumps(body))
            at = lie
            for key in parents:
                at = at[key]
            at[last] = value
            read = get_api(api).decode_response(lie)
            for part in read.parts:
                if isinstance(part, ReasoningPart):
                    assert isinstance(part.text, str)
                    assert isinstance(part.signature, str)
            for other in APIS:
                json.dumps(get_api(other).encode_response(read), allow_nan=False)
                get_api(other).encode_request([Message("assistant", read.parts)])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("error", [{"detail": [float("inf")]}, {"error": {"code": float("nan")}}])
def test_an_error_with_a_number_out_of_range_is_one(api: str, error: dict[str, Any]) -> None:
    read = get_api(api).decode_response(error)
    assert (read.finish_reason, [problem.kind for problem in read.problems]) == (
        FinishReason.ERROR,
        ["provider_error"],
    )


def test_half_of_a_character_in_an_unread_member_is_written_as_an_escape() -> None:
    events = get_api("anthropic_messages").stream_decoder()
    start = {"type": "message_start", "message": {"role": "assistant", "content": [], "container": {"id": "\ud800"}}}
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    read = [event for data in (start, stop, {"type": "message_stop"}) for event in events.feed(data)] + events.finish()
    for api in ("anthropic_messages", "anthropic_bedrock"):
        data = b"".join(get_api(api).encode_stream(read))
        assert collect(streamed(api, data)).finish_reason is FinishReason.STOP


def test_a_stream_in_which_a_time_is_infinite_is_read() -> None:
    data = b'data: {"created": 1e999, "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\n'
    assert collect(streamed("openai_chat", data + sse({"choices": []}))).content == "x"


@pytest.mark.parametrize(
    "block", [{"toolResult": 1.5}, {"toolResult": {"content": 5}}, {"toolResult": {"content": [5]}}, {"document": 5}]
)
def test_an_unknown_block_of_bedrock_goes_back_as_it_is(block: dict[str, Any]) -> None:
    messages = [Message("user", "Hi."), Message("assistant", (OpaquePart(block, "bedrock_converse"),))]
    body = get_api("bedrock_converse").encode_request(messages)
    assert body["messages"][1]["content"] == [block]


@pytest.mark.parametrize(("arguments", "complete"), [('{"a": 1}', 2), ("", 1), ('{"a"', 1)])
def test_a_call_of_cohere_without_an_end_is_complete_if_its_arguments_are(arguments: str, complete: int) -> None:
    def event(kind: str, **function: str) -> dict[str, Any]:
        call = {"id": "c", "type": "function", "function": function}
        return {"type": kind, "index": 0, "delta": {"message": {"tool_calls": call}, "finish_reason": "TOOL_CALL"}}

    starts = (event("tool-call-start", name="f", arguments=text) for text in (arguments, "{}"))
    decoder = get_api("cohere").stream_decoder()
    read = [e for data in (*starts, event("tool-call-end"), event("message-end")) for e in decoder.feed(data)]
    response = collect([*read, *decoder.finish()])
    assert (len(response.tool_calls), len(response.incomplete)) == (complete, 2 - complete)
