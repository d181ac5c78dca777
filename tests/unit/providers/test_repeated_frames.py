"""A frame with a whole call that arrives twice is one call; equal calls of the model are two."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import collect, get_api

CALL = {"name": "f", "args": {"a": 1}}
COUNT = {"promptTokenCount": 1, "candidatesTokenCount": 5}
TIME = "2026-01-01T00:00:00.123456Z"


def gemini(part: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [part]}}], "responseId": "r", **members}


def ollama(created: str, **members: Any) -> dict[str, Any]:
    calls = [{**members, "function": {"name": "f", "arguments": {"a": 1}}}]
    return {"created_at": created, "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False}


ENDS: dict[str, dict[str, Any]] = {
    "gemini": {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]},
    "ollama": {
        "created_at": TIME,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
    },
}


def count(api: str, *frames: dict[str, Any]) -> int:
    """Return the number of calls of a stream."""
    begin, end = ("data: ", "\n\n") if api == "gemini" else ("", "\n")
    decoder = get_api(api).stream_decoder()
    data = "".join(begin + json.dumps(frame) + end for frame in (*frames, ENDS[api]))
    response = collect([*decoder.feed(data.encode()), *decoder.finish()])
    assert not response.problems
    return len(response.tool_calls)


@pytest.mark.parametrize(
    ("api", "frame"),
    [
        ("gemini", gemini({"functionCall": CALL}, usageMetadata=COUNT)),
        ("gemini", gemini({"functionCall": CALL, "thoughtSignature": "c2ln"})),
        ("gemini", gemini({"function_call": {**CALL, "id": "x1"}})),
        ("ollama", ollama(TIME)),
        ("ollama", ollama("2026-01-01T00:00:00Z", id="call_x1")),
    ],
)
def test_a_frame_that_arrives_twice_is_one_call(api: str, frame: dict[str, Any]) -> None:
    assert count(api, frame, frame) == 1
    assert count(api, frame, frame, frame) == 1


@pytest.mark.parametrize(
    ("api", "frames"),
    [
        ("gemini", [gemini({"functionCall": CALL})] * 2),
        (
            "gemini",
            [gemini({"functionCall": CALL}, usageMetadata={**COUNT, "candidatesTokenCount": n}) for n in (5, 9)],
        ),
        ("gemini", [gemini({"functionCall": {**CALL, "id": id}}) for id in ("x1", "x2")]),
        ("ollama", [ollama("2026-01-01T00:00:00Z")] * 2),
        ("ollama", [ollama(TIME), ollama(TIME.replace("6Z", "7Z"))]),
    ],
)
def test_equal_calls_in_frames_of_their_own_are_two(api: str, frames: list[dict[str, Any]]) -> None:
    assert count(api, *frames) == 2
