"""Anthropic Messages: requests, answers and streams"""

import json
from typing import Any

import pytest
from tests.streams import streamed
from tests.unit.providers.conftest import GET_WEATHER, decoded, sse_stream

import toolwire
from toolwire import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    FinishReason,
    ImagePart,
    Message,
    Notes,
    OpaquePart,
    ParsedResponse,
    ReasoningDelta,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    collect,
    replay,
)
from toolwire.providers.framing import ServerSentEvents, sse

API = toolwire.get_api("anthropic_messages")
CALL = ToolCall("get_weather", {"city": "Paris"}, "toolu_1")
ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHg="},
        {"type": "text", "text": "Looking."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
        {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 7},
}


def encoded(*messages: Message, **options: Any) -> dict[str, Any]:
    return API.encode_request(messages, model="claude", max_tokens=10, **options)


def events_of(data: bytes, size: int = 1) -> list[Event]:
    return streamed(API, data, size)


def written(events: list[Event]) -> list[dict[str, Any]]:
    """The events of a stream that was written."""
    framing = ServerSentEvents()
    return [frame.value for frame in [*framing.feed(b"".join(API.encode_stream(events))), *framing.finish()]]


def blocks_of(stream: list[dict[str, Any]]) -> list[str]:
    """Kind by kind, what a stream opens, adds and closes."""
    shown = []
    for event in stream:
        match event["type"]:
            case "content_block_start":
                shown.append(f"{event['index']}:{event['content_block']['type']}")
            case "content_block_delta":
                shown.append(f"{event['index']}+{event['delta']['type']}")
            case "content_block_stop":
                shown.append(f"{event['index']}.")
            case other:
                shown.append(other)
    return shown


@pytest.mark.mission("E20", "F5")
def test_request_contains_tools_and_tool_choice() -> None:
    body = encoded(Message("user", (TextPart("hi"),)), tools=[GET_WEATHER], tool_choice="get_weather", parallel=False)
    assert body == {
        "model": "claude",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "get_weather", "description": "The weather.", "input_schema": GET_WEATHER.parameters}],
        "tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
    }
    assert encoded(tools=[GET_WEATHER], tool_choice="required")["tool_choice"] == {"type": "any"}
    assert encoded(tools=[GET_WEATHER], tool_choice="none")["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in encoded(tools=[GET_WEATHER])
    request = API.decode_request(body)
    assert (request.tools, request.tool_choice.name, request.parallel) == ((GET_WEATHER,), "get_weather", False)


@pytest.mark.mission("D9")
@pytest.mark.need(22)
def test_invalid_tool_is_left_out_and_the_others_are_offered() -> None:
    notes = Notes()
    bad = ToolDefinition("bad", parameters={"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})
    body = encoded(tools=[bad, GET_WEATHER], notes=notes)
    assert [tool["name"] for tool in body["tools"]] == ["get_weather"]
    assert [(note.kind, note.where) for note in notes] == [("quarantined", "bad")]


def test_maximum_length_is_added_where_the_request_has_none() -> None:
    notes = Notes()
    assert API.encode_request("hi", notes=notes)["max_tokens"] == 4096
    foreign = toolwire.get_api("openai_chat").decode_request({"messages": [], "logit_bias": {}, "max_tokens": 5})
    API.encode_request(foreign, notes=notes)
    assert list(map(str, notes)) == [
        "added max_tokens=4096: anthropic_messages requires it",
        "dropped logit_bias: anthropic_messages has no equivalent",
    ]


def test_system_messages_become_the_system_member() -> None:
    system = Message("system", (TextPart("be brief"),))
    assert encoded(system, Message("user", (TextPart("hi"),)))["system"] == "be brief"
    notes = Notes()
    late = encoded(Message("user", (TextPart("hi"),)), system, notes=notes)
    assert (late["system"], len(late["messages"]), len(notes)) == ("be brief", 1, 1)


@pytest.mark.mission("F2")
def test_signed_thinking_is_sent_back_unchanged() -> None:
    response = API.decode_response(ANSWER)
    body = encoded(Message("assistant", response.parts))
    assert body["messages"] == [{"role": "assistant", "content": ANSWER["content"]}]
    empty = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    again = API.decode_response({**ANSWER, "content": [empty, *ANSWER["content"][4:]]})
    assert encoded(Message("assistant", again.parts))["messages"][0]["content"][0] == empty


def test_reasoning_of_other_apis_is_left_out_with_a_note() -> None:
    notes = Notes()
    message = Message("assistant", (ReasoningPart("hm", "s", "gemini"), ReasoningPart("plain"), TextPart("x")))
    assert encoded(message, notes=notes)["messages"] == [{"role": "assistant", "content": "x"}]
    assert [note.kind for note in notes] == ["dropped", "dropped"]


@pytest.mark.mission("F2", "F9")
def test_results_of_a_turn_come_first_in_one_message() -> None:
    image = ImagePart("aGk=", "image/png")
    body = encoded(
        Message("user", (TextPart("q"),)),
        Message("assistant", (CALL, ToolCall("b", {}, "toolu_2"), ToolCall("c", {}, "toolu_3"))),
        Message("tool", (ToolResult("toolu_2", "b", error="no"),)),
        Message("user", (TextPart("and?"),)),
        Message("tool", (ToolResult("toolu_1", "get_weather", {"t": 20}, images=(image,)),)),
    )
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [
                {"type": "text", "text": '{"t": 20}'},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ],
        },
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True},
        {"type": "tool_result", "tool_use_id": "toolu_3", "content": "the call was not answered", "is_error": True},
        {"type": "text", "text": "and?"},
    ]


