"""Cohere's chat API: bodies and streams, read and written."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.streams import streamed
from tests.unit.providers.conftest import CITY, CLOCK, USER, WEATHER, sse_stream

import toolwire
from toolwire import collect, get_api
from toolwire.errors import DefinitionError
from toolwire.events import ArgumentsDelta, CallStart, ContentDelta
from toolwire.messages import (
    CitationPart,
    CitedSource,
    FinishReason,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.providers.request import ChatRequest, Notes, ToolChoice
from toolwire.tools import ToolDefinition

API = get_api("cohere")
fed = partial(streamed, API)


def delta(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    return {"type": kind, **({} if index is None else {"index": index}), "delta": {"message": message}}


def call(name: str, arguments: Any, id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(reason: str = "COMPLETE", **message: Any) -> dict[str, Any]:
    usage = {"billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": {"input_tokens": 5, "output_tokens": 7}}
    return {"id": "r1", "finish_reason": reason, "message": {"role": "assistant", **message}, "usage": usage}


def document(data: Any) -> list[Any]:
    return [{"type": "document", "document": {"data": data}}]


def test_request_contains_tools() -> None:
    body = API.encode_request([USER], tools=[WEATHER], model="command-a")
    function = {"name": "weather", "description": "Tells it.", "parameters": CITY}
    assert body == {
        "model": "command-a",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": function}],
        "stream": False,
    }


@pytest.mark.parametrize(
    ("choice", "word", "offered", "noted"),
    [
        ("auto", None, ["weather", "clock"], 0),
        ("none", "NONE", ["weather", "clock"], 0),
        ("required", "REQUIRED", ["weather", "clock"], 0),
        ("clock", "REQUIRED", ["clock"], 1),
        (ToolChoice("auto", ("clock",)), None, ["clock"], 1),
    ],
)
def test_tool_choice_is_written_as_a_mode(choice: Any, word: str | None, offered: list[str], noted: int) -> None:
    notes = Notes()
    body = API.encode_request([USER], tools=[WEATHER, CLOCK], tool_choice=choice, notes=notes)
    assert body.get("tool_choice") == word
    assert [tool["function"]["name"] for tool in body["tools"]] == offered
    assert [note.where for note in notes] == ["tool_choice"] * noted
    assert API.decode_request(body).tool_choice.mode == ToolChoice.of(choice).mode


def test_sampling_settings_have_cohere_names() -> None:
    notes = Notes()
    request = ChatRequest((USER,), parallel=True, max_tokens=5, temperature=0.0, top_p=0.9, stop=("x",), stream=True)
    body = API.encode_request(request, notes=notes)
    assert (body["max_tokens"], body["temperature"], body["p"], body["stop_sequences"]) == (5, 0.0, 0.9, ["x"])
    assert [note.where for note in notes] == ["parallel"]
    back = API.decode_request(body)
    assert (back.max_tokens, back.temperature, back.top_p, back.stop, back.stream) == (5, 0.0, 0.9, ("x",), True)


def test_members_that_only_cohere_has_are_kept() -> None:
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "m", "messages": messages, "stream": False, "strict_tools": True, "documents": []}
    assert API.encode_request(API.decode_request(body)) == body


@pytest.mark.parametrize("body", [{}, {"messages": ["x"]}, {"messages": [{}]}, {"messages": [], "tools": [{}]}])
def test_invalid_request_is_refused(body: Any) -> None:
    with pytest.raises(DefinitionError):
        API.decode_request(body)


HISTORY = (
    Message("system", (TextPart("be kind"),)),
    Message("user", (TextPart("look"), ImagePart("AA==", "image/png"))),
    Message(
        "assistant",
        (ReasoningPart("I will look."), ToolCall("weather", {"city": "Oslo"}, "a"), ToolCall("clock", {}, "b")),
    ),
    Message("tool", (ToolResult("a", "weather", {"sky": "blue"}), ToolResult("b", "clock", error="no clock"))),
    Message("assistant", (ReasoningPart("Now I know."), TextPart("Blue."))),
)
WRITTEN = [
    {"role": "system", "content": "be kind"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        ],
    },
    {
        "role": "assistant",
        "tool_plan": "I will look.",
        "tool_calls": [call("weather", '{"city": "Oslo"}', "a"), call("clock", "{}", "b")],
    },
    {"role": "tool", "tool_call_id": "a", "content": document({"sky": "blue"})},
    {"role": "tool", "tool_call_id": "b", "content": document({"error": "no clock"})},
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Now I know."}, {"type": "text", "text": "Blue."}],
    },
]


def test_history_is_written_and_read() -> None:
    assert API.encode_request(HISTORY)["messages"] == WRITTEN
    assert API.decode_request({"messages": WRITTEN}).messages == HISTORY


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("text", {"output": "text"}),
        ({"a": 1}, {"a": 1}),
        ([1, 2], {"output": "[1, 2]"}),
        ({}, {"output": "{}"}),
        ({"output": 1}, {"output": '{"output": 1}'}),
        ({"error": "of the value"}, {"output": '{"error": "of the value"}'}),
    ],
)
def test_result_is_written_as_a_document(value: Any, data: Any) -> None:
    [message] = API.encode_results([ToolResult("a", "f", value)])
    assert message == {"role": "tool", "tool_call_id": "a", "content": document(data)}


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (document({"a": 1}) + document({"b": 2}), [{"a": 1}, {"b": 2}]),
        (document('{"a": 1}'), '{"a": 1}'),
    ],
)
def test_results_of_other_shapes_are_read(content: Any, value: Any) -> None:
    message = {"role": "assistant", "tool_calls": [call("f", "{}", "a")]}
    answered = {"role": "tool", "tool_call_id": "a", "content": content}
    assert API.decode_request({"messages": [message, answered]}).messages[1].parts == (ToolResult("a", "f", value),)


def test_response_is_decoded() -> None:
    calls = [call("weather", '{"city": "Oslo"}', "weather_1"), call("clock", "null", "clock_1")]
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Look."}]
    read = API.decode_response(answer("TOOL_CALL", tool_plan="I will look.", content=content, tool_calls=calls))
    assert (read.content, read.reasoning) == ("Look.", "I will look.Hm.")
    assert [(call.name, call.arguments, call.id) for call in read.tool_calls] == [
        ("weather", {"city": "Oslo"}, "weather_1"),
        ("clock", {}, "clock_1"),
    ]
    assert (read.finish_reason, read.usage) == (FinishReason.TOOL_CALLS, Usage(5, 7))


@pytest.mark.parametrize(
    ("response", "reason", "kinds"),
    [
        (answer("MAX_TOKENS"), "length", []),
        (answer("STOP_SEQUENCE"), "stop", []),
        (answer("ERROR_TOXIC"), "content_filter", []),
        ({"id": "x", "message": "invalid request"}, "error", ["provider_error"]),
        ({"message": 5}, "error", ["malformed"]),
        ({}, "error", ["malformed"]),
    ],
)
def test_finish_reasons_are_read(response: Any, reason: str, kinds: list[str]) -> None:
    read = API.decode_response(response)
    assert read.finish_reason == reason
    assert [problem.kind for problem in read.problems] == kinds


START = {
    "id": "r1",
    "type": "message-start",
    "delta": {"message": {"role": "assistant", "content": [], "tool_plan": ""}},
}
USAGE = {"tokens": {"input_tokens": 5, "output_tokens": 7}, "cached_tokens": 2}
END = {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": USAGE}}


def arguments(text: str, index: int) -> dict[str, Any]:
    return delta("tool-call-delta", index, tool_calls={"function": {"arguments": text}})


STREAM = sse_stream(
    START,
    delta("tool-plan-delta", tool_plan="I will "),
    delta("tool-plan-delta", tool_plan="look."),
    delta("content-start", 0, content={"type": "text", "text": ""}),
    delta("content-delta", 0, content={"text": "Blå "}),
    delta("content-delta", 0, content={"text": "himmel"}),
    {"type": "content-end", "index": 0},
    delta("tool-call-start", 0, tool_calls=call("weather", "", "weather_1")),
    arguments('{"city"', 0),
    arguments(': "Oslo"}', 0),
    {"type": "tool-call-end", "index": 0},
    delta("tool-call-start", 1, tool_calls=[call("clock", "", "clock_1")]),
    {"type": "tool-call-end", "index": 1},
    END,
)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    events = fed(STREAM, size)
    assert [event.id for event in events if isinstance(event, CallStart)] == ["weather_1", "clock_1"]
    assert [event.text for event in events if isinstance(event, ArgumentsDelta)] == ['{"city"', ': "Oslo"}', "{}"]
    read = collect(events)
    assert (read.content, read.reasoning) == ("Blå himmel", "I will look.")
    assert [call.arguments for call in read.tool_calls] == [{"city": "Oslo"}, {}]
    assert (read.finish_reason, read.usage) == (FinishReason.TOOL_CALLS, Usage(5, 7, 2))


def test_event_type_may_be_given_by_the_framing_alone() -> None:
    chunk = delta("content-delta", 0, content={"text": "x"})
    del chunk["type"]
    assert fed(b"event: content-delta\n" + sse_stream(chunk))[0] == ContentDelta("x")


def test_error_event_ends_a_stream() -> None:
    failed = {"finish_reason": "ERROR", "error": "invalid tool generation", "usage": {}}
    read = collect(fed(sse_stream(START, {"type": "message-end", "delta": failed})))
    assert (read.finish_reason, read.usage) == (FinishReason.ERROR, None)
    assert [problem.kind for problem in read.problems] == ["provider_error"]


@pytest.mark.parametrize(
    "frames",
    [
        [delta("tool-call-start", 0, tool_calls=call("f", "", "a")), arguments('{"a"', 0)],
        [delta("tool-call-start", 0, tool_calls=call("f", "", "a")), arguments("[1]", 0), END],
    ],
)
def test_truncated_and_malformed_calls_are_incomplete(frames: Any) -> None:
    events = fed(sse_stream(START, *frames))
    read = collect(events)
    assert (read.tool_calls, [call.name for call in read.incomplete]) == ((), ["f"])
    assert collect(fed(b"".join(API.encode_stream(events)))).tool_calls == ()


CITATION = {"start": 0, "end": 5, "text": "Blue.", "sources": [], "type": "TEXT_CONTENT"}


def test_citations_are_sent_back() -> None:
    read = API.decode_response(answer(content=[{"type": "text", "text": "Blue."}], citations=[CITATION]))
    assert read.parts == (TextPart("Blue."), CitationPart((), 0, 5))
    assert API.encode_response(read)["message"]["citations"] == [CITATION]
    again = collect(fed(b"".join(API.encode_stream(toolwire.replay(read)))))
    assert API.encode_response(again)["message"]["citations"] == [CITATION]
    [message] = API.encode_request([Message("assistant", read.parts)])["messages"]
    assert message["citations"] == [CITATION]
    assert API.encode_request(API.decode_request({"messages": [message]}))["messages"] == [message]


PAGE = CitationPart((CitedSource("https://example.org", "A page", "snow"),), 3, 8)
PAGE_WRITTEN = {
    "start": 3,
    "end": 8,
    "sources": [
        {
            "type": "document",
            "id": "https://example.org",
            "document": {
                "id": "https://example.org",
                "url": "https://example.org",
                "title": "A page",
                "text": "snow",
            },
        }
    ],
    "text": "snows",
    "type": "TEXT_CONTENT",
}
OWN = {"start": 0, "end": 2, "text": "It", "sources": [], "type": "PLAN"}


@pytest.mark.parametrize(
    ("part", "written"),
    [(PAGE, PAGE_WRITTEN), (OpaquePart({"type": "citations", "citations": [OWN]}, "cohere"), OWN)],
    ids=["of another API", "own"],
)
def test_a_citation_is_written_whole_and_in_a_stream(part: Part, written: dict[str, Any]) -> None:
    response = ParsedResponse("It snows.", parts=(TextPart("It snows."), part))
    assert API.encode_response(response)["message"]["citations"] == [written]
    lines = b"".join(API.encode_stream(toolwire.replay(response))).decode().split("data: ")[1:]
    begun = [event for event in map(json.loads, lines) if event["type"] not in ("content-delta", "message-start")]
    assert begun == [
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        {"type": "citation-start", "index": 0, "delta": {"message": {"citations": written}}},
        {"type": "citation-end", "index": 0},
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    ]


def test_a_citation_without_a_range_has_no_statement() -> None:
    response = ParsedResponse("It snows.", parts=(TextPart("It snows."), replace(PAGE, start=None, end=None)))
    [written] = API.encode_response(response)["message"]["citations"]
    assert (written["text"], written.keys() & {"start", "end"}) == ("", set())


def test_citations_of_a_request_are_read_as_one_part() -> None:
    message = {"role": "assistant", "content": "It snows.", "citations": [CITATION, OWN]}
    parts = API.decode_request({"messages": [message]}).messages[0].parts
    assert parts[-1] == OpaquePart({"type": "citations", "citations": [CITATION, OWN]}, "cohere")


CALLS = (ToolCall("weather", {"city": "Oslo"}, "toolu_1"), ToolCall("clock", {}, "toolu_2"))
RESPONSE = ParsedResponse("Look.", "Hm.", CALLS, finish_reason=FinishReason.TOOL_CALLS, usage=Usage(5, 7, 2, 1))


def test_encoded_response_is_decoded_again() -> None:
    body = API.encode_response(RESPONSE, model="m", id="r1")
    assert (body["id"], body["finish_reason"], body["message"]["tool_plan"]) == ("r1", "TOOL_CALL", "Hm.")
    back = API.decode_response(body)
    assert (back, back.usage) == (RESPONSE, RESPONSE.usage)
    thought = ParsedResponse("Look.", "Hm.")
    assert API.encode_response(thought)["message"]["content"][0] == {"type": "thinking", "thinking": "Hm."}


def test_encoded_stream_is_decoded_again() -> None:
    data = b"".join(API.encode_stream(toolwire.replay(RESPONSE), id="r1"))
    kinds = [json.loads(line[5:])["type"] for line in data.decode().splitlines() if line]
    one_call = ["tool-call-start", "tool-call-delta", "tool-call-end"]
    text = ["content-start", "content-delta", "content-end"]
    assert kinds == ["message-start", "tool-plan-delta", *text, *one_call, *one_call, "message-end"]
    assert b"event:" not in data
    back = collect(fed(data))
    assert (back, back.usage) == (RESPONSE, RESPONSE.usage)


def test_signature_is_dropped_with_a_note() -> None:
    notes = Notes()
    response = ParsedResponse(parts=(ReasoningPart("hm", "sig", "anthropic_messages"), TextPart("x")))
    assert API.encode_response(response, notes=notes)["message"]["content"][0]["thinking"] == "hm"
    assert [note.where for note in notes] == ["reasoning"]
    message = Message("assistant", response.parts)
    assert API.encode_request([message], notes=notes)["messages"][0]["content"] == [{"type": "text", "text": "x"}]


def test_tool_names_are_restored() -> None:
    tool = ToolDefinition("files.read/all")
    name = API.encode_request([USER], tools=[tool])["tools"][0]["function"]["name"]
    read = API.decode_response(answer("TOOL_CALL", tool_calls=[call(name, "{}", "a")]), tools=[tool])
    assert (name == "files.read/all", read.tool_calls[0].name) == (False, "files.read/all")


def test_content_that_is_an_object_is_its_json() -> None:
    content = {"city": "Paris", "text": [1]}
    body = {"finish_reason": "COMPLETE", "message": {"role": "assistant", "content": content}}
    assert json.loads(API.decode_response(body).content) == content


def test_missing_arguments_are_an_empty_object() -> None:
    for text in ("", "null", None, " "):
        read = API.decode_response(answer("TOOL_CALL", tool_calls=[call("f", text, "a")]))
        assert [call.arguments for call in read.tool_calls] == [{}]
        message = {"role": "assistant", "tool_calls": [call("f", text, "a")]}
        [result] = API.encode_request(API.decode_request({"messages": [message]}))["messages"]
        assert result["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_may_be_an_object() -> None:
    read = API.decode_response(answer("TOOL_CALL", tool_calls=[call("f", {"a": 1}, "a")]))
    assert read.tool_calls[0].arguments == {"a": 1}


def test_reused_index_begins_another_call() -> None:
    frames = [
        frame
        for id in "ab"
        for frame in (delta("tool-call-start", 0, tool_calls=call("f", "", id)), arguments("{}", 0))
    ]
    read = collect(fed(sse_stream(START, *frames, END)))
    assert [call.id for call in read.tool_calls] == ["a", "b"]


def test_each_call_is_followed_by_one_result() -> None:
    message = Message("assistant", CALLS)
    messages = API.encode_request([message, Message("tool", (ToolResult("toolu_2", "", "5"),)), USER])["messages"]
    assert [message.get("tool_call_id") for message in messages] == [None, "toolu_1", "toolu_2", None]
    assert "error" in messages[1]["content"][0]["document"]["data"]


def test_images_of_results_follow_in_a_message_of_the_user() -> None:
    results = (ToolResult("toolu_1", "", images=(ImagePart("AA=="),)), ToolResult("toolu_2", "", "5"))
    messages = API.encode_request([Message("assistant", CALLS), Message("tool", results)])["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user"]
    assert messages[3]["content"][1]["image_url"]["url"] == "data:image/png;base64,AA=="
