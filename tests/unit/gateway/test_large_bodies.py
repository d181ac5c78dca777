"""Large bodies: other requests are answered meanwhile, and no body stays in memory after its answer."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, Got, Scripted, asked, gateway, request
from tests.unit.gateway.test_errors_in_answers import CONTENT, ERROR, EVENT, GOOD, backend

from toolwire import ContentDelta, Finish, FinishReason, ProviderError, get_api
from toolwire.client.client import Client
from toolwire.gateway import request_body, stored_responses, upstreams
from toolwire.gateway.answer_retries import RetriedUpstream
from toolwire.gateway.app import Gateway
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Question
from toolwire.gateway.request_body import LARGE, object_of
from toolwire.gateway.state_store import IN_MEMORY, opened_store
from toolwire.gateway.upstreams import TextUpstream
from toolwire.models import TextBackend
from toolwire.providers.failure_kinds import UNREACHABLE

SECONDS = 30.0
"""Seconds after which a test gives up waiting."""


class _Gate:
    """A stop within a function: the function waits there until the gateway has answered another request."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.passed = threading.Event()
        self.was_held_up = False

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that waits at the gate first; only the first call does."""

        def waiting(*arguments: Any, **options: Any) -> Any:
            if not self.reached.is_set():
                self.reached.set()
                # On the event loop nothing is answered, so that nobody opens the gate.
                self.was_held_up = not self.passed.wait(2.0 if threading.current_thread() is _MAIN else SECONDS)
            return function(*arguments, **options)

        return waiting


_MAIN = threading.main_thread()


async def _answered_meanwhile(app: Gateway, gate: _Gate, large: Callable[[], Awaitable[Got]]) -> Got:
    """Send a large request; when it has reached the gate, send another one, and only then let it go on."""
    task = asyncio.ensure_future(large())
    await asyncio.to_thread(gate.reached.wait, SECONDS)
    assert (await request(app, "/health", method="GET")).status == 200
    gate.passed.set()
    return await task


def _large(api: str) -> tuple[str, bytes]:
    path, body = asked(api, tools=False)
    return path, json.dumps({**body, "x": "y" * LARGE}).encode()


@pytest.mark.parametrize("place", ["parse", "decode", "encode", "send"])
@pytest.mark.parametrize("api", CLIENTS)
def test_other_requests_are_answered_during_work_on_a_large_body(
    api: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _Gate()
    match place:
        case "parse":
            monkeypatch.setattr(request_body, "standard_json", gate.around(request_body.standard_json))
        case "decode":
            kind = type(get_api(CLIENTS[api]))
            monkeypatch.setattr(kind, "decode_request", gate.around(kind.decode_request))
        case "encode":
            monkeypatch.setattr(Client, "encode_request", gate.around(Client.encode_request))
        case _:
            monkeypatch.setattr(Client, "open", gate.around(Client.open))
    answer = b'{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}'
    app = gateway(backend(answer))
    path, data = _large(api)
    got = asyncio.run(_answered_meanwhile(app, gate, lambda: request(app, path, data)))
    assert got.status == 200
    assert not gate.was_held_up


_PLACES = [(api, place) for api in CLIENTS for place in ("parse", "decode", "look for calls", "encode")]
_PLACES.remove(("chat", "encode"))  # an answer of the client's own API is passed on


@pytest.mark.parametrize(("api", "place"), _PLACES)
def test_other_requests_are_answered_during_work_on_a_large_answer(
    api: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _Gate()
    match place:
        case "parse":
            monkeypatch.setattr(upstreams, "json_of", gate.around(upstreams.json_of))
        case "decode":
            kind = type(get_api("openai_compatible"))
            monkeypatch.setattr(kind, "decode_response", gate.around(kind.decode_response))
        case "look for calls":
            monkeypatch.setattr(upstreams, "merge_text", gate.around(upstreams.merge_text))
        case _:
            kind = type(get_api(CLIENTS[api]))
            monkeypatch.setattr(kind, "encode_response", gate.around(kind.encode_response))
    text = "x" * LARGE
    answer = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
    app = gateway(backend(answer, piece=LARGE, calls_in_text="auto"))
    path, body = asked(api)
    got = asyncio.run(_answered_meanwhile(app, gate, lambda: request(app, path, body)))
    assert got.status == 200 and text.encode() in got.body
    assert not gate.was_held_up


def test_other_requests_are_answered_while_a_large_answer_is_encoded_that_may_be_asked_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = _Gate()
    kind = type(get_api("anthropic_messages"))
    monkeypatch.setattr(kind, "encode_response", gate.around(kind.encode_response))
    answer = json.dumps({"choices": [{"message": {"content": "x" * LARGE}, "finish_reason": "stop"}]}).encode()
    app = gateway(RetriedUpstream(backend(answer, piece=LARGE, calls_in_text="auto")))
    path, body = asked("messages")
    assert asyncio.run(_answered_meanwhile(app, gate, lambda: request(app, path, body))).status == 200
    assert not gate.was_held_up


def test_other_requests_are_answered_while_a_body_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = _Gate()
    monkeypatch.setattr(request_body, "unpacked", gate.around(request_body.unpacked))
    app = gateway(Scripted(GOOD))
    path, data = _large("chat")
    packed, headers = gzip.compress(data), {"content-encoding": "gzip"}
    assert len(packed) < LARGE
    got = asyncio.run(_answered_meanwhile(app, gate, lambda: request(app, path, packed, headers=headers)))
    assert got.status == 200
    assert not gate.was_held_up


@pytest.mark.parametrize("place", ["read", "decode"])
def test_other_requests_are_answered_while_a_long_conversation_is_continued(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _Gate()

    async def work() -> Got:
        async with opened_store(IN_MEMORY) as store:
            app = Gateway(ModelTable([ServedModel("*", (Scripted(GOOD),))]), store=store)
            first = await request(app, "/v1/responses", {"model": "m", "input": "x" * LARGE})
            if place == "read":
                monkeypatch.setattr(stored_responses, "_unpacked", gate.around(stored_responses._unpacked))
            else:
                kind = type(get_api("openai_responses"))
                monkeypatch.setattr(kind, "decode_request", gate.around(kind.decode_request))
            body = {"model": "m", "input": "y", "previous_response_id": first.json["id"]}
            return await _answered_meanwhile(app, gate, lambda: request(app, "/v1/responses", body))

    assert asyncio.run(work()).status == 200
    assert not gate.was_held_up


def test_a_small_body_stays_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def noted(body: bytes, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return json.loads(body)

    monkeypatch.setattr(request_body, "standard_json", noted)
    path, body = asked("chat")
    assert asyncio.run(request(gateway(Scripted(GOOD)), path, body)).status == 200
    assert threads == [_MAIN]


@pytest.mark.parametrize(("size", "is_large"), [(LARGE // 2, False), (LARGE, True)])
def test_other_threads_can_run_after_each_object_of_a_large_body(size: int, is_large: bool) -> None:
    body = json.dumps({"x": [{"a": "b" * 500}] * (size // 500)}).encode()
    assert (_calls_during(lambda: object_of(body)) > size // 500) == is_large


def test_other_threads_can_run_after_each_object_of_a_large_answer() -> None:
    body = json.dumps({"x": [{"a": "b" * 500}] * (LARGE // 500)}).encode()
    app = gateway(backend(body, piece=LARGE))
    calls = 0
    json_of = upstreams.json_of

    def counted(body: bytes, **options: Any) -> Any:
        nonlocal calls
        calls = _calls_during(lambda: json_of(body, **options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upstreams, "json_of", counted)
        assert asyncio.run(request(app, *asked("chat"))).status == 502
    assert calls > LARGE // 500


def _calls_during(work: Callable[[], Any]) -> int:
    """Return how many functions of Python some work calls."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    # The decoder is written in C: only a call of a function of Python lets another thread run.
    return calls


