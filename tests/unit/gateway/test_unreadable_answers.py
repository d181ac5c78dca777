"""Answers of backends that cannot be read, or only in part: clients get an error of their API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, Got, answer_in, asked, error_of, gateway, run

from toolwire import Client, FinishReason, ParsedResponse, get_api
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.testing import ScriptedTransport


def wrong_answer(content: Any, *, stream: bool) -> bytes:
    """Return a whole answer of Chat Completions whose content has the wrong type, or a stream of such pieces."""
    key = "delta" if stream else "message"
    choice = {"index": 0, key: {"content": content, "tool_calls": "x"}, "finish_reason": None if stream else "stop"}
    data = json.dumps({"id": "c", "choices": [choice]}).encode()
    end = b'data: {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    return b"data: " + data + b"\n\n" + end if stream else data


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_an_answer_of_which_nothing_can_be_read_is_an_error(api: str, stream: bool) -> None:
    if api == "chat" and stream:
        pytest.skip("the bytes of a stream in the client's own API are passed on")
    transport = ScriptedTransport("openai_chat", [wrong_answer(5, stream=stream)])
    client = Client("openai_chat", "backend", key="k", transport=transport)
    path, body = asked(api, stream=stream)
    got = run(gateway(ApiUpstream(client, model="m", calls_in_text="none")), path, body)
    if got.status == 200:  # a stream that had begun
        answer = answer_in(api, got.body, stream=True)
        assert stream and answer.finish_reason is FinishReason.ERROR
        assert any("cannot be read" in problem.message or "TypeError" in problem.message for problem in answer.problems)
    else:
        assert got.status == 502
        assert "TypeError" in error_of(api, got.json)[1]


@pytest.mark.parametrize("api", CLIENTS)
def test_an_answer_without_content_is_not_an_error(api: str) -> None:
    whole = {"id": "c", "choices": [{"index": 0, "message": {"content": None}, "finish_reason": "stop"}]}
    transport = ScriptedTransport("openai_chat", [json.dumps(whole).encode()])
    client = Client("openai_chat", "backend", key="k", transport=transport)
    path, body = asked(api)
    got = run(gateway(ApiUpstream(client, model="m", calls_in_text="none")), path, body)
    assert got.status == 200


@pytest.mark.parametrize("api", CLIENTS)
def test_a_whole_answer_to_the_request_for_a_stream_is_read(api: str) -> None:
    whole = get_api("openai_chat").encode_response(ParsedResponse("Rain."), model="m")
    transport = ScriptedTransport("openai_chat", [json.dumps(whole).encode()])
    client = Client("openai_chat", "backend", key="k", transport=transport)
    path, body = asked(api, stream=True)
    got = run(gateway(ApiUpstream(client, model="m", calls_in_text="auto")), path, body)
    answer = answer_in(api, got.body, stream=True)
    assert (answer.content, answer.finish_reason) == ("Rain.", FinishReason.STOP)


@pytest.mark.parametrize("sent", [b"\xff\xfe{nothing", b'data: {"id": "c", "choices": [{"del'], ids=["garbage", "cut"])
def test_a_stream_that_is_passed_on_ends_with_an_error_event_of_its_own(sent: bytes) -> None:
    transport = ScriptedTransport("openai_chat", [sent])
    client = Client("openai_chat", "backend", key="k", transport=transport)
    path, body = asked("chat", stream=True)
    got = run(gateway(ApiUpstream(client, model="m", calls_in_text="none")), path, body)
    passed, _, error = got.body.removesuffix(b"\n\n").rpartition(b"\n\n")
    assert passed == sent
    assert json.loads(error.removeprefix(b"data: "))["error"]["message"]


CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
BROKEN = {**CALL, "id": "call_2", "function": {"name": "get_weather", "arguments": '{"city": Paris'}}
NAMELESS = {**CALL, "id": "call_3", "function": {"arguments": "{}"}}


def answer_with_calls(calls: Any, finish: str, *, stream: bool) -> bytes:
    """Return an answer of Chat Completions with content and these calls."""
    key = "delta" if stream else "message"
    if stream and isinstance(calls, list):
        calls = [{**call, "index": at} if isinstance(call, dict) else call for at, call in enumerate(calls)]
    message = {"role": "assistant", "content": "I look.", "tool_calls": calls}
    choice = {"index": 0, key: message, "finish_reason": None if stream else finish}
    data = json.dumps({"id": "c", "choices": [choice]}).encode()
    end = json.dumps({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}).encode()
    return b"data: " + data + b"\n\ndata: " + end + b"\n\ndata: [DONE]\n\n" if stream else data


def ask_for_calls(api: str, calls: Any, finish: str, *, stream: bool) -> Got:
    transport = ScriptedTransport("openai_chat", [answer_with_calls(calls, finish, stream=stream)])
    client = Client("openai_chat", "backend", key="k", transport=transport)
    path, body = asked(api, stream=stream)
    return run(gateway(ApiUpstream(client, model="m", calls_in_text="none")), path, body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("calls", ["x", ["x"], [CALL, "x"], [NAMELESS]], ids=["text", "a text", "one", "no name"])
@pytest.mark.parametrize("api", [api for api in CLIENTS if api != "chat"])
def test_an_answer_that_lost_a_call_is_an_error_although_it_has_content(api: str, calls: Any, stream: bool) -> None:
    got = ask_for_calls(api, calls, "tool_calls", stream=stream)
    if stream:
        answer = answer_in(api, got.body, stream=True)
        assert (answer.content, answer.finish_reason) == ("I look.", FinishReason.ERROR)
    else:
        assert got.status == 502
        assert error_of(api, got.json)[1].startswith("openai_chat: ")


@pytest.mark.parametrize(("api", "stream"), [(api, False) for api in CLIENTS] + [("gemini", True), ("ollama", True)])
def test_a_broken_call_is_an_error_where_no_part_of_it_can_be_shown(api: str, stream: bool) -> None:
    got = ask_for_calls(api, [CALL, BROKEN], "tool_calls", stream=stream)
    if api == "chat":  # the client gets what the backend wrote
        assert got.status == 200
        assert [call["id"] for call in got.json["choices"][0]["message"]["tool_calls"]] == ["call_1", "call_2"]
    elif stream:
        assert answer_in(api, got.body, stream=True).finish_reason is FinishReason.ERROR
    else:
        assert got.status == 502
        assert "get_weather" in error_of(api, got.json)[1]


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_a_stream_shows_the_part_of_a_broken_call(api: str) -> None:
    answer = answer_in(api, ask_for_calls(api, [BROKEN], "tool_calls", stream=True).body, stream=True)
    assert [call.name for call in answer.incomplete] == ["get_weather"]
    assert not answer.tool_calls


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_call_that_the_maximum_length_cut_is_no_error(api: str, stream: bool) -> None:
    got = ask_for_calls(api, [BROKEN], "length", stream=stream)
    answer = answer_in(api, got.body, stream=stream)
    assert (answer.content, answer.finish_reason) == ("I look.", FinishReason.LENGTH)
    assert not answer.tool_calls


@pytest.mark.parametrize("calls_in_text", ["none", "auto"], ids=["passed on", "encoded"])
def test_a_stream_that_is_too_long_ends_with_an_error(calls_in_text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.gateway.upstreams.MAX_STREAM", 1 << 20)
    transport = ScriptedTransport("openai_chat", [ParsedResponse("Rain. " * 200_000)], piece=1 << 16)
    client = Client("openai_chat", "backend", key="k", transport=transport)
    path, body = asked("chat", stream=True)
    got = run(gateway(ApiUpstream(client, model="m", calls_in_text=calls_in_text)), path, body)
    assert b"more than 1 MiB" in got.body and b"[DONE]" not in got.body
