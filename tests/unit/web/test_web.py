"""Runs as streams for web front ends: decoded by AG-UI's own package, and compared with the AI SDK's strict schemas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import toolwire
from toolwire import (
    ArgumentsDelta,
    CallStart,
    ContentDelta,
    Finish,
    FinishReason,
    ParsedResponse,
    Policy,
    Problem,
    ProblemFound,
    Rule,
    ToolCall,
)
from toolwire.agent import Agent
from toolwire.messages import ReasoningPart, TextPart
from toolwire.testing import ScriptedBackend
from toolwire.web import VERCEL_HEADERS, ag_ui_stream, vercel_stream

CHUNKS: dict[str, tuple[set[str], set[str]]] = {
    "start": ({"messageId"}, set()),
    "start-step": (set(), set()),
    "finish-step": (set(), set()),
    "finish": (set(), set()),
    "error": ({"errorText"}, set()),
    **{f"{block}-{part}": ({"id"}, set()) for block in ("text", "reasoning") for part in ("start", "end")},
    **{f"{block}-delta": ({"id", "delta"}, set()) for block in ("text", "reasoning")},
    "tool-input-start": ({"toolCallId", "toolName"}, {"dynamic"}),
    "tool-input-delta": ({"toolCallId", "inputTextDelta"}, set()),
    "tool-input-available": ({"toolCallId", "toolName", "input"}, {"dynamic"}),
    "tool-input-error": ({"toolCallId", "toolName", "input", "errorText"}, {"dynamic"}),
    "tool-output-available": ({"toolCallId", "output"}, {"dynamic", "preliminary"}),
    "tool-output-error": ({"toolCallId", "errorText"}, {"dynamic"}),
    "data-approval": ({"data"}, {"id", "transient"}),
}
"""Members that the strict schemas of the AI SDK require and permit, by the type of a chunk."""


@toolwire.tool
def stock(item: str) -> dict[str, int]:
    """Returns how much of an item there is."""
    return {"tea": {"boxes": 12}}[item]


@toolwire.tool
def order(item: str) -> str:
    """Orders an item."""
    return "ordered"


def call(name: str, item: str, id: str) -> ToolCall:
    return ToolCall(name, {"item": item}, id)


def runs() -> dict[str, Agent[str]]:
    tea, salt = call("stock", "tea", "c1"), call("stock", "salt", "c2")
    thinking = ParsedResponse(
        "I look.",
        "Tea?",
        tool_calls=(tea, salt),
        parts=(ReasoningPart("Tea?"), TextPart("I look."), tea, salt),
        finish_reason=FinishReason.TOOL_CALLS,
    )
    broken = [
        ContentDelta("Let"),
        CallStart(0, "stock", "c7"),
        ArgumentsDelta(0, '{"item": "t'),
        ProblemFound(Problem("provider_error", 0, "", "the line is dead")),
        Finish(FinishReason.ERROR),
    ]
    approved = Policy((Rule("ask", "order"),))

    def refuse(_: object) -> bool:
        return False

    asking = ParsedResponse(tool_calls=(call("order", "tea", "c3"),))
    return {
        "calls": Agent(ScriptedBackend([thinking, "12 boxes."]), [stock]),
        "broken off": Agent(ScriptedBackend([broken, "12."]), [stock]),
        "approval": Agent(ScriptedBackend([asking, "No."]), [order], policy=approved, confirm=refuse),
        "cut off": Agent(ScriptedBackend([[ContentDelta("It is"), Finish(FinishReason.LENGTH)]])),
    }


def read(stream: AsyncGenerator[bytes]) -> list[str]:
    async def whole() -> bytes:
        return b"".join([piece async for piece in stream])

    events = asyncio.run(whole()).decode().split("\n\n")
    assert events.pop() == ""
    assert all(event.startswith("data: ") for event in events)
    return [event.removeprefix("data: ") for event in events]


def vercel(name: str) -> list[dict[str, Any]]:
    *chunks, last = read(vercel_stream(runs()[name].run("How much tea?"), message_id="m"))
    assert last == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def ag_ui(name: str) -> list[Any]:
    from ag_ui.core import Event
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(Event)
    return [
        adapter.validate_json(text) for text in read(ag_ui_stream(runs()[name].run("?"), thread_id="t", run_id="r"))
    ]


@pytest.mark.parametrize("name", runs())
def test_the_ai_sdk_accepts_each_chunk(name: str) -> None:
    chunks = vercel(name)
    for chunk in chunks:
        required, permitted = CHUNKS[chunk["type"]]
        members = set(chunk) - {"type"}
        assert required <= members <= required | permitted
    assert chunks[0] == {"type": "start", "messageId": "m"}
    assert chunks[-1] == {"type": "finish"}
    assert open_at_the_end(chunks) == []


def open_at_the_end(chunks: list[dict[str, Any]]) -> list[str]:
    """Blocks, steps and inputs of calls that are begun and not ended."""
    open_ids: list[str] = []
    for chunk in chunks[1:]:
        name, _, part = chunk["type"].rpartition("-")
        id = chunk.get("id") or chunk.get("toolCallId") or "step"
        if part == "start" or chunk["type"] == "start-step":
            assert id not in open_ids
            open_ids.append(id)
        elif part == "end" or chunk["type"] in ("finish-step", "tool-input-available", "tool-input-error"):
            open_ids.remove(id)
        elif part == "delta":
            assert id in open_ids, name
    return open_ids


def test_a_run_as_a_data_stream() -> None:
    chunks = vercel("calls")
    kinds = [chunk["type"] for chunk in chunks if not chunk["type"].endswith("delta")]
    kinds[10:12] = sorted(kinds[10:12])  # the two calls run at the same time
    assert kinds == [
        "start",
        "start-step",
        *("reasoning-start", "reasoning-end", "text-start", "text-end"),
        *("tool-input-start", "tool-input-available") * 2,
        "tool-output-available",
        "tool-output-error",
        "finish-step",
        *("start-step", "text-start", "text-end", "finish-step", "finish"),
    ]
    available = next(chunk for chunk in chunks if chunk["type"] == "tool-output-available")
    assert available == {
        "type": "tool-output-available",
        "toolCallId": "c1",
        "output": {"boxes": 12},
        "dynamic": True,
    }
    assert "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta") == "I look.12 boxes."
    assert VERCEL_HEADERS["x-vercel-ai-ui-message-stream"] == "v1"


@pytest.mark.parametrize(
    ("name", "end"), [("calls", "RUN_FINISHED"), ("approval", "RUN_FINISHED"), ("cut off", "RUN_ERROR")]
)
def test_ag_ui_accepts_each_event(name: str, end: str) -> None:
    events = ag_ui(name)
    kinds = [event.type.value for event in events]
    assert (kinds[0], kinds[-1]) == ("RUN_STARTED", end)
    for begin, finish in (
        ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
        ("TOOL_CALL_START", "TOOL_CALL_END"),
        ("STEP_STARTED", "STEP_FINISHED"),
        ("REASONING_START", "REASONING_END"),
    ):
        assert kinds.count(begin) == kinds.count(finish)


def test_a_run_as_ag_ui_events() -> None:
    events = ag_ui("calls")
    assert (events[0].thread_id, events[0].run_id) == ("t", "r")
    arguments = "".join(
        event.delta for event in events if event.type == "TOOL_CALL_ARGS" and event.tool_call_id == "c1"
    )
    assert json.loads(arguments) == {"item": "tea"}
    results = {event.tool_call_id: event.content for event in events if event.type == "TOOL_CALL_RESULT"}
    assert json.loads(results["c1"]) == {"boxes": 12}
    assert "KeyError" in results["c2"]
    text = "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")
    assert text == "I look.12 boxes."


def test_a_call_that_broke_off_is_ended_before_the_answer_begins_anew() -> None:
    chunks = vercel("broken off")
    errors = [chunk for chunk in chunks if chunk["type"] == "tool-input-error"]
    assert [error["toolCallId"] for error in errors] == ["c7"]
    assert ag_ui("broken off")[-1].type == "RUN_FINISHED"


def test_a_front_end_sees_a_request_for_approval() -> None:
    (approval,) = [chunk for chunk in vercel("approval") if chunk["type"] == "data-approval"]
    assert (approval["data"]["toolCallId"], approval["data"]["toolName"]) == ("c3", "order")
    (custom,) = [event for event in ag_ui("approval") if event.type == "CUSTOM"]
    assert (custom.name, custom.value["toolCallId"]) == ("approval_requested", "c3")


def test_closing_the_stream_stops_the_run() -> None:
    async def first() -> bytes:
        stream = vercel_stream(runs()["calls"].run("?"))
        piece = await anext(stream)
        await stream.aclose()
        return piece

    assert b'"type":"start"' in asyncio.run(first())
