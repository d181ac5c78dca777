"""Gemini's generateContent: bodies and streams, read and written."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from tests.streams import streamed
from tests.unit.providers.conftest import CITY, CLOCK, USER, WEATHER

import toolwire
from toolwire import collect, get_api
from toolwire.errors import DefinitionError
from toolwire.events import ArgumentsDelta, CallStart, Event
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
from toolwire.providers.request import ChatRequest, Notes, ToolChoice
from toolwire.tools import ToolDefinition

API = get_api("gemini")
fed = partial(streamed, API)
OPENAPI = get_api("gemini_openapi")
SIGN = ReasoningPart("", "c2ln", "gemini")


def answer(*parts: Any, **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **candidate}]}


def events(frames: Iterable[Any], size: int = 1 << 20) -> list[Event]:
    data = "".join(f"data: {json.dumps(frame, ensure_ascii=False)}\r\n\r\n" for frame in frames).encode()
    return fed(data, size)


def contents(*messages: Message, model: str = "", notes: Notes | None = None) -> list[Any]:
    written: list[Any] = API.encode_request(messages, model=model or None, notes=notes)["contents"]
    return written


def called(name: str = "weather", id: str = "x1", **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, id)


@pytest.mark.mission("E20")
def test_request_contains_function_declarations() -> None:
    body = API.encode_request([USER], tools=[WEATHER, CLOCK])
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "weather", "description": "Tells it.", "parametersJsonSchema": CITY},
                {"name": "clock", "description": "The time."},
            ]
        }
    ]
    assert "toolConfig" not in body
    assert OPENAPI.encode_request([USER], tools=[WEATHER])["tools"][0]["functionDeclarations"][0]["parameters"] == CITY


def test_body_contains_neither_model_nor_stream() -> None:
    body = API.encode_request([USER], model="gemini-2.5-pro", stream=True)
    assert body == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("weather", {"mode": "ANY", "allowedFunctionNames": ["weather"]}),
        (ToolChoice("auto", ("clock",)), {"mode": "VALIDATED", "allowedFunctionNames": ["clock"]}),
    ],
)
def test_tool_choice_is_written_as_a_mode(choice: Any, config: dict[str, Any]) -> None:
    body = API.encode_request([USER], tools=[WEATHER, CLOCK], tool_choice=choice)
    assert body["toolConfig"] == {"functionCallingConfig": config}
    assert API.decode_request(body).tool_choice == ToolChoice.of(choice)


def test_validated_mode_is_kept_until_another_choice_replaces_it() -> None:
    config = {"functionCallingConfig": {"mode": "VALIDATED"}, "includeServerSideToolInvocations": True}
    tools = [{"functionDeclarations": [{"name": "clock", "description": ""}]}]
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": tools, "toolConfig": config}
    request = API.decode_request(body)
    assert request.tool_choice == ToolChoice()
    assert API.encode_request(request) == body
    assert API.encode_request(request, tool_choice="none")["toolConfig"]["functionCallingConfig"] == {"mode": "NONE"}


def test_settings_are_written_and_unsupported_ones_noted() -> None:
    notes = Notes()
    request = ChatRequest((USER,), parallel=False, max_tokens=5, temperature=0.5, top_p=0.9, stop=("x",))
    body = API.encode_request(request, notes=notes)
    assert body["generationConfig"] == {"maxOutputTokens": 5, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"]}
    assert [note.where for note in notes] == ["parallel"]
    back = API.decode_request(body)
    assert (back.max_tokens, back.temperature, back.top_p, back.stop) == (5, 0.5, 0.9, ("x",))


def test_system_messages_become_the_system_instruction() -> None:
    notes = Notes()
    instructions = Message("system", (TextPart("be"), TextPart("kind")))
    body = API.encode_request([instructions, USER, Message("system", (TextPart("now"),))], notes=notes)
    assert body["systemInstruction"] == {"parts": [{"text": "be"}, {"text": "kind"}, {"text": "now"}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert len(notes) == 1


def test_camel_case_and_snake_case_are_read() -> None:
    body = {
        "system_instruction": {"parts": {"text": "be kind"}},
        "contents": [
            {"parts": [{"text": "hi"}, {"inline_data": {"mime_type": "image/png", "data": "AA=="}}]},
            {"role": "model", "parts": [{"function_call": {"name": "clock"}, "thought_signature": "c2ln"}]},
            {"role": "function", "parts": [{"function_response": {"name": "clock", "response": {"result": 5}}}]},
        ],
        "tools": {"function_declarations": [{"name": "clock", "parameters_json_schema": CITY}], "google_search": {}},
        "tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["clock"]}},
        "generation_config": {"max_output_tokens": 3, "seed": 1},
        "safety_settings": [],
    }
    request = API.decode_request(body)
    assert request.messages == (
        Message("system", (TextPart("be kind"),)),
        Message("user", (TextPart("hi"), ImagePart("AA==", "image/png"))),
        Message("assistant", (SIGN, ToolCall("clock"))),
        Message("tool", (ToolResult("", "clock", 5),)),
    )
    assert [tool.parameters for tool in request.tools] == [CITY]
    assert request.provider_tools == ({"googleSearch": {}},)
    assert request.tool_choice.name == "clock"
    assert request.max_tokens == 3
    assert (request.seed, request.extra) == (1, {"safetySettings": []})


def test_openapi_schema_is_read_as_json_schema() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True, "enum": ["a"]},
            "tags": {"type": "ARRAY", "items": {"type": "INTEGER"}, "maxItems": "3"},
        },
    }
    tools = [{"functionDeclarations": [{"name": "f", "parameters": schema, "behavior": "BLOCKING"}]}]
    request = API.decode_request({"contents": [], "tools": tools})
    assert request.tools[0].parameters == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["a", None]},
            "tags": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        },
    }
    assert API.encode_request(request)["tools"][0]["functionDeclarations"][0]["behavior"] == "BLOCKING"


@pytest.mark.parametrize(
    "body", [{}, {"contents": 5}, {"contents": ["x"]}, {"contents": [], "tools": [{"functionDeclarations": [{}]}]}]
)
def test_invalid_request_is_refused(body: Any) -> None:
    with pytest.raises(DefinitionError):
        API.decode_request(body)


def test_results_are_written_in_the_order_of_the_calls() -> None:
    message = Message("assistant", (TextPart("Look."), called(city="Oslo"), called("clock", "x2")))
    results = (
        ToolResult("x2", "clock", error="no clock"),
        ToolResult("x1", "weather", {"sky": "blue"}, images=(ImagePart("AA==", "image/png"),)),
    )
    assert contents(USER, message, Message("tool", results))[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "Look."},
                {"functionCall": {"id": "x1", "name": "weather", "args": {"city": "Oslo"}}},
                {"functionCall": {"id": "x2", "name": "clock", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "x1",
                        "name": "weather",
                        "response": {"sky": "blue"},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}],
                    }
                },
                {"functionResponse": {"id": "x2", "name": "clock", "response": {"error": "no clock"}}},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("value", "response"),
    [
        ("text", {"result": "text"}),
        ([1, 2], {"result": [1, 2]}),
        (None, {"result": None}),
        ({}, {}),
        ({"a": 1}, {"a": 1}),
        ({"error": "of the value"}, {"result": {"error": "of the value"}}),
        ({"result": 1}, {"result": {"result": 1}}),
    ],
)
def test_result_is_wrapped_in_an_object_and_restored(value: Any, response: Any) -> None:
    [message] = API.encode_results([ToolResult("x1", "f", value)])
    assert message["parts"][0]["functionResponse"]["response"] == response
    read = API.decode_request({"contents": [message]}).messages[0].parts[0]
    assert read == ToolResult("x1", "f", value)


def test_media_of_a_result_keep_members_of_their_own() -> None:
    sound = {"inlineData": {"mimeType": "audio/mpeg", "data": "AA=="}, "mediaProcessing": {"a": 1}}
    answered = {"functionResponse": {"name": "f", "response": {}, "parts": [sound]}}
    [message] = API.decode_request({"contents": [{"role": "user", "parts": [answered]}]}).messages
    [result] = message.parts
    assert isinstance(result, ToolResult)
    assert API.encode_results([result])[0]["parts"][0]["functionResponse"]["parts"] == [sound]


def test_media_of_a_result_with_a_signature_become_parts_of_their_own() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thoughtSignature": "c2ln"}
    answered = {"functionResponse": {"name": "f", "response": {}, "parts": [image]}}
    read = API.decode_request({"contents": [{"role": "user", "parts": [answered]}]}).messages
    assert [message.role for message in read] == ["tool", "user"]
    assert read[1].parts == (OpaquePart(image, "gemini"),)


def test_response_is_decoded() -> None:
    response = answer(
        {"text": "Let me see.", "thought": True, "thoughtSignature": "dGgx"},
        {"text": "Looking."},
        {"functionCall": {"name": "weather", "args": {"city": "Oslo"}, "id": "abc"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "clock"}},
        {"text": "", "thoughtSignature": "ZW5k"},
        finishReason="STOP",
    )
    response["usageMetadata"] = {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}
    read = API.decode_response(response)
    assert read.content == "Looking."
    assert read.reasoning == "Let me see."
    assert [(call.name, call.arguments) for call in read.tool_calls] == [("weather", {"city": "Oslo"}), ("clock", {})]
    assert read.tool_calls[0].id == "abc"
    assert read.finish_reason is FinishReason.TOOL_CALLS
    assert read.usage == Usage(5, 7, 0, 4)
    assert read.parts[0] == ReasoningPart("Let me see.", "dGgx", "gemini")
    assert read.parts[2] == SIGN
    _, back = contents(USER, Message("assistant", read.parts))
    assert back["parts"] == [
        *response["candidates"][0]["content"]["parts"][:3],
        {"functionCall": {"name": "clock", "args": {}}},
        {"text": "", "thoughtSignature": "ZW5k"},
    ]


def test_items_of_the_provider_are_kept() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"}
    read = API.decode_response(answer(code, {"text": "1"}))
    assert read.parts == (OpaquePart(code, "gemini"), TextPart("1"))
    assert contents(USER, Message("assistant", read.parts))[1]["parts"] == [code, {"text": "1"}]


@pytest.mark.need(24, 25)
@pytest.mark.parametrize(
    ("response", "reason", "kinds"),
    [
        (answer(finishReason="MAX_TOKENS"), "length", []),
        (answer(finishReason=1), "stop", []),
        (answer(finishReason="SAFETY"), "content_filter", []),
        (answer(finishReason="MALFORMED_FUNCTION_CALL", finishMessage="call:f{"), "error", ["malformed"]),
        (answer(finishReason="UNEXPECTED_TOOL_CALL"), "error", ["malformed"]),
        (answer({"functionCall": {"name": "f", "args": {}}}, finishReason="UNEXPECTED_TOOL_CALL"), "error", []),
        (answer({"functionCall": {"name": "f"}}, finishReason="UNEXPECTED_TOOL_CALL"), "error", ["truncated"]),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "content_filter", []),
        ({"error": {"code": 503, "message": "overloaded"}}, "error", ["provider_error"]),
        ({"candidates": 5}, "error", ["malformed"]),
        ({"candidates": [{"content": None, "finishReason": "STOP"}]}, "stop", []),
        ({"candidates": [{"index": 1, "finishReason": "SAFETY"}]}, "error", ["malformed"]),
    ],
)
def test_finish_reasons_are_read(response: Any, reason: str, kinds: list[str]) -> None:
    read = API.decode_response(response)
    assert read.finish_reason == reason
    assert [problem.kind for problem in read.problems] == kinds


@pytest.mark.need(24)
def test_malformed_call_is_quoted_in_a_problem() -> None:
    read = API.decode_response(answer(finishReason="MALFORMED_FUNCTION_CALL", finishMessage="call:f{"))
    assert read.problems[0].raw == "call:f{"


STREAM = [
    answer({"text": "Let me ", "thought": True}),
    answer({"text": "see.", "thought": True}),
    answer({"text": "Blå "}),
    answer({"text": "himmel"}),
    answer({"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": "c2ln"}),
    answer({"functionCall": {"name": "clock"}}),
    {**answer({"text": ""}, finishReason="STOP"), "usageMetadata": {"promptTokenCount": 2, "candidatesTokenCount": 1}},
]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    read = collect(events(STREAM, size))
    assert read.parts[:2] == (ReasoningPart("Let me see."), TextPart("Blå himmel"))
    assert read.parts[2] == SIGN
    assert [(call.name, call.arguments) for call in read.tool_calls] == [("weather", {"city": "Oslo"}), ("clock", {})]
    assert read.usage == Usage(2, 1)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_stream_may_be_one_json_array(size: int) -> None:
    assert collect(fed(json.dumps(STREAM, indent=1).encode(), size)) == collect(events(STREAM))


def test_error_in_a_stream_becomes_a_problem() -> None:
    read = collect(events([STREAM[2], {"error": {"code": 500, "message": "gone"}}]))
    assert (read.content, read.finish_reason) == ("Blå ", "error")
    assert read.problems[0].kind == "provider_error"


def piece(*parts: Any, more: bool = True, **call: Any) -> dict[str, Any]:
    arguments = {"partialArgs": list(parts)} if parts else {}
    return answer({"functionCall": {**call, **arguments, **({"willContinue": True} if more else {})}})


PIECES = [
    piece(name="weather", id="p1"),
    piece({"jsonPath": "$.city", "stringValue": "Os", "willContinue": True}),
    piece({"jsonPath": "$.city", "stringValue": "lo"}, {"jsonPath": "$.days[0].count", "numberValue": 2}),
    piece({"jsonPath": "$.days[1]", "nullValue": "NULL_VALUE"}, {"jsonPath": "$['a b']", "boolValue": False}),
]


def test_partial_arguments_are_assembled() -> None:
    result = events([*PIECES, piece(more=False), piece(name="clock", more=False), answer(finishReason="STOP")])
    assert [event.name for event in result if isinstance(event, CallStart)] == ["weather", "clock"]
    text = "".join(event.text for event in result if isinstance(event, ArgumentsDelta) and event.index == 0)
    read = collect(result).tool_calls
    assert read[0].arguments == {"city": "Oslo", "days": [{"count": 2}, None], "a b": False} == json.loads(text)
    assert (read[0].id, read[1].arguments) == ("p1", {})


def test_partial_call_ends_where_the_next_call_begins() -> None:
    read = collect(events([*PIECES, *PIECES, piece(more=False)]))
    assert [call.arguments["city"] for call in read.tool_calls] == ["Oslo", "Oslo"]


@pytest.mark.parametrize(
    "frames",
    [
        PIECES,
        [*PIECES[:2], piece(more=False)],
        [*PIECES, piece({"jsonPath": "$.city.x", "stringValue": "y"}), piece(more=False)],
        [*PIECES, piece({"jsonPath": "$.days[7]", "stringValue": "y"}), piece(more=False)],
        [*PIECES, piece({"jsonPath": "city", "stringValue": "y"}), piece(more=False)],
        [*PIECES, piece({"stringValue": "y"}), piece(more=False)],
    ],
)
def test_truncated_or_malformed_pieces_make_no_complete_call(frames: Any) -> None:
    read = collect(events(frames))
    assert read.tool_calls == ()
    assert [call.name for call in read.incomplete] == ["weather"]


RESPONSE = ParsedResponse(
    parts=(
        ReasoningPart("Let me see.", "dGgx", "gemini"),
        TextPart("Looking."),
        SIGN,
        ToolCall("weather", {"city": "Oslo"}, "call_1"),
        ToolCall("clock", {}, "call_2"),
        ReasoningPart("", "ZW5k", "gemini", {"text": "", "thoughtSignature": "ZW5k"}),
    ),
    content="Looking.",
    reasoning="Let me see.",
    tool_calls=(ToolCall("weather", {"city": "Oslo"}, "call_1"), ToolCall("clock", {}, "call_2")),
    finish_reason=FinishReason.TOOL_CALLS,
    usage=Usage(5, 7, 1, 4),
)


def test_encoded_response_is_decoded_again() -> None:
    body = API.encode_response(RESPONSE, model="gemini-3-pro", id="r1")
    assert (body["modelVersion"], body["responseId"]) == ("gemini-3-pro", "r1")
    assert body["candidates"][0]["finishReason"] == "STOP"
    assert body["usageMetadata"]["candidatesTokenCount"] == 3
    back = API.decode_response(body)
    assert (back, back.parts, back.usage) == (RESPONSE, RESPONSE.parts, RESPONSE.usage)


def test_encoded_stream_is_decoded_again() -> None:
    back = collect(fed(b"".join(API.encode_stream(toolwire.replay(RESPONSE), model="m"))))
    assert (back, back.parts, back.usage) == (RESPONSE, RESPONSE.parts, RESPONSE.usage)


def test_truncated_call_is_not_written() -> None:
    read = collect(events([answer({"text": "x"}), *PIECES]))
    chunks = b"".join(API.encode_stream(toolwire.replay(read)))
    assert b"functionCall" not in chunks
    notes = Notes()
    assert "functionCall" not in json.dumps(API.encode_response(read, notes=notes))
    assert [note.where for note in notes] == ["call p1"]


def test_tool_names_are_restored() -> None:
    tool = ToolDefinition("1c/reload")
    [declared] = API.encode_request([USER], tools=[tool])["tools"][0]["functionDeclarations"]
    assert declared["name"].startswith("_1c_reload_")
    read = API.decode_response(answer({"functionCall": {"name": declared["name"]}}), tools=[tool])
    assert read.tool_calls[0].name == "1c/reload"


def test_calls_without_an_id_get_different_ids() -> None:
    read = API.decode_response(answer({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f"}}))
    first, second = read.tool_calls
    assert first.id.startswith("call_")
    assert first.id != second.id


def test_missing_arguments_are_an_empty_object() -> None:
    assert API.decode_response(answer({"functionCall": {"name": "f", "args": None}})).tool_calls[0].arguments == {}


def test_arguments_may_be_json_text() -> None:
    read = API.decode_response(answer({"functionCall": {"name": "f", "args": '{"a": 1}'}}))
    assert read.tool_calls[0].arguments == {"a": 1}
    read = API.decode_response(answer({"functionCall": {"name": "f", "args": [1]}}))
    assert (read.tool_calls, len(read.incomplete), len(read.problems)) == ((), 1, 1)


def test_signature_stays_on_its_part() -> None:
    parts = [
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "f", "args": {}}},
        {"text": "x", "thoughtSignature": "dHh0"},
    ]
    read = API.decode_response(answer(*parts))
    assert contents(USER, Message("assistant", read.parts))[1]["parts"] == parts


def test_signature_on_empty_text_does_not_move_to_the_next_call() -> None:
    parts = [{"text": "", "thoughtSignature": "c2ln"}, {"functionCall": {"name": "f", "args": {}}}]
    read = API.decode_response(answer(*parts))
    assert contents(USER, Message("assistant", read.parts))[1]["parts"] == parts


def test_gemini_3_gets_the_placeholder_signature_for_foreign_calls() -> None:
    notes = Notes()
    original = Message("assistant", (ReasoningPart("hm", "abc", "anthropic_messages"), called(), called("clock", "x2")))
    parts = contents(USER, original, model="gemini-3-pro-preview", notes=notes)[1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]
    assert [note.kind for note in notes] == ["dropped", "changed"]
    signed = Message("assistant", (SIGN, called()))
    for model, message in (("gemini-2.5-pro", original), ("gemini-3-pro-preview", signed)):
        assert "skip_thought" not in json.dumps(contents(USER, message, model=model))


def test_id_is_sent_back_only_if_gemini_gave_it() -> None:
    for id, shown in (("abcd1234", ["abcd1234"] * 2), ("call_0123456789abcdef", [None, None])):
        written = contents(
            USER, Message("assistant", (called(id=id),)), Message("tool", (ToolResult(id, "weather", 1),))
        )
        parts = [written[1]["parts"][0]["functionCall"], written[2]["parts"][0]["functionResponse"]]
        assert [part.get("id") for part in parts] == shown


def test_results_of_a_turn_are_one_content() -> None:
    message = Message("assistant", (called(), called("clock", "x2")))
    results = [Message("tool", (ToolResult(id, "", 1),)) for id in ("x2", "x1")]
    written = contents(USER, message, *results, USER)
    assert [next(iter(part)) for content in written[2:] for part in content["parts"]] == [
        "functionResponse",
        "functionResponse",
        "text",
    ]
    assert len(written) == 4


@pytest.mark.mission("E20")
@pytest.mark.need(22)
def test_schemas_are_translated_with_notes_or_kept() -> None:
    schema = {
        "type": "object",
        "$defs": {"c": {"type": "string", "const": "x"}},
        "properties": {"a": {"$ref": "#/$defs/c"}, "b": {"type": ["integer", "null"]}, "c": {"enum": [1, 2]}},
        "additionalProperties": False,
    }
    tool, notes = ToolDefinition("f", "", schema), Notes()
    response = API.encode_request([USER], tools=[tool], notes=notes)["tools"][0]["functionDeclarations"][0]
    assert (response["parametersJsonSchema"], notes) == (schema, [])
    plain = OPENAPI.encode_request([USER], tools=[tool], notes=notes)["tools"][0]["functionDeclarations"][0]
    assert plain["parameters"]["properties"]["a"] == {"type": "string", "enum": ["x"]}
    assert plain["parameters"]["properties"]["b"] == {"type": "integer", "nullable": True}
    assert "additionalProperties" not in plain["parameters"]
    assert notes


def test_result_with_references_becomes_text() -> None:
    value = {"items": [{"$ref": "#/x"}]}
    [message] = API.encode_results([ToolResult("x1", "f", value)])
    assert message["parts"][0]["functionResponse"]["response"] == {"result": json.dumps(value)}


def test_image_alone_is_a_result() -> None:
    [message] = API.encode_results(
        [ToolResult("x1", "f", images=(ImagePart("AA=="), ImagePart(url="https://x/y.png")))]
    )
    assert message["parts"][0]["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
        {"fileData": {"fileUri": "https://x/y.png"}},
    ]


def test_further_candidates_of_a_stream_are_kept() -> None:
    decoder = toolwire.get_api("gemini").stream_decoder()
    other = {"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}
    events = decoder.feed({"candidates": [other]})
    events += decoder.feed({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]})
    answer = toolwire.collect([*events, *decoder.finish()])
    assert answer.content == "a"
    assert toolwire.get_api("gemini").encode_response(answer)["candidates"][1:] == [other]