def test_results_of_every_kind_are_written() -> None:
    content = [
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "tool_reference", "tool_name": "other"},
    ]
    body = {
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]}]
    }
    (message,) = API.decode_request(body).messages
    assert message.parts == (ToolResult("t", "", json.dumps(content[1]), images=(ImagePart(url="https://x/y.png"),)),)


@pytest.mark.mission("F2", "F26")
def test_response_is_decoded_and_encoded() -> None:
    response = API.decode_response(ANSWER)
    assert (response.content, response.reasoning, response.finish_reason) == ("Looking.", "hm", "tool_calls")
    assert [(call.id, call.arguments) for call in response.tool_calls] == [
        ("toolu_1", {"city": "Paris"}),
        ("toolu_2", {}),
    ]
    assert [type(part) for part in response.parts] == [
        ReasoningPart, ReasoningPart, TextPart, OpaquePart, ToolCall, ToolCall,
    ]  # fmt: skip
    assert response.usage == toolwire.Usage(8, 7, 3)
    assert API.encode_response(response)["content"] == ANSWER["content"]


COMPACTION = {"type": "compaction", "content": "They spoke of tea.", "encrypted_content": "x1"}
COMPACTED_USAGE = {
    "input_tokens": 50,
    "output_tokens": 7,
    "iterations": [
        {"type": "compaction", "input_tokens": 1000, "cache_read_input_tokens": 20, "output_tokens": 300},
        {"type": "message", "input_tokens": 50, "output_tokens": 7},
    ],
}


def test_compaction_by_the_server_is_sent_back_and_counted() -> None:
    answer = {**ANSWER, "content": [COMPACTION, {"type": "text", "text": "Hi"}], "usage": COMPACTED_USAGE}
    whole = API.decode_response(answer)
    data = b"".join(
        sse(event)
        for event in (
            {"type": "message_start", "message": {"usage": {"input_tokens": 50}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {**COMPACTION, "type": "compaction_delta"},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Hi"}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": COMPACTED_USAGE},
            {"type": "message_stop"},
        )
    )
    for response in (whole, toolwire.collect(events_of(data))):
        assert response.usage == toolwire.Usage(1070, 307, 20)
        body = API.encode_request([Message("assistant", response.parts), Message("user", "Go on.")])
        assert body["messages"][0]["content"] == [COMPACTION, {"type": "text", "text": "Hi"}]


def test_error_body_becomes_a_problem() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    response = API.decode_response(body)
    assert [problem.kind for problem in response.problems] == ["provider_error"]
    assert response.finish_reason is FinishReason.ERROR
    assert [problem.kind for problem in API.decode_response({"strange": 1}).problems] == ["malformed"]


@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    response = API.decode_response(ANSWER)
    data = b"".join(API.encode_stream(replay(response)))
    again = collect(events_of(data, size))
    assert again == response
    assert [part for part in again.parts if not isinstance(part, ToolCall)] == [
        part for part in response.parts if not isinstance(part, ToolCall)
    ]


@pytest.mark.parametrize("size", [1, 10_000])
def test_arguments_are_streamed_as_the_model_writes_them(size: int) -> None:
    start = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    data = b"".join(
        [
            sse({"type": "message_start", "message": {"usage": {"input_tokens": 5}}}),
            sse({"type": "content_block_start", "index": 0, "content_block": start}),
            sse({"type": "ping"}),
            *(
                sse(
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": "input_json_delta", "partial_json": text},
                    }
                )
                for text in ("", '{"ci', 'ty": "P', 'aris"}')
            ),
            sse({"type": "content_block_stop", "index": 0}),
            sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
            sse({"type": "message_stop"}),
        ]
    )
    events = [event for event in events_of(data, size) if not isinstance(event, toolwire.UsageCounted)]
    assert events == [
        CallStart(0, "get_weather", "toolu_1"),
        ArgumentsDelta(0, '{"ci'),
        ArgumentsDelta(0, 'ty": "P'),
        ArgumentsDelta(0, 'aris"}'),
        CallEnd(0, CALL, True),
        Finish(FinishReason.TOOL_CALLS),
    ]


