"""Reasoning in streams of Chat Completions: each text once, and with the signatures that belong to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.providers.conftest import USER, chat_stream, decoded

import toolwire as tw
from toolwire import Message, OpaquePart, ParsedResponse, ReasoningPart, TextPart, replay

CHAT, OPENROUTER = tw.get_api("openai_chat"), tw.get_api("openrouter")
SEALED = {"type": "reasoning.text", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}
SEVERAL = (
    ReasoningPart("plan", "S1", "anthropic_messages"),
    TextPart("One."),
    ReasoningPart("unsigned"),
    TextPart("Two."),
    ReasoningPart("more", "", "openai_responses", {"type": "reasoning", "encrypted_content": "E"}),
)


def deltas_of(response: ParsedResponse) -> list[dict[str, Any]]:
    lines = b"".join(CHAT.encode_stream(replay(response))).decode().split("\n\n")
    return [json.loads(line[6:])["choices"][0]["delta"] for line in lines if line.startswith('data: {"id')]


def accumulated(response: ParsedResponse) -> dict[str, Any]:
    """Return the message that a client makes of the stream of a response."""
    deltas = deltas_of(response)
    details = [item for delta in deltas for item in delta.get("reasoning_details", ())]
    text = {name: "".join(delta.get(name) or "" for delta in deltas) for name in ("content", "reasoning_content")}
    return {"role": "assistant", **text, "reasoning_details": details}


def signed(message: Message) -> list[ReasoningPart]:
    return [part for part in message.parts if isinstance(part, ReasoningPart) and (part.signature or part.data)]


def test_text_of_signed_reasoning_is_streamed_once() -> None:
    shown = json.dumps(deltas_of(ParsedResponse(parts=SEVERAL)))
    assert [shown.count(text) for text in ("plan", '"unsigned"', "more")] == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 50, 0])
def test_signed_reasoning_of_a_stream_is_decoded_with_its_text(size: int) -> None:
    data = b"".join(CHAT.encode_stream(replay(ParsedResponse(parts=SEVERAL))))
    assert decoded(CHAT, data, size).parts == SEVERAL


def test_signed_reasoning_that_a_client_sends_back_has_its_text() -> None:
    request = CHAT.decode_request({"messages": [accumulated(ParsedResponse(parts=SEVERAL))]})
    assert signed(request.messages[0]) == [SEVERAL[0], SEVERAL[4]]
    thinking = tw.get_api("anthropic_messages").encode_request([USER, request.messages[0]])["messages"][1]["content"]
    assert {"type": "thinking", "thinking": "plan", "signature": "S1"} in thinking


def test_only_item_of_a_client_that_keeps_known_members_has_the_text() -> None:
    message = accumulated(ParsedResponse(parts=SEVERAL[:2]))
    del message["reasoning_details"][0]["text_range"]
    assert signed(CHAT.decode_request({"messages": [message]}).messages[0]) == [SEVERAL[0]]


@pytest.mark.parametrize("range", [[9, 99], [3, 1], [-2, 2], ["0", 4], [0], None])
def test_range_that_does_not_fit_gives_no_text_of_others(range: Any) -> None:
    items = [{"type": "reasoning.text", "provider": "x", "signature": name, "text_range": range} for name in "ab"]
    message = {"role": "assistant", "content": "", "reasoning_content": "abcd", "reasoning_details": items}
    parts = CHAT.decode_request({"messages": [message]}).messages[0].parts
    assert parts == (ReasoningPart("abcd"), ReasoningPart("", "a", "x"), ReasoningPart("", "b", "x"))


@pytest.mark.parametrize("late", [{"reasoning": "hm"}, {}])
@pytest.mark.parametrize("item", [{**SEALED, "text": "hm"}, {"type": "reasoning.encrypted", "data": "eHg="}])
def test_last_chunk_that_repeats_reasoning_does_not_double_it(late: dict[str, Any], item: dict[str, Any]) -> None:
    last = {**late, "reasoning_details": [item]} if "text" in item else {"reasoning_details": [item]}
    data = chat_stream({"reasoning": "h"}, {"reasoning": "m"}, {"content": "Hi."}, last, reason="stop")
    response = decoded(OPENROUTER, data)
    assert response.reasoning == "hm"
    assert response.parts == (
        ReasoningPart("hm"),
        TextPart("Hi."),
        ReasoningPart("", item.get("signature", ""), "openrouter", item),
    )
    sent = OPENROUTER.encode_request([USER, Message("assistant", response.parts)])["messages"][1]
    assert sent["reasoning_details"] == [item]


def test_reasoning_before_and_after_other_content_stays_apart() -> None:
    data = chat_stream(
        {"reasoning": "a"},
        {"content": "One."},
        {"reasoning": "b"},
        {"reasoning_details": [SEALED]},
        {"images": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        reason="stop",
    )
    response = decoded(OPENROUTER, data)
    assert response.reasoning == "ab"
    assert response.parts[:3] == (
        ReasoningPart("a"),
        TextPart("One."),
        ReasoningPart("b", "c2ln", "openrouter", SEALED),
    )
    assert isinstance(response.parts[3], OpaquePart)
