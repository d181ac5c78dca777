"""Tools that only coding agents send: as plain functions for other backends, and back in the calls of an answer."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import gateway, run

from toolwire import Client, FinishReason, ParsedResponse, ToolCall
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.testing import ScriptedTransport

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
SPAWN = {"type": "function", "name": "spawn", "parameters": SCHEMA}
PATCH = {"type": "custom", "name": "apply_patch", "description": "d", "format": {"type": "text"}}
GROUP = {
    "type": "namespace",
    "name": "agents",
    "tools": [SPAWN, {"type": "function", "name": "stop", "parameters": SCHEMA}],
}
QUESTION = {"type": "message", "role": "user", "content": "hi"}
PATHS = {"responses": "/v1/responses", "messages": "/v1/messages"}


def exchange(client: str, body: dict[str, Any], *calls: ToolCall, stream: bool = False) -> tuple[dict[str, Any], Any]:
    """Return the request that a backend of Chat Completions got, and the body of the answer with these calls."""
    transport = ScriptedTransport(
        "openai_compatible", [ParsedResponse("", tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS)]
    )
    backend = Client("openai_compatible", "backend", base_url="http://backend", transport=transport)
    body = {"model": "m", "stream": stream, **({"max_tokens": 9} if client == "messages" else {}), **body}
    got = run(gateway(ApiUpstream(backend, calls_in_text="none")), PATHS[client], body)
    assert got.status == 200, got.body
    return transport.requests[0], got.body if stream else got.json


def names(request: dict[str, Any]) -> list[str]:
    assert all(tool["type"] == "function" for tool in request.get("tools", []))
    return [tool["function"]["name"] for tool in request.get("tools", [])]


def done_items(stream: bytes) -> list[dict[str, Any]]:
    """Return the items of a stream of Responses that are done."""
    frames = [
        json.loads(line.removeprefix("data: ")) for line in stream.decode().split("\n") if line.startswith("data: ")
    ]
    return [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_group_of_tools_is_offered_flat_and_its_calls_name_the_group(stream: bool) -> None:
    call = ToolCall("agents__spawn", {"query": "x"}, "call_1")
    request, answer = exchange("responses", {"input": "hi", "tools": [GROUP, SPAWN]}, call, stream=stream)
    assert names(request) == ["spawn", "agents__spawn", "agents__stop"]
    (item,) = done_items(answer) if stream else answer["output"]
    assert (item["type"], item["name"], item["namespace"], item["call_id"]) == (
        "function_call",
        "spawn",
        "agents",
        "call_1",
    )


def test_a_call_of_a_group_in_the_history_has_the_flat_name() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "spawn", "namespace": "agents", "arguments": "{}"}
    history = [QUESTION, call, {"type": "function_call_output", "call_id": "c", "output": "done"}]
    request, _ = exchange("responses", {"input": history, "tools": [GROUP]})
    (written,) = request["messages"][1]["tool_calls"]
    assert written["function"]["name"] == "agents__spawn"
    assert request["messages"][2]["content"] == "done"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_tool_whose_input_is_text_comes_back_as_text(stream: bool) -> None:
    call = ToolCall("apply_patch", {"input": "*** Begin\nx"}, "call_1")
    request, answer = exchange("responses", {"input": "hi", "tools": [PATCH]}, call, stream=stream)
    assert names(request) == ["apply_patch"]
    (item,) = done_items(answer) if stream else answer["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin\nx")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_search_for_tools_comes_back_in_its_own_form(stream: bool) -> None:
    search = {"type": "tool_search", "execution": "client", "description": "d", "parameters": SCHEMA}
    call = ToolCall("tool_search", {"query": "x"}, "call_1")
    request, answer = exchange("responses", {"input": "hi", "tools": [search]}, call, stream=stream)
    assert names(request) == ["tool_search"]
    (item,) = done_items(answer) if stream else answer["output"]
    assert item.pop("id").startswith("cc_")
    assert item == {
        "type": "tool_search_call",
        "call_id": "call_1",
        "execution": "client",
        "status": "completed",
        "arguments": {"query": "x"},
    }


def test_other_arguments_of_a_tool_whose_input_is_text_are_not_lost() -> None:
    _, answer = exchange(
        "responses", {"input": "hi", "tools": [PATCH]}, ToolCall("apply_patch", {"patch": "x"}, "call_1")
    )
    assert json.loads(answer["output"][0]["input"]) == {"patch": "x"}


def test_tools_in_the_conversation_are_offered() -> None:
    added = {"type": "additional_tools", "role": "developer", "tools": [GROUP]}
    request, answer = exchange("responses", {"input": [added, QUESTION]}, ToolCall("agents__stop", {}, "call_1"))
    assert names(request) == ["agents__spawn", "agents__stop"]
    assert [message["role"] for message in request["messages"]] == ["user"]
    assert (answer["output"][0]["name"], answer["output"][0]["namespace"]) == ("stop", "agents")


@pytest.mark.parametrize("place", ["tools", "conversation"])
def test_a_tool_that_only_its_provider_runs_is_left_out_with_a_note(place: str) -> None:
    tools = [{"type": "web_search"}, SPAWN]
    added = {"type": "additional_tools", "role": "developer", "tools": tools}
    body = {"input": "hi", "tools": tools} if place == "tools" else {"input": [added, QUESTION]}
    request, _ = exchange("responses", body)
    assert names(request) == ["spawn"]
    assert "web_search_options" not in request
    transport = ScriptedTransport("openai_compatible", [ParsedResponse("x")])
    backend = Client("openai_compatible", "backend", base_url="http://backend", transport=transport)
    got = run(gateway(ApiUpstream(backend)), PATHS["responses"], {"model": "m", **body})
    assert got.headers["x-toolwire-notes"].startswith("dropped tools/web_search: ")


DEFERRED = [
    {"name": "ToolSearch", "input_schema": SCHEMA},
    {"name": "WebFetch", "description": "Fetches.", "input_schema": SCHEMA, "defer_loading": True},
    {"name": "Other", "input_schema": SCHEMA, "defer_loading": True},
    {"name": "DeferredToolPlaceholder", "input_schema": {"type": "object"}, "defer_loading": True},
]


def test_a_deferred_tool_is_offered_once_a_result_refers_to_it() -> None:
    hello = {"role": "user", "content": "hi"}
    request, _ = exchange("messages", {"tools": DEFERRED, "messages": [hello]})
    assert names(request) == ["ToolSearch"]
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}]}
    reference = {"type": "tool_reference", "tool_name": "WebFetch"}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [reference]}]}
    request, _ = exchange("messages", {"tools": DEFERRED, "messages": [hello, call, result]})
    assert names(request) == ["ToolSearch", "WebFetch"]
    assert request["messages"][-1]["content"] == "Loaded the tools WebFetch."


def test_instructions_are_one_message_at_the_beginning_without_what_is_not_for_models() -> None:
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cch=1;"},
        {"type": "text", "text": "You are an agent."},
    ]
    messages = [{"role": "user", "content": "hi"}, {"role": "system", "content": "The folder is /w."}]
    request, _ = exchange("messages", {"system": system, "messages": messages})
    assert request["messages"] == [
        {"role": "system", "content": "You are an agent.\n\nThe folder is /w."},
        {"role": "user", "content": "hi"},
    ]


def test_a_conversation_that_grows_keeps_its_beginning() -> None:
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cch=%d;"},
        {"type": "text", "text": "You are an agent."},
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    requests = []
    for turn in range(3):
        system[0]["text"] = f"x-anthropic-billing-header: cch={turn};"
        requests.append(exchange("messages", {"system": system, "messages": messages, "tools": DEFERRED})[0])
        messages = [*messages, {"role": "assistant", "content": f"a{turn}"}, {"role": "user", "content": f"q{turn}"}]
    for before, after in pairwise(requests):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]


@pytest.mark.parametrize(("member", "status"), [("previous_response_id", 404), ("conversation", 400)])
def test_a_stored_conversation_is_not_ignored(member: str, status: int) -> None:
    transport = ScriptedTransport("openai_compatible", [])
    backend = Client("openai_compatible", "backend", base_url="http://backend", transport=transport)
    got = run(gateway(ApiUpstream(backend)), "/v1/responses", {"model": "m", "input": "hi", member: "resp_1"})
    assert (got.status, transport.requests) == (status, [])
    assert member in got.json["error"]["message"]