def test_truncated_stream_has_no_complete_call() -> None:
    start = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"city": "P'}
    data = sse({"type": "content_block_start", "index": 0, "content_block": start})
    data += sse({"type": "content_block_delta", "index": 0, "delta": delta})
    response = collect(events_of(data))
    assert not response.tool_calls
    assert [(problem.kind, problem.index) for problem in response.problems] == [("truncated", None), ("truncated", 0)]
    assert response.finish_reason is FinishReason.ERROR


def test_call_without_arguments_is_complete_without_a_delta() -> None:
    start = {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}
    data = sse({"type": "content_block_start", "index": 0, "content_block": start})
    data += sse({"type": "content_block_stop", "index": 0})
    data += sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}) + sse({"type": "message_stop"})
    assert collect(events_of(data)).tool_calls == (ToolCall("now", {}, "toolu_1"),)


def test_written_block_has_one_type_and_all_of_its_text() -> None:
    stream = written(
        [ReasoningDelta("a"), ContentDelta("b"), CallStart(0, "f", "1"), ArgumentsDelta(0, "{}"),
         CallEnd(0, ToolCall("f", {}, "1"), True), ContentDelta("c"), Finish(FinishReason.TOOL_CALLS)]
    )  # fmt: skip
    assert blocks_of(stream) == [
        "message_start", "0:thinking", "0+thinking_delta", "0.", "1:text", "1+text_delta", "1.", "2:tool_use",
        "2+input_json_delta", "2.", "3:text", "3+text_delta", "3.", "message_delta", "message_stop",
    ]  # fmt: skip


def test_interleaved_calls_become_consecutive_blocks() -> None:
    first, two = ToolCall("f", {"a": 1}, "1"), ToolCall("g", {"b": 2}, "2")
    stream = written(
        [CallStart(0, "f", "1"), CallStart(1, "g", "2"), ArgumentsDelta(0, '{"a":'), ArgumentsDelta(1, '{"b":'),
         ArgumentsDelta(0, "1}"), ArgumentsDelta(1, "2}"), CallEnd(0, first, True), CallEnd(1, two, True),
         Finish(FinishReason.TOOL_CALLS)]
    )  # fmt: skip
    assert blocks_of(stream) == [
        "message_start", "0:tool_use", "0+input_json_delta", "0+input_json_delta", "0.", "1:tool_use",
        "1+input_json_delta", "1+input_json_delta", "1.", "message_delta", "message_stop",
    ]  # fmt: skip
    assert collect(events_of(b"".join(map(sse, stream)))).tool_calls == (first, two)


def test_illegal_names_and_ids_are_respelled_and_restored() -> None:
    tool = ToolDefinition("files.read")
    call = ToolCall("files.read", {}, "functions.files:0")
    body = encoded(
        Message("assistant", (call,)), Message("tool", (ToolResult(call.id, call.name, 1),)),
        tools=[tool], tool_choice="files.read",
    )  # fmt: skip
    name = body["tools"][0]["name"]
    use, result = body["messages"][0]["content"][0], body["messages"][1]["content"][0]
    assert body["tool_choice"]["name"] == use["name"] == name != "files.read"
    assert use["id"] == result["tool_use_id"]
    answer = {**ANSWER, "content": [{"type": "tool_use", "id": "t", "name": name, "input": {}}]}
    assert API.decode_response(answer, tools=[tool]).tool_calls[0].name == "files.read"


def test_unexpected_body_never_raises() -> None:
    for content in (None, 5, [5], [{}], [{"type": "tool_use"}], [{"type": "tool_use", "input": 5, "name": 7}], "text"):
        response = API.decode_response({**ANSWER, "content": content})
        assert isinstance(response, ParsedResponse)
        assert not response.tool_calls


MARK = {"cache_control": {"type": "ephemeral"}}
CACHED: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "You are Bob", **MARK}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Hello", **MARK},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/i.png"}, **MARK},
                {"type": "text", "text": "so", "citations": [{"type": "char_location"}]},
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}, **MARK}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x", **MARK}]},
    ],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}},
               "defer_loading": True, **MARK}],
}  # fmt: skip


def test_cache_marks_are_kept() -> None:
    notes = Notes()
    assert API.encode_request(API.decode_request(CACHED), notes=notes) == CACHED
    assert not notes
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x", **MARK}]}
    inner = {**CACHED, "messages": [*CACHED["messages"][:-1], {"role": "user", "content": [result]}]}
    assert API.encode_request(API.decode_request(inner)) == CACHED


def _has_marks(name: str) -> bool:
    return name == "openrouter" or toolwire.get_api(name).kind in ("anthropic_messages", "bedrock_converse")


