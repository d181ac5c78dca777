"""What the inspector keeps of the gateway's requests: the same for each API, within bounds, and without secrets."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, Scripted, request
from tests.unit.gateway.gateway_calls import gateway as plain_gateway
from tests.unit.inspector.recorded_exchanges import (
    ANSWER,
    KEY,
    PRICES,
    SECRET,
    WRITTEN,
    api_model,
    ask,
    inspected,
    question,
    text_model,
)

from toolwire import Client, ContentDelta, Finish, FinishReason
from toolwire.gateway.app import Gateway
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.model_table import ServedModel
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.inspector.exchange_view import HIDDEN, safe_pieces
from toolwire.inspector.inspector import Inspector, InspectorOptions
from toolwire.inspector.recorded_exchange import MAX_EXCHANGE, kept_headers, kept_path
from toolwire.providers.failure_kinds import UNREACHABLE
from toolwire.testing import ScriptedTransport
from toolwire.text.redaction import redact


def only(inspector: Inspector) -> Any:
    (id,) = inspector.ids()
    view = inspector.view(id)
    assert view is not None
    return view


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_text_model_is_shown_with_its_raw_text_and_its_repairs(api: str, stream: bool) -> None:
    gateway, inspector = inspected()
    assert ask(gateway, api, "text", stream=stream).status == 200
    view = only(inspector)
    assert "".join(step["raw"] for step in view["steps"]) == WRITTEN
    (call,) = view["calls"]
    assert call["complete"] and call["arguments"] == {"city": "Paris", "days": 3}
    assert set(call["repairs"]) == {"missing_close", "coerced"}
    assert call["raw"].startswith("<tool_call>") and call["begun"] <= call["ended"] <= view["row"]["total"]
    events = [event for step in view["steps"] for event in step["events"]]
    joined = "".join(event["text"] for event in events if event["kind"] == "arguments")
    assert json.loads(joined) == call["arguments"]
    assert view["row"]["repairs"] == 2 and view["row"]["state"] == "done" and view["row"]["api_out"] == "text"
    system, user = view["attempts"][0]["request"]
    assert '"get_weather"' in system["content"] and user == {"role": "user", "content": "Weather in Paris?"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CLIENTS)
def test_a_translated_answer_is_shown_with_the_backends_bytes(api: str, stream: bool) -> None:
    gateway, inspector = inspected()
    got = ask(gateway, api, "api", stream=stream)
    view = only(inspector)
    row = view["row"]
    assert [(call["name"], call["arguments"]) for call in view["calls"]] == [("get_weather", {"city": "Paris"})]
    assert view["content"] == "I look." and view["reasoning"] == "The user wants the weather."
    assert (row["input"], row["output"], row["cached"], row["finish"]) == (70, 12, 50, "tool_calls")
    assert row["status"] == 200 and row["backend_model"] == "claude" and row["client"] == "claude-cli 2.1"
    raw = "".join(step["raw"] for step in view["steps"])
    assert ("message_start" in raw) == stream and "tool_use" in raw
    assert row["passed"] == (api == "messages" and not stream)  # the backend's bytes hold no call in the text
    assert view["sent"] == ("" if row["passed"] else redact(got.body.decode()))  # some ids look like keys
    (attempt,) = view["attempts"]
    sent = view["request"] if attempt["same"] else attempt["request"]
    assert sent["messages"][0]["role"] == "user" and sent["tools"][0]["name"] == "get_weather"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_that_is_passed_on_is_read_only_when_somebody_looks(stream: bool) -> None:
    transport = ScriptedTransport("anthropic_messages", [ANSWER], piece=40)
    client = Client("anthropic_messages", "claude", base_url="http://backend", transport=transport)
    gateway, inspector = inspected(ServedModel("*", (ApiUpstream(client, calls_in_text="none"),)))
    got = ask(gateway, "messages", "m", stream=stream)
    (exchange,) = inspector.ring
    assert exchange.passed and all(step.events is None for step in exchange.attempts[0].steps)
    assert b"".join(bytes(step.raw) for step in exchange.attempts[0].steps) == got.body
    assert not exchange.sent  # the same bytes are not kept twice
    view = only(inspector)
    assert [call["arguments"] for call in view["calls"]] == [{"city": "Paris"}]
    assert view["attempts"][0]["same"] and view["row"]["output"] == 12 and view["row"]["passed"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", ["text", "api"])
@pytest.mark.parametrize("api", CLIENTS)
def test_the_client_gets_the_same_bytes_with_and_without_an_inspector(
    api: str, model: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.gateway.app.secrets.token_hex", lambda size: "a" * 24)
    monkeypatch.setattr("toolwire.gateway.client_calls.time.time", lambda: 1_000.0)
    inspecting, inspector = inspected()
    plain = Gateway(inspected()[0].services.models)
    with_inspector = ask(inspecting, api, model, stream=stream)
    without = ask(plain, api, model, stream=stream)
    assert with_inspector.body == without.body and with_inspector.body
    assert len(inspector.ids()) == 1


def test_nothing_is_recorded_without_an_inspector() -> None:
    upstream = Scripted([ContentDelta("a"), Finish(FinishReason.STOP)])
    gateway = plain_gateway(upstream)
    assert ask(gateway, "chat", "m").status == 200
    assert upstream.questions[0].exchange is None
    assert asyncio.run(request(gateway, "/inspector", method="GET")).status == 404


def test_failures_are_shown_with_what_each_backend_said() -> None:
    first = Scripted(opens=GatewayFailure(UNREACHABLE, "down"), name="first")
    limited = api_model((429, b'{"error":{"message":"slow down"}}'))
    gateway, inspector = inspected(
        ServedModel("*", (limited,), fallbacks=(api_model(),)), ServedModel("dead", (first,))
    )
    assert ask(gateway, "chat", "m").status == 200
    assert ask(gateway, "chat", "dead").status == 502
    path, body = question("chat", "m")
    del body["messages"]
    assert asyncio.run(request(gateway, path, {**body, "messages": 7})).status == 400
    assert asyncio.run(request(gateway, path, b"{")).status == 400
    good, dead, invalid, broken = (inspector.view(id) for id in inspector.ids())
    assert good and dead and invalid and broken
    assert [attempt["failure"] for attempt in good["attempts"]] == ["backend answered 429: slow down", ""]
    assert good["row"]["state"] == "done" and (good["row"]["attempts"], good["row"]["failed_attempts"]) == (2, 1)
    assert (dead["row"]["state"], dead["row"]["status"], dead["row"]["failure"]) == ("failed", 502, "down")
    assert invalid["row"]["status"] == 400 and invalid["request"]["messages"] == 7 and invalid["steps"] == []
    assert broken["request"] is None and "not JSON" in broken["row"]["failure"]


def test_a_stream_that_breaks_and_a_client_that_leaves_are_told_apart() -> None:
    cut = Scripted([ContentDelta("one")], GatewayFailure(UNREACHABLE, "the backend has gone"))
    slow = Scripted([ContentDelta("one")], 60.0)
    gateway, inspector = inspected(ServedModel("cut", (cut,)), ServedModel("slow", (slow,)))
    ask(gateway, "chat", "cut")
    path, body = question("chat", "slow")
    asyncio.run(request(gateway, path, body, leaves_after=0.05))
    cut_view, slow_view = (inspector.view(id) for id in inspector.ids())
    assert cut_view and slow_view
    assert cut_view["row"]["state"] == "failed" and cut_view["row"]["failure"] == "the backend has gone"
    assert slow_view["row"]["state"] == "left"


def test_other_routes_are_not_recorded() -> None:
    gateway, inspector = inspected()
    body = {"model": "text", "messages": [{"role": "user", "content": "hi"}]}
    for path in ("/v1/messages/count_tokens", "/api/show"):
        asyncio.run(request(gateway, path, body))
    asyncio.run(request(gateway, "/v1/models", method="GET"))
    assert inspector.ids() == []


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_keys_are_never_kept() -> None:
    headers = {"authorization": f"Bearer {SECRET}", "x-api-key": SECRET, "cookie": SECRET, "x-session-id": "s"}
    assert kept_headers(headers) == {"authorization": "", "x-api-key": "", "cookie": "", "x-session-id": "s"}
    assert kept_path("/v1beta/models/m:generateContent", f"alt=sse&key={SECRET}") == (
        "/v1beta/models/m:generateContent?alt&key"
    )


@pytest.mark.parametrize("piece", [3, 400])
@pytest.mark.parametrize("model", ["text", "api"])
def test_secrets_are_removed_from_requests_and_answers(model: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "a-secret-without-any-shape-19")
    written = f"The key is {SECRET}, and a-secret-without-any-shape-19."
    upstream = text_model(written, piece=piece) if model == "text" else api_model(type(ANSWER)(written))
    gateway, inspector = inspected(ServedModel("*", (upstream,)))
    got = ask(gateway, "chat", "m", text=f"My key: {SECRET}")
    if piece == 400:
        assert SECRET.encode() in got.body  # the client gets what the model wrote
    view = only(inspector)
    text = json.dumps(view)
    assert SECRET not in text and "a-secret-without-any-shape-19" not in text
    shown = "".join(step["raw"] for step in view["steps"])
    assert SECRET[:30] not in shown and SECRET[-30:] not in shown


def test_pieces_that_only_together_are_a_secret_are_hidden() -> None:
    assert safe_pieces(["a", "b"]) == ["a", "b"]
    pieces = [SECRET[at : at + 5] for at in range(0, len(SECRET), 5)]
    assert safe_pieces(pieces) == [HIDDEN, *[""] * (len(pieces) - 1)]
    assert SECRET not in "".join(safe_pieces([f"key {SECRET} ", "rest"]))


def test_without_content_names_and_figures_are_kept() -> None:
    gateway, inspector = inspected(options=InspectorOptions(key=KEY, content=False))
    ask(gateway, "chat", "text", text="a private question")
    ask(gateway, "messages", "api", text="a private question")
    for id in inspector.ids():
        view = inspector.view(id)
        assert view is not None
        assert view["request"] is None and view["steps"] == [] and view["row"]["calls"] == ["get_weather"]
        text = json.dumps(view)
        assert "private" not in text and "Paris" not in text and "I look" not in text
        assert view["row"]["output"] and view["row"]["first"] is not None
    assert all(exchange.size == 0 and exchange.body is None for exchange in inspector.ring)


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_the_oldest_exchanges_are_dropped_but_not_pinned_ones() -> None:
    gateway, inspector = inspected(options=InspectorOptions(exchanges=3))
    ask(gateway, "chat", "text")
    (first,) = inspector.ring
    first.pinned = True
    for _ in range(5):
        ask(gateway, "chat", "text")
    assert [exchange.number for exchange in inspector.ring] == [1, 5, 6]
    assert inspector.ring.evicted == 3


def test_the_memory_of_all_exchanges_is_bounded() -> None:
    gateway, inspector = inspected(options=InspectorOptions(memory=1))
    for _ in range(6):
        ask(gateway, "chat", "text", text="x" * 100_000)  # a body in chunks has no length in its head
    assert sum(exchange.size for exchange in inspector.ring) <= 1 << 20
    assert [exchange.number for exchange in inspector.ring] == [4, 5, 6]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", ["text", "api", "broken"])
@pytest.mark.parametrize("api", CLIENTS)
def test_an_evicted_exchange_leaves_the_memory_at_once(api: str, model: str, stream: bool) -> None:
    gateway, inspector = inspected(options=InspectorOptions(exchanges=1))
    gc.disable()
    try:
        ask(gateway, api, model, stream=stream)
        (evicted,) = map(weakref.ref, inspector.ring)
        only(inspector)  # a view of it may be made
        ask(gateway, api, model, stream=stream)
        assert evicted() is None
    finally:
        gc.enable()


def test_the_end_of_a_huge_answer_is_not_kept() -> None:
    inspector = Inspector()
    exchange = inspector.begin("id", "openai_compatible", "/", "", {})
    attempt = exchange.attempt("b", "openai_compatible", "m", "", {})
    for _ in range(3):
        attempt.arrived(b"x" * (MAX_EXCHANGE // 2), [])
    assert exchange.truncated
    assert [len(step.raw) for step in attempt.steps] == [MAX_EXCHANGE // 2, MAX_EXCHANGE // 2, 0]


def test_prices_give_the_cost() -> None:
    gateway, inspector = inspected(
        ServedModel("priced", (api_model(),), prices=PRICES), ServedModel("free", (text_model(),))
    )
    ask(gateway, "messages", "priced")
    ask(gateway, "messages", "free")
    free, priced = inspector.rows(9, 9)
    assert priced["cost"] == pytest.approx((70 * 3 + 12 * 15) / 1e6)
    assert free["cost"] == 0
