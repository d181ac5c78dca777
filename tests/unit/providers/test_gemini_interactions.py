"""Gemini's Interactions API: lists of steps, read and written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.providers.conftest import GET_WEATHER, USER, decoded, sse_stream

import toolwire as tw
from toolwire import (
    FilePart,
    FinishReason,
    ImagePart,
    Message,
    Notes,
    OpaquePart,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    replay,
)
from toolwire.messages import Usage
from toolwire.providers.request import ToolChoice

API = tw.get_api("gemini_interactions")
KIND = "gemini_interactions"
SEARCH = {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["weather"]}}
PARTS = (
    ReasoningPart("I look.", "c2ln", KIND),
    OpaquePart(SEARCH, KIND),
    TextPart("One moment."),
    ToolCall("get_weather", {"city": "Paris"}, "c1", format=KIND),
)
STEPS = [
    {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "I look."}]},
    SEARCH,
    {"type": "model_output", "content": [{"type": "text", "text": "One moment."}]},
    {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Paris"}},
]
USAGE = {"total_input_tokens": 9, "total_output_tokens": 4, "total_thought_tokens": 3, "total_cached_tokens": 2}


def interaction(*steps: dict[str, Any], status: str = "completed", **members: Any) -> dict[str, Any]:
    return {"id": "v1_a", "object": "interaction", "model": "gemini", "status": status, "steps": [*steps], **members}


def events(*items: dict[str, Any], status: str = "requires_action") -> bytes:
    end = {"event_type": "interaction.completed", "interaction": {"id": "v1_a", "status": status, "usage": USAGE}}
    return sse_stream({"event_type": "interaction.created", "interaction": {"id": "v1_a"}}, *items, end, done=True)


def step(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    pieces = [{"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas]
    first = {"event_type": "step.start", "index": index, "step": start}
    return [first, *pieces, {"event_type": "step.stop", "index": index}]


STREAM = events(
    *step(
        0,
        {"type": "thought"},
        {"type": "thought_summary", "content": {"type": "text", "text": "I "}},
        {"type": "thought_summary", "content": {"type": "text", "text": "look."}},
        {"type": "thought_signature", "signature": "c2ln"},
    ),
    *step(
        1, {"type": "google_search_call", "id": "s1"}, {"type": "google_search_call", "arguments": SEARCH["arguments"]}
    ),
    *step(
        2, {"type": "model_output", "content": [{"type": "text", "text": "One "}]}, {"type": "text", "text": "moment."}
    ),
    *step(
        3,
        {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": {}},
        {"type": "arguments_delta", "arguments": '{"city": '},
        {"type": "arguments_delta", "arguments": '"Paris"}'},
    ),
)


# -- requests --------------------------------------------------------------------------------------------------------


def test_conversation_becomes_steps() -> None:
    result = ToolResult("c1", "get_weather", "rain", images=(ImagePart("aGk=", "image/png"),))
    failed = ToolResult("c2", "get_weather", error="no such city")
    calls = (*PARTS, ToolCall("get_weather", {}, "c2"))
    conversation = [
        Message("system", "Be brief."),
        Message("user", (TextPart("Weather?"), FilePart("aGk=", "application/pdf"))),
        Message("assistant", calls),
        Message("tool", (result, failed)),
    ]
    notes = Notes()
    body = API.encode_request(conversation, tools=[GET_WEATHER], model="gemini-3", stream=True, notes=notes)
    document = {"type": "document", "data": "aGk=", "mime_type": "application/pdf"}
    image = {"type": "image", "data": "aGk=", "mime_type": "image/png"}
    assert body == {
        "model": "gemini-3",
        "system_instruction": "Be brief.",
        "stream": True,
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": "The weather.",
                "parameters": GET_WEATHER.parameters,
            }
        ],
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}, document]},
            *STEPS,
            {"type": "function_call", "id": "c2", "name": "get_weather", "arguments": {}},
            {
                "type": "function_result",
                "call_id": "c1",
                "name": "get_weather",
                "result": [{"type": "text", "text": "rain"}, image],
            },
            {
                "type": "function_result",
                "call_id": "c2",
                "name": "get_weather",
                "result": "no such city",
                "is_error": True,
            },
        ],
    }
    assert not notes
    again = API.decode_request(body)
    assert API.encode_request(again, notes=notes) == body
    assert not notes
    assert [message.role for message in again.messages] == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("Hi.", (TextPart("Hi."),)),
        ({"type": "text", "text": "Hi."}, (TextPart("Hi."),)),
        (
            [{"type": "text", "text": "Hi."}, {"type": "image", "uri": "gs://b/i.png", "mime_type": "image/png"}],
            (TextPart("Hi."), ImagePart("", "image/png", "gs://b/i.png")),
        ),
        ([{"type": "audio", "uri": "gs://b/a"}], (OpaquePart({"type": "audio", "uri": "gs://b/a"}, KIND),)),
    ],
)
def test_input_may_be_text_or_content(value: Any, parts: tuple[Any, ...]) -> None:
    assert API.decode_request({"model": "m", "input": value}).messages == (Message("user", parts),)


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("required", "any"),
        ("none", "none"),
        ("get_weather", {"allowed_tools": {"mode": "any", "tools": ["get_weather"]}}),
        (ToolChoice("auto", ("get_weather",)), {"allowed_tools": {"mode": "auto", "tools": ["get_weather"]}}),
    ],
)
def test_choice_of_tools(choice: Any, written: Any) -> None:
    body = API.encode_request([USER], tools=[GET_WEATHER], tool_choice=choice, max_tokens=9)
    assert body["generation_config"] == {"max_output_tokens": 9, "tool_choice": written}
    assert API.decode_request(body).tool_choice == ToolChoice.of(choice)
    assert API.decode_request(body).max_tokens == 9


def test_members_that_only_this_api_has_are_kept() -> None:
    schema = {"type": "object", "properties": {}}
    tool = {"type": "function", "name": "f", "description": "", "parameters": schema, "defer_loading": True}
    body = {
        "model": "m",
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "Hi."}]}],
        "tools": [tool, {"type": "google_search"}],
        "previous_interaction_id": "v1_b",
        "store": False,
        "generation_config": {"thinking_level": "high", "thinking_summaries": "auto"},
    }
    notes = Notes()
    assert API.encode_request(API.decode_request(body), notes=notes) == body
    assert not notes


def test_schema_of_the_answer() -> None:
    output = {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}}
    request = API.decode_request({"model": "m", "input": "Hi.", "response_format": output})
    assert request.output is not None
    assert API.encode_request(request)["response_format"] == output
    assert "json_schema" in json.dumps(tw.get_api("openai_chat").encode_request(request))


# -- answers ---------------------------------------------------------------------------------------------------------


def test_whole_answer() -> None:
    body = interaction({"type": "user_input", "content": []}, *STEPS, status="requires_action", usage=USAGE)
    response = API.decode_response(body)
    assert response.parts == PARTS
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.usage == Usage(9, 7, 2, 3)
    assert API.encode_response(response)["steps"] == STEPS
    assert tw.parse(body).tool_calls == response.tool_calls


@pytest.mark.parametrize("size", [0, 1, 60])
def test_stream(size: int) -> None:
    response = decoded(API, STREAM, size)
    assert response.parts == PARTS
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.usage == Usage(9, 7, 2, 3)
    assert not response.problems
    again = decoded(API, b"".join(API.encode_stream(replay(response))), size)
    assert again.parts == PARTS


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("completed", FinishReason.STOP),
        ("incomplete", FinishReason.LENGTH),
        ("budget_exceeded", FinishReason.LENGTH),
        ("cancelled", FinishReason.ERROR),
        ("in_progress", FinishReason.ERROR),
        ("queued", FinishReason.ERROR),
    ],
)
def test_status_is_the_finish_reason(status: str, reason: FinishReason) -> None:
    text = {"type": "model_output", "content": [{"type": "text", "text": "Hi."}]}
    assert API.decode_response(interaction(text, status=status)).finish_reason is reason
    assert decoded(API, events(status=status)).finish_reason is reason


@pytest.mark.parametrize("status", ["incomplete", "budget_exceeded"])
def test_last_call_of_a_cut_answer_is_incomplete(status: str) -> None:
    whole = API.decode_response(interaction(*STEPS, status=status))
    start = {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": {}}
    in_pieces = decoded(
        API, events(*step(0, start, {"type": "arguments_delta", "arguments": '{"city": '}), status=status)
    )
    for response in (whole, in_pieces):
        assert response.tool_calls == ()
        assert [call.name for call in response.incomplete] == ["get_weather"]


def test_stream_that_breaks_off_is_truncated() -> None:
    response = decoded(API, STREAM[: STREAM.index(b'"interaction.completed"')])
    assert response.finish_reason is FinishReason.ERROR
    assert response.problems[-1].kind == "truncated"


@pytest.mark.parametrize(
    "data",
    [
        sse_stream({"event_type": "error", "error": {"code": "unavailable", "message": "Try later"}}),
        events(status="failed"),
    ],
)
def test_error_in_a_stream(data: bytes) -> None:
    response = decoded(API, data)
    assert (response.finish_reason, response.problems[0].kind) == (FinishReason.ERROR, "provider_error")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"event_type": "error", "error": "It broke"}, "It broke."),
        ({"event_type": "error"}, "The interaction failed."),
        ({"event_type": "error", "message": "It broke"}, "It broke."),
        ({"event_type": "interaction.status_update", "error": {"message": "It broke"}}, "It broke."),
        ({"error": {"code": "internal", "message": "It broke"}}, "Internal: It broke."),
        ({"event_type": "error", "error": {"code": "internal"}}, "Internal: the interaction failed."),
    ],
)
def test_an_error_is_read_in_every_form(event: dict[str, Any], message: str) -> None:
    response = decoded(API, sse_stream(event))
    assert (response.finish_reason, response.problems[0].message) == (FinishReason.ERROR, message)


def test_a_failed_interaction_keeps_what_it_has_answered() -> None:
    body = interaction(*STEPS[:2], status="failed", error={"code": "internal", "message": "It broke"})
    response = API.decode_response(body)
    assert response.finish_reason is FinishReason.ERROR
    assert [problem.message for problem in response.problems] == ["Internal: It broke."]
    assert response.parts


def test_a_call_of_an_older_stream_may_be_named_in_a_later_piece() -> None:
    pieces: list[dict[str, Any]] = [
        {"event_type": "content.start", "index": 0, "content": {"type": "function_call"}},
        {
            "event_type": "content.delta",
            "index": 0,
            "delta": {"type": "function_call", "name": "get_weather", "id": "c1", "arguments": {"city": "Oslo"}},
        },
    ]
    end = {"event_type": "interaction.complete", "interaction": {"status": "requires_action"}}
    data = sse_stream(*pieces, {"event_type": "content.stop", "index": 0}, end)
    (call,) = decoded(API, data).tool_calls
    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", {"city": "Oslo"})


def test_a_signature_alone_begins_a_thought_of_an_older_stream() -> None:
    piece = {"type": "thought_signature", "signature": "c2ln"}
    items = [
        {"event_type": "content.delta", "index": 0, "delta": piece},
        {"event_type": "content.stop", "index": 0},
        {"event_type": "interaction.complete", "interaction": {"status": "completed"}},
    ]
    assert decoded(API, sse_stream(*items)).parts == (tw.ReasoningPart("", "c2ln", KIND),)


def test_every_event_of_a_stream_names_its_type() -> None:
    written = b"".join(API.encode_stream(tw.replay(tw.ParsedResponse("Hi.", usage=tw.Usage(9, 4, 2, 3))))).decode()
    blocks = [block.split("\n") for block in written.strip().split("\n\n") if "[DONE]" not in block]
    named = [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]
    assert [name for name, _ in named][:2] == ["interaction.created", "step.start"]
    assert all(value["event_type"] == name for name, value in named)
    assert named[-1][1]["interaction"]["usage"] == {
        "total_input_tokens": 9,
        "total_cached_tokens": 2,
        "total_output_tokens": 1,
        "total_thought_tokens": 3,
        "total_tool_use_tokens": 0,
        "total_tokens": 13,
    }


def test_the_system_prompt_is_a_member_of_its_own() -> None:
    body = {"model": "m", "system_instruction": "Be kind.", "input": "Hi", "unknown": 1}
    request = API.decode_request(body)
    assert [(message.role, message.parts) for message in request.messages] == [
        ("system", (tw.TextPart("Be kind."),)),
        ("user", (tw.TextPart("Hi"),)),
    ]
    assert request.extra == {"unknown": 1}


def test_a_picture_without_a_type_is_a_png() -> None:
    body = API.encode_request([tw.Message("user", (tw.ImagePart("iVBORw=="),))])
    assert '"mime_type": "image/png"' in json.dumps(body)


def test_error_body_is_an_error_of_the_provider() -> None:
    response = API.decode_response({"error": {"code": "invalid_request", "message": "bad"}})
    assert response.problems[0].message == "Invalid_request: bad."


def test_generated_image_is_kept() -> None:
    block = {"type": "image", "data": "aGk=", "mime_type": "image/png"}
    whole = API.decode_response(interaction({"type": "model_output", "content": [block]}))
    assert whole.parts == (OpaquePart({"type": "model_output", "content": [block]}, KIND),)
    assert decoded(API, events(*step(0, {"type": "model_output"}, block), status="completed")).parts == whole.parts


def test_outputs_and_contents_of_older_versions() -> None:
    outputs = [STEPS[0], {"type": "text", "text": "One moment."}, STEPS[3]]
    body = {"id": "v1_a", "status": "requires_action", "outputs": outputs}
    expected = (PARTS[0], *PARTS[2:])
    assert API.decode_response(body).parts == expected
    items: list[dict[str, Any]] = []
    deltas = (
        [
            {"type": "thought_summary", "content": {"type": "text", "text": "I look."}},
            {"type": "thought_signature", "signature": "c2ln"},
        ],
        [{"type": "text", "text": "One moment."}],
        [{**STEPS[3]}],
    )
    for index, pieces in enumerate(deltas):
        items += [{"event_type": "content.delta", "index": index, "delta": piece} for piece in pieces]
        items.append({"event_type": "content.stop", "index": index})
    end = {"event_type": "interaction.complete", "interaction": {"status": "requires_action"}}
    assert decoded(API, sse_stream(*items, end)).parts == expected


def test_thought_of_another_api_is_plain_text() -> None:
    notes = Notes()
    response = ParsedResponse(parts=(ReasoningPart("hm", "S", "gemini"), TextPart("Hi.")))
    body = API.encode_response(response, notes=notes)
    assert body["steps"][0] == {"type": "thought", "summary": [{"type": "text", "text": "hm"}]}
    assert [note.where for note in notes] == ["reasoning"]


def test_the_texts_of_a_result_are_lines() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"c": 1}]
    step = {"type": "function_result", "call_id": "c1", "name": "f", "result": blocks}
    (message,) = tw.get_api("gemini_interactions").decode_request({"input": [step]}).messages
    assert [part.text for part in message.parts if isinstance(part, tw.ToolResult)] == ['a\nb\n{"c": 1}']