@pytest.mark.parametrize("name", [name for name in toolwire.apis() if not _has_marks(name)])
def test_cache_marks_are_left_out_for_apis_without_them(name: str) -> None:
    other, notes = toolwire.get_api(name), Notes()
    body = other.encode_request(API.decode_request(CACHED), notes=notes)
    read = other.decode_request(body)
    instructions, conversation = read.messages[0], read.messages[1]
    assert [part.text for part in instructions.parts if isinstance(part, TextPart)] == ["You are Bob"]
    assert "".join(part.text for part in conversation.parts if isinstance(part, TextPart)).startswith("Hello")
    assert "ephemeral" not in str(body)
    lost = {note.where for note in notes if note.kind == "dropped" and "only anthropic_messages" in note.message}
    assert lost == {"cache_control", "citations", "f/cache_control", "f/defer_loading"}


def test_marks_in_system_blocks_are_translated_or_left_out_with_a_note() -> None:
    bedrock = toolwire.get_api("bedrock_converse")
    body = {"system": [{"text": "Bob"}, {"cachePoint": {"type": "default"}}], "messages": []}
    for name in toolwire.apis():
        notes = Notes()
        written = toolwire.get_api(name).encode_request(bedrock.decode_request(body), notes=notes)
        if name != "bedrock_converse":
            assert "cachePoint" not in str(written)
            noted = any("cachePoint" in note.where for note in notes)
            assert (noted, "ephemeral" in str(written)) == (not _has_marks(name), _has_marks(name)), name


@pytest.mark.parametrize("name", ["anthropic_messages", "bedrock_converse"])
def test_reasoning_without_a_signature_is_shown_in_bodies_and_streams(name: str) -> None:
    api, notes = toolwire.get_api(name), Notes()
    part = ReasoningPart("hm", "sealed", "gemini") if name == "bedrock_converse" else ReasoningPart("hm")
    response = ParsedResponse("hi", "hm", parts=(part, TextPart("hi")))
    full = api.decode_response(api.encode_response(response, notes=notes))
    pieces = collect(streamed(api, b"".join(api.encode_stream(replay(response)))))
    assert full.parts == pieces.parts == (ReasoningPart("hm"), TextPart("hi"))
    assert len(notes) == bool(part.signature)


SUMMARY = {"type": "compaction", "content": "The user wants tea."}
COMPACTED = {
    "type": "message",
    "content": [SUMMARY, {"type": "text", "text": "Tea."}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 23,
        "output_tokens": 10,
        "iterations": [
            {"type": "compaction", "input_tokens": 180, "output_tokens": 35},
            {"type": "message", "input_tokens": 23, "output_tokens": 10},
        ],
    },
}


def compacted_stream() -> bytes:
    usage = COMPACTED["usage"]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 23, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": None}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "compaction_delta", "content": SUMMARY["content"]},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Tea."}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    return b"".join(sse(event, event["type"]) for event in events)


@pytest.mark.parametrize("stream", [False, True])
def test_summary_of_the_server_is_sent_back_and_paid(stream: bool) -> None:
    response = collect(events_of(compacted_stream())) if stream else API.decode_response(COMPACTED)
    assert response.parts == (OpaquePart(SUMMARY, "anthropic_messages"), TextPart("Tea."))
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (203, 45)
    message = Message("assistant", response.parts)
    body = encoded(Message("user", (TextPart("Hi."),)), message, compact_at=60_000)
    assert body["messages"][1]["content"][0] == SUMMARY
    notes = Notes()
    toolwire.get_api("openai_chat").encode_request([message], notes=notes)
    assert [note.kind for note in notes] == ["dropped"]


def test_blocks_in_pieces_are_joined_whatever_they_begin_with() -> None:
    """The input of a tool that the server runs comes in pieces, and thinking may begin in the block itself."""
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (search, [{"type": "input_json_delta", "partial_json": text} for text in ('{"query": ', '"x"}')]),
        ({"type": "thinking", "thinking": "a"}, [{"type": "thinking_delta", "thinking": "b"}]),
        ({"type": "thinking", "thinking": "c"}, [{"type": "signature_delta", "signature": text} for text in "ST"]),
    ]
    events: list[dict[str, Any]] = []
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    events.append({"type": "message_stop"})
    assert decoded("anthropic_messages", sse_stream(*events)).parts == (
        OpaquePart({**search, "input": {"query": "x"}}, "anthropic_messages"),
        ReasoningPart("ab"),
        ReasoningPart("c", "ST", "anthropic_messages"),
    )


@pytest.mark.parametrize(
    ("role", "expected"),
    [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant"), ("tool", "user")],
)
def test_only_instructions_have_the_rank_of_instructions(role: str, expected: str) -> None:
    body = {"max_tokens": 9, "messages": [{"role": role, "content": "Hello"}]}
    assert [message.role for message in API.decode_request(body).messages] == [expected]
