"""Recorded traffic of providers, decoded whole and in pieces, and translated into every API and back."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.streams import streamed

import toolwire
from toolwire import ParsedResponse, collect, replay

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "recorded"
NAMES = (
    "openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse", "mistral", "cohere", "groq",
    "ollama",
)  # fmt: skip
_EMPTY = "no arguments at all are an empty object, not an empty text"
_PIECES = "the pieces of one call's arguments are no calls"
_TWO_ANSWERS = "two answers, one after the other, whose blocks the row's text mixes by their index"
_CONTRADICTION = "the recorder has changed a path in the whole arguments, but not in the pieces of them"
_TRANSCRIPT = "the words of a recording are the content of an answer without other text"
WRONG = {
    "openai_chat-b8750cccacd2": _EMPTY,
    "cohere-9cb5766ccafc": _EMPTY,
    "cohere-974a6046d072": _EMPTY,
    "gemini-404fedd9c5b6": _PIECES,
    "gemini-1345f65a5127": _PIECES,
    "gemini-9656c161fe62": _PIECES,
    "anthropic_messages-386a4c96f4bc": _TWO_ANSWERS,
    "anthropic_messages-ca9f0b6f9fc0": _TWO_ANSWERS,
    "openai_responses-1107a20e0d3c": _CONTRADICTION,
    "openai_chat-eec828dda296": _TRANSCRIPT,
    "openai_chat-8eda939a5804": _TRANSCRIPT,
}
"""Recordings that contradict the rules, with the reason why they are considered wrong."""

QUARANTINED = {"cohere": 4}
"""Recorded tools with invalid schemas: types called `str` and `int`."""

needs_recordings = pytest.mark.skipif(not FOLDER.is_dir(), reason="recordings are not beside this checkout")


def rows(api: str) -> Iterator[dict[str, Any]]:
    for name in (api, f"unseen_{api}"):
        for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["status"] == 200 and row["id"] not in WRONG:
                yield row


def decoded(api: str, data: bytes, size: int, *, tools: Any = ()) -> ParsedResponse:
    return collect(streamed(api, data, size, tools=tools))


def body_of(row: dict[str, Any]) -> bytes | None:
    if row.get("raw_b64"):
        return base64.b64decode(row["raw_b64"])
    return None if row["api"].startswith("bedrock") else row["sse"].encode()


def said(response: ParsedResponse) -> tuple[list[tuple[str, Any]], str]:
    return [(call.name, call.arguments) for call in response.tool_calls], response.content.strip()


def order(response: ParsedResponse) -> str:
    """Return text and calls in order, with adjacent text joined; some APIs refuse text of white space alone."""
    shown = [part for part in response.parts if not isinstance(part, toolwire.TextPart) or part.text.strip()]
    kinds = [type(part).__name__[:2] for part in shown if part.__class__.__name__ in ("TextPart", "ToolCall")]
    return "".join(kind for at, kind in enumerate(kinds) if kind == "To" or kinds[at - 1 : at] != ["Te"])


@pytest.mark.need(16)
@needs_recordings
@pytest.mark.parametrize("api", NAMES)
def test_every_split_of_a_stream_decodes_the_same(api: str) -> None:
    compared = 0
    for row in rows(api):
        data = body_of(row) if row["stream"] else None
        if data is None:
            continue
        expected = decoded(api, data, len(data))
        for size in (1, 7, 97) if len(data) < 20_000 else (7, 97):
            assert decoded(api, data, size) == expected, row["id"]
        compared += 1
    assert compared or api == "ollama"


@needs_recordings
@pytest.mark.parametrize("api", NAMES)
def test_calls_text_and_ids_equal_the_recording(api: str) -> None:
    for row in rows(api):
        if row["stream"] and body_of(row) is None:
            continue
        response = (
            decoded(api, body_of(row) or b"", 97)
            if row["stream"]
            else toolwire.get_api(api).decode_response(row["response"])
        )
        assert len(response.tool_calls) == len(row["calls"]), row["id"]
        for call, recorded in zip(response.tool_calls, row["calls"], strict=True):
            assert call.name == recorded["name"], row["id"]
            arguments = {} if recorded["arguments"] is None else recorded["arguments"]
            assert call.arguments == (arguments if isinstance(arguments, dict) else {"input": arguments}), row["id"]
            assert call.free is not isinstance(arguments, dict), row["id"]
            assert recorded.get("id") in (None, "", call.id) or recorded.get("legacy"), row["id"]
        assert response.content.strip() == (row.get("text") or "").strip(), row["id"]


@pytest.mark.need(21)
@needs_recordings
@pytest.mark.parametrize("api", NAMES)
def test_every_response_survives_every_other_api(api: str) -> None:
    for row in rows(api):
        if row["stream"] or not row["calls"]:
            continue
        response = toolwire.get_api(api).decode_response(row["response"])
        tools = [toolwire.ToolDefinition(name) for name in {call.name for call in response.tool_calls}]
        for name in NAMES:
            target = toolwire.get_api(name)
            again = target.decode_response(target.encode_response(response), tools=tools)
            streamed = decoded(name, b"".join(target.encode_stream(replay(response))), 31, tools=tools)
            assert said(again) == said(streamed) == said(response), (row["id"], name)
            ids = [target.ids.fit(call.id) for call in response.tool_calls]
            if name != "gemini":
                assert [call.id for call in again.tool_calls] == ids, (row["id"], name)
            if name in ("anthropic_messages", "bedrock_converse", "gemini", "openai_responses"):
                assert order(again) == order(streamed) == order(response), (row["id"], name)


@needs_recordings
@pytest.mark.parametrize("api", NAMES)
def test_every_request_keeps_its_messages_and_tools(api: str) -> None:
    compared = quarantined = 0
    for row in rows(api):
        if not row["request"]:
            continue
        provider = toolwire.get_api(api)
        request = provider.decode_request(row["request"])
        notes = toolwire.Notes()
        again = provider.decode_request(provider.encode_request(request, notes=notes))
        left_out = {note.where for note in notes if note.kind == "quarantined"}
        offered = [tool.name for tool in request.tools if tool.name not in left_out]
        assert [tool.name for tool in again.tools] == offered, row["id"]
        quarantined += len(left_out)
        assert again.tool_choice == request.tool_choice, row["id"]
        dropped = {note.where for note in notes if note.kind == "dropped"}
        assert again.extra.items() <= request.extra.items(), row["id"]
        assert set(request.extra) - set(again.extra) <= dropped, row["id"]
        calls = [[part.name for part in m.parts if isinstance(part, toolwire.ToolCall)] for m in request.messages]
        call_names = [[part.name for part in m.parts if isinstance(part, toolwire.ToolCall)] for m in again.messages]
        assert [names for names in call_names if names] == [names for names in calls if names], row["id"]
        compared += 1
    assert compared
    assert quarantined == QUARANTINED.get(api, 0)
