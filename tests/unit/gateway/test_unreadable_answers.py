"""Answers of backends that cannot be read, or only in part: clients get an error of their API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, answer_in, asked, error_of, gateway, run

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