def _failing_retry() -> RetriedUpstream:
    """Return a model whose first answer has a faulty call, and which fails when it is asked once more."""
    texts = iter(['<tool_call>\n{"name": "get_wether", "arguments": {"city": "Paris"}}\n</tool_call>'])

    async def source(messages: Any) -> AsyncIterator[Any]:
        text = next(texts, "")
        if not text:
            raise ProviderError("gone", status=503)
        yield ContentDelta(text)
        yield Finish(FinishReason.STOP)

    return RetriedUpstream(TextUpstream(TextBackend(source, format="hermes", model="local")))


def _questions() -> list[Question]:
    """Return the questions in memory."""
    return [value for value in gc.get_objects() if isinstance(value, Question)]


_FAILURES: dict[str, Any] = {
    "a good answer": lambda: [Scripted(GOOD)],
    "refused": lambda: [backend((400, ERROR))],
    "busy": lambda: [backend((429, ERROR)), Scripted(opens=GatewayFailure(UNREACHABLE, "down"))],
    "busy, then another": lambda: [backend((500, ERROR)), Scripted(GOOD)],
    "an error in place of an answer": lambda: [backend(EVENT)],
    "not an answer": lambda: [backend(b"\x00\x01")],
    "an error in the middle": lambda: [backend(CONTENT * 30 + EVENT, piece=50)],
    "broken off": lambda: [Scripted(GOOD[:1], ProviderError("gone"))],
    "without a connection": lambda: [backend(ProviderError("gone"))],
    "asked once more": lambda: [_failing_retry()],
    "unexpected": lambda: [Scripted(GOOD[:1], ZeroDivisionError("a fault"))],
}


@pytest.mark.parametrize("case", _FAILURES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_request_leaves_the_memory_with_its_answer(api: str, stream: bool, case: str) -> None:
    async def work() -> list[Question]:
        app = gateway(*_FAILURES[case]())
        path, body = asked(api, stream=stream)
        await request(app, path, body)
        for upstream in app.services.models.find("m").every_upstream():
            if isinstance(upstream, Scripted):
                upstream.questions.clear()
        return _questions()

    # Objects of earlier tests are set aside: there are millions, and some may still be questions.
    gc.freeze()
    gc.disable()
    try:
        assert [question.id for question in asyncio.run(work())] == []
    finally:
        gc.enable()
