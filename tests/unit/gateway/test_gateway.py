"""The gateway: questions of each client API, answers of backends, failures, and clients that leave."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import zstandard
from tests.simulated_time import SimulatedTimeLoop
from tests.unit.gateway.gateway_calls import CLIENTS, Scripted, answer_in, asked, error_of, gateway, run

from toolwire import (
    Client,
    ContentDelta,
    Finish,
    FinishReason,
    ParsedResponse,
    ToolCall,
    Usage,
    get_api,
    replay,
)
from toolwire.errors import ProviderError
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ProblemFound, UsageCounted
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Answer, Question
from toolwire.gateway.request_body import read_body, unpacked
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.inspector.inspector import Inspector, InspectorOptions
from toolwire.messages import Problem
from toolwire.providers.failure_kinds import INVALID, RATE_LIMIT, UNREACHABLE
from toolwire.testing import ScriptedTransport

CALL = ToolCall("get_weather", {"city": "Paris"}, "call_1")
ANSWER = ParsedResponse("I look.", tool_calls=(CALL,), finish_reason=FinishReason.TOOL_CALLS, usage=Usage(7, 5))
EVENTS = list(replay(ANSWER))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_client_gets_the_answer_in_its_own_api(api: str, stream: bool) -> None:
    upstream = Scripted(EVENTS[:2], EVENTS[2:])
    path, body = asked(api, stream=stream)
    got = run(gateway(upstream), path, body)
    assert got.status == 200
    answer = answer_in(api, got.body, stream=stream)
    assert answer.content == "I look."
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("get_weather", {"city": "Paris"})]
    assert answer.finish_reason is FinishReason.TOOL_CALLS
    assert answer.usage is not None and answer.usage.output_tokens == 5
    (question,) = upstream.questions
    assert [tool.name for tool in question.request.tools] == ["get_weather"]
    assert upstream.closed == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_client_gets_its_own_name_of_a_tool(api: str, stream: bool) -> None:
    name = "weather/" + "files_read_" * 7  # no provider takes it, but servers of models do
    call = ToolCall(name, {"city": "Paris"}, "call_1")
    path, body = asked(api, stream=stream)
    body = json.loads(json.dumps(body).replace("get_weather", name))
    response = ParsedResponse(tool_calls=(call,), finish_reason=FinishReason.TOOL_CALLS)
    got = run(gateway(Scripted(list(replay(response)))), path, body)
    answer = answer_in(api, got.body, stream=stream)
    assert [call.name for call in answer.tool_calls] == [name]
    assert "x-toolwire-notes" not in got.headers


@pytest.mark.parametrize(
    ("api", "pattern"),
    [
        ("chat", rb'"id":"(chatcmpl-[0-9a-f]{24})","object":"chat.completion.chunk"'),
        ("responses", rb'"response":{"id":"(resp_[0-9a-f]{24})"'),
        ("responses", rb'"item_id":"(msg_[0-9a-f]{24}_0)"'),
        ("responses", rb'"item_id":"(fc_[0-9a-f]{24}_1)"'),
        ("gemini", rb'"responseId":"([0-9a-f]{24})"'),
        ("ollama", rb'"created_at":"([-0-9T:]+Z)"'),
    ],
)
def test_all_events_of_a_stream_have_one_id(api: str, pattern: bytes) -> None:
    got = run(gateway(Scripted(EVENTS[:2], EVENTS[2:])), *asked(api, stream=True))
    ids = re.findall(pattern, got.body)
    assert len(ids) > 1
    assert len(set(ids)) == 1


@pytest.mark.parametrize("api", CLIENTS)
def test_a_stream_is_not_to_be_buffered_and_comes_as_it_arrives(api: str) -> None:
    path, body = asked(api, stream=True)
    got = run(
        gateway(Scripted([ContentDelta("one")], 3.0, [ContentDelta("two"), Finish(FinishReason.STOP)])), path, body
    )
    assert got.headers["x-accel-buffering"] == "no"
    assert got.headers["cache-control"] == "no-cache"
    assert next(at for at, piece in got.pieces if b"one" in piece) == 0
    assert next(at for at, piece in got.pieces if b"two" in piece) == pytest.approx(3)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_failure_has_the_status_and_the_form_of_the_api(api: str, stream: bool) -> None:
    failure = GatewayFailure(RATE_LIMIT, "the backend is busy", retry_after="7")
    path, body = asked(api, stream=stream)
    got = run(gateway(Scripted(opens=failure)), path, body)
    kinds = {"chat": "rate_limit_error", "responses": "rate_limit_error", "messages": "rate_limit_error"}
    assert (got.status, got.headers["retry-after"]) == (429, "7")
    assert error_of(api, got.json) == (
        kinds.get(api, "RESOURCE_EXHAUSTED" if api == "gemini" else None),
        "the backend is busy",
    )


@pytest.mark.parametrize("api", CLIENTS)
def test_a_stream_that_breaks_ends_with_an_error_and_no_complete_call(api: str) -> None:
    path, body = asked(api, stream=True)
    started = [ContentDelta("I look."), CallStart(0, "get_weather", "call_1"), ArgumentsDelta(0, '{"city": "Pa')]
    got = run(gateway(Scripted(started, ProviderError("the answer was cut off"))), path, body)
    assert got.status == 200
    answer = answer_in(api, got.body, stream=True)
    assert answer.tool_calls == ()
    assert any("answer was cut off" in problem.message for problem in answer.problems)
    assert answer.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize("api", CLIENTS)
def test_another_backend_answers_where_the_first_one_fails(api: str) -> None:
    broken, spare = Scripted(opens=GatewayFailure(UNREACHABLE, "gone")), Scripted(EVENTS)
    path, body = asked(api, stream=True)
    got = run(gateway(broken, spare), path, body)
    assert len(answer_in(api, got.body, stream=True).tool_calls) == 1
    assert (len(broken.questions), len(spare.questions)) == (1, 1)


def test_no_other_backend_is_asked_after_a_mistake_of_the_client_or_a_byte_of_an_answer() -> None:
    spare = Scripted(EVENTS)
    path, body = asked("chat", stream=True)
    assert run(gateway(Scripted(opens=GatewayFailure(INVALID, "wrong")), spare), path, body).status == 400
    got = run(gateway(Scripted([ContentDelta("one")], ProviderError("cut")), spare), path, body)
    assert b"cut" in got.body
    assert spare.questions == []


def test_no_other_backend_is_asked_once_a_keep_alive_was_sent() -> None:
    class Late(Scripted):
        """A backend that refuses after a keep-alive has begun the stream."""

        @asynccontextmanager
        async def open(self, question: Question) -> AsyncIterator[Answer]:
            await asyncio.sleep(15)
            raise GatewayFailure(UNREACHABLE, "gone")
            yield

    spare = Scripted(EVENTS)
    path, body = asked("messages", stream=True)
    got = run(gateway(Late(), spare), path, body)
    assert b"event: ping" in got.body and b"gone" in got.body
    assert spare.questions == []


def test_the_first_failure_is_reported_where_no_backend_answers() -> None:
    path, body = asked("chat")
    busy = Scripted(opens=GatewayFailure(RATE_LIMIT, "busy", retry_after="3"))
    got = run(gateway(busy, Scripted(opens=GatewayFailure(UNREACHABLE, "gone"))), path, body)
    assert (got.status, got.headers["retry-after"], got.json["error"]["message"]) == (429, "3", "busy")


@pytest.mark.parametrize("opens", [None, 25.0], ids=["in the stream", "before the first byte"])
@pytest.mark.parametrize(
    ("api", "sign"), [("chat", b": "), ("responses", b": "), ("messages", b"event: ping"), ("gemini", b"\n")]
)
def test_a_silent_stream_gets_keeping_alive(api: str, sign: bytes, opens: float | None) -> None:
    path, body = asked(api, stream=True)
    groups = [[ContentDelta("one")], 25.0, [Finish(FinishReason.STOP)]] if opens is None else [EVENTS]
    got = run(gateway(Scripted(*groups, opens=opens)), path, body)
    assert [at for at, piece in got.pieces if piece.startswith(sign)] == [pytest.approx(10), pytest.approx(20)]
    assert answer_in(api, got.body, stream=True).finish_reason is not FinishReason.ERROR


def test_a_failure_after_a_keep_alive_is_an_error_in_the_stream() -> None:
    path, body = asked("messages", stream=True)

    slow = Scripted(15.0, ProviderError("gone"))
    got = run(gateway(slow, Scripted(EVENTS)), path, body)
    assert got.status == 200
    assert b"event: error" in got.body
    assert b'"overloaded_error"' in got.body  # the type after which clients ask again


def test_a_keep_alive_of_gemini_is_skipped_by_clients_that_know_no_comments() -> None:
    path, body = asked("gemini", stream=True)
    got = run(gateway(Scripted([ContentDelta("one")], 15.0, [Finish(FinishReason.STOP)])), path, body)
    assert re.sub(rb"\s*data: .*\n\n", b"", got.body).strip() == b""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("opens", [None, 60.0], ids=["while it answers", "before it answers"])
def test_a_client_that_leaves_cancels_the_backend(stream: bool, opens: float | None) -> None:
    upstream = Scripted([ContentDelta("one")], 60.0, [ContentDelta("two")], opens=opens)
    path, body = asked("chat", stream=stream)
    got = run(gateway(upstream), path, body, leaves_after=1.0)
    assert b"two" not in got.body
    assert upstream.closed == (0 if opens else 1)


def test_the_problem_of_a_provider_is_a_failure_of_a_whole_answer() -> None:
    problem = ProblemFound(Problem("provider_error", 0, "", "it broke"))
    path, body = asked("chat")
    got = run(gateway(Scripted([ContentDelta("a"), problem, Finish(FinishReason.ERROR)])), path, body)
    assert (got.status, got.json["error"]["message"]) == (502, "it broke")


# -- backends behind an API -------------------------------------------------------------------------------------------


def api_upstream(
    *answers: Any, api: str = "openai_compatible", calls_in_text: str = ""
) -> tuple[ApiUpstream, ScriptedTransport]:
    transport = ScriptedTransport(api, answers)
    client = Client(api, "backend-model", base_url="http://backend", transport=transport)
    return ApiUpstream(client, calls_in_text=calls_in_text), transport


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
@pytest.mark.parametrize("behind", ["openai_compatible", "anthropic_messages", "gemini", "openai_responses", "ollama"])
def test_any_client_can_use_any_backend(api: str, behind: str, stream: bool) -> None:
    upstream, transport = api_upstream(ANSWER, api=behind)
    path, body = asked(api, stream=stream)
    answer = answer_in(api, run(gateway(upstream), path, body).body, stream=stream)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("get_weather", {"city": "Paris"})]
    (sent,) = transport.requests
    assert [tool.name for tool in get_api(behind).decode_request(sent).tools] == ["get_weather"]


def test_bytes_of_the_same_api_are_passed_on_as_they_are() -> None:
    raw = b'{"choices": [{"message": {"content": "hi", "odd": 1}, "finish_reason": "stop"}], "unknown": true}'
    upstream, transport = api_upstream(raw, calls_in_text="none")
    path, body = asked("chat")
    body["unheard_of"] = {"a": 1}
    got = run(gateway(upstream), path, body)
    assert got.body == raw
    assert transport.requests == [body]


def test_the_model_of_the_backend_replaces_the_name_that_clients_use() -> None:
    transport = ScriptedTransport("openai_compatible", [b'{"choices": []}'])
    client = Client("openai_compatible", "m", base_url="http://b", transport=transport)
    path, body = asked("chat", model="alias")
    run(gateway(ApiUpstream(client, model="real", calls_in_text="none")), path, body)
    assert transport.requests[0]["model"] == "real"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_call_in_the_text_becomes_a_call_of_the_client_api(api: str, stream: bool) -> None:
    text = 'I look. <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    upstream, _ = api_upstream(ParsedResponse(text), calls_in_text="auto")
    path, body = asked(api, stream=stream)
    answer = answer_in(api, run(gateway(upstream), path, body).body, stream=stream)
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Paris"}]
    assert (answer.content.strip(), answer.finish_reason) == ("I look.", FinishReason.TOOL_CALLS)


_LENGTH = "This model's maximum context length is 100 tokens. However, you requested"
_TOO_LONG = "prompt is too long"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            f"{_LENGTH} 140 tokens (120 in the messages, 20 in the completion).",
            f"{_TOO_LONG}: 120 tokens > 100 maximum",
        ),
        ("prompt is too long: 250 tokens > 200 maximum", f"{_TOO_LONG}: 250 tokens > 200 maximum"),
        ("the request exceeds the available context size (4096 tokens)", f"{_TOO_LONG}: 4097 tokens > 4096 maximum"),
        (
            f"{_LENGTH} 120 tokens (90 in the messages, 30 in the completion).",
            "input length and `max_tokens` exceed context limit: 90 + 30 > 100, "
            "decrease input length or `max_tokens` and try again",
        ),
    ],
)
def test_a_conversation_that_is_too_long_is_reported_in_words_that_clients_know(message: str, shown: str) -> None:
    error = json.dumps({"error": {"message": message}}).encode()
    upstream, _ = api_upstream((400, error), (400, error))
    got = run(gateway(upstream, Scripted(EVENTS)), *asked("messages"))
    assert (got.status, got.json["error"]) == (400, {"type": "invalid_request_error", "message": shown})
    got = run(gateway(upstream, Scripted(EVENTS)), *asked("responses"))
    assert (got.status, got.json["error"]["code"]) == (400, "context_length_exceeded")


@pytest.mark.parametrize("api", CLIENTS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("refused", [False, True])
def test_the_code_of_an_overflow_is_in_every_api(api: str, stream: bool, refused: bool) -> None:
    error = json.dumps({"error": {"message": "m", "code": "context_length_exceeded"}}).encode()
    streamed = b"data: " + error + b"\n\n" if stream and not refused else error
    upstream, _ = api_upstream((400 if refused else 200, streamed))
    got = run(gateway(upstream), *asked(api, stream=stream))
    words = {"messages": b"prompt is too long: "}
    assert words.get(api, b"context_length_exceeded") in got.body
    assert got.status == 400


@pytest.mark.parametrize(
    ("code", "status"), [(429, 429), ("invalid_api_key", 401), ("model_not_found", 404), (None, 502), (500, 502)]
)
def test_an_error_in_the_body_of_a_good_answer_has_its_own_status(code: object, status: int) -> None:
    upstream, _ = api_upstream((200, json.dumps({"error": {"message": "m", "code": code}}).encode()))
    assert run(gateway(upstream), *asked("messages")).status == status


def test_a_message_of_the_backend_is_shown_without_the_key() -> None:
    error = b'{"error": {"message": "the key sk-0123456789abcdef is wrong"}}'
    transport = ScriptedTransport("openai_compatible", [(401, error)])
    transport.offline = False
    client = Client("openai_compatible", "m", base_url="http://b", transport=transport, key="sk-0123456789abcdef")
    got = run(gateway(ApiUpstream(client, name="cloud")), *asked("chat"))
    assert (got.status, got.json["error"]["message"]) == (401, "cloud answered 401: the key [key] is wrong")


# -- bodies and access ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", CLIENTS)
@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"\xff", b'{"messages": 3, "input": 3, "contents": 3, "model": "m"}', b"[" * 100_000]
)
def test_a_body_that_is_no_request_is_refused_in_the_form_of_the_api(api: str, body: bytes) -> None:
    path, _ = asked(api)
    got = run(gateway(Scripted(EVENTS)), path, body)
    assert got.status == 400
    assert error_of(api, got.json)[1]


def test_a_body_that_is_nested_too_deeply_is_refused() -> None:
    body = b'{"model": "m", "messages": ' + b"[" * 300 + b"]" * 300 + b"}"
    got = run(gateway(Scripted(EVENTS)), "/v1/chat/completions", body)
    assert (got.status, got.json["error"]["message"]) == (400, "the body is nested too deeply")


def test_a_body_that_does_not_arrive_in_time_is_refused() -> None:
    arrived: list[bytes] = []

    async def receive() -> Any:
        await asyncio.sleep(50)  # each piece comes in time, and all of them do not
        arrived.append(b" ")
        return {"type": "http.request", "body": b" ", "more_body": len(arrived) < 3}

    with (
        asyncio.Runner(loop_factory=SimulatedTimeLoop) as runner,
        pytest.raises(GatewayFailure, match="did not arrive within 60 seconds") as refused,
    ):
        runner.run(read_body(receive, {}))
    assert refused.value.status == 408


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data)[2:-4]),
        ("zstd", zstandard.compress),
        ("identity", bytes),
    ],
)
def test_a_compressed_body_is_read(encoding: str, pack: Any) -> None:
    path, body = asked("chat")
    got = run(gateway(Scripted(EVENTS)), path, pack(json.dumps(body).encode()), headers={"content-encoding": encoding})
    assert got.status == 200


@pytest.mark.parametrize(
    ("encoding", "data", "status"),
    [
        ("br", b"x", 415),
        ("gzip, gzip", gzip.compress(gzip.compress(b"{}")), 415),
        ("gzip", b"not packed", 400),
        ("gzip", gzip.compress(b"{}")[:-9], 400),
        ("zstd", b"not packed", 400),
        ("gzip", gzip.compress(b" " * (2 << 20)), 413),
        ("zstd", zstandard.compress(b" " * (2 << 20)), 413),
        ("", b" " * (2 << 20), 413),
    ],
    ids=["unknown", "twice", "not gzip", "cut", "not zstd", "large gzip", "large zstd", "large"],
)
def test_a_body_that_cannot_be_unpacked_within_bounds_is_refused(encoding: str, data: bytes, status: int) -> None:
    app = gateway(Scripted(EVENTS))
    app.services.max_body = 1 << 20
    assert run(app, "/v1/messages", data, headers={"content-encoding": encoding}).status == status


def test_a_small_body_of_zstd_unpacks_in_small_steps() -> None:
    def block(*, last: bool) -> bytes:  # 128 KiB of one byte
        return (131_072 << 3 | 1 << 1 | last).to_bytes(3, "little") + b" "

    bomb = bytes.fromhex("28b52ffd0058") + block(last=False) * 4_000 + block(last=True)
    tracemalloc.start()
    try:
        with pytest.raises(GatewayFailure, match="more than 1 MiB"):
            unpacked(bomb, "zstd", 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 150 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("api", CLIENTS)
def test_a_body_of_very_many_values_is_refused(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.gateway.request_body.MAX_VALUES", 1_000)
    path, body = asked(api)
    assert run(gateway(Scripted(EVENTS)), path, {**body, "x": "," * 500}).status == 200
    got = run(gateway(Scripted(EVENTS)), path, {**body, "x": [{}] * 500})
    assert (got.status, error_of(api, got.json)[1]) == (413, "the body has more than 1,000 values")


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer right"},
        {"authorization": "bearer right"},
        {"x-api-key": "right"},
        {"x-goog-api-key": "right"},
        {"api-key": "right"},
        {"authorization": "Bearer other"},
    ],
)
def test_a_key_counts_in_any_of_its_places(headers: dict[str, str]) -> None:
    app = gateway(Scripted(EVENTS), access=Access(("right", "other")))
    path, body = asked("chat")
    assert run(app, path, body, headers=headers).status == 200
    assert run(app, path + "?key=right", body).status == 200


@pytest.mark.parametrize("api", CLIENTS)
@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer wrong"}, {"x-api-key": "righ"}, {"authorization": "Basic right"}]
)
def test_a_request_without_the_key_is_refused(api: str, headers: dict[str, str]) -> None:
    upstream = Scripted(EVENTS)
    path, body = asked(api)
    got = run(gateway(upstream, access=Access(("right",))), path, body, headers=headers)
    assert got.status == 401
    assert error_of(api, got.json)[1]
    assert upstream.questions == []


@pytest.mark.parametrize("name", ["host", "origin", "sec-fetch-site"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/health", "/inspector/api/rows"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_request_that_says_twice_where_it_comes_from_is_refused(name: str, path: str, is_first: bool) -> None:
    own = {"host": "127.0.0.1:4100", "origin": "http://127.0.0.1:4100", "sec-fetch-site": "same-origin"}
    evil = {"host": "evil.example", "origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    access = Access(hosts=frozenset({own["host"]}), origins=frozenset({own["origin"]}))
    models = ModelTable([ServedModel("*", (Scripted(EVENTS),))])
    app = Gateway(models, access=access, inspector=Inspector(InspectorOptions(key="secret")))
    headers = {"authorization": "Bearer secret"}
    send = partial(run, app, path, asked("chat")[1], method="POST" if path.startswith("/v1") else "GET")
    assert send(headers=headers).status == 200
    first, second = (evil, own) if is_first else (own, evil)
    assert send(headers={**headers, name: second[name]}, repeated=[(name, first[name])]).status == 403


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": ""}],
)
def test_a_request_of_another_site_is_refused(headers: dict[str, str]) -> None:
    upstream = Scripted(EVENTS)
    access = Access(hosts=frozenset({"127.0.0.1:4100"}), origins=frozenset({"http://127.0.0.1:4100"}))
    path, body = asked("chat")
    assert run(gateway(upstream, access=access), path, body, headers=headers).status == 403
    assert run(gateway(upstream, access=access), path, body, headers={"origin": "http://127.0.0.1:4100"}).status == 200
    assert len(upstream.questions) == 1


# -- other addresses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_one_list_of_models_is_for_all_clients(path: str) -> None:
    got = run(gateway(Scripted(EVENTS)), path, method="GET").json
    assert [model["id"] for model in got["data"]] == ["m"]
    assert (got["first_id"], got["models"][0]["slug"]) == ("m", "m")
    assert got["models"][0]["name"] == "models/m"  # Google's SDK for Python lists them here too


@pytest.mark.parametrize("path", ["/v1/models/org/claude-5", "/models/org/claude-5", "/v1beta/models/org/claude-5"])
def test_one_model_is_described_by_the_name_that_was_asked_for(path: str) -> None:
    got = run(gateway(Scripted(EVENTS), context=4096), path, method="GET").json
    assert (got["name"], got["inputTokenLimit"]) == ("models/org/claude-5", 4096)
    if "beta" not in path:
        assert (got["id"], got["object"], got["type"]) == ("org/claude-5", "model", "model")


def test_gemini_and_ollama_list_models_in_their_own_form() -> None:
    app = gateway(Scripted(EVENTS), context=4096)
    assert run(app, "/v1beta/models", method="GET").json["models"][0]["name"] == "models/m"
    assert run(app, "/v1beta/models/m", method="GET").json["inputTokenLimit"] == 4096
    assert run(app, "/api/tags", method="GET").json["models"][0]["name"] == "m"
    shown = run(app, "/api/show", {"model": "m:latest"}).json
    assert shown["model_info"]["toolwire.context_length"] == 4096
    assert "tools" in shown["capabilities"]
    assert run(app, "/api/version", method="GET").json["version"] >= "0.13.4"


def test_tokens_are_counted_without_a_model() -> None:
    upstream = Scripted(EVENTS)
    _, body = asked("messages")
    more = {**body, "system": "word " * 1_000}
    few, many = (
        run(gateway(upstream), "/v1/messages/count_tokens", value).json["input_tokens"] for value in (body, more)
    )
    assert many - few > 900
    _, gemini = asked("gemini")
    assert (
        run(gateway(upstream), "/v1beta/models/m:countTokens", {"generateContentRequest": gemini}).json["totalTokens"]
        > 5
    )
    assert upstream.questions == []


def test_a_websocket_is_refused_so_that_the_client_uses_http() -> None:
    headers = {"upgrade": "websocket", "connection": "upgrade"}
    assert run(gateway(Scripted(EVENTS)), "/v1/responses", method="GET", headers=headers).status == 426


def test_an_unknown_address_and_an_unknown_model_are_not_found() -> None:
    app = gateway(Scripted(EVENTS))
    assert run(app, "/v1/nothing", {}).status == 404
    assert run(app, "/v1beta/models/m:embedContent", {}).status == 404


def test_a_prompt_of_ollama_is_a_conversation_of_one_message() -> None:
    upstream = Scripted([UsageCounted(Usage(1, 1)), ContentDelta("hi"), Finish(FinishReason.STOP)])
    got = run(
        gateway(upstream), "/api/generate", {"model": "m", "prompt": "Hello", "system": "Be brief", "stream": False}
    )
    assert got.status == 200
    assert [message.text for message in upstream.questions[0].request.messages] == ["Be brief", "Hello"]


def test_a_call_that_ends_is_not_announced_twice() -> None:
    path, body = asked("responses", stream=True)
    groups = [
        [CallStart(0, "get_weather", "c")],
        [ArgumentsDelta(0, "{}")],
        [CallEnd(0, ToolCall("get_weather", {}, "c"), True)],
    ]
    got = run(gateway(Scripted(*groups, [Finish(FinishReason.TOOL_CALLS)])), path, body)
    assert got.body.count(b"event: response.output_item.added") == 1


@pytest.mark.parametrize("size", [40, 10_000], ids=["pieces", "at once"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_backend_that_closes_the_connection_in_the_middle_is_an_error(api: str, size: int) -> None:
    delta = {"id": "c", "choices": [{"index": 0, "delta": {"content": "one"}, "finish_reason": None}]}
    sent = b"data: " + json.dumps(delta).encode() + b"\n\n" + b'data: {"id": "c", "choices": [{"del'
    transport = ScriptedTransport("openai_chat", [sent], piece=size)
    client = Client("openai_chat", "backend", key="k", transport=transport)
    path, body = asked(api, stream=True)
    got = run(gateway(ApiUpstream(client, model="m", calls_in_text="auto")), path, body)
    answer = answer_in(api, got.body, stream=True)
    assert answer.content == "one"
    assert answer.finish_reason is FinishReason.ERROR
    assert any("broke off" in problem.message for problem in answer.problems)
    assert b"message_stop" not in got.body and b"[DONE]" not in got.body and b"response.completed" not in got.body
