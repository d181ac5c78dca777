"""Signed reasoning of every API survives a client of every other API, and nothing else is taken for it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.streams import streamed

from toolwire import (
    Client,
    FinishReason,
    Message,
    Notes,
    ParsedResponse,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolDefinition,
    collect,
    get_api,
    replay,
)
from toolwire.providers.reasoning_seals import has_reasoning_of_others, seal_of, unsealed

TOOL = ToolDefinition("f", "")
CALL = ToolCall("f", {}, "call_1")
ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "e",
}
PARTS = {
    "a thought of Gemini": ReasoningPart("hm", "c2ln", "gemini"),
    "a signature on a call of Gemini": ReasoningPart("", "c2ln", "gemini"),
    "thinking of Anthropic": ReasoningPart("hm", "c2ln", "anthropic_messages"),
    "redacted thinking": ReasoningPart("", "", "anthropic_messages", {"type": "redacted_thinking", "data": "x"}),
    "an item of OpenAI": ReasoningPart("hm", "", "openai_responses", ITEM),
    "an item without a summary": ReasoningPart("", "", "openai_responses", {**ITEM, "summary": []}),
    "characters that UTF-8 has no bytes for": ReasoningPart("hm", "\ud800", "gemini"),
}
SENT_BACK: dict[str, Callable[[Any], dict[str, Any]]] = {
    "openai_chat": lambda answer: {"messages": [answer["choices"][0]["message"]]},
    "openai_responses": lambda answer: {"input": answer["output"]},
    "anthropic_messages": lambda answer: {"messages": [{"role": "assistant", "content": answer["content"]}]},
    "gemini": lambda answer: {"contents": [answer["candidates"][0]["content"]]},
}


@pytest.mark.parametrize("client", SENT_BACK)
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_signed_reasoning_survives_a_client_of_another_api(part: ReasoningPart, client: str) -> None:
    api, notes = get_api(client), Notes()
    response = ParsedResponse("", part.text, (CALL,), finish_reason=FinishReason.TOOL_CALLS, parts=(part, CALL))
    body = api.encode_response(response, notes=notes)
    assert not notes
    stream = b"".join(api.encode_stream(replay(response)))
    for answer in (api.decode_response(body), collect(streamed(api, stream))):
        assert answer.parts[0] == part
        assert [call.name for call in answer.tool_calls] == ["f"]
    sent_back = json.loads(json.dumps(SENT_BACK[client](body)))
    (message,) = api.decode_request(sent_back).messages
    assert message.parts[0] == part
    # The backend gets what it gave, and no other API gets it.
    own = get_api(part.provider)
    history = [Message("user", (TextPart("hi"),)), message]
    wanted = json.dumps(part.data or part.signature, sort_keys=True)
    assert wanted in json.dumps(own.encode_request(history), sort_keys=True)
    other = get_api("gemini" if part.provider != "gemini" else "anthropic_messages")
    assert "eyJwcm92aWRlciI6" not in json.dumps(other.encode_request(history))


def test_a_block_without_a_text_is_not_shown() -> None:
    api = get_api("anthropic_messages")
    body = api.encode_response(ParsedResponse(parts=(PARTS["a signature on a call of Gemini"], CALL)))
    assert [block["type"] for block in body["content"]] == ["redacted_thinking", "tool_use"]
    stream = b"".join(api.encode_stream(replay(ParsedResponse(parts=(PARTS["a thought of Gemini"], CALL)))))
    assert b'"signature_delta"' in stream and b"redacted_thinking" not in stream


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            5,
            {},
            "",
            "c2lnbmF0dXJl",
            "eyJwcm92aWRlciI6",
            "eyJwcm92aWRlciI6?",
            "eyJwcm92aWRlciI6Im",
            '{"provider":"x"}',
        ),
        base64.b64encode(b'{"provider":' + b"[" * 100_000).decode(),
        base64.b64encode(b'{"provider":\xff}').decode(),
    ],
)
def test_what_is_not_a_seal(value: Any) -> None:
    assert unsealed("hm", value) is None


def test_members_of_a_seal_that_have_another_type_do_not_count() -> None:
    seal = base64.b64encode(b'{"provider":5,"signature":{"a":1},"data":"x"}').decode()
    assert unsealed("hm", seal) == ReasoningPart("hm", "{'a': 1}", "5")


def test_a_conversation_with_reasoning_of_another_api() -> None:
    for part in PARTS.values():
        history = [Message("user", (TextPart("hi"),)), Message("assistant", (part,))]
        assert not has_reasoning_of_others(history, part.provider)
        assert has_reasoning_of_others(history, "cohere")
    assert not has_reasoning_of_others([Message("assistant", (ReasoningPart("hm"),))], "cohere")


def test_a_seal_is_opened_to_what_it_was_made_of() -> None:
    for part in PARTS.values():
        assert unsealed(part.text, seal_of(part)) == part


def test_a_body_with_reasoning_of_another_api_is_written_again_for_the_backend() -> None:
    client = Client("anthropic_messages", "m", key="k")
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    for part, is_kept in ((PARTS["thinking of Anthropic"], True), (PARTS["a thought of Gemini"], False)):
        signature = part.signature if is_kept else seal_of(part)
        thinking = {"type": "thinking", "thinking": "hm", "signature": signature}
        answer = {"role": "assistant", "content": [thinking, {"type": "text", "text": "o"}]}
        sent = {**body, "messages": [*body["messages"], answer, {"role": "user", "content": "go"}]}
        notes = Notes()
        encoded = client.encode_request(client.api.decode_request(sent), body=sent, notes=notes)
        assert (signature in json.dumps(encoded), not notes) == (is_kept, is_kept)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_clients_of_gemini_do_not_send_thoughts_back(part: ReasoningPart) -> None:
    api = get_api("gemini")
    body = api.encode_response(ParsedResponse("", part.text, (CALL,), parts=(part, CALL)))
    content = body["candidates"][0]["content"]
    content["parts"] = [given for given in content["parts"] if not given.get("thought")]
    (message,) = api.decode_request({"contents": [content]}).messages
    # Gemini itself signs the call, or the thought: then that is lost with it.
    expected = [CALL.name] if part == PARTS["a thought of Gemini"] or "\ud800" in part.signature else [part, CALL.name]
    assert [given.name if isinstance(given, ToolCall) else given for given in message.parts] == expected


def test_a_body_of_chat_completions_may_contain_reasoning_of_any_api() -> None:
    client = Client("openai_chat", "m", key="k")
    answer = client.api.encode_response(
        ParsedResponse("hi", "hm", parts=(PARTS["thinking of Anthropic"], TextPart("hi")))
    )
    body = {"model": "m", "messages": [answer["choices"][0]["message"], {"role": "user", "content": "go"}]}
    assert client.encode_request(client.api.decode_request(body), body=body) == body
