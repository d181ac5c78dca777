"""Anthropic's models on Bedrock and Vertex AI: bodies without a model, and streams in binary frames of base64."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.streams import streamed
from tests.unit.providers.conftest import GET_WEATHER, USER, decoded

import toolwire as tw
from toolwire import FinishReason, Message, Notes, ParsedResponse, ReasoningPart, TextPart, ToolCall, collect, replay
from toolwire.providers.failure_kinds import RATE_LIMIT
from toolwire.providers.framing import AwsEventStream, aws_event

BEDROCK, VERTEX, CLAUDE = map(tw.get_api, ("anthropic_bedrock", "anthropic_vertex", "anthropic_messages"))
CLOUDS = pytest.mark.parametrize("api", [BEDROCK, VERTEX], ids=repr)
RECORDED = Path(__file__).resolve().parents[4] / "shared" / "conformance" / "recorded" / "bedrock_invoke.jsonl"
PARTS = (ReasoningPart("hm", "S", "anthropic_messages"), TextPart("ü"), ToolCall("get_weather", {"city": "🗼"}, "t1"))
RESPONSE = ParsedResponse(parts=PARTS, tool_calls=PARTS[2:], finish_reason=FinishReason.TOOL_CALLS)


def frame(event: Any, name: str = "chunk") -> bytes:
    return aws_event({"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abc"}, name)


@CLOUDS
def test_body_has_a_version_and_no_model(api: Any) -> None:
    body = api.encode_request([USER], model="claude", tools=[GET_WEATHER], stream=True, max_tokens=9)
    expected = CLAUDE.encode_request([USER], tools=[GET_WEATHER], max_tokens=9)
    version = {BEDROCK: "bedrock-2023-05-31", VERTEX: "vertex-2023-10-16"}[api]
    assert body == {"anthropic_version": version, **expected, **({"stream": True} if api is VERTEX else {})}


@CLOUDS
def test_version_of_a_client_is_kept(api: Any) -> None:
    sent = {"anthropic_version": "2026-10-21", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
    notes = Notes()
    assert api.encode_request(api.decode_request(sent), notes=notes) == sent
    assert not notes


def test_members_that_the_api_itself_takes_as_headers_are_noted() -> None:
    sent = {"anthropic_version": "x", "anthropic_beta": ["b"], "max_tokens": 9, "messages": []}
    notes = Notes()
    assert CLAUDE.encode_request(BEDROCK.decode_request(sent), notes=notes) == {"max_tokens": 9, "messages": []}
    assert {note.where for note in notes} == {"anthropic_version", "anthropic_beta"}
    notes = Notes()
    assert VERTEX.encode_request(BEDROCK.decode_request(sent), notes=notes)["anthropic_version"] == "x"
    assert [note.where for note in notes] == ["anthropic_beta"]
    assert BEDROCK.encode_request(BEDROCK.decode_request(sent)) == sent


@CLOUDS
def test_thinking_goes_back_to_the_model_wherever_it_runs(api: Any) -> None:
    notes = Notes()
    answered = Message("assistant", CLAUDE.decode_response(CLAUDE.encode_response(RESPONSE)).parts)
    body = api.encode_request([USER, answered], tools=[GET_WEATHER], notes=notes, max_tokens=9)
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "S"}
    assert not notes


@CLOUDS
@pytest.mark.parametrize("size", [1, 50, 0])
def test_stream_is_decoded_in_any_pieces(api: Any, size: int) -> None:
    assert decoded(api, b"".join(api.encode_stream(replay(RESPONSE))), size).parts == PARTS


def test_bedrock_writes_one_event_of_the_model_in_each_frame() -> None:
    pytest.importorskip("botocore")
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    buffer.add_data(b"".join(BEDROCK.encode_stream(replay(RESPONSE))))
    frames = [message.to_response_dict() for message in buffer]
    assert {part["headers"][":event-type"] for part in frames} == {"chunk"}
    events = [json.loads(base64.b64decode(json.loads(part["body"])["bytes"])) for part in frames]
    lines = b"".join(CLAUDE.encode_stream(replay(RESPONSE))).decode().splitlines()
    assert events == [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def test_events_of_botocore_are_taken_as_they_are() -> None:
    lines = b"".join(CLAUDE.encode_stream(replay(RESPONSE))).decode().splitlines()
    decoder = BEDROCK.stream_decoder()
    events = [
        event
        for line in lines
        if line.startswith("data: ")
        for event in decoder.feed({"chunk": {"bytes": line[6:].encode()}})
    ]
    assert collect([*events, *decoder.finish()]).parts == PARTS


@pytest.mark.parametrize("members", [{"message": "Too many requests"}, {"Message": "Too many requests"}])
def test_exception_in_a_stream_is_an_error_of_the_provider(members: dict[str, Any]) -> None:
    start = {"type": "message_start", "message": {"id": "m", "usage": {}}}
    data = frame(start) + aws_event(members, "throttlingException", exception=True)
    response = decoded(BEDROCK, data)
    assert (response.finish_reason, response.problems[0].kind) == (FinishReason.ERROR, "provider_error")
    assert response.problems[0].message == "ThrottlingException: Too many requests."
    assert (response.problems[0].status, response.problems[0].code) == (429, "throttlingException")


def test_failure_that_is_passed_on_is_an_exception_frame() -> None:
    failed = CLAUDE.decode_response({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    again = decoded(BEDROCK, b"".join(BEDROCK.encode_stream(replay(failed))))
    assert again.finish_reason is FinishReason.ERROR
    assert "busy" in again.problems[0].message


def test_a_failure_is_an_exception_for_clients_of_aws() -> None:
    (frame,) = AwsEventStream().feed(BEDROCK.write_error("It broke.", RATE_LIMIT))
    assert (frame.event, frame.value) == ("throttlingException", {"message": "It broke."})
    assert b":exception-type" in BEDROCK.write_error("It broke.")
    assert b":event-type" not in BEDROCK.write_error("It broke.")


def test_the_beginning_of_an_unreadable_frame_is_quoted() -> None:
    (problem, *_) = decoded(BEDROCK, aws_event({"bytes": "%" * 400}, "chunk")).problems
    assert (problem.kind, problem.raw) == ("malformed", "%" * 300)


@pytest.mark.parametrize("data", ["%%%", 5, "bm8ganNvbg==", ""])
def test_frame_that_contains_no_event_is_a_problem(data: Any) -> None:
    response = decoded(BEDROCK, aws_event({"bytes": data}, "chunk"))
    assert response.problems[0].kind == "malformed"
    assert response.finish_reason is FinishReason.ERROR


def test_call_of_a_stream_that_breaks_off_is_incomplete() -> None:
    whole = b"".join(BEDROCK.encode_stream(replay(RESPONSE)))
    for size in range(0, len(whole), 97):
        response = collect(streamed(BEDROCK, whole[:size]))
        assert all(call.arguments == {"city": "🗼"} for call in response.tool_calls)


@pytest.mark.skipif(not RECORDED.is_file(), reason="recordings are not beside this checkout")
def test_recorded_answers() -> None:
    compared = 0
    for line in RECORDED.read_text("utf-8").splitlines():
        row = json.loads(line)
        if "anthropic" not in row["model"]:
            continue
        data = base64.b64decode(row.get("raw_b64", ""))
        answers = [decoded(BEDROCK, data, size) for size in (1, 97, 0)] if row["stream"] else []
        for response in answers or [BEDROCK.decode_response(row["response"])]:
            calls = [(call.name, call.arguments, call.id) for call in response.tool_calls]
            assert calls == [(call["name"], call["arguments"], call["id"]) for call in row["calls"]], row["id"]
            assert response.content.strip() == row["text"].strip(), row["id"]
        notes = Notes()
        again = BEDROCK.encode_request(BEDROCK.decode_request(row["request"]), notes=notes)
        assert (again.keys(), list(notes)) == (row["request"].keys(), []), row["id"]
        compared += 1
    assert compared == 4
