"""Chat Completions: bodies and streams, read and written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.providers.conftest import SQL, USER, chat_stream, decoded

import toolwire as tw
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Finish, replay
from toolwire.messages import (
    FinishReason,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.providers.chat_completions import ChatCompletions
from toolwire.providers.openai_chat import GEMINI_CHAT, with_facts
from toolwire.providers.request import ChatRequest, Notes, ToolChoice
from toolwire.providers.response_builder import ResponseBuilder
from toolwire.tools import ToolDefinition

CHAT = tw.get_api("openai_chat")
VLLM = tw.get_api("vllm")
WEATHER = ToolDefinition(
    "get_weather",
    "The weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def chunks(*deltas: dict[str, Any], reason: str | None = "tool_calls") -> bytes:
    return chat_stream(*deltas, reason=reason)


def piece(index: Any = 0, arguments: Any = None, name: Any = None, id: Any = None) -> dict[str, Any]:
    """A delta with a piece of one call."""
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": id, "function": {key: item for key, item in function.items() if item is not None}}
    return {"tool_calls": [{key: call for key, call in call.items() if call is not None}]}


def calls(response: ParsedResponse) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in response.tool_calls]


# -- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.mission("E20", "F5")
def test_request_contains_tools() -> None:
    body = CHAT.encode_request([USER], tools=[WEATHER])
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "The weather of a city.",
                "parameters": WEATHER.parameters,
            },
        }
    ]
    assert "tool_choice" not in body


def test_strict_mode_is_written_where_the_api_has_it() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}}
    strict = ToolDefinition("w", "", {**schema, "required": ["city"]}, annotations={"strict": True})
    function = CHAT.encode_request([USER], tools=[strict])["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"] == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": ["string", "null"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    }
    notes = Notes()
    assert "strict" not in VLLM.encode_request([USER], tools=[strict], notes=notes)["tools"][0]["function"]
    assert [note.where for note in notes] == ["w/strict"]


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("none", "none"),
        ("required", "required"),
        ("get_weather", {"type": "function", "function": {"name": "get_weather"}}),
        ("sql", {"type": "custom", "custom": {"name": "sql"}}),
        (
            ToolChoice("auto", ("get_weather", "sql")),
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [
                        {"type": "function", "function": {"name": "get_weather"}},
                        {"type": "custom", "custom": {"name": "sql"}},
                    ],
                },
            },
        ),
    ],
)
def test_tool_choice_is_written_and_read(choice: Any, written: Any) -> None:
    body = CHAT.encode_request([USER], tools=[WEATHER, SQL], tool_choice=choice, parallel=False)
    assert body["tool_choice"] == written
    assert body["parallel_tool_calls"] is False
    assert CHAT.decode_request(body).tool_choice == ToolChoice.of(choice)


CALLED = Message("assistant", (ToolCall("get_weather", {"city": "Rome"}, "a"), ToolCall("get_weather", {}, "b")))


@pytest.mark.mission("F2", "F9")
def test_results_are_messages_of_the_role_tool() -> None:
    results = Message(
        "tool",
        (
            ToolResult("b", "get_weather", error="no city"),
            ToolResult("a", "get_weather", {"sun": True}, images=(ImagePart("QUJD", "image/png"),)),
        ),
    )
    body = CHAT.encode_request([USER, CALLED, results])
    assert body["messages"][1]["content"] is None
    assert body["messages"][1]["tool_calls"][1] == {
        "id": "b",
        "type": "function",
        "function": {"name": "get_weather", "arguments": "{}"},
    }
    assert body["messages"][2:] == [
        {"role": "tool", "tool_call_id": "a", "content": '{"sun": true}'},
        {"role": "tool", "tool_call_id": "b", "content": "Error: no city"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Images of the result of get_weather:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            ],
        },
    ]


def test_calls_of_offered_custom_tools_are_written_as_custom() -> None:
    history = [
        USER,
        Message("assistant", (ToolCall("sql", {"input": "SELECT 1"}, "a"),)),
        Message("tool", (ToolResult("a", "sql", "1"),)),
    ]
    body = CHAT.encode_request(history, tools=[SQL])
    assert body["tools"][0]["type"] == "custom"
    assert body["messages"][1]["tool_calls"] == [
        {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    ]
    assert CHAT.decode_request(body).messages == tuple(history)
    assert VLLM.encode_request(history, tools=[SQL])["messages"][1]["tool_calls"][0]["type"] == "function"
    assert CHAT.encode_request(history)["messages"][1]["tool_calls"][0]["type"] == "function"


def test_request_survives_a_round_trip() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                ],
            },
            {"role": "assistant", "content": "Wait.", "tool_calls": [CHAT.write_call(ToolCall("f", {"x": 1}, "a"))]},  # type: ignore[attr-defined]
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
        "stream": True,
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "stop": ["x"],
        "seed": 7,
    }
    assert CHAT.encode_request(CHAT.decode_request(body)) == body


# -- answers ---------------------------------------------------------------------------------------------------------

RESPONSE = ParsedResponse(
    content="Let me see.",
    reasoning="hm",
    tool_calls=(ToolCall("get_weather", {"city": "Rome"}, "a"), ToolCall("now", {}, "b")),
    finish_reason=FinishReason.TOOL_CALLS,
    usage=Usage(5, 3, 1, 2),
)


@pytest.mark.mission("F2", "F26")
def test_response_is_decoded() -> None:
    response = CHAT.decode_response(
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "reasoning_content": "hm",
                        "content": "Let me see.",
                        "tool_calls": [
                            {
                                "id": "a",
                                "type": "function",
                                "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'},
                            },
                            {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
                        ],
                    },
                }
            ],
            "usage": {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}},
        }
    )
    assert calls(response) == [("get_weather", {"city": "Rome"}), ("sql", {"input": "SELECT 1"})]
    assert (response.content, response.reasoning) == ("Let me see.", "hm")
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.usage == Usage(5, 3, 1, 0)


STREAM = chunks(
    {"role": "assistant", "content": ""},
    {"reasoning_content": "hm"},
    {"content": "Sí"},
    piece(0, "", "get_weather", "a"),
    piece(0, '{"city": '),
    piece(0, '"Rome"}'),
    piece(1, "{}", "now", "b"),
)


@pytest.mark.mission("E18")
@pytest.mark.parametrize("size", [0, 1, 7])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    response = decoded(CHAT, STREAM, size)
    assert calls(response) == [("get_weather", {"city": "Rome"}), ("now", {})]
    assert [call.id for call in response.tool_calls] == ["a", "b"]
    assert (response.content, response.reasoning) == ("Sí", "hm")
    assert response.finish_reason is FinishReason.TOOL_CALLS


def test_truncated_stream_has_no_complete_call() -> None:
    response = decoded(CHAT, chunks(piece(0, "", "delete_all", "a"), reason=None))
    assert not response.tool_calls
    assert [call.name for call in response.incomplete] == ["delete_all"]
    assert response.problems[0].kind == "truncated"


@pytest.mark.parametrize("api", ["openai_chat", "groq", "openrouter", "vllm"])
def test_encoded_response_is_decoded_again(api: str) -> None:
    item = tw.get_api(api)
    assert item.decode_response(item.encode_response(RESPONSE)) == RESPONSE
    for size in (0, 1):
        assert decoded(item, b"".join(item.encode_stream(replay(RESPONSE))), size) == RESPONSE


def test_signed_reasoning_survives_a_stream() -> None:
    parts = (
        ReasoningPart("first", "S1", "anthropic_messages"),
        ReasoningPart("", "", "anthropic_messages", {"type": "redacted_thinking", "data": "X"}),
        TextPart("so"),
        ReasoningPart("", "S2", "gemini"),
        ToolCall("f", {}, "a"),
    )
    response = ParsedResponse(parts=parts)
    assert decoded(CHAT, b"".join(CHAT.encode_stream(replay(response)))).parts == parts
    batch = CHAT.decode_response(CHAT.encode_response(response)).parts
    assert len(batch) == len(parts) and all(part in batch for part in parts)  # the order of the kinds is fixed there


def test_streamed_reasoning_details_have_different_indexes() -> None:
    response = ParsedResponse(parts=(ReasoningPart("a", "S1", "x"), ReasoningPart("b", "S2", "x")))
    lines = b"".join(CHAT.encode_stream(replay(response))).split(b"\n\n")
    deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in lines if b"reasoning_details" in line]
    assert [delta["reasoning_details"][0]["index"] for delta in deltas] == [0, 1]


def test_error_body_becomes_a_problem() -> None:
    body = {"error": {"code": "tool_use_failed", "message": "Failed to call", "failed_generation": "<f>"}}
    response = CHAT.decode_response(body)
    assert (response.finish_reason, response.problems[0].kind) == (FinishReason.ERROR, "malformed")
    assert response.problems[0].raw == "<f>"


# -- pitfalls --------------------------------------------------------------------------------------------------------


def test_empty_list_of_calls_beside_content_is_ignored() -> None:
    response = decoded(CHAT, chunks({"content": "a", "tool_calls": []}, {"content": "b", "tool_calls": None}))
    assert (response.content, response.tool_calls, response.incomplete) == ("ab", (), ())


def test_written_indexes_are_consecutive() -> None:
    events = [
        ContentDelta("x"),
        CallStart(3, "a", "1"),
        ArgumentsDelta(3, "{}"),
        CallEnd(3, ToolCall("a", {}, "1"), True),
        CallStart(5, "b", "2"),
        ArgumentsDelta(5, "{}"),
        CallEnd(5, ToolCall("b", {}, "2"), True),
        Finish(FinishReason.TOOL_CALLS),
    ]
    text = b"".join(CHAT.encode_stream(events)).decode()
    frames = [json.loads(line[6:]) for line in text.split("\n\n") if '"tool_calls":' in line]
    assert [call["choices"][0]["delta"]["tool_calls"][0]["index"] for call in frames] == [0, 0, 1, 1]
    assert '"finish_reason":"tool_calls"' in text


@pytest.mark.need(12)
def test_all_chunks_have_one_id_and_calls_have_ids() -> None:
    lines = b"".join(CHAT.encode_stream(replay(RESPONSE))).decode().split("\n\n")
    assert len({json.loads(line[6:])["id"] for line in lines if line and "[DONE]" not in line}) == 1
    response = decoded(CHAT, chunks(piece(0, {"x": 1}, "f"), piece(0, {"x": 2}, "f"), reason="stop"))
    assert calls(response) == [("f", {"x": 1}), ("f", {"x": 2})]
    assert len({call.id for call in response.tool_calls}) == 2
    assert response.finish_reason is FinishReason.TOOL_CALLS


@pytest.mark.need(12)
def test_reused_index_begins_another_call() -> None:
    response = decoded(CHAT, chunks(piece(0, '{"a": 1}', "f", "x"), piece(0, '{"b": 2}', "f", "y")))
    assert calls(response) == [("f", {"a": 1}), ("f", {"b": 2})]


def test_names_and_ids_may_be_repeated_in_every_delta() -> None:
    response = decoded(CHAT, chunks(*(piece(0, text, "my_tool", "0") for text in ("{", '"a": 1', "}"))))
    assert [(call.name, call.arguments, call.id) for call in response.tool_calls] == [("my_tool", {"a": 1}, "0")]


@pytest.mark.parametrize("index", [None, "0"])
def test_index_may_be_missing_or_text(index: Any) -> None:
    response = decoded(CHAT, chunks(piece(index, "", "f", "x"), piece(index, '{"a":', None), piece(index, "1}")))
    assert calls(response) == [("f", {"a": 1})]


@pytest.mark.need(12)
def test_id_may_change_in_every_delta() -> None:
    response = decoded(CHAT, chunks(piece(0, "", "f", "x"), piece(0, '{"a":', None, "y"), piece(0, "1}", None, "z")))
    assert [(call.id, call.arguments) for call in response.tool_calls] == [("x", {"a": 1})]


@pytest.mark.mission("D23")
@pytest.mark.parametrize("nothing", ["", " ", "null", None, "{}"])
def test_missing_arguments_are_an_empty_object(nothing: Any) -> None:
    function = {"name": "f"} if nothing is None else {"name": "f", "arguments": nothing}
    message = {"tool_calls": [{"id": "a", "type": "function", "function": function}]}
    assert calls(CHAT.decode_response({"choices": [{"message": message, "finish_reason": "tool_calls"}]})) == [
        ("f", {})
    ]
    assert calls(decoded(CHAT, chunks(piece(0, nothing, "f", "a")))) == [("f", {})]
    request = CHAT.decode_request({"messages": [{"role": "assistant", **message}]})
    assert CHAT.encode_request(request)["messages"][0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_doubly_encoded_arguments_are_repaired() -> None:
    response = decoded(CHAT, chunks(piece(0, json.dumps('{"a": "1"}'), "f", "a")))
    assert calls(response) == [("f", {"a": "1"})]
    assert response.tool_calls[0].repairs == ("double_encoded",)
    response = decoded(CHAT, chunks(piece(0, '{"a": "{\\"b\\": 1}"}', "f", "a")))
    assert calls(response) == [("f", {"a": '{"b": 1}'})]


@pytest.mark.mission("D24", "D25", "E18", "F26")
def test_malformed_arguments_make_an_incomplete_call() -> None:
    response = decoded(CHAT, chunks(piece(0, '{"a": nope}', "f", "a")))
    assert not response.tool_calls
    assert (response.incomplete[0].name, response.problems[0].kind) == ("f", "malformed")
    assert response.incomplete[0].raw == '{"a": nope}'
    assert calls(decoded(CHAT, chunks(piece(0, {"a": 1}, "f", "a")))) == [("f", {"a": 1})]


@pytest.mark.need(23)
def test_long_ids_are_shortened() -> None:
    long = ["chatcmpl-tool-" + "0" * 40 + end for end in "ab"]
    history = [
        USER,
        Message("assistant", tuple(ToolCall("f", {}, id) for id in long)),
        Message("tool", tuple(ToolResult(id, "f", id) for id in long)),
    ]
    messages = CHAT.encode_request(history)["messages"]
    ids = [call["id"] for call in messages[1]["tool_calls"]]
    assert all(len(id) <= 40 for id in ids) and len({*ids}) == 2
    assert [message["tool_call_id"] for message in messages[2:]] == ids


def test_reasoning_is_sent_back_with_calls() -> None:
    history = [USER, Message("assistant", (ReasoningPart("hm"), ToolCall("f", {}, "a")))]
    deepseek = tw.get_api("deepseek")
    assert deepseek.encode_request(history)["messages"][1]["reasoning_content"] == "hm"
    assert deepseek.decode_request(deepseek.encode_request(history)).messages[1] == history[1]
    notes = Notes()
    assert "reasoning_content" not in CHAT.encode_request(history, notes=notes)["messages"][1]
    assert [note.where for note in notes] == ["reasoning"]


def test_unknown_parts_are_dropped_with_a_note() -> None:
    notes = Notes()
    CHAT.encode_request([Message("user", (OpaquePart({"type": "document"}, "anthropic_messages"),))], notes=notes)
    assert [note.where for note in notes] == ["document"]
    request = CHAT.decode_request({"messages": [{"role": "user", "content": [{"type": "file", "file": {}}, {"x": 1}]}]})
    assert CHAT.encode_request(request)["messages"][0]["content"] == [{"type": "file", "file": {}}, {"x": 1}]


def test_extra_members_are_kept_for_their_api_alone() -> None:
    request = CHAT.decode_request({"messages": [], "logprobs": True})
    assert request == ChatRequest(provider="openai_chat", extra={"logprobs": True})
    assert CHAT.encode_request(request) == {"messages": [], "logprobs": True}


def test_index_may_begin_at_one_or_change() -> None:
    response = decoded(CHAT, chunks(piece(1, "", "f", "x"), piece(1, '{"a": 1}'), piece(2, "{}", "g", "y")))
    assert calls(response) == [("f", {"a": 1}), ("g", {})]
    response = decoded(CHAT, chunks(piece(0, None, "f", "x"), piece(1, '{"a": 1}')))  # the id and the arguments
    assert calls(response) == [("f", {"a": 1})]


def test_empty_members_of_other_shapes_are_ignored() -> None:
    call = {"id": "a", "type": "function", "custom": None, "function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "function_call": {"name": "", "arguments": ""}, "tool_calls": [call]}
    response = CHAT.decode_response({"choices": [{"message": message, "finish_reason": ""}]})
    assert (calls(response), response.problems) == ([("f", {})], ())
    assert calls(decoded(CHAT, chunks(message))) == [("f", {})]


def test_error_in_a_stream_becomes_a_problem() -> None:
    failed = {"error": {"code": "tool_use_failed", "message": "m", "failed_generation": "<f>"}}
    data = chunks({"content": "x"}, reason=None).replace(b"data: [DONE]", b"data: " + json.dumps(failed).encode())
    response = decoded(tw.get_api("groq"), data)
    assert (response.content, response.finish_reason) == ("x", FinishReason.ERROR)
    assert response.problems[0].raw == "<f>"


def test_legacy_functions_are_read() -> None:
    body = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"x": 1}'}},
            {"role": "function", "name": "f", "content": "1"},
        ],
        "functions": [{"name": "f", "parameters": {"type": "object", "properties": {}}}],
        "function_call": {"name": "f"},
    }
    request = CHAT.decode_request(body)
    assert [tool.name for tool in request.tools] == ["f"]
    assert request.tool_choice.name == "f"
    messages = CHAT.encode_request(request)["messages"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] != ""


@pytest.mark.parametrize("body", [{}, {"messages": [1]}, {"messages": [{}]}, {"messages": [], "tools": [3]}])
def test_invalid_request_is_refused(body: Any) -> None:
    with pytest.raises(tw.DefinitionError):
        CHAT.decode_request(body)


SEALED = [
    {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "eHg=", "id": "r1", "format": "openai-responses-v1", "index": 1},
]


def sealed(**members: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [{**call, **members}]}


def test_openrouter_gets_its_signed_reasoning_back() -> None:
    api, notes = tw.get_api("openrouter"), Notes()
    message = {**sealed(), "reasoning": "hm", "reasoning_details": SEALED}
    response = api.decode_response({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    original = Message("assistant", response.parts)
    written = api.encode_request([USER, original], notes=notes)["messages"][1]
    assert written == {**sealed(), "reasoning_details": SEALED}
    assert not notes
    assert api.encode_request(api.decode_request({"messages": [written]}))["messages"][0] == written
    read = CHAT.decode_request({"messages": [CHAT.encode_response(response)["choices"][0]["message"]]})
    assert api.encode_request(read)["messages"][0]["reasoning_details"] == SEALED
    real = CHAT.encode_request([USER, original], notes=notes)["messages"][1]
    assert real == sealed()
    assert {note.where for note in notes} == {"reasoning"}


def test_openrouter_stream_has_the_same_reasoning_as_its_response() -> None:
    api = tw.get_api("openrouter")
    first = {"reasoning": "h", "reasoning_details": [{"type": "reasoning.text", "text": "h", "index": 0}]}
    second = {"reasoning": "m", "reasoning_details": [{"type": "reasoning.text", "text": "m", "index": 0}]}
    last = {"reasoning_details": [{**SEALED[0], "text": ""}]}
    response = decoded(api, chunks(first, second, last, piece(0, "{}", "f", "c1")))
    written = api.encode_request([USER, Message("assistant", response.parts)])["messages"][1]
    assert written["reasoning_details"] == SEALED[:1]
    assert "reasoning" not in written


def test_google_signature_is_sent_back_on_its_call() -> None:
    api, notes = tw.get_api(GEMINI_CHAT), Notes()
    message = sealed(extra_content={"google": {"thought_signature": "c2ln"}})
    response = api.decode_response({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    original = Message("assistant", response.parts)
    assert api.encode_request([USER, original], notes=notes)["messages"][1] == message
    native = tw.get_api("gemini").encode_request([USER, original])
    assert native["contents"][1]["parts"][0]["thoughtSignature"] == "c2ln"
    assert not notes
    assert CHAT.encode_request([USER, original], notes=notes)["messages"][1] == sealed()
    assert len(notes) == 1
    alone = Message("assistant", (ReasoningPart("", "c2ln", "gemini"), TextPart("x")))
    api.encode_request([USER, alone], notes=notes)
    assert len(notes) == 2


CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "4 + 4"}}
ITEM = {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "4 + 4"}


def test_calls_with_text_input_keep_it() -> None:
    responses = tw.get_api("openai_responses")
    answer = responses.decode_response({"object": "response", "status": "completed", "output": [ITEM]})
    assert answer.tool_calls[0].free
    assert answer.tool_calls[0].arguments == {"input": "4 + 4"}
    written = responses.encode_response(answer)["output"][0]
    assert {key: written[key] for key in ITEM} == ITEM
    body = CHAT.encode_response(answer)
    assert body["choices"][0]["message"]["tool_calls"] == [CUSTOM]
    assert CHAT.decode_response(body).tool_calls[0].free
    for api in (CHAT, responses):
        data = b"".join(api.encode_stream(replay(answer)))
        assert b'"custom' in data
        assert b"function" not in data
        again = decoded(api, data, 7)
        assert again.tool_calls == answer.tool_calls
        assert again.tool_calls[0].free
    notes = Notes()
    plain = VLLM.encode_response(answer, notes=notes)["choices"][0]["message"]["tool_calls"][0]
    assert plain["function"] == {"name": "sql", "arguments": '{"input": "4 + 4"}'}
    assert len(notes) == 1


def test_calls_with_text_input_stay_paired_with_their_results() -> None:
    responses = tw.get_api("openai_responses")
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "8"}
    request = responses.decode_request({"input": [ITEM, output]})
    assert responses.encode_request(request)["input"] == [ITEM, output]
    written = CHAT.encode_request(request)["messages"]
    assert written[0]["tool_calls"] == [CUSTOM]
    assert CHAT.encode_request(CHAT.decode_request({"messages": written}))["messages"] == written


def test_truncated_call_with_text_input_is_incomplete() -> None:
    for api in (CHAT, tw.get_api("openai_responses")):
        cut = ToolCall("sql", {"input": "4 +"}, "c1", raw="4 +", free=True)
        events = replay(ParsedResponse(incomplete=(cut,), finish_reason=FinishReason.LENGTH))
        read = decoded(api, b"".join(api.encode_stream(events)))
        assert not read.tool_calls
        assert read.incomplete[0].arguments == {"input": "4 +"}


def test_open_calls_are_read_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = 0
    response = ResponseBuilder.is_whole

    def counted(self: ResponseBuilder, key: Any) -> bool:
        nonlocal conversation
        conversation += 1
        return response(self, key)

    monkeypatch.setattr(ResponseBuilder, "is_whole", counted)
    count = 300
    many = [piece(at, "{", "f", f"c{at}") for at in range(count)] + [piece(at, "}") for at in range(count)]
    assert len(decoded(CHAT, chunks(*many)).tool_calls) == count
    assert conversation < 5 * count


@pytest.mark.parametrize("name", ["openai_chat", "mistral", "cohere", "ollama"])
def test_results_follow_the_message_with_their_calls(name: str) -> None:
    api = tw.get_api(name)
    calls = [Message("assistant", (ToolCall("f", {}, f"call{at}"),)) for at in range(2)]
    message = Message("assistant", (TextPart("sorry"),))
    results = Message("tool", tuple(ToolResult(f"call{at}", "f", "x") for at in range(2)))
    written = api.encode_request([USER, *calls, message, results, USER])["messages"]
    assert [message["role"] for message in written] == ["user", "assistant", "tool", "tool", "user"]
    assert len(written[1]["tool_calls"]) == 2
    assert "sorry" in str(written[1]["content"])


def test_result_of_a_nameless_tool_has_no_name() -> None:
    for name in tw.apis():
        api = tw.get_api(name)
        messages = api.encode_results([ToolResult("call00001", "", "x")])
        assert "p3dkhqqx" not in str(messages), name
        assert api.names.fit("") == "" or api.names.fit("") not in str(messages), name


def test_cache_marks_are_kept() -> None:
    block = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    body = {"messages": [{"role": role, "content": [block]} for role in ("system", "user", "assistant")]}
    assert tw.get_api("openrouter").encode_request(CHAT.decode_request(body)) == body
    notes = Notes()
    written = tw.get_api("ollama").encode_request(CHAT.decode_request(body), notes=notes)
    assert [message["content"] for message in written["messages"]] == ["a", "a", "a"]
    assert [note.where for note in notes] == ["cache_control"]


@pytest.mark.parametrize(
    ("native", "reason"), [("max_output_tokens", "length"), ("MAX_TOKENS", "length"), ("stop", "stop")]
)
def test_word_of_the_provider_behind_a_router_says_that_the_answer_was_cut(native: str, reason: str) -> None:
    function = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    choice = {"index": 0, "finish_reason": "tool_calls", "native_finish_reason": native}
    read = CHAT.decode_response({"choices": [{**choice, "message": {"tool_calls": [function]}}]})
    assert (read.tool_calls, read.finish_reason) == ((), reason)


def test_content_that_is_an_object_is_its_json() -> None:
    read = CHAT.decode_response({"choices": [{"message": {"content": {"a": 1}}, "finish_reason": "stop"}]})
    assert read.content == '{"a": 1}'


def test_server_that_is_only_compatible_gets_reasoning_and_max_tokens() -> None:
    body = {
        "model": "glm",
        "messages": [
            {"role": "user", "content": "Rain?"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Paris is asked for.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        ],
        "max_tokens": 100,
        "seed": 7,
    }
    compatible, notes = tw.get_api("openai_compatible"), Notes()
    encoded = compatible.encode_request(compatible.decode_request(body), notes=notes)
    assert encoded["messages"][1]["reasoning_content"] == "Paris is asked for."
    assert (encoded["max_tokens"], encoded["seed"]) == (100, 7)
    assert "max_completion_tokens" not in encoded
    assert not notes


def test_server_that_is_only_compatible_gets_no_settings_of_the_service_of_openai() -> None:
    body = {"model": "glm", "input": "Rain?", "temperature": 0.5, "service_tier": "flex", "metadata": {"a": "b"}}
    request = tw.get_api("openai_responses").decode_request(body)
    for name, own in (("openai_compatible", False), ("openai_chat", True)):
        notes = Notes()
        encoded = tw.get_api(name).encode_request(request, notes=notes)
        assert encoded["temperature"] == 0.5
        assert ({"service_tier", "metadata"} <= encoded.keys()) is own
        assert [note.where for note in notes] == ([] if own else ["service_tier", "metadata"])


OWN_TYPES = {"openai_chat": True, "azure": True, "azure_deployments": True}
"""APIs whose types have tools with text input and choices of several tools."""


@pytest.mark.parametrize("name", [name for name in tw.apis() if isinstance(tw.get_api(name), ChatCompletions)])
def test_only_the_api_itself_gets_its_newer_tools_and_choices(name: str) -> None:
    api, notes = tw.get_api(name), Notes()
    call = ToolCall("sql", {"input": "select 1"}, "a", free=True)
    result = ToolResult("a", "sql", "1")
    messages = [USER, Message("assistant", (call,)), Message("tool", (result,))]
    choice = ToolChoice("required", ("get_weather", "sql"))
    body = api.encode_request(messages, tools=[WEATHER, SQL], tool_choice=choice, notes=notes)
    assert ("allowed_tools" in str(body.get("tool_choice"))) is OWN_TYPES.get(name, False)
    assert {tool["type"] for tool in body["tools"]} == {"function", *(["custom"] if name in OWN_TYPES else [])}
    assert body["messages"][1]["tool_calls"][0]["type"] == ("custom" if name in OWN_TYPES else "function")
    assert any(note.where == "tool_choice" for note in notes) is (name not in OWN_TYPES)


REASONING = {
    **dict.fromkeys(("lm_studio", "ollama_chat", "groq", "hugging_face", "openrouter"), "reasoning"),
    **dict.fromkeys(("vllm", "sglang", "llama_cpp", "deepseek", "moonshot", "xai", "cerebras"), "reasoning_content"),
    **dict.fromkeys(("openai_chat", "azure", "azure_deployments"), ""),
}
"""The member in which an API takes the reasoning of earlier answers back; "" for none."""


@pytest.mark.parametrize(("name", "member"), REASONING.items())
def test_reasoning_is_sent_back_in_the_member_of_each_provider(name: str, member: str) -> None:
    answer = Message("assistant", (ReasoningPart("Hm."), TextPart("a")))
    written = tw.get_api(name).encode_request([USER, answer, USER])["messages"][1]
    names = {key for key, value in written.items() if value == "Hm."}
    assert names == ({member} if member else set())


def test_facts_of_a_server_replace_those_of_an_api() -> None:
    api = with_facts(tw.get_api("openai_compatible"), {"id_length": 16, "max_tokens": "max_completion_tokens"})
    assert (api.name, api.facts.max_tokens) == ("openai_compatible", "max_completion_tokens")
    assert len(api.ids.fit("call_0123456789abcdef")) == 16
    assert with_facts(api, {"strict": True}).facts.ids == api.facts.ids
    with pytest.raises(tw.ConfigurationError, match="gemini is not an API of Chat Completions"):
        with_facts(tw.get_api("gemini"), {})
    with pytest.raises(tw.ConfigurationError, match="mistral is not an API of Chat Completions"):
        with_facts(tw.get_api("mistral"), {})
