"""Mistral: where it differs from Chat Completions."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from tests.unit.providers.conftest import USER, chat_stream, decoded

import toolwire as tw
from toolwire.events import ArgumentsDelta, CallStart, ContentDelta, Finish, replay
from toolwire.messages import (
    FilePart,
    FinishReason,
    ImagePart,
    Message,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.providers.request import Notes
from toolwire.tools import ToolDefinition

API = tw.get_api("mistral")
decode = partial(decoded, API)
stream = partial(chat_stream, last={"content": ""}, reason="tool_calls")
TOOL = ToolDefinition("f", "", {"type": "object", "properties": {}}, annotations={"strict": True})


def thinking(text: str, **members: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **members}


@pytest.mark.mission("E20")
@pytest.mark.parametrize(
    ("choice", "written"),
    [("required", "any"), ("none", "none"), ("f", {"type": "function", "function": {"name": "f"}})],
)
def test_request_contains_tools_and_tool_choice(choice: str, written: Any) -> None:
    notes = Notes()
    body = API.encode_request([USER], tools=[TOOL], tool_choice=choice, parallel=False, max_tokens=5, notes=notes)
    function = {"name": "f", "description": "", "parameters": TOOL.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert (body["tool_choice"], body["parallel_tool_calls"], body["max_tokens"]) == (written, False, 5)
    assert [note.where for note in notes] == ["f/strict"]
    assert API.decode_request(body).tool_choice == tw.ToolChoice.of(choice)


def test_history_is_written_with_reasoning_as_content() -> None:
    history = [
        USER,
        Message("assistant", (ReasoningPart("hm"), TextPart("Wait."), ToolCall("f", {"x": 1}, "abcdefgh1"))),
        Message("tool", (ToolResult("abcdefgh1", "f", error="no"),)),
    ]
    body = API.encode_request(history)
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [thinking("hm"), {"type": "text", "text": "Wait."}],
            "tool_calls": [{"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "abcdefgh1", "name": "f", "content": "Error: no"},
    ]
    assert API.decode_request(body).messages[:2] == tuple(history[:2])


def test_only_own_signatures_are_sent_back() -> None:
    notes = Notes()
    extra, foreign = ReasoningPart("a", "S", "mistral"), ReasoningPart("b", "S", "anthropic_messages")
    body = API.encode_request([USER, Message("assistant", (extra, foreign, TextPart("x")))], notes=notes)
    assert body["messages"][1]["content"] == [thinking("a", signature="S"), {"type": "text", "text": "x"}]
    assert [note.where for note in notes] == ["reasoning"]
    assert API.decode_request(body).messages[1].parts[0] == extra


def test_image_of_a_result_is_a_user_message_behind_it() -> None:
    image = ImagePart("QUJD", "image/png")
    history = [
        USER,
        Message("assistant", (ToolCall("f", {}, "abcdefgh1"),)),
        Message("tool", (ToolResult("abcdefgh1", "f", images=(image,)),)),
    ]
    notes = Notes()
    messages = API.encode_request(history, notes=notes)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert notes == []


def test_response_is_decoded() -> None:
    response = API.decode_response(
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": [thinking("hm", signature="S"), {"type": "text", "text": "Wait."}],
                        "tool_calls": [
                            {"id": "abcdefgh1", "function": {"name": "f", "arguments": '{"x": 1}'}},
                            {"id": "null", "function": {"name": "g", "arguments": {}}},
                        ],
                    },
                }
            ],
            "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
        }
    )
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("f", {"x": 1}), ("g", {})]
    assert response.tool_calls[1].id.startswith("call_")
    assert (response.content, response.reasoning, response.usage) == ("Wait.", "hm", Usage(5, 3))
    assert response.parts[0] == ReasoningPart("hm", "S", "mistral")


@pytest.mark.parametrize("size", [0, 1, 7])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    response = decode(
        stream(
            {"role": "assistant", "content": [thinking("h")]},
            {"content": [thinking("m", signature="S")]},
            {"content": "Sí"},
            {"tool_calls": [{"id": "abcdefgh1", "function": {"name": "f", "arguments": '{"x": 1}'}}]},
            {"tool_calls": [{"id": "abcdefgh2", "index": 1, "function": {"name": "g", "arguments": '{"y"'}}]},
            {"tool_calls": [{"index": 1, "function": {"name": "", "arguments": ": 2}"}}]},
        ),
        size,
    )
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("f", {"x": 1}), ("g", {"y": 2})]
    assert (response.content, response.reasoning) == ("Sí", "hm")
    assert response.parts[0] == ReasoningPart("hm", "S", "mistral")


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("model_length", FinishReason.LENGTH),
        ("error", FinishReason.ERROR),
    ],
)
def test_finish_reasons_are_read(word: str, reason: FinishReason) -> None:
    response = API.decode_response({"choices": [{"message": {"content": "x"}, "finish_reason": word}]})
    assert response.finish_reason is reason
    again = API.encode_response(response)["choices"][0]["finish_reason"]
    assert again == word


ANSWER = ParsedResponse(
    content="Wait.",
    reasoning="hm",
    tool_calls=(ToolCall("f", {"x": 1}, "abcdefgh1"), ToolCall("g", {}, "abcdefgh2")),
    finish_reason=FinishReason.TOOL_CALLS,
    usage=Usage(5, 3, 1, 2),
)


def test_encoded_response_is_decoded_again() -> None:
    body = API.encode_response(ANSWER)
    assert body["choices"][0]["message"]["content"] == [thinking("hm"), {"type": "text", "text": "Wait."}]
    assert API.decode_response(body) == ANSWER
    data = b"".join(API.encode_stream(replay(ANSWER)))
    for size in (0, 1):
        assert decode(data, size) == ANSWER


def test_written_stream_contains_whole_calls() -> None:
    text = b"".join(API.encode_stream(replay(ANSWER))).decode()
    deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in text.split("\n\n") if '"tool_calls":' in line]
    assert [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas] == ['{"x": 1}', "{}"]
    cut = [ContentDelta("x"), CallStart(0, "f", "a"), ArgumentsDelta(0, '{"x"'), Finish(FinishReason.LENGTH)]
    response = decode(b"".join(API.encode_stream(cut)))
    assert (response.tool_calls, response.incomplete[0].name) == ((), "f")


@pytest.mark.need(23)
def test_ids_have_nine_letters_and_digits() -> None:
    ids = ["call_0123456789abcdef", "call_0123456789abcdeg", "abcdefgh1", "short", ""]
    history = [
        USER,
        Message("assistant", tuple(ToolCall("f", {"at": at}, id) for at, id in enumerate(ids))),
        Message("tool", tuple(ToolResult(id, "f", at) for at, id in enumerate(ids))),
    ]
    messages = API.encode_request(history)["messages"]
    written = [call["id"] for call in messages[1]["tool_calls"]]
    assert all(len(id) == 9 and id.isalnum() for id in written) and len({*written}) == 5
    assert written[2] == "abcdefgh1"
    assert [message["tool_call_id"] for message in messages[2:]] == written
    assert written == [call["id"] for call in API.encode_request(history)["messages"][1]["tool_calls"]]


PDF = FilePart("JVBERi0=", media_type="application/pdf", name="a.pdf")
SOUND = FilePart("UklGRiQAAABXQVZF", media_type="audio/wav")


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            PDF,
            {
                "type": "document_url",
                "document_url": "data:application/pdf;base64,JVBERi0=",
                "document_name": "a.pdf",
            },
        ),
        (
            FilePart(url="https://a.example/b.pdf", media_type="application/pdf"),
            {"type": "document_url", "document_url": "https://a.example/b.pdf"},
        ),
        (SOUND, {"type": "input_audio", "input_audio": "UklGRiQAAABXQVZF"}),
        (FilePart.of_text("Dear Ada"), {"type": "text", "text": "Document:\nDear Ada"}),
    ],
    ids=["document", "address", "recording", "text"],
)
def test_files_are_blocks(part: FilePart, block: dict[str, Any]) -> None:
    body = API.encode_request([Message("user", (TextPart("q"), part))])
    assert body["messages"][0]["content"] == [{"type": "text", "text": "q"}, block]


def test_files_are_read_back() -> None:
    parts = (TextPart("q"), PDF, SOUND)
    assert API.decode_request(API.encode_request([Message("user", parts)])).messages[0].parts == parts


def test_a_video_is_noted() -> None:
    notes = Notes()
    body = API.encode_request([Message("user", (FilePart("AAAA", media_type="video/mp4"),))], notes=notes)
    assert "it cannot be shown here" in str(body["messages"][0]["content"])
    assert [str(note) for note in notes] == ["dropped video: mistral takes no video here (video/mp4)"]
