"""Members inside of messages that no other API gets are named in a note, wherever they are."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, gateway, run

from toolwire import Client, FinishReason, ParsedResponse
from toolwire.gateway.unread_members import MAX_NAMED, unread_members
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.testing import ScriptedTransport

CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
IMAGE = {"type": "image", "source": SOURCE}
PICTURE = "data:image/png;base64,iVBORw0KGgo="
MESSAGES: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "s"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE}}]},
            {"role": "assistant", "content": "x", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": "r"},
        ]
    },
    "responses": {
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": PICTURE}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "r"},
        ]
    },
    "messages": {
        "max_tokens": 9,
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x"}, IMAGE]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "tool_use", "id": "1", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]}],
            },
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "x"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}]},
        ],
    },
    "ollama": {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_name": "f", "content": "r"},
        ]
    },
}
FREE = {"args", "arguments", "input", "response"}
"""Names of members whose own members are arguments or a result."""


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects inside of a value, without arguments and results."""
    for item in value if isinstance(value, list) else ():
        yield from _objects(item)
    if isinstance(value, dict):
        yield value
        for name, member in value.items():
            if name not in FREE:
                yield from _objects(member)


def _bodies(api: str) -> Iterator[dict[str, Any]]:
    """Yield a body for each object inside of it, to which a member is added there."""
    top = {"responses": "input", "gemini": "contents"}.get(api, "messages")
    above = {name: value for name, value in MESSAGES[api].items() if name not in (top, "max_tokens")}
    for name, value in {top: MESSAGES[api][top], **above}.items():
        for at in range(sum(1 for _ in _objects(value))):
            changed = copy.deepcopy(value)
            list(_objects(changed))[at]["novel"] = {"a": 1}
            yield {"model": "m", **MESSAGES[api], name: changed}


PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
    "ollama": "/api/chat",
}
CASES = [(api, json.dumps(body)) for api in CLIENTS for body in _bodies(api)]


@pytest.mark.parametrize(("api", "body"), CASES)
def test_a_new_member_inside_of_a_message_is_in_the_notes(api: str, body: str) -> None:
    transport = ScriptedTransport("cohere", [ParsedResponse("x", finish_reason=FinishReason.STOP)])
    client = Client("cohere", "b", base_url="http://b", transport=transport)
    data = {**json.loads(body), **({"stream": False} if api == "ollama" else {})}
    got = run(gateway(ApiUpstream(client, name="b")), PATHS[api], data)
    assert got.status == 200, got.body
    notes = got.headers.get("x-toolwire-notes", "")
    assert notes.count("novel") == 1, notes


def test_members_that_are_read_need_no_note() -> None:
    for api, body in MESSAGES.items():
        assert list(unread_members(body, CLIENTS[api])) == []
    spelled = {
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": {"parts": [{"function_call": {"name": "f", "args": {}}, "thought_signature": "s"}]},
    }
    assert list(unread_members(spelled, "gemini")) == []


def test_a_member_that_occurs_often_is_one_note() -> None:
    parts = [{"text": "x", "novel": 1, "older": None}, {"text": "y", "novel": 2}]
    body = {"contents": [{"parts": parts}, {"parts": parts, "new": "z"}]}
    assert list(unread_members(body, "gemini")) == ["contents.new", "contents.parts.novel"]


@pytest.mark.parametrize("type", [[], {}, 5, None])
def test_a_type_of_any_kind_is_passed_over(type: Any) -> None:
    part = {"text": "x", "type": type, "own": 1}
    assert list(unread_members({"contents": [{"role": "user", "parts": [part]}]}, "gemini"))[-1] == "contents.parts.own"
    assert list(unread_members({"messages": [{"content": [{"type": type, "own": 1}]}]}, "anthropic_messages")) == []


def test_only_the_first_of_many_members_are_named() -> None:
    message = {"role": "user", "content": "x", **{f"own{at}": 1 for at in range(5_000)}}
    *names, last = unread_members({"messages": [message, {"other": 1}]}, "anthropic_messages")
    assert names == [f"messages.own{at}" for at in range(MAX_NAMED)]
    assert last == "further members"
