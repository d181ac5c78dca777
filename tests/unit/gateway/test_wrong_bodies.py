"""Bodies with values of the wrong type in each of their places: no request makes the gateway fail."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import Scripted, asked, gateway, request, run

from toolwire import Client, ContentDelta, Finish, FinishReason, ParsedResponse
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.testing import ScriptedTransport

WRONG: tuple[Any, ...] = (None, 1e308, "a]", [], {}, [[]], {"type": []})
"""Values that are of the wrong type in most places."""

CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TURNS: dict[str, dict[str, Any]] = {
    "chat": {
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "messages": [
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": "rain"},
        ],
    },
    "responses": {
        "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g", "parameters": {}}]}],
        "input": [
            {"type": "function_call", "call_id": "1", "name": "g", "arguments": "{}", "namespace": "n"},
            {"type": "function_call_output", "call_id": "1", "output": "rain"},
            {"type": "tool_search_output", "call_id": "3", "tools": [{"type": "function", "name": "z"}]},
            {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "q"}]},
        ],
    },
    "messages": {
        "tool_choice": {"type": "tool", "name": "get_weather"},
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "rain"}]},
        ],
    },
    "gemini": {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
        ]
    },
    "ollama": {
        "messages": [
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_name": "f", "content": "rain"},
        ]
    },
}  # fmt: skip


class Refusing:
    """A transport whose server refuses every request."""

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        async def body() -> AsyncIterator[bytes]:
            yield b'{"error": {"message": "no"}}'

        yield HttpAnswer(400, {"content-type": "application/json"}, body())

    async def close(self) -> None:
        """Do nothing."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value inside of a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def spoiled(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the body with each wrong value in each place, and without each place."""
    for *parents, last in places(body):
        for value in (*WRONG, Ellipsis):
            other = copy.deepcopy(body)
            at: Any = other
            for key in parents:
                at = at[key]
            if value is Ellipsis:
                del at[last]
            else:
                at[last] = value
            yield other


@pytest.mark.parametrize(
    ("api", "behind"),
    [
        ("chat", "anthropic_messages"),
        ("responses", "openai_chat"),
        ("messages", "openai_chat"),
        ("messages", "cohere"),
        ("gemini", "openai_responses"),
        ("ollama", "gemini"),
    ],
)
def test_no_wrong_value_makes_the_gateway_fail(api: str, behind: str) -> None:
    path, body = asked(api)
    client = Client(behind, "m", key="sk-secret-0123456789", base_url="https://backend.example", transport=Refusing())
    app = gateway(ApiUpstream(client, model="m"))

    async def run() -> list[tuple[int, dict[str, Any]]]:
        found = []
        for wrong in spoiled({**body, **TURNS[api]}):
            got = await request(app, path, json.dumps(wrong).encode())
            if api == "ollama" and wrong.get("messages", []) == []:  # it only asks for the model to be loaded
                assert (got.status, got.json.get("done_reason")) in ((200, "load"), (404, None)), wrong
                continue
            if got.status != 400 and not (got.status == 404 and "model" not in wrong):
                found.append((got.status, wrong))
            assert b"sk-secret" not in got.body
        return found

    assert asyncio.run(run()) == []


UNKNOWN_PART: dict[str, Any] = {"type": "x_new_part", "value": 1}
UNKNOWN_TOOL: dict[str, Any] = {"type": "x_new_tool_20300101", "name": "x"}


def unknown(api: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a body with members and kinds of an API that is newer than the gateway, in one place each."""
    is_gemini = api == "gemini"
    conversation, content = {"gemini": ("contents", "parts"), "responses": ("input", "content")}.get(
        api, ("messages", "content")
    )
    if api == "responses":
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        body = {**body, "input": [message]}
        yield {**body, "input": [message, {"type": "x_new_item", "id": "1"}]}
    yield {**body, "x_new_member": {"a": 1}}
    yield {**body, "tools": [*body["tools"], {"xNewTool": {}} if is_gemini else UNKNOWN_TOOL]}
    (message,) = body[conversation]
    yield {**body, conversation: [{**message, "x_new_member": 1}]}
    if api != "ollama":  # content is text alone
        parts = message[content]
        parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
        part = {"xNewPart": {}} if is_gemini else UNKNOWN_PART
        yield {**body, conversation: [{**message, content: [*parts, part]}]}


@pytest.mark.parametrize("behind", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama"])
@pytest.mark.parametrize("api", TURNS)
def test_unknown_members_and_kinds_do_not_make_a_request_fail(api: str, behind: str) -> None:
    path, body = asked(api)
    for newer in unknown(api, body):
        transport = ScriptedTransport(behind, [ParsedResponse("fine")])
        client = Client(behind, "m", base_url="https://backend.example", transport=transport)
        got = run(gateway(ApiUpstream(client, model="m")), path, newer)
        assert got.status == 200, newer
        assert b"fine" in got.body


@pytest.mark.parametrize(
    "name",
    ["\ud800", "a\nb", "a\u202eb", "x" * 501, ".", ".."],
    ids=["half", "line", "reversed", "long", "dot", "dots"],
)
@pytest.mark.parametrize("api", ["chat", "messages", "gemini", "ollama", "responses"])
def test_a_name_of_a_model_that_cannot_be_shown_is_refused(api: str, name: str) -> None:
    path, body = asked(api, model=name)
    got = asyncio.run(request(gateway(Scripted()), path, body))
    if api == "gemini" and "\n" in name:
        assert got.status == 404  # no path of the gateway has lines
        return
    assert got.status == 400
    assert "name of the model" in got.body.decode()


@pytest.mark.parametrize("answer", [b"\xe4garbage", b"[]", b""], ids=["garbage", "list", "nothing"])
def test_a_whole_answer_that_is_not_an_object_is_a_failure(answer: bytes) -> None:
    backend = Client(
        "openai_compatible", "m", base_url="http://b", transport=ScriptedTransport("openai_compatible", [answer])
    )
    path, body = asked("chat", tools=False)
    got = asyncio.run(request(gateway(ApiUpstream(backend)), path, body))
    assert (got.status, "JSON object" in got.json["error"]["message"]) == (502, True)


def test_half_a_character_of_a_model_reaches_the_client_as_an_escape() -> None:
    events = [ContentDelta("a\ud800b"), Finish(FinishReason.STOP)]
    path, body = asked("messages")
    got = asyncio.run(request(gateway(Scripted(events)), path, body))
    assert got.json["content"][0]["text"] == "a\ud800b"


@pytest.mark.parametrize(("number", "why"), [("NaN", "NaN"), ("-Infinity", "-Infinity"), ("1e999", "out of range")])
@pytest.mark.parametrize("api", ["chat", "messages", "gemini", "ollama", "responses"])
def test_a_number_that_json_does_not_have_is_refused(api: str, number: str, why: str) -> None:
    path, body = asked(api)
    model = Scripted()
    written = json.dumps({**body, "metadata": {"x": 0.5}}).replace("0.5", number)
    got = asyncio.run(request(gateway(model), path, written.encode()))
    assert (got.status, model.questions) == (400, [])
    assert why in got.body.decode()
